import { round } from "../../util/numbers.ts";
import { firstTrue, formatPercent, inWords, plural } from "../../util/text.ts";
import { type Fate, ledgerOf, lostOf, retransmittedText, totalsOf } from "../ledger.ts";
import type { LostSample, PingSample, Sample } from "./result.ts";

function fateOf(sample: Sample): Fate {
  if (!("reason" in sample)) return "reply";
  if ("errno" in sample) return "not-sent";
  if ("from" in sample) return "error";
  if (sample.reason === "retransmitted") return sample.reason;
  if (sample.rtt !== undefined) return "late";
  return sample.reason === "unknown" ? "unknown" : "silent";
}

/** The totals of some requests. */
export const pingTotals = (samples: readonly Sample[]) => totalsOf(ledgerOf(samples.map(fateOf)));

/** Describes requests in the order of `seq`: replies and losses, their statistics, and the conclusion. */
export function describePing(samples: readonly Sample[]) {
  const results = samples.filter((sample): sample is PingSample => !("reason" in sample));
  const lost = samples.filter((sample): sample is LostSample => "reason" in sample);
  const { sent, received, loss, late } = pingTotals(samples);
  const times = results.map(({ rtt }) => rtt);
  const orNull = (ms: number) => (times.length > 0 ? round(ms, 3) : null);
  const stats = {
    transmitted: sent,
    received,
    loss: loss ?? 0,
    min: orNull(Math.min(...times)),
    avg: orNull(times.reduce((sum, ms) => sum + ms, 0) / times.length),
    max: orNull(Math.max(...times)),
  };
  return { results, stats, lost, late, verdict: pingVerdict(received, lost) };
}

/** The conclusion of a ping, from the number of replies and the requests without one. */
export function pingVerdict(received: number, lost: readonly LostSample[]) {
  const totals = pingTotals(lost);
  const { unknown, late, retransmitted = 0 } = totals;
  const missing = lostOf(totals);
  const sent = received + totals.sent;
  const unsent = lost.filter((sample) => "errno" in sample);
  const errors = lost.filter((sample) => "from" in sample);
  const code = firstTrue({
    "no-loss": received > 0 && missing === 0,
    loss: received > 0,
    "not-sent": sent === 0,
    unreachable: errors.length > 0,
    "no-reply": true,
  });
  const share = (count: number, of = sent) =>
    count < of ? `${count} of ${of} requests` : of === 1 ? "the request" : `all ${of} requests`;
  // With unknown outcomes, a percentage would say too much.
  const percent = unknown === 0 ? ` (${formatPercent((missing / sent) * 100)})` : "";
  const [error] = errors;
  const same = errors.filter((each) => each.from === error?.from && each.reason === error?.reason);
  const sentences = [
    code === "no-loss" && `The target replied to ${share(received)}.`,
    code === "loss" && `The target did not reply to ${share(missing)}${percent}.`,
    received === 0 &&
      missing > 0 &&
      (sent === 1
        ? "The target did not reply to the request."
        : `The target replied to none of ${sent} requests.`),
    error && `${error.from} answered ${share(same.length)} with ${inWords(error.reason)}.`,
    same.length < errors.length &&
      `Other ICMPv6 errors answered ${share(errors.length - same.length)}.`,
    late > 0 && `${plural(late, "answer")} came after the timeout.`,
    retransmitted > 0 && retransmittedText(retransmitted),
    sent === 0 && lost.length === 0 && "No request left in time.",
    unsent[0] &&
      `This machine could not send ${share(unsent.length, sent + unsent.length)} (${unsent[0].errno}).`,
    unknown > 0 &&
      `What became of ${share(unknown)} is not known, because the kernel of this machine dropped packets.`,
  ];
  return { code, text: sentences.filter(Boolean).join(" ") } as const;
}
