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
  const orNull = (ms: number) => (times.length > 0 ? round(ms, 3) : null);
  return {
    transmitted: sent,
    received,
    loss: round((loss ?? 0) * 100, 2),
    min: orNull(Math.min(...times)),
    avg: orNull(times.reduce((sum, ms) => sum + ms, 0) / times.length),
    max: orNull(Math.max(...times)),
  };
}
