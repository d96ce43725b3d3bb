import { formatIpv6 } from "../addr/format.ts";
import type { Ipv6Address } from "../addr/ipv6.ts";
import { pause } from "../util/clock.ts";
import { errorMeaning } from "./icmp-error.ts";
import { IPV6_HEADER_BYTES, TYPE } from "./packet.ts";
import type { NoResult, RunOptions } from "./ping.ts";
import type { Prober } from "./prober.ts";
import { type Fate, type FoundSize, type SizeTrial, searchSize } from "./size-search.ts";
import type { TraceRequest, Traceroute } from "./traceroute.ts";

/** A hop, and the largest packet that got through to it. */
export interface MtuHop {
  /** From 1. */
  readonly hop: number;
  /** Null for a silent hop. */
  readonly address: Ipv6Address | null;
  /** Index of the interface to a link-local `address`, 0 otherwise. */
  readonly scopeId: number;
  /** Null for a hop that is silent, or answers so seldom that its silence does not tell. */
  readonly mtuBytes: number | null;
}

/** A Packet Too Big about one of our packets. */
export interface TooBig {
  readonly from: Ipv6Address;
  /** The MTU that it claims. */
  readonly mtuBytes: number;
  readonly sentBytes: number;
}

/**
 * A Packet Too Big that is not believed: it claims less than every link of IPv6 carries, or no less than
 * was sent, or a larger packet has got through, or it quotes what we did not send.
 */
export interface DoubtfulTooBig extends TooBig {
  readonly doubt: "below-1280" | "not-smaller" | "disproved" | "not-ours";
}

/**
 * The meaning of a measurement:
 * - `clear`: the target answers the largest packets that this machine can send;
 * - `narrowed`: larger packets are answered with Packet Too Big;
 * - `black-hole`: larger packets vanish;
 * - `below-1280`: packets vanish that every link of IPv6 carries (RFC 8200 section 5);
 * - `at-least`: the target answers too seldom for its silence to tell anything of larger packets;
 * - `inconclusive`: the target answers nothing.
 */
export const MTU_VERDICTS = [
  "clear",
  "narrowed",
  "black-hole",
  "below-1280",
  "at-least",
  "inconclusive",
] as const;

export type MtuVerdict = (typeof MTU_VERDICTS)[number];

/** How a measurement ended. */
export type MtuOutcome =
  | {
      readonly kind: "done";
      readonly source: Ipv6Address;
      readonly flowLabel: number;
      readonly verdict: MtuVerdict;
      /** The largest packet that the target has answered; null if it answers nothing. */
      readonly mtuBytes: number | null;
      /** The message that says the MTU, for the verdict `narrowed`. */
      readonly packetTooBig: TooBig | null;
      readonly doubtful: readonly DoubtfulTooBig[];
      /** From 1 to where a trace ended. */
      readonly hops: readonly MtuHop[];
      /** The last hop that answers larger packets than the target does; null if there is none. */
      readonly lastLarge: number | null;
      /** The first hop behind it that answers, but not them; null if there is none. */
      readonly firstSmall: number | null;
    }
  | NoResult;

/** How the caller takes part in a measurement. */
export interface MtuOptions extends RunOptions {
  /** Called with each hop as soon as it is measured. */
  readonly onHop?: ((hop: MtuHop) => void) | undefined;
}

