import { formatMs } from "./numbers.ts";
import type { Run } from "./state.ts";
import { TEXTS } from "./texts.ts";
import type { Sample } from "./types.ts";

const T = TEXTS.ping;

/** What became of each request; a part replaces an earlier one of the same request. */
export function samplesOf(current: Run | null): Sample[] {
  const samples: Sample[] = [];
  for (const sample of (current?.parts ?? []) as readonly Sample[])
    samples[sample.seq - 1] = sample;
  return samples.filter(() => true);
}

/** The statistics of samples, in milliseconds. */
export function statsOf(samples: readonly Sample[]) {
  const times = samples.flatMap((sample) => ("reason" in sample ? [] : [sample.rtt]));
  const sum = times.reduce((total, time) => total + time, 0);
  const received = times.length;
  const has = received > 0;
  const isLost = (sample: Sample) => "reason" in sample && sample.reason !== "unknown";
  return {
    sent: samples.length,
    received,
    lossPercent: (samples.filter(isLost).length / Math.max(1, samples.length)) * 100,
    min: has ? Math.min(...times) : null,
    mean: has ? sum / received : null,
    max: has ? Math.max(...times) : null,
  };
}

/** In words what is special about a sample; empty if nothing is. */
export function noteOf(sample: Sample, timeoutMs: number | null): string {
  if (!("reason" in sample)) return sample.details ? T.otherSource(sample.details.from) : "";
  if ("errno" in sample) return T.reasons["not-sent"](sample.errno);
  if ("from" in sample) {
    return T.reasons.error(sample.reason, sample.type, sample.code, sample.from);
  }
  if (sample.reason === "unknown") return T.reasons.unknown;
  return sample.rtt === undefined
    ? T.reasons.timeout(timeoutMs)
    : T.reasons.late(formatMs(sample.rtt));
}
