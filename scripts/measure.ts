/** Measurements and statistics that the benchmarks share. */
import { readFileSync } from "node:fs";
import { run } from "../test/lab/run.ts";

/** The figures of wrk and the kernel for a server under load. */
export interface Load {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** CPU time of the server for each request, in microseconds. */
  readonly cpuUs: number;
}

/** Loads a server from one thread of wrk, with further options of its command line. */
export async function load(url: string, pid: number, options: readonly string[]): Promise<Load> {
  const before = cpuSeconds(pid);
  const report = await run(["wrk", "-t1", "--latency", ...options, url]);
  const [, requests = ""] = /(\d+) requests in/.exec(report) ?? [];
  const cpuUs = ((cpuSeconds(pid) - before) * 1e6) / Number(requests);
  const latencyMs = (percentile: number) => {
    const [, value = "", unit = ""] =
      new RegExp(`${percentile}%\\s+([\\d.]+)(us|ms|s)`).exec(report) ?? [];
    return Number(value) * ({ us: 0.001, ms: 1, s: 1000 }[unit] ?? Number.NaN);
  };
  const perSecond = Number(/Requests\/sec:\s+([\d.]+)/.exec(report)?.[1]);
  return { perSecond, p50Ms: latencyMs(50), p99Ms: latencyMs(99), cpuUs };
}

/** CPU time that a process has used, of all its threads; proc(5), in ticks of 10 ms. */
export function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** The middle value, or the upper of two middle values; NaN for an empty list. */
export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

/** Resident mebibytes of a process: now, only its private ones, or the peak so far. */
export function residentMiB(pid: number, field: "VmRSS" | "RssAnon" | "VmHWM" = "VmRSS"): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(new RegExp(`^${field}:\\s+(\\d+)`, "m").exec(status)?.[1]) / 1024;
}
