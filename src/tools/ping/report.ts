import { formatPercent, plural } from "../../util/text.ts";
import { type Draft, errorText, latest, type Reporter, type Row, runReport } from "../report.ts";
import type { LostSample, PingResult, Sample } from "./result.ts";
import { describePing } from "./verdict.ts";

/** A ping as far as it is known. */
export type PingDocument = Draft<PingResult, "target" | "results" | "stats"> & {
  readonly details: Pick<PingResult["details"], "lost">;
};

/** The samples of a ping in order, the statistics of their times, and what was lost. */
export const pingReport: Reporter<PingDocument, Sample> = {
  progress: { noun: "request", wanted: "count", of: ({ seq }) => seq },
  draft(target, parts) {
    const samples = latest(parts, ({ seq }) => seq);
    const { results, stats, lost, late, verdict } = describePing(samples);
    const details = { lost, late, duplicates: 0, ...(samples.length > 0 && { verdict }) };
    return { target, results, stats, details };
  },
  report(document) {
    const { stats, details } = document;
    const { transmitted, received, loss, min, avg, max } = stats;
    const { duplicates = 0, late = 0, timeout } = details;
    const replies = [
      `${received} of ${transmitted}, ${formatPercent(loss)} lost`,
      duplicates > 0 && plural(duplicates, "duplicate"),
      late > 0 && `${late} too late`,
    ];
    const times = Object.entries({ min, mean: avg, max }).map(
      ([name, ms]) => `${name} ${ms?.toFixed(3)}`,
    );
    const rows = samplesOf(document).map((sample) => rowOf(sample, timeout));
    const tone = received === 0 ? "bad" : loss === 0 ? "good" : "warn";
    const facts = [
      ["Replies", replies.filter(Boolean).join(", "), tone],
      ["Times", avg !== null && `${times.join(", ")} ms`],
    ] as const;
    return runReport(document, facts, [{ columns: COLUMNS, rows }], received > 0);
  },
};

const COLUMNS = [
  { name: "seq", kind: "position" },
  { name: "time", kind: "time" },
  { name: "hop limit", kind: "count" },
  { name: "", kind: "text", isToned: true },
] as const;

/** All samples of a ping in order. */
export function samplesOf(document: Pick<PingDocument, "results" | "details">): Sample[] {
  return [...document.results, ...document.details.lost].sort((a, b) => a.seq - b.seq);
}

function rowOf(sample: Sample, timeoutMs: number | undefined): Row {
  if ("reason" in sample) {
    const rtt = "rtt" in sample ? (sample.rtt ?? null) : null;
    return { cells: [sample.seq, rtt, null, reasonOf(sample, timeoutMs)], tone: "bad" };
  }
  const { seq, rtt, ttl, details } = sample;
  return { cells: [seq, rtt, ttl, details === undefined ? null : `from ${details.from}`] };
}

function reasonOf(lost: LostSample, timeoutMs: number | undefined): string {
  if ("errno" in lost) return `not sent: ${lost.errno}`;
  if ("from" in lost) return errorText({ ...lost, name: lost.reason });
  if (lost.reason === "unknown") return "unknown: the kernel dropped packets";
  if (lost.reason === "retransmitted") return "the first SYN-ACK was lost, and came again";
  const limit = timeoutMs === undefined ? "in time" : `within ${timeoutMs} ms`;
  return `no reply ${limit}${lost.rtt === undefined ? "" : ", but later"}`;
}
