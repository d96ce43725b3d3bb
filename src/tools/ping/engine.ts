import { equalIpv6, type Ipv6Address } from "../../addr/ipv6.ts";
import { type Prober, SILENCE_MS } from "../../icmp/prober/prober.ts";
import type { EchoReply, ProbeError, Response } from "../../icmp/prober/response.ts";
import type { PortState, ProbedPort } from "../../icmp/socket/socket.ts";
import { errorName } from "../../icmp/wire/icmp-error.ts";
import { pause } from "../../util/clock.ts";
import type { RunBudget } from "../run-budget.ts";

/** The common part of a ping and a trace. */
export interface RunRequest {
  readonly target: Ipv6Address;
  /** Index of the interface of a link-local target; 0 or absent for none. */
  readonly scopeId?: number;
  /** How long a probe may stay unanswered, in milliseconds. */
  readonly timeoutMs: number;
  /** How the probes travel if not as ICMPv6. */
  readonly probedPort?: ProbedPort | undefined;
}

/** How the caller takes part in a run. */
export interface RunOptions {
  /** Ends the run early, without a result. */
  readonly signal?: AbortSignal | undefined;
  /** Bounds what can grow with the answers: mtr and the search for paths. */
  readonly budget?: RunBudget | undefined;
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
export interface PingSample extends Pick<EchoReply, "hopLimit" | "rttMs"> {
  /** From 1. */
  readonly seq: number;
  /** The sender of the reply, if it was another address than the target's. */
  readonly otherSource?: Ipv6Address;
  /** Of the port that was probed, if it was one. */
  readonly state?: PortState;
}

/** An echo request without a reply in time. */
export type LostSample = { readonly seq: number } & (
  | {
      /** `unknown` if the kernel dropped packets meanwhile, perhaps the reply. */
      readonly reason: "timeout" | "unknown";
      /** Milliseconds to a reply that came too late. */
      readonly rttMs?: number;
    }
  | {
      /** This machine's kernel refused to send it, with an errno name such as `EPERM`. */
      readonly reason: "not-sent";
      readonly errno: string;
      readonly rttMs?: undefined;
    }
  /** The ICMPv6 error, from this machine if a neighbour did not resolve; its name, such as `no-route`, is the reason. */
  | ({ readonly reason: string } & Pick<ProbeError, "type" | "code" | "from" | "rttMs">)
);

/** An echo request and its outcome. */
export type Sample = PingSample | LostSample;

/** How the caller takes part in a ping. */
export interface PingOptions extends RunOptions {
  /**
   * Called as soon as the outcome of a sample is known, with what the result will contain. A sample can
   * come again: of each `seq`, the last one is in the result.
   */
  readonly onSample?: ((sample: Sample) => void) | undefined;
}

/**
 * How a ping ended: `source` is the address that the last requests came from, `samples` and `lost` are in the order of
 * `seq` and together one for each request, and `duplicates` counts further answers to an answered request.
 */
export type PingOutcome = Awaited<ReturnType<typeof ping>>;

/** The hop limit of an echo request, as the kernel and `ping` choose it. */
const HOP_LIMIT = 64;

/** How late a timer may be, in milliseconds, for the next pause to make up for it. */
const TIMER_MS = 2;

/**
 * Sends echo requests at an interval, and resolves as soon as the outcome of each is certain: where
 * nothing has answered, `SILENCE_MS` after the last one.
 */
export async function ping(prober: Prober, request: PingRequest, options: PingOptions = {}) {
  const { target, scopeId = 0, count, intervalMs, timeoutMs, probedPort } = request;
  const { clock } = prober;
  const end = new AbortController();
  const signal = prober.signalFor(options.signal, end.signal);
  const route = prober.route(target, scopeId);
  if (typeof route === "string") return unreachable(route);
  const probe = { target, scopeId, ...route, probedPort, hopLimit: HOP_LIMIT, timeoutMs, signal };
  let { source } = route;
  const all: Sample[] = [];
  let lastSentMs = -Infinity;
  let duplicates = 0;

  const note = (sample: Sample) => {
    all[sample.seq - 1] = sample;
    options.onSample?.(sample);
  };
  const ask = async (seq: number, onSent: (source: Ipv6Address) => void) => {
    const onResponse = (response: Response, isAnswer: boolean) => {
      if (isAnswer) note(sampleOf(seq, response, timeoutMs));
      else duplicates++;
    };
    const answer = await prober.probe({ ...probe, source, turn: seq, onSent, onResponse });
    const isSilent = answer.kind === "timeout" || answer.kind === "unknown";
    // A reply may have come too late.
    if (isSilent && !(seq - 1 in all)) note({ seq, reason: answer.kind });
    if (answer.kind === "refused") note({ seq, reason: "not-sent", errno: answer.code });
  };
  const pending: Promise<void>[] = [];
  let dueMs = clock.nowMs();
  for (let seq = 1; seq <= count && !signal.aborted; seq++) {
    let proceed = () => {};
    let isSent = false;
    const answered = ask(seq, (from) => {
      source = from;
      lastSentMs = clock.nowMs();
      isSent = true;
      proceed();
    });
    pending.push(answered);
    // Nearly always it leaves at once.
    if (!isSent) await Promise.race([new Promise<void>((sent) => (proceed = sent)), answered]);
    const nowMs = clock.nowMs();
    dueMs = (nowMs <= dueMs + TIMER_MS ? dueMs : nowMs) + intervalMs;
    if (seq < count && dueMs > nowMs) await pause(clock, dueMs - nowMs, signal);
  }
  await Promise.all(pending);
  const untilMs = lastSentMs + SILENCE_MS;
  while (!signal.aborted && clock.nowMs() < untilMs && isSilence(all, source))
    await prober.listen(signal, untilMs);
  if (signal.aborted) return { kind: "aborted" } as const;
  end.abort();

  const samples = all.filter((sample) => "hopLimit" in sample);
  const lost = all.filter((sample) => "reason" in sample);
  const refused = lost.filter((sample) => "errno" in sample);
  const last = refused.at(-1);
  if (refused.length === count && last !== undefined) return unreachable(last.errno);
  return { kind: "done" as const, source, timeoutMs, samples, lost, duplicates };
}

const unreachable = (code: string): NoResult => ({ kind: "unreachable", code });

function sampleOf(seq: number, response: Response, timeoutMs: number): Sample {
  const { kind, from, rttMs, hopLimit } = response;
  if (kind === "error") {
    const { type, code } = response;
    return { seq, reason: errorName(type, code), type, code, from, rttMs };
  }
  if (rttMs > timeoutMs) return { seq, reason: "timeout", rttMs };
  const { isOtherSource, state } = response;
  return {
    seq,
    hopLimit,
    rttMs,
    ...(isOtherSource && { otherSource: from }),
    ...(state && { state }),
  };
}

/** True if only this machine has answered so far, and a probe has no answer. */
function isSilence(all: readonly Sample[], source: Ipv6Address): boolean {
  const isOwnError = (sample: Sample) => "from" in sample && equalIpv6(sample.from, source);
  const isHeard = all.some((sample) => sample.rttMs !== undefined && !isOwnError(sample));
  return !isHeard && all.some((sample) => sample.rttMs === undefined && !("errno" in sample));
}
