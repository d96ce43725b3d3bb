import { LEAST_MTU } from "../../icmp/wire/packet.ts";
import { inWords } from "../../util/text.ts";
import { hopText } from "../report.ts";
import type { MtuCause, MtuHop, MtuResult, MtuVerdict, TooBig } from "./result.ts";
import type { Bounds } from "./size-search.ts";

/**
 * Draws the conclusion.
 *
 * @param echo the bounds of echo requests to the target, there and back
 * @param way the bounds of the way there
 */
export function conclude(
  echo: Bounds,
  way: Bounds,
  hops: readonly MtuHop[],
  believed: readonly TooBig[],
) {
  const cause = causeOf(echo, way);
  // Only echo requests are known to vanish, so the way there may carry more.
  const isDoubtful =
    echo.limit === "silence" && echo.atLeast < LEAST_MTU && way.atMost >= LEAST_MTU;
  const { atLeast, atMost, limit } = echo.atLeast === 0 || isDoubtful ? way : echo;
  const isNarrow = limit !== "link" && (atLeast === 0 || atLeast === atMost);
  const isKnown = atLeast > 0 || hops.some(({ mtu }) => mtu !== null);
  const verdict = verdictOf();
  const lastLarge = hops.findLast(({ mtu }) => isNarrow && (mtu ?? 0) > atMost);
  const behind = hops.slice(lastLarge?.hop ?? 0);
  const firstSmall = behind.find((hop) => isNarrow && (hop.atMost ?? Infinity) <= atMost);
  const told = believed
    .toSorted((a, b) => b.sent - a.sent)
    .find(({ mtu }) => verdict === "narrowed" && mtu === atMost);
  return {
    verdict,
    /** Where packets vanish; null if none do, or it is not known. */
    cause,
    mtu: atLeast || null,
    atMost: isKnown ? atMost : null,
    packetTooBig: told ?? null,
    lastLarge: lastLarge?.hop ?? null,
    firstSmall: firstSmall?.hop ?? null,
  };

  function verdictOf(): MtuVerdict {
    if (!isKnown) return "inconclusive";
    if (limit === "link" && atLeast === atMost) return "clear";
    if (!isNarrow) return "at-least";
    if (limit === "told") return "narrowed";
    return atMost < LEAST_MTU ? "below-1280" : "black-hole";
  }
}

/** Where packets vanish; null if none does, or it is not known. */
function causeOf({ atLeast, atMost, limit }: Bounds, way: Bounds): MtuCause | null {
  if (atLeast === 0 && way.atLeast > 0) return "echo";
  if (limit !== "silence" || atLeast < atMost) return null;
  if (atLeast < LEAST_MTU) return way.atLeast < LEAST_MTU ? null : "echo";
  if (way.atLeast > atLeast) return "back";
  return way.atMost === atLeast ? "there" : null;
}

/** The sentences of the verdict: its meaning, where the path narrows, what is not known, and the error. */
export function mtuText(
  code: MtuVerdict,
  found: Pick<MtuResult, "mtu" | "atMost" | "packetTooBig" | "lastLarge" | "firstSmall">,
  hops: readonly MtuHop[],
  { cause, error, doubtful }: Pick<MtuResult["details"], "cause" | "error" | "doubtful">,
): string {
  const { mtu, atMost, packetTooBig: told, lastLarge, firstSmall } = found;
  const [near, far] = [lastLarge, firstSmall].map((hop) => hop && hopText(hops, hop));
  const place =
    near && far ? `between ${near} and ${far}` : near ? `behind ${near}` : far && `before ${far}`;
  const where = place ? ` The narrow link is ${place}.` : "";
  const size = mtu ?? atMost;
  const teller = told && (told.hop === null ? told.from : `hop ${told.hop} (${told.from})`);
  const silent = mtu === null ? "The target answers neither echo requests nor UDP packets. " : "";
  const vanish = error ? "do not get through" : "vanish";
  const echo =
    cause === "echo" ? " The target answered UDP packets of that size, but no echo requests." : "";
  const who = error?.fromTarget ? "The target" : error?.from;
  const meaning = meaningOf();
  return error ? `${meaning} ${who} answered ${inWords(error.name)}.` : meaning;

  function meaningOf(): string {
    switch (code) {
      case "clear":
        return `The target answers packets of ${mtu} bytes, the largest that this machine can send.${echo}`;
      case "narrowed":
        return told === null
          ? `${silent}Routers answer packets of more than ${size} bytes with Packet Too Big.${where}${echo}`
          : `${silent}The path MTU is ${told.mtu} bytes${told.hop !== null && told.hop === lastLarge ? `: the link behind ${teller} is the narrowest.` : `, as ${teller} says.${where}`}${echo}`;
      case "black-hole": {
        if (cause === "back") {
          return `Echo requests of more than ${mtu} bytes are not answered, but UDP packets of that size get to the target: the return path carries no more, or the target answers no larger ones.`;
        }
        const doubt =
          cause === undefined && silent === "" ? " It may be on the way there or back." : "";
        return `${silent}Packets of more than ${size} bytes ${vanish}, and no Packet Too Big ${doubtful.length > 0 ? "that is believed " : ""}comes, so connections hang when they send much.${where}${doubt}${echo}`;
      }
      case "below-1280":
        return `${silent}Packets of more than ${size} bytes ${vanish}, but every link of IPv6 must carry 1280, so larger transfers over this path fail.${where}`;
      case "at-least": {
        const last = hops.findLast((hop) => hop.mtu !== null);
        if (mtu === null) {
          return `${silent}Packets of ${last?.mtu} bytes get to ${hopText(hops, last?.hop ?? 0)}; the size that the links behind it carry is not known.`;
        }
        const unknown = `larger ones, up to ${atMost}, get through is not known`;
        return echo
          ? `The target answers packets of ${mtu} bytes; it did so for UDP, but for no echo requests of that size. Whether ${unknown}.`
          : `The target answers packets of ${mtu} bytes; whether ${unknown}: answers are too seldom, or the time was over.`;
      }
      case "inconclusive":
        return "Neither the target nor a hop answers packets of any size.";
    }
  }
}
