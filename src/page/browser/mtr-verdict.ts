import { formatPercent } from "./numbers.ts";
import { TEXTS } from "./texts.ts";
import type { MtrHop, MtrResult } from "./types.ts";

const T = TEXTS.mtr;

/** In words where loss begins, and whether it goes on to the target. */
export function mtrVerdict({ hops, details }: MtrResult) {
  const answering = hops.filter(({ received }) => received > 0);
  // Behind a loss that continues, hops that lose nothing were lucky: the service has compared all of them.
  const first = answering.find(({ loss, limited }) => !limited && loss !== null && loss > 0);
  const last = answering.at(-1);
  const limited = answering.filter((hop) => hop.limited).map(({ hop }) => hop);
  const { error } = details;
  const sentences = [
    ...(details.reached ? [] : [last ? T.notReached(nameOf(last)) : T.nothing]),
    ...(error ? [TEXTS.trace.error(error.name, error.from, error.fromTarget)] : []),
    ...(last ? [lossText(first, last, details.reached)] : []),
    ...(limited.length > 0 ? [T.limitedHops(limited)] : []),
  ];
  const kind = !details.reached ? "bad" : first ? "warn" : "good";
  return { kind, text: sentences.join(" ") };
}

const nameOf = ({ hop, hostname, ip }: MtrHop) => T.at(hop, hostname ?? ip);

function lossText(first: MtrHop | undefined, last: MtrHop, isReached: boolean): string {
  const loss = formatPercent(last.loss ?? 0);
  if (first === undefined) return isReached ? T.noLoss : T.noLossUntilThere;
  if (first === last) return isReached ? T.onlyTarget(loss) : T.onlyLast(loss);
  const from = T.begins(nameOf(first), formatPercent(first.loss ?? 0));
  return `${from} ${isReached ? T.goesOn(loss) : T.goesOnToLast(loss)}`;
}
