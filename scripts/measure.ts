/** What the benchmarks calculate with. */
import { readFileSync } from "node:fs";

/** The middle value, or the upper of two middle values; NaN for an empty list. */
export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

/** Resident mebibytes of a process: now, only its private ones, or the peak so far. */
export function residentMiB(pid: number, field: "VmRSS" | "RssAnon" | "VmHWM" = "VmRSS"): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(new RegExp(`^${field}:\\s+(\\d+)`, "m").exec(status)?.[1]) / 1024;
}
