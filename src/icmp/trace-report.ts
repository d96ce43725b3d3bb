import { equalIpv6, type Ipv6Address } from "../addr/ipv6.ts";
import type { Answer, ProbeError } from "./answer.ts";
import { errorName, traceMeaning } from "./errors.ts";
import type { InterfaceInformation, MplsLabel } from "./extensions.ts";
import { LIMITS } from "./limits.ts";
import { TYPE } from "./message.ts";

/** A hop of a trace; one that was silent has null and empty lists. */
export interface TraceHop {
  /** From 1. */
  readonly hop: number;
  readonly address: Ipv6Address | null;
  /** Milliseconds, not rounded. */
  readonly rttMs: number | null;
  /** All times, `rttMs` first. */
  readonly rttsMs: readonly number[];
  /** All addresses that answered, `address` first. */
  readonly addresses: readonly Ipv6Address[];
  readonly mpls: readonly MplsLabel[];
  readonly interfaces: readonly InterfaceInformation[];
  /** The MTU of the link behind the hop, where it reported one. */
  readonly mtuBytes: number | null;
}

/** Why a trace ended. */
export type TraceReason =
  | "reached"
  | "unreachable"
  | "prohibited"
  | "packet-too-big"
  | "parameter-problem"
  | "gap-limit"
  | "max-hops";

/** The ICMPv6 error that ended a trace. */
export interface TraceError {
  readonly type: number;
  readonly code: number;
  /** See `errorName`. */
  readonly name: string;
  /** Who sent it; the trace's own source where a neighbour did not resolve. */
  readonly from: Ipv6Address;
  /** Whether the target itself sent it, as a firewall on it does. */
  readonly fromTarget: boolean;
}

/** What a trace found. */
export interface TraceReport {
  /** From 1 to where the trace ended, without gaps; at most `LIMITS.gapLimit` silent ones at the end. */
  readonly hops: readonly TraceHop[];
  /** Whether the target replied. */
  readonly reached: boolean;
  readonly reason: TraceReason;
  /** Null for the reasons `reached`, `gap-limit` and `max-hops`. */
  readonly error: TraceError | null;
}

/** The answers of a trace by hop, the first hop's first. */
export type Answers = readonly (readonly Answer[])[];

/** Why the way ends with an answer; null where it goes on. */
export function endOf(answer: Answer): TraceReason | null {
  if (answer.kind === "reply") return "reached";
  const meaning = traceMeaning(answer.type, answer.code);
  return meaning === "hop" || meaning === "none" ? null : meaning;
}

/** Whether an answer comes from a hop, and is not this machine's own word that it cannot reach one. */
export function isFromHop({ from }: Answer, source: Ipv6Address, target: Ipv6Address): boolean {
  return !equalIpv6(from, source) || equalIpv6(from, target);
}

/**
 * The first hop at which the way ends, by the answers so far; null where it goes on. Where the target
 * has replied, an error of a hop before it did not end the way.
 */
export function finalHop(answers: Answers): number | null {
  const firstWith = (ends: (answer: Answer) => boolean) =>
    answers.findIndex((heard) => heard.some(ends)) + 1;
  return (
    firstWith((answer) => answer.kind === "reply") ||
    firstWith((answer) => endOf(answer) !== null) ||
    null
  );
}

/** The last hop that has answered so far, 0 for none. */
export function lastAnswered(answers: Answers): number {
  return answers.findLastIndex((heard) => heard.length > 0) + 1;
}

/** What the answers of a trace say. */
export function describeTrace(
  answers: Answers,
  source: Ipv6Address,
  target: Ipv6Address,
): TraceReport {
  const last = lastAnswered(answers);
  const end = finalHop(answers) ?? Math.min(answers.length, last + LIMITS.gapLimit);
  const hops = answers.slice(0, end).map((heard, index) => {
    const fromHop = heard.filter((answer) => isFromHop(answer, source, target));
    return describeHop(index + 1, fromHop);
  });
  const final = byWeight(answers[end - 1] ?? []).find((answer) => endOf(answer) !== null);
  const ending = end - last >= LIMITS.gapLimit ? "gap-limit" : "max-hops";
  const reason = (final && endOf(final)) ?? ending;
  const error = final?.kind === "error" ? describeError(final, target) : null;
  return { hops, reached: reason === "reached", reason, error };
}

/** The answers with the one that ended the way first, a reply before an error: it is what the trace is about. */
function byWeight(heard: readonly Answer[]): readonly Answer[] {
  const rank = (answer: Answer) => (answer.kind === "reply" ? 0 : endOf(answer) === null ? 2 : 1);
  return heard.toSorted((a, b) => rank(a) - rank(b));
}

function describeHop(hop: number, heard: readonly Answer[]): TraceHop {
  const answers = byWeight(heard);
  const errors = answers.filter((answer) => answer.kind === "error");
  const addresses = answers.map(({ from }) => from);
  const rttsMs = answers.map(({ rttMs }) => rttMs);
  return {
    hop,
    address: addresses[0] ?? null,
    rttMs: rttsMs[0] ?? null,
    rttsMs,
    addresses: addresses.filter(
      (from, at) => at === addresses.findIndex((a) => equalIpv6(a, from)),
    ),
    mpls: errors[0]?.extensions.mpls ?? [],
    interfaces: errors[0]?.extensions.interfaces ?? [],
    mtuBytes: errors.find(({ type }) => type === TYPE.packetTooBig)?.parameter ?? null,
  };
}

function describeError({ type, code, from }: ProbeError, target: Ipv6Address): TraceError {
  return { type, code, name: errorName(type, code), from, fromTarget: equalIpv6(from, target) };
}
