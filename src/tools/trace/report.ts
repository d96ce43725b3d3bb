import { inWords, plural, shareText } from "../../util/text.ts";
import { type Draft, hopNotes, latest, type Reporter, type Row, runReport } from "../report.ts";
import type { Hop, TracePath, TraceResult } from "./result.ts";

/** A trace as far as it is known. */
export type TraceDocument = Draft<TraceResult, "target" | "hops">;

const COLUMNS = [
  { name: "hop", kind: "position" },
  { name: "time", kind: "time" },
  { name: "hop limit", kind: "count", isExtra: true },
  { name: "address", kind: "host" },
  { name: "", kind: "notes" },
] as const;

/** The hops of a trace, and the paths if there are several. */
export const traceReport: Reporter<TraceDocument, Hop | TracePath> = {
  draft(target, parts) {
    const hops = parts.filter((part) => "hop" in part);
    const paths = parts.filter((part) => "flowLabel" in part);
    const details = { paths: [...new Map(paths.map((path) => [path.flowLabel, path])).values()] };
    return { target, hops: latest(hops, ({ hop }) => hop), details };
  },
  report(document) {
    const { hops, details } = document;
    const { reached = false, paths = [], refused = [], otherSource, verdict } = details;
    const isLossy = paths.some((path) => !path.reached);
    const hasSeveral = paths.length > 1;
    const ofPaths = paths.map((path) => pathTable(path, paths[0]?.addresses ?? [], details));
    const refusal = (errno: string) => `this machine refused to send (${errno})`;
    const facts = [
      ["Paths", verdict === undefined && hasSeveral && `${paths.length} so far`] as const,
      ["Replied as", otherSource] as const,
      ...refused.map(({ hop, errno }) => [`Hop ${hop}`, refusal(errno), "bad"] as const),
    ];
    const all = { columns: COLUMNS, rows: hops.map(rowOf) };
    const tables = [all, ...(verdict && hasSeveral ? ofPaths : [])];
    // Before its end, a search has not answered which paths there are.
    const isAnswered = verdict !== undefined && (reached || paths.some((path) => path.reached));
    const report = runReport(document, facts, tables, isAnswered);
    const toned = report.verdict;
    return isLossy && toned ? { ...report, verdict: { ...toned, tone: "bad" } } : report;
  },
};

function rowOf({ hop, ip, hostname, rtt, details }: Hop): Row {
  const hopLimit = details?.replyHopLimit ?? null;
  return { cells: [hop, rtt, hopLimit, { ip, hostname }, traceNotes(details, ip)] };
}

/** Short notes about a hop: its network, other addresses, labels, interfaces. */
export function traceNotes(details: Hop["details"] = {}, ip: string | null = null): string[] {
  const { addresses = [], rtts = [], mpls = [], mtu, interfaces = [], asymmetry = 0 } = details;
  const others = addresses.filter((address) => address !== ip);
  const times = rtts.slice(1).map((ms) => ms.toFixed(3));
  const more = Math.abs(asymmetry);
  const notes = [
    ...hopNotes(details),
    details.unanswered && UNANSWERED[details.unanswered],
    others.length > 0 && `also ${others.join(" ")}`,
    times.length > 0 && `also ${times.join(" ")} ms`,
    ...mpls.map(
      ({ label, trafficClass, ttl }) => `MPLS ${label}, class ${trafficClass}, TTL ${ttl}`,
    ),
    mtu !== undefined && `next link MTU ${mtu}`,
    // A difference of one means nothing: some routers count themselves, and some do not.
    more > 1 && `the return path seems to be ${more} hops ${asymmetry > 0 ? "longer" : "shorter"}`,
    ...interfaces.map(({ role, name, address, index, mtu: bytes }) =>
      [ROLES[role], name, address, index !== null && `#${index}`, bytes && `MTU ${bytes}`]
        .filter(Boolean)
        .join(" "),
    ),
  ];
  return notes.filter((note) => typeof note === "string");
}

const UNANSWERED = {
  "seen-by-others": "no answer now; it answered other traces at this hop",
  "rate-limited": "no answer; routers at this hop limit how often they answer",
} as const;

const ROLES = {
  incoming: "came in on",
  "sub-ip": "came in below IP on",
  outgoing: "leaves by",
  "next-hop": "next hop",
} as const;

/** A path, and where it differs from the first one. */
function pathTable(
  { flowLabel, labels, reached, reason, addresses }: TracePath,
  first: TracePath["addresses"],
  { graph, labels: all }: TraceDocument["details"],
) {
  const end = reached ? plural(addresses.length, "hop") : `not reached: ${inWords(reason)}`;
  const differing = [...addresses.entries()].filter(([at, ip]) => ip !== first[at]);
  return {
    heading: `--flow-label ${flowLabel}, ${shareText(labels, all ?? 0, "flow label")}, ${end}`,
    columns: COLUMNS,
    rows: differing.map(([at, ip]) => {
      const node = graph?.nodes.find((each) => each.hop === at + 1 && each.ip === ip);
      return rowOf(node ?? { hop: at + 1, ip, hostname: null, rtt: null });
    }),
  };
}
