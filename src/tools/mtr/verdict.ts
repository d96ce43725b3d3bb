import { shareInterval } from "../../util/statistics.ts";
import { firstTrue, formatPercent, inWords, listText, plural, shareText } from "../../util/text.ts";
import { lostOf, percent, retransmittedText } from "../ledger.ts";
import { hopText } from "../report.ts";
import { loopOf } from "../trace/responses.ts";
import { loopText } from "../trace/verdict.ts";
import { MIN_LOST } from "./loss-cause.ts";
import type { MtrResult } from "./result.ts";
import type { MtrReport } from "./rounds.ts";

type Details = MtrResult["details"];

/** A percentage with as many digits as an estimate deserves. */
const about = (percentage: number) =>
  percentage > 0 && percentage < 1 ? percentage.toPrecision(1) : String(Math.round(percentage));

const ignoringText = (hops: readonly number[]) =>
  hops.length === 1 ? `Hop ${hops[0]} ignores` : `Hops ${listText(hops)} ignore`;

/** The conclusion from the statistics of the hops, the end of the path, where loss begins, and whether it is an outage. */
export function mtrVerdict(
  hops: MtrResult["hops"],
  { reached, error, toTarget }: Pick<Details, "reached" | "error" | "toTarget">,
  { begin, inARow, lossPath }: Pick<MtrReport, "begin" | "inARow" | "lossPath">,
) {
  const { unknown, late, errors, retransmitted = 0 } = toTarget;
  const known = toTarget.sent - unknown;
  const lost = lostOf(toTarget);
  const [least, most] = shareInterval({ count: known, failed: lost });
  const [lossAtLeast, lossAtMost] = [percent(least), percent(most)];
  const code = firstTrue({
    "no-loss": reached && lost === 0,
    unclear: reached && lost < MIN_LOST,
    loss: reached,
    "not-sent": hops.every(({ sent }) => sent === 0),
    unreachable: error !== undefined,
    "no-reply": true,
  });
  const last = hops.findLast((hop) => hop.received + hop.errors > 0 && hop.ip !== null);
  const loop = loopOf(hops.map(({ addresses }) => addresses.map(({ ip }) => ip)));
  const replying = hops.filter((hop) => hop.cause === "replies" && hop.received > 0);
  // The routers that the lost probes met, not those that answered most.
  const routers = lossPath.map(
    (ip, at) => hops[at]?.addresses.find((each) => each.ip === ip) ?? { ip, hostname: null },
  );
  const nameOf = (at: number) => (at === 0 ? "this machine" : hopText(routers, at));
  const isAtTarget = begin && begin.to >= hops.length;
  const all = known === 1 ? "the probe" : `all ${known} probes`;
  const share = shareText(lost, known, "probe");
  const bounds = `between ${about(lossAtLeast)} and ${about(lossAtMost)} %`;
  const sentences = [
    code === "no-loss" && `The target replied to ${all}.`,
    code === "loss" &&
      `The target did not reply to ${share} (${formatPercent((lost / known) * 100)})${inARow > 0 ? `, ${inARow} of them in a row, so the loss changes with time` : `: the loss is ${bounds}`}.`,
    code === "unclear" &&
      `The target did not reply to ${share}, which can be chance: the loss is ${bounds}; run more rounds to be sure.`,
    begin &&
      `The loss begins between ${nameOf(begin.from)} and ${nameOf(begin.to)}${isAtTarget ? ", or the target does not answer every probe" : ""}.`,
    code === "not-sent" && "This machine could not send any probe.",
    (code === "no-reply" || code === "unreachable") &&
      (loop
        ? loopText(loop, hops.length)
        : last
          ? `The target did not reply; the last answers came from ${hopText(hops, last.hop)}.`
          : "No hop answered, and the target did not reply."),
    error &&
      (errors > 0 && reached
        ? `Errors answered ${errors} of them; the last was ${inWords(error.name)} from ${error.from}.`
        : `${error.from} answered ${inWords(error.name)}.`),
    late > 0 && `${plural(late, "answer")} came after the timeout.`,
    retransmitted > 0 && retransmittedText(retransmitted),
    replying.length > 0 &&
      `${ignoringText(replying.map(({ hop }) => hop))} some probes; that is not loss, as later hops lose less.`,
  ];
  const text = sentences.filter(Boolean).join(" ");
  return { code, text, lossAtLeast, lossAtMost, ...begin } as const;
}
