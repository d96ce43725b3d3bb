/** The numbers in the document of a run, for the row that is kept of it. */
import { toneOf } from "../tools/report.ts";
import { median } from "../util/numbers.ts";
import { answersOf, verdictOf } from "./diff.ts";
import type { LevelRun } from "./level.ts";

/** A run as it is kept; times of round trips are in microseconds, and null if nothing was answered. */
export interface Run extends LevelRun {
  /** Unix milliseconds when it began. */
  readonly atMs: number;
  readonly durationMs: number;
  /** The code of the verdict, or of an error about the target. */
  readonly code: string;
  readonly least: number | null;
  readonly greatest: number | null;
  /** A number for the path, which differs between paths; null if none is known. */
  readonly path: number | null;
}

/** The parts of the documents of all tools that are counted. */
interface Counted {
  readonly results?: readonly { readonly rtt: number }[];
  readonly stats?: { readonly transmitted: number; readonly loss: number };
  readonly queryTime?: number;
  readonly steps?: readonly { rtt?: number; rttMost?: number; ip?: string }[];
  readonly hops?: readonly CountedHop[];
  readonly details?: {
    readonly reached?: boolean;
    readonly toTarget?: { readonly sent: number; readonly loss: number | null };
  };
}

type CountedHop = { readonly ip: string | null } & {
  readonly [Time in "rtt" | "min" | "p50" | "max"]?: number | null;
};

const RANK = { good: 0, warn: 1, bad: 2 } as const;

/** How bad a verdict is, from 0 to `WORST`. */
export const rankOf = (code: string): number => RANK[toneOf(code)];

export const WORST = RANK.bad;

/** Numbers for paths: so few that each fits into two bytes of a row. */
const PATHS = 0x8000;

/** True if a verdict says that the watched target does not work. */
export const isBadCode = (code: string): boolean => rankOf(code) === WORST;

/** The numbers of a document, and its verdict in words. From several locations, the numbers of all, and the worst verdict. */
export function measuredOf(document: object): Omit<Run, "atMs" | "durationMs"> & { text: string } {
  const answers = [...answersOf(document)].map(([location, answer]) => {
    const { code, text } = verdictOf(answer);
    const { stats, hops = [], details = {} } = answer as Counted;
    const { sent, loss } = stats
      ? { sent: stats.transmitted, loss: stats.loss }
      : (details.toTarget ?? { sent: 0, loss: 0 });
    const times = timesOf(answer as Counted);
    const lost = Math.round((sent * (loss ?? 0)) / 100);
    return { location, code, text, sent, lost, times, path: hops.map(({ ip }) => ip).join(">") };
  });
  const worst = answers.toSorted((a, b) => rankOf(b.code) - rankOf(a.code))[0];
  const sum = (name: "sent" | "lost") => answers.reduce((total, each) => total + each[name], 0);
  const times = answers.flatMap((each) => each.times);
  const us = (ms: number | null) => (ms === null ? null : Math.round(ms * 1000));
  const path = answers.map((each) => each.path).join();
  return {
    code: worst?.code ?? "",
    text: [worst?.location, worst?.text].filter(Boolean).join(": "),
    ...{ sent: sum("sent"), lost: sum("lost") },
    least: us(times.length > 0 ? Math.min(...times) : null),
    median: us(median(answers.flatMap((each) => median(each.times) ?? []))),
    greatest: us(times.length > 0 ? Math.max(...times) : null),
    path: /^,*$/.test(path) ? null : Bun.hash.crc32(path) % PATHS,
  };
}

/** Milliseconds of the round trips to the target: all of them, or else the least, the median and the greatest. */
function timesOf({ results, queryTime, steps, hops, details = {} }: Counted): number[] {
  if (results) return results.map(({ rtt }) => rtt);
  if (queryTime !== undefined) return [queryTime];
  const timed = steps?.find(({ rtt, ip }) => rtt !== undefined && ip?.includes(":"));
  const last = details.reached ? hops?.at(-1) : undefined;
  const known = timed
    ? [timed.rtt, timed.rtt, timed.rttMost]
    : [last?.min, last?.p50 ?? last?.rtt, last?.max];
  return known.flatMap((time) => time ?? []);
}
