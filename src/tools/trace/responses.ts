import { formatIpv6 } from "../../addr/format.ts";
import { equalIpv6, type Ipv6Address } from "../../addr/ipv6.ts";
import type { ProbeError, Response } from "../../icmp/prober/response.ts";
import type { PortState } from "../../icmp/socket/socket.ts";
import { errorMeaning, errorName, type InterfaceInformation } from "../../icmp/wire/icmp-error.ts";
import { TYPE } from "../../icmp/wire/packet.ts";
import { round } from "../../util/numbers.ts";
import { zoneOf } from "../engine.ts";
import type { Hop, TraceDetails, TraceReason } from "./result.ts";

/** Silent hops shown behind the last response of a trace that did not end with one. */
export const GAP_LIMIT = 8;

/** A hop of a trace without its name, and what else the trace knows of it. */
export interface TraceHop extends Hop {
  /** Why the path ends here; null if it goes on. */
  readonly end: TraceReason | null;
  /** The state of the probed port, if it answered. */
  readonly state?: PortState;
  /** For a silent hop whose routers limit their answers: the answer to other traces, null if it is not certain. */
  readonly others?: Response | null | undefined;
}

/** The ICMPv6 error that ended a trace. */
export type TraceError = ReturnType<typeof describeError>;

/** The result of a trace. */
export type TraceReport = Readonly<ReturnType<typeof describeTrace>>;

/** The responses of a trace by hop, those of hop 1 first. */
export type Responses = readonly (readonly Response[])[];

/** Why the path ends with a response; null if it goes on. */
export function endOf(response: Response): TraceReason | null {
  if (response.kind === "reply") return "reached";
  const meaning = errorMeaning(response.type, response.code);
  return meaning === "hop" || meaning === "inconclusive" ? null : meaning;
}

/** The hop at which the path ends; null if it goes on. A reply of the target outweighs an error of a nearer hop. */
export function finalHop(responses: Responses): number | null {
  const firstWith = (matches: (response: Response) => boolean) =>
    responses.findIndex((atHop) => atHop.some(matches)) + 1;
  return (
    firstWith(({ kind }) => kind === "reply") ||
    firstWith((response) => endOf(response) !== null) ||
    null
  );
}

/** The last hop with a response so far, 0 for none. */
export function lastResponding(responses: Responses): number {
  return responses.findLastIndex((atHop) => atHop.length > 0) + 1;
}

/** The most routers of a recognised loop. */
const MAX_LOOP_HOPS = 8;

/** Answers that must repeat earlier ones: a choice by packet among paths of unequal lengths repeats a few. */
const LOOP_REPEATS = 4;

/** The loop at the end of a path without an end. */
export const findLoop = (responses: Responses) =>
  loopOf(responses.map((atHop) => atHop.map(({ from }) => formatIpv6(from))));

/**
 * The loop at the end of a path, by the senders of the answers at each hop: the last hops repeat the same two or more
 * addresses, or one and silence, in the same order. One address at all of them is not a loop, because a firewall may
 * answer for others.
 */
export function loopOf(senders: readonly (readonly string[])[]) {
  const all = senders.flat();
  // A quick test for nearly every path, which has no loop.
  if (all.length - new Set(all).size < LOOP_REPEATS) return null;
  const last = senders.findLastIndex((atHop) => atHop.length > 0);
  const nodes = [...senders.slice(0, last + 1).entries()].toReversed();
  for (let length = 2; length <= MAX_LOOP_HOPS; length++) {
    const turn: string[] = [];
    let [answered, first] = [0, nodes.length];
    for (const [at, [from, ...others]] of nodes) {
      if (from === undefined) continue;
      const place = turn.indexOf(from);
      // An address before the turns occurs once.
      const isLate = at + 2 * length >= nodes.length;
      const isNew = isLate && place < 0 && turn[at % length] === undefined;
      if (!isNew && place !== at % length) break;
      if (others.some((other) => other !== from)) break;
      turn[at % length] = from;
      answered++;
      first = at;
    }
    const repeats = answered - turn.filter(Boolean).length;
    if (repeats < LOOP_REPEATS || 2 * answered < nodes.length - first) continue;
    const addresses = Array.from({ length }, (_, at) => turn[(first + at) % length] ?? null);
    return {
      /** The hops of the first turn. */
      from: first + 1,
      to: first + length,
      /** The senders at these hops and, in the same order, at all behind them; null for silence. */
      addresses,
      /** Answers that repeat one of an earlier turn. */
      repeats,
    };
  }
  return null;
}

/** The usual first hop limits. */
const FIRST_HOP_LIMITS: readonly number[] = [64, 128, 255];

/** The number of hops that an answer with this hop limit seems to have come, guessed from the usual first hop limits. */
export function hopsOfReply(replyHopLimit: number): number {
  const first = FIRST_HOP_LIMITS.find((limit) => limit >= replyHopLimit) ?? 0;
  return first - replyHopLimit + 1;
}

/**
 * The silent hop at which the path seems to end, if the probe of a later hop got the answer that ends it: the distance
 * that the answer has come. A router that rate-limits its answers may not have answered nearer probes. Null without
 * such a hop.
 */
