import type { Ipv6Address } from "../addr/ipv6.ts";
import { pause } from "../util/clock.ts";
import { errorName } from "./icmp-error.ts";
import type { Answer, Prober } from "./prober.ts";

/** What a ping and a trace have in common. */
export interface RunRequest {
  readonly target: Ipv6Address;
  /** Index of the interface of a link-local target; 0 or absent for none. */
  readonly scopeId?: number;
  /** How long a probe may stay unanswered, in milliseconds. */
  readonly timeoutMs: number;
}

/** How the caller takes part in a run. */
export interface RunOptions {
  /** Ends the run early. */
  readonly signal?: AbortSignal | undefined;
}

/** Why a run has no result. */
export type NoResult =
  /** Nothing could be sent: the errno name, such as `ENETUNREACH` without a route. */
  | { readonly kind: "unreachable"; readonly code: string }
  /** The signal aborted, or the prober closed. */
  | { readonly kind: "aborted" };

/** A ping of one target. */
export interface PingRequest extends RunRequest {
  /** Echo requests to send. */
  readonly count: number;
  /** Milliseconds between two of them. */
  readonly intervalMs: number;
}

/** An echo request that was answered in time. */
export interface PingSample {
  /** From 1. */
  readonly seq: number;
  /** The reply's hop limit on arrival. */
  readonly hopLimit: number;
  /** Milliseconds, not rounded. */
  readonly rttMs: number;
}

/** An echo request without a reply. */
export type LostSample =
  | { readonly seq: number; readonly reason: "timeout" }
  /** This machine's kernel refused to send it, with an errno name such as `EPERM`. */
  | { readonly seq: number; readonly reason: "not-sent"; readonly errno: string }
  | {
      readonly seq: number;
      /** The name of the ICMPv6 error, such as `no-route`; see `errorName`. */
      readonly reason: string;
      readonly type: number;
      readonly code: number;
      /** Who sent the error; this machine if a neighbour did not resolve. */
      readonly from: Ipv6Address;
    };

/** What became of an echo request. */
export type Sample = PingSample | LostSample;

/** How the caller takes part in a ping. */
export interface PingOptions extends RunOptions {
  /**
   * Called as soon as the outcome of a sample is known, with what the result will contain. A sample can
   * come again: of each `seq`, the last one is in the result.
   */
  readonly onSample?: ((sample: Sample) => void) | undefined;
}

/** How a ping ended. */
export type PingOutcome =
  | {
      readonly kind: "done";
      /** The address that the requests came from. */
      readonly source: Ipv6Address;
      readonly timeoutMs: number;
      /** Echo requests that left this machine. */
      readonly transmitted: number;
      /** In the order of `seq`. */
      readonly samples: readonly PingSample[];
      /** In the order of `seq`; together with the samples, one for each request. */
      readonly lost: readonly LostSample[];
      /** Further answers to an answered request. */
      readonly duplicates: number;
      /** Answers that came after the timeout, while the ping was running. */
      readonly late: number;
    }
  | NoResult;

/** The hop limit of an echo request, as the kernel and `ping` choose it. */
const HOP_LIMIT = 64;

/** Sends echo requests at an interval, and resolves as soon as the last of them has its answer. */
export async function ping(
  prober: Prober,
  request: PingRequest,
  options: PingOptions = {},
): Promise<PingOutcome> {
  const { target, scopeId = 0, count, intervalMs, timeoutMs } = request;
  const signal = prober.signalFor(options.signal);
  const route = prober.route(target, scopeId);
  if (typeof route === "string") return { kind: "unreachable", code: route };
  const probe = { target, scopeId, ...route, hopLimit: HOP_LIMIT, timeoutMs, signal };
  const pending: Promise<Sample>[] = [];
  const extras = { duplicate: 0, late: 0 };
  const onExtra = (kind: keyof typeof extras) => {
    extras[kind]++;
  };
  const settle = async (seq: number, answer: Promise<Answer>) => {
    const sample = sampleOf(seq, await answer);
    if (!signal.aborted) options.onSample?.(sample);
    return sample;
  };
  for (let seq = 1; seq <= count && !signal.aborted; seq++) {
    const { promise: sent, resolve: onSent } = Promise.withResolvers<void>();
    const answer = prober.probe({ ...probe, onSent, onExtra });
    pending.push(settle(seq, answer));
    await Promise.race([sent, answer]);
    if (seq < count) await pause(prober.clock, intervalMs, signal);
  }
  const all = await Promise.all(pending);
  if (signal.aborted) return { kind: "aborted" };

  const samples = all.filter((sample) => "rttMs" in sample);
  const lost = all.filter((sample) => "reason" in sample);
  const refused = lost.filter((sample) => "errno" in sample);
  const last = refused.at(-1);
  if (refused.length === count && last !== undefined) {
    return { kind: "unreachable", code: last.errno };
  }
  const { duplicate: duplicates, late } = extras;
  const transmitted = count - refused.length;
  const { source } = route;
  return { kind: "done", source, timeoutMs, transmitted, samples, lost, duplicates, late };
}

function sampleOf(seq: number, answer: Answer): Sample {
  switch (answer.kind) {
    case "reply":
      return { seq, hopLimit: answer.hopLimit, rttMs: answer.rttMs };
    case "error": {
      const { type, code, from } = answer;
      return { seq, reason: errorName(type, code), type, code, from };
    }
    case "refused":
      return { seq, reason: "not-sent", errno: answer.code };
    case "timeout":
    case "aborted":
      return { seq, reason: "timeout" };
  }
}
