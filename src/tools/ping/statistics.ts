import { round } from "../../util/numbers.ts";

/** The statistics of a ping from its round-trip times in milliseconds. */
export function pingStatistics(times: readonly number[], lost: number, transmitted: number) {
  const loss = transmitted === 0 ? 0 : round((lost / transmitted) * 100, 2);
  const counts = { transmitted, received: times.length, loss };
  if (times.length === 0) return { ...counts, min: null, avg: null, max: null };
  const sum = times.reduce((total, time) => total + time, 0);
  return {
    ...counts,
    min: round(Math.min(...times), 3),
    avg: round(sum / times.length, 3),
    max: round(Math.max(...times), 3),
  };
}