export function nearerEnd(responses: Responses): number | null {
  const endsAt = finalHop(responses) ?? 0;
  const final = finalOf(responses[endsAt - 1] ?? []);
  if (final === undefined) return null;
  const distance = hopsOfReply(final.hopLimit);
  const between = responses.slice(distance - 1, endsAt - 1);
  return between.length > 0 && between.every((atHop) => atHop.length === 0) ? distance : null;
}

/** Describes a trace by its responses. */
export function describeTrace(
  responses: Responses,
  refused: NonNullable<TraceDetails["refused"]>,
  source: Ipv6Address,
  target: Ipv6Address,
) {
  const last = lastResponding(responses);
  const endsAt = finalHop(responses);
  const loop = endsAt === null ? findLoop(responses) : null;
  const end = endsAt ?? (loop ? last : Math.min(responses.length, last + GAP_LIMIT));
  const shown = responses.slice(0, end);
  const hops = shown.map((atHop, index) => describeHop(index + 1, atHop, source, target));
  const final = finalOf(responses[end - 1] ?? []);
  const silence = end - last >= GAP_LIMIT ? "gap-limit" : "max-hops";
  const isRefused = refused.some(({ hop }) => hop > last);
  const withoutEnd = loop ? "loop" : isRefused ? "not-sent" : silence;
  const reason = (final && endOf(final)) ?? withoutEnd;
  const error = final?.kind === "error" ? describeError(final, target) : null;
  const otherSource =
    final?.kind === "reply" && final.isOtherSource ? formatIpv6(final.from) : null;
  return {
    /** From 1 to the last hop shown, without gaps; at most `GAP_LIMIT` silent ones at the end. */
    hops: hops as readonly TraceHop[],
    /** True if the target replied. */
    reached: reason === "reached",
    reason,
    /** Null unless an error is the reason. */
    error,
    /** Null unless a loop is the reason. */
    loop,
    /** The sender of the reply, if the target was reached at another address than its own. */
    otherSource,
    refused,
  };
}

/** The response that ends the path. */
function finalOf(atHop: readonly Response[]): Response | undefined {
  return byWeight(atHop).find((response) => endOf(response) !== null);
}

/** The responses by weight: a reply, then errors that end the path, then others. */
function byWeight(atHop: readonly Response[]): readonly Response[] {
  const rank = (response: Response) =>
    response.kind === "reply" ? 0 : endOf(response) === null ? 2 : 1;
  return atHop.toSorted((a, b) => rank(a) - rank(b));
}

/**
 * The hops of a trace under way that its report will contain: those before the end of the path, and the
 * end as soon as it cannot move to a nearer hop.
 *
 * @param hops by position; undefined for hops without a row
 */
export function certainHops(hops: readonly (TraceHop | undefined)[]): TraceHop[] {
  const reached = hops.findIndex((hop) => hop?.end === "reached");
  const end = reached < 0 ? hops.findIndex((hop) => hop && hop.end !== null) : reached;
  const before = hops.slice(0, end < 0 ? undefined : end);
  const certain = before.includes(undefined) ? before : [...before, hops[end]];
  return certain.filter((hop) => hop !== undefined);
}

/** Describes a hop by its responses. */
export function describeHop(
  hop: number,
  atHop: readonly Response[],
  source: Ipv6Address,
  target: Ipv6Address,
): TraceHop {
  // Other responses come from this machine, which could not reach a hop.
  const isFromHop = ({ from }: Response) => !equalIpv6(from, source) || equalIpv6(from, target);
  const responses = byWeight(atHop.filter(isFromHop));
  const [first] = responses;
  const final = finalOf(atHop);
  const end = final ? endOf(final) : null;
  const state = final?.kind === "reply" && final.state && { state: final.state };
  const row = { hop, ip: null, hostname: null, rtt: null, end, ...state };
  if (first === undefined) return row;
  const errors = responses.filter((response) => response.kind === "error");
  const rtts = responses.map(({ rttMs }) => round(rttMs, 3));
  const addresses = [...new Set(responses.map(({ from }) => formatIpv6(from)))];
  const { mpls = [], interfaces = [] } = errors[0]?.extensions ?? {};
  const tooBig = errors.find(({ type }) => type === TYPE.packetTooBig);
  const details = {
    ...zoneOf(first.scopeId),
    replyHopLimit: first.hopLimit,
    ...(rtts.length > 1 && { rtts }),
    ...(addresses.length > 1 && { addresses }),
    ...(mpls.length > 0 && { mpls: [...mpls] }),
    ...(interfaces.length > 0 && { interfaces: interfaces.map(describeInterface) }),
    // The MTU of the link behind the hop.
    ...(tooBig && { mtu: tooBig.parameter }),
  };
  return { ...row, ip: addresses[0] as string, rtt: rtts[0] as number, details };
}

function describeInterface({ mtuBytes, address, ...others }: InterfaceInformation) {
  return { ...others, address: address && formatIpv6(address), mtu: mtuBytes };
}

/** Describes an error that ends a path. */
export function describeError({ type, code, from }: ProbeError, target: Ipv6Address) {
  return {
    type,
    code,
    /** See `errorName`. */
    name: errorName(type, code),
    /** The sender; this machine if a neighbour did not resolve. */
    from: formatIpv6(from),
    /** True if the target itself sent it, as a firewall on it does. */
    fromTarget: equalIpv6(from, target),
  };
}
