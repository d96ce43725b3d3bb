import { listText, plural } from "../../util/text.ts";
import { type Column, hopNotes, hopsText, type Reporter, type Row, runReport } from "../report.ts";
import type { MtrResult, MtrRound } from "./endpoint.ts";

type Hop = MtrResult["hops"][number];

/** Statistics as far as they are known. */
export interface MtrDocument extends Pick<MtrResult, "target" | "rounds" | "hops"> {
  readonly ip?: string;
  readonly details: Partial<MtrResult["details"]>;
}

const COLUMNS: readonly Column[] = [
  { name: "hop", kind: "position" },
  { name: "loss", kind: "percent", isToned: true },
  { name: "sent", kind: "count" },
  { name: "rcvd", kind: "count", isExtra: true },
  ...(["last", "avg", "best", "worst", "stdev"] as const).map(
    (name): Column => ({ name, kind: "ms", isDetail: name !== "avg" }),
  ),
  ...(["jitter", "p50", "p95"] as const).map(
    (name): Column => ({ name, kind: "ms", isExtra: true }),
  ),
  { name: "address", kind: "host" },
  { name: "", kind: "notes" },
];

/** Loss and times of the hops, and the paths that the rounds took. */
export const mtrReport: Reporter<MtrDocument, MtrRound> = {
  isCumulative: true,
  progress: { noun: "round", wanted: "rounds", of: ({ round }) => round },
  draft(target, parts) {
    const { round, hops } = parts.at(-1) ?? { round: 0, hops: [] };
    return { target, rounds: round, hops, details: {} };
  },
  report(document) {
    const { rounds, hops, details } = document;
    const { reached = false, paths = [] } = details;
    return runReport(
      document,
      [
        ["Rounds", `${rounds}, times in ms`],
        ["Paths", paths.length > 1 && pathsText(paths), "warn"],
      ],
      [{ columns: COLUMNS, rows: hops.map(rowOf) }],
      reached,
    );
  },
};

function rowOf(hop: Hop): Row {
  const { ip, hostname, sent, received, loss, limited, last, avg, min, max, stdDev } = hop;
  const times = [last, avg, min, max, stdDev, hop.jitter, hop.p50, hop.p95];
  const others = hop.addresses
    .slice(1)
    .map((other) => ["also", other.ip, other.hostname, `(${other.received} of ${received})`])
    .map((words) => words.filter(Boolean).join(" "));
  const notes = [
    ...(limited ? ["does not answer every probe"] : []),
    ...others,
    ...hopNotes(hop.details),
  ];
  const isLossy = ip !== null && !limited && loss !== null && loss > 0;
  const cells = [hop.hop, loss, sent, received, ...times, { ip, hostname }, notes];
  return { cells, ...(isLossy && { tone: "bad" }) };
}

/** How often each path was taken, and where they differ. */
function pathsText(paths: MtrResult["details"]["paths"]): string {
  const length = Math.max(...paths.map(({ addresses }) => addresses.length));
  const hops = Array.from({ length }, (_, at) => at).filter((at) => {
    const here = paths.map(({ addresses }) => addresses[at]).filter((address) => address);
    return new Set(here).size > 1;
  });
  const each = paths.map(
    (path) => `${plural(path.rounds, "round")}${path.reached ? "" : " (target not reached)"}`,
  );
  const where = hops.length === 0 ? "" : `; they differ at ${hopsText(hops.map((at) => at + 1))}`;
  return `${paths.length} were taken, by ${listText(each)}${where}`;
}
