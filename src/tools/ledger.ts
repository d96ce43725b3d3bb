import { round } from "../util/numbers.ts";

/**
 * How a probe ended. Each probe ends as exactly one of these, and every statistic only counts them:
 *
 * - `reply`: the target replied in time.
 * - `hop`: a router answered that the hop limit ended there.
 * - `error`: another ICMPv6 error answered; it goes no further.
 * - `late`: an answer came after the timeout.
 * - `silent`: no answer came.
 * - `unknown`: no answer was read, but the kernel dropped packets meanwhile.
 * - `not-sent`: this machine's kernel refused to send it.
 */
export type Fate = "reply" | "hop" | "error" | "late" | "silent" | "unknown" | "not-sent";

/** A share in percent. */
export const percent = (share: number) => round(share * 100, 2);

/** How many probes ended in each way. */
export type Ledger = Record<Fate, number>;

/** The ledger of some probes; of none by default. */
export function ledgerOf(fates: readonly Fate[] = []): Ledger {
  const ledger = { reply: 0, hop: 0, error: 0, late: 0, silent: 0, unknown: 0, "not-sent": 0 };
  for (const fate of fates) ledger[fate]++;
  return ledger;
}

/**
 * The sums of a ledger, as documents show them. A probe that was not sent is not lost, and of what is `unknown`
 * nothing is said: `loss` is in percent of the others, or null without any.
 */
export function totalsOf({ reply, hop, error, late, silent, unknown }: Readonly<Ledger>) {
  const received = reply + hop;
  const lost = error + late + silent;
  const loss = received + lost === 0 ? null : percent(lost / (received + lost));
  return { sent: received + lost + unknown, received, late, errors: error, unknown, loss };
}

/** How many of the probes were lost. */
export const lostOf = ({ sent, received, unknown }: ReturnType<typeof totalsOf>) =>
  sent - unknown - received;
