import { foldOf } from "../../util/fold.ts";
import { listText, plural } from "../../util/text.ts";
import { type Draft, hopNotes, hopsText, type Reporter, type Row, runReport } from "../report.ts";
import type { MtrHop, MtrResult, MtrRound } from "./result.ts";

/** Statistics as far as they are known. */
export type MtrDocument = Draft<MtrResult, "target" | "rounds" | "hops">;

const COLUMNS = [
  { name: "hop", kind: "position" },
  { name: "loss", kind: "percent", isToned: true },
  { name: "sent", kind: "count" },
  { name: "rcvd", kind: "count", isExtra: true },
  { name: "last", kind: "ms", isDetail: true },
  { name: "avg", kind: "ms" },
  { name: "best", kind: "ms", isDetail: true },
  { name: "worst", kind: "ms", isDetail: true },
  { name: "stdev", kind: "ms", isDetail: true },
  { name: "jitter", kind: "ms", isExtra: true },
  { name: "p50", kind: "ms", isExtra: true },
  { name: "p95", kind: "ms", isExtra: true },
  { name: "address", kind: "host" },
  { name: "", kind: "notes" },
] as const;

/** Loss and times of the hops, and the paths that the rounds took. */
export const mtrReport: Reporter<MtrDocument, MtrRound> = {
  merge: mergeRound,
  progress: { noun: "round", wanted: "rounds", of: ({ round }) => round },
  draft: (target, parts) => mtrDraft(target, knownOf(parts)),
  report(document) {
    const { rounds, hops, details } = document;
    const { reached = false, paths = [] } = details;
    const facts = [
      ["Rounds", rounds > 0 && `${rounds}, times in ms`],
      ["Paths", paths.length > 1 && pathsText(paths, details.otherRounds), "warn"],
    ] as const;
    return runReport(document, facts, [{ columns: COLUMNS, rows: hops.map(rowOf) }], reached);
  },
};

/** The document of all that is known, with the verdict so far. */
export function mtrDraft(target: string, known: MtrRound | undefined): MtrDocument {
  const { round: rounds = 0, hops = [], verdict } = known ?? {};
  const reached = ["no-loss", "loss", "unclear"].includes(verdict?.code ?? "");
  return { target, rounds, hops, details: verdict ? { verdict, reached } : {} };
}

/** All that is known after an event: its rows in place of the earlier ones. */
export function mergeRound(known: MtrRound | undefined, part: MtrRound): MtrRound {
  const rows = new Map(known?.hops.map((hop) => [hop.hop, hop]));
  for (const hop of part.hops) {
    const before = rows.get(hop.hop)?.addresses ?? [];
    const addresses = new Map([...before, ...hop.addresses].map((each) => [each.ip, each]));
    const sorted = [...addresses.values()].sort((a, b) => b.received - a.received);
    rows.set(hop.hop, { ...hop, addresses: sorted });
  }
  const hops = [...rows.values()].filter(({ hop }) => hop <= part.length);
  return { ...part, hops: hops.sort((a, b) => a.hop - b.hop) };
}

/** All that is known after the events of a run. */
const knownOf = foldOf<MtrRound, MtrRound | undefined>(() => undefined, mergeRound);

/**
 * The probes of a round whose outcome is known: the address that replied and its time, both null for a lost probe.
 */
export function outcomesIn(known: MtrRound | undefined, part: MtrRound) {
  return part.hops.flatMap(({ hop, ip, last, addresses, ...row }) => {
    const before = known?.hops.find((each) => each.hop === hop);
    const isNew = (count: "received" | "sent" | "unknown") => row[count] > (before?.[count] ?? 0);
    const isLost = isNew("sent") && !isNew("unknown");
    if (!isNew("received")) return isLost ? [{ hop, ip: null, rtt: null }] : [];
    const earlier = new Map(before?.addresses.map((each) => [each.ip, each.received]));
    const from = addresses.find((each) => each.received > (earlier.get(each.ip) ?? 0));
    return [{ hop, ip: from?.ip ?? ip, rtt: last }];
  });
}

type Cause = NonNullable<MtrHop["cause"]>;

/** Words for the loss of a row: for a column, and for a note that says more. */
const CAUSES: Readonly<Record<Cause, readonly [text: string, note?: string]>> = {
  path: ["path"],
  replies: ["router busy", "does not answer every probe"],
  unclear: ["unclear", "too few probes to tell why"],
};

/** The words for a hop; none if it has never answered. */
const wordsOf = ({ ip, received, cause }: MtrHop) =>
  ip === null || cause === null || (cause === "replies" && received === 0) ? [] : CAUSES[cause];

/** Why a hop loses, in a few words; null without a cause. */
export const causeText = (hop: MtrHop): string | null => wordsOf(hop)[0] ?? null;

/** Why a hop loses, as a note; undefined if `causeText` says it all. */
export const causeNote = (hop: MtrHop): string | undefined => wordsOf(hop)[1];

function rowOf(hop: MtrHop): Row {
  const { ip, hostname, sent, received, loss, cause, last, avg, min, max, stdDev } = hop;
  const times = [last, avg, min, max, stdDev, hop.jitter, hop.p50, hop.p95];
  const others = hop.addresses
    .slice(1)
    .map((other) => ["also", other.ip, other.hostname, `(${other.received} of ${received})`])
    .map((words) => words.filter(Boolean).join(" "));
  const notes = [
    causeNote(hop),
    hop.late > 0 && `${hop.late} too late`,
    hop.errors > 0 && plural(hop.errors, "error"),
    hop.unknown > 0 && `${hop.unknown} unknown: the kernel dropped packets`,
    ...others,
    hop.others > 0 && `${hop.others} of ${received} from further addresses`,
    ...hopNotes(hop.details),
  ].filter((note) => typeof note === "string");
  const cells = [hop.hop, loss, sent, received, ...times, { ip, hostname }, notes];
  const tone = cause === "path" ? "bad" : "warn";
  return { cells, ...(ip !== null && cause !== null && cause !== "replies" && { tone }) };
}

/** How often each path was taken, and where they differ. */
function pathsText(paths: MtrResult["details"]["paths"], otherRounds = 0): string {
  const length = Math.max(...paths.map(({ addresses }) => addresses.length));
  const hops = Array.from({ length }, (_, at) => at).filter((at) => {
    const here = paths.map(({ addresses }) => addresses[at]).filter((address) => address);
    return new Set(here).size > 1;
  });
  const each = paths.map(
    (path) => `${plural(path.rounds, "round")}${path.reached ? "" : " (target not reached)"}`,
  );
  const where = hops.length === 0 ? "" : `; they differ at ${hopsText(hops.map((at) => at + 1))}`;
  const others = otherRounds === 0 ? "" : `; ${plural(otherRounds, "round")} took others`;
  return `${paths.length} were taken, by ${listText(each)}${where}${others}`;
}
