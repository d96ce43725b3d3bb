import { type Fate, ledgerOf, totalsOf } from "../../icmp/ledger.ts";
import { round } from "../../util/numbers.ts";

/** The fields of a sample by which it is counted. */
interface Counted {
  readonly rtt?: number;
  readonly reason?: string;
  readonly errno?: string;
  readonly from?: string;
}

function fateOf({ rtt, reason, errno, from }: Counted): Fate {
  if (reason === undefined) return "reply";
  if (errno !== undefined) return "not-sent";
  if (from !== undefined) return "error";
  if (rtt !== undefined) return "late";
  return reason === "unknown" ? "unknown" : "silent";
}

/** The totals of some requests. */
export const pingTotals = (samples: readonly Counted[]) => totalsOf(ledgerOf(samples.map(fateOf)));

/** The statistics of a ping from the outcomes of all its requests, and the times of its replies in milliseconds. */
export function pingStatistics(samples: readonly Counted[], times: readonly number[]) {
  const { sent, received, loss } = pingTotals(samples);
  const counts = { transmitted: sent, received, loss: round((loss ?? 0) * 100, 2) };
  if (times.length === 0) return { ...counts, min: null, avg: null, max: null };
  const sum = times.reduce((total, time) => total + time, 0);
  return {
    ...counts,
    min: round(Math.min(...times), 3),
    avg: round(sum / times.length, 3),
    max: round(Math.max(...times), 3),
  };
}
