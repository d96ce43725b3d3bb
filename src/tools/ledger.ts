import { median, round } from "../util/numbers.ts";
import { plural } from "../util/text.ts";

/**
 * How a probe ended. Each probe ends as exactly one of these, and every statistic only counts them:
 *
 * - `reply`: the target replied in time.
 * - `hop`: a router answered that the hop limit ended there.
 * - `error`: another ICMPv6 error answered; it goes no further.
 * - `late`: an answer came after the timeout.
 * - `retransmitted`: a SYN-ACK came, but not the first one; see `retransmittedFromMs`.
 * - `silent`: no answer came.
 * - `unknown`: no answer was read, but the kernel dropped packets meanwhile.
 * - `not-sent`: this machine's kernel refused to send it.
 */
export type Fate = "reply" | "hop" | LostFate | "unknown" | "not-sent";

type LostFate = "error" | "late" | "retransmitted" | "silent";

/** A share in percent. */
export const percent = (share: number) => round(share * 100, 2);

/** How many probes ended in each way. */
export type Ledger = Record<Fate, number>;

/** The ledger of some probes; of none by default. */
export function ledgerOf(fates: readonly Fate[] = []): Ledger {
  const answered = { reply: 0, hop: 0, error: 0, late: 0, retransmitted: 0 };
  const ledger = { ...answered, silent: 0, unknown: 0, "not-sent": 0 };
  for (const fate of fates) ledger[fate]++;
  return ledger;
}

/**
 * The sums of a ledger, as documents show them. `loss` is in percent of the probes whose fate is known, or null without
 * any: a probe that was not sent is not lost, and an `unknown` one may or may not be.
 */
export function totalsOf(ledger: Readonly<Ledger>) {
  const { reply, hop, error, late, retransmitted, silent, unknown } = ledger;
  const received = reply + hop;
  const lost = error + late + retransmitted + silent;
  const loss = received + lost === 0 ? null : percent(lost / (received + lost));
  const sent = received + lost + unknown;
  const again = retransmitted > 0 && { retransmitted };
  return { sent, received, late, ...again, errors: error, unknown, loss };
}

/** How many of the probes were lost. */
export const lostOf = ({ sent, received, unknown }: ReturnType<typeof totalsOf>) =>
  sent - unknown - received;

/** How much later than others a retransmitted SYN-ACK comes, in milliseconds: it leaves after 1 s; RFC 6298 section 2. */
const RETRANSMITTED_MS = 900;

/**
 * The round-trip time in milliseconds from which a SYN-ACK counts as retransmitted, so the first one was lost:
 * `RETRANSMITTED_MS` more than the median of the others.
 */
export function retransmittedFromMs(rttsMs: readonly number[]): number {
  // Whichever late SYN-ACK is judged, the median of the others is the same, so one stands for all.
  const others = rttsMs.toSorted((a, b) => a - b).slice(0, -1);
  return (median(others) ?? Infinity) + RETRANSMITTED_MS;
}

/** A sentence about SYNs whose SYN-ACK was sent again. */
export const retransmittedText = (syns: number) =>
  `To ${plural(syns, "SYN")}, only a retransmitted SYN-ACK came: the return path lost the first.`;