/** The MTU that every link of IPv6 has at least; RFC 8200 section 5. */
const LEAST_MTU = 1280;
/** Sizes of usual links, each with the next one that does not fit, and a packet as `ping` sends it. */
const USUAL_BYTES: readonly number[] = [
  ...[65_536, 9000, 1500, 1492].flatMap((bytes) => [bytes, bytes + 1]),
  LEAST_MTU,
  104,
];
/** Packets of this size do not exist without the jumbo payload option. */
const NO_BYTES = IPV6_HEADER_BYTES + 65_536;
const HEADERS_BYTES = IPV6_HEADER_BYTES + 8;
/** Further than any path goes, as for a ping. */
const HOP_LIMIT = 64;
/** How often a size is tried. */
const MAX_TRIES = 3;
/** The least wait for an answer in milliseconds: Linux sends one error in 100 ms to one address. */
const MIN_WAIT_MS = 200;
/** The longest wait for an answer in milliseconds, whatever the time to the hop. */
const MAX_WAIT_MS = 2000;
/** The pause before sizes are compared again in milliseconds: then hops that send one answer a second send one. */
const LIMIT_MS = 1000;
/** How often two sizes are compared. */
const MAX_COMPARISONS = 3;
/** When searches begin nothing more, in milliseconds. */
const MAX_SEARCH_MS = 60_000;
/** The longest time of the searches, to the target and then to all routers at once, in milliseconds. */
export const LONGEST_SEARCH_MS = MAX_SEARCH_MS + MAX_COMPARISONS * (LIMIT_MS + MAX_WAIT_MS);
/** Different doubtful messages that are kept. */
const MAX_DOUBTFUL = 16;

/**
 * Measures the path MTU and where it narrows. Packet Too Big (RFC 8201) says which size to try next; where
 * none comes, the sizes that are answered decide (RFC 8899). Routers are measured with packets that expire
 * there. The target's reply is as large as the request, so a narrow way back is like a narrow way there.
 */
export async function measureMtu(
  prober: Prober,
  traceroute: Traceroute,
  request: TraceRequest,
  { signal: callersSignal, onHop }: MtuOptions = {},
): Promise<MtuOutcome> {
  const { target, scopeId = 0, timeoutMs } = request;
  const signal = prober.signalFor(callersSignal);
  const traced = await traceroute(request, { signal });
  if (traced.kind !== "done") return traced;
  const { source, flowLabel, reached } = traced;
  const believed: TooBig[] = [];
  /** Each once. */
  const doubtful = new Map<string, DoubtfulTooBig>();
  const endMs = prober.clock.nowMs() + MAX_SEARCH_MS;

  const doubt = (message: DoubtfulTooBig) => {
    const key = [formatIpv6(message.from), message.mtuBytes, message.doubt].join(" ");
    if (doubtful.size < MAX_DOUBTFUL) doubtful.set(key, message);
  };

  /** Sends one packet of a size. */
  const ask = async (sentBytes: number, hopLimit: number, waitMs: number): Promise<Fate> => {
    const answer = await prober.probe({
      ...{ target, scopeId, source, flowLabel, signal, hopLimit, timeoutMs: waitMs },
      payloadBytes: sentBytes - HEADERS_BYTES,
      onForged(from, type, mtuBytes) {
        if (type === TYPE.packetTooBig) doubt({ from, mtuBytes, sentBytes, doubt: "not-ours" });
      },
    });
    if (answer.kind === "reply") return { kind: "passed" };
    if (answer.kind === "refused" && answer.code === "EMSGSIZE") return { kind: "refused" };
    if (answer.kind !== "error") return { kind: "lost" };
    const { type, code, parameter: mtuBytes, from } = answer;
    const isHop = hopLimit < HOP_LIMIT && errorMeaning(type, code) === "hop";
    if (isHop) return { kind: "passed" };
    if (type !== TYPE.packetTooBig) return { kind: "lost" };
    const tooBig = { from, mtuBytes, sentBytes };
    if (mtuBytes >= LEAST_MTU && mtuBytes < sentBytes) {
      believed.push(tooBig);
      return { kind: "lost", hintBytes: mtuBytes };
    }
    doubt({ ...tooBig, doubt: mtuBytes < LEAST_MTU ? "below-1280" : "not-smaller" });
    return { kind: "lost" };
  };

  const trialOf = (hopLimit: number, rttMs: number | null, comparisons: number): SizeTrial => {
    const waitMs = Math.min(timeoutMs, MAX_WAIT_MS, Math.max(MIN_WAIT_MS, 4 * (rttMs ?? Infinity)));
    const send = (bytes: number) => ask(bytes, hopLimit, waitMs);
    return {
      try: (bytes) => trySize(send, bytes),
      async compare(bytes, smallerBytes) {
        for (let count = 0; count < comparisons; count++) {
          if (count > 0) await pause(prober.clock, LIMIT_MS, signal);
          // The larger one arrives first: if only one answer is allowed, it gets it.
          const [large, small] = await Promise.all([send(bytes), send(smallerBytes)]);
          if (!isSilent(large) || !isSilent(small)) return large;
        }
        return null;
      },
      isOver: () => signal.aborted || prober.clock.nowMs() > endMs,
    };
  };

  const last = reached ? traced.hops.length : 0;
  const targetRttMs = traced.hops[last - 1]?.rttMs ?? null;
  const toTarget = trialOf(HOP_LIMIT, targetRttMs, reached ? MAX_COMPARISONS : 1);
  const whole = await searchSize(toTarget, USUAL_BYTES, NO_BYTES);
  const isUsual = whole.bytes >= LEAST_MTU;
  const first = isUsual ? [whole.bytes, whole.bytes + 1, whole.sentBytes] : USUAL_BYTES;
  const measured = await Promise.all(
    traced.hops.map(async ({ hop, address, scopeId, rttMs }): Promise<MtuHop> => {
      const trial = trialOf(hop, rttMs, MAX_COMPARISONS);
      const found =
        hop === last ? whole : address && (await searchSize(trial, first, whole.refusedBytes));
      const isKnown = found && (found.isCertain || found.bytes > whole.bytes);
      const row = { hop, address, scopeId, mtuBytes: (isKnown && found.bytes) || null };
      if (!signal.aborted) onHop?.(row);
      return row;
    }),
  );
  prober.endRun(signal);
  if (signal.aborted) return { kind: "aborted" };
  const hops = measured.map((row, at) => atLeast(row, measured.slice(at)));
  for (const message of believed) {
    if (message.mtuBytes < whole.bytes) doubt({ ...message, doubt: "disproved" });
  }
  const conclusion = conclude(whole, measured, believed);
  return { kind: "done", source, flowLabel, hops, ...conclusion, doubtful: [...doubtful.values()] };
}

