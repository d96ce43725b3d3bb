/** What the benchmarks reckon with. */
import { readFileSync } from "node:fs";

/** The middle value, the upper of two middle ones; NaN of none. */
export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

/** Mebibytes that a process has in memory: now, of that what is its own, or the most there ever were. */
export function residentMiB(pid: number, field: "VmRSS" | "RssAnon" | "VmHWM" = "VmRSS"): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(new RegExp(`^${field}:\\s+(\\d+)`, "m").exec(status)?.[1]) / 1024;
}