/** A packet that got through to hops behind a hop got through to it too, also if it rate-limits its errors. */
function atLeast(row: MtuHop, behind: readonly MtuHop[]): MtuHop {
  if (row.address === null) return row;
  return { ...row, mtuBytes: Math.max(...behind.map(({ mtuBytes }) => mtuBytes ?? 0)) || null };
}

const isSilent = ({ kind, hintBytes }: Fate) => kind === "lost" && hintBytes === undefined;

/** Sends packets of one size until one is answered. */
async function trySize(send: (bytes: number) => Promise<Fate>, bytes: number): Promise<Fate> {
  let fate = await send(bytes);
  for (let tries = 1; tries < MAX_TRIES && isSilent(fate); tries++) fate = await send(bytes);
  return fate;
}

/** Draws the conclusion from the sizes and the messages. */
function conclude(whole: FoundSize, hops: readonly MtuHop[], believed: readonly TooBig[]) {
  const { bytes } = whole;
  const message = believed.findLast(({ mtuBytes }) => mtuBytes === bytes) ?? null;
  const verdict = verdictOf(whole, message !== null);
  const isNarrow = verdict === "narrowed" || verdict === "black-hole" || verdict === "below-1280";
  const lastLarge = hops.findLast(({ mtuBytes }) => isNarrow && (mtuBytes ?? 0) > bytes);
  const behind = hops.slice(lastLarge?.hop ?? 0);
  const firstSmall = behind.find(({ mtuBytes }) => isNarrow && mtuBytes !== null);
  return {
    verdict,
    mtuBytes: bytes || null,
    packetTooBig: verdict === "narrowed" ? message : null,
    lastLarge: lastLarge?.hop ?? null,
    firstSmall: firstSmall?.hop ?? null,
  };
}

function verdictOf({ bytes, above, isCertain }: FoundSize, isSaid: boolean): MtuVerdict {
  if (bytes === 0) return "inconclusive";
  if (bytes >= LEAST_MTU) {
    if (above.kind === "refused") return "clear";
    if (isSaid || above.hintBytes !== undefined) return "narrowed";
  }
  if (!isCertain) return "at-least";
  return bytes < LEAST_MTU ? "below-1280" : "black-hole";
}
