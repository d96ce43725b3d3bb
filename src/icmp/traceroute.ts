import type { Ipv6Address } from "../addr/ipv6.ts";
import { coalesceTraces } from "./coalesced-traces.ts";
import type { NoResult, RunOptions, RunRequest } from "./ping.ts";
import type { Prober, Response } from "./prober.ts";
import {
  describeHop,
  describeTrace,
  endOf,
  finalHop,
  lastResponding,
  type TraceHop,
  type TraceReport,
} from "./trace-report.ts";

/** A trace to one target. */
export interface TraceRequest extends RunRequest {
  /** The last hop that is asked, from 1 to 255. */
  readonly maxHops: number;
}

/** How the caller takes part in a trace. */
export interface TraceOptions extends RunOptions {
  /** Called with a hop's row whenever a response changes it. */
  readonly onHop?: ((hop: TraceHop) => void) | undefined;
}

/** How a trace ended. */
export type TraceOutcome =
  | (TraceReport & {
      readonly kind: "done";
      /** The address that the probes came from. */
      readonly source: Ipv6Address;
      readonly flowLabel: number;
    })
  | NoResult;

/** How often a silent hop is asked. */
export const MAX_TRIES = 3;
/** The shortest wait for a hop in milliseconds: Linux sends one error in 100 ms to one address. */
const MIN_WAIT_MS = 100;
/** How many times longer the waits for limited hops become: in six times 100 ms, Linux earns its whole burst again. */
const MAX_BACK_OFF = 6;
/** Hops asked behind the last one that responded: routers hide in rows of five and more. */
export const LOOK_AHEAD = 16;
/** Hops first asked at once, and the pause in milliseconds before the next ones: a near target replies meanwhile. */
export const HOPS_AT_ONCE = 4;
const HOPS_PAUSE_MS = 2;
/** How long after a repeat was answered at some distance other traces keep asking there, in milliseconds. */
const LIMITED_MS = 2000;
/** How long a trace keeps asking hops that seem to limit their errors, in milliseconds. */
export const MAX_PERSISTENCE_MS = 10_000;

/** Traces the path to a target. */
export type Traceroute = (request: TraceRequest, options?: TraceOptions) => Promise<TraceOutcome>;

interface Hop {
  readonly hop: number;
  readonly responses: Response[];
  tries: number;
  /** When it was last asked; infinite while a request waits to be sent. */
  askedMs: number;
  /** Whether it is not asked again. */
  isClosed: boolean;
}

/**
 * Makes the function that finds the routers on the path to a target. All hops are asked nearly at once,
 * and silent ones again. Callers that ask for the same trace share it.
 *
 * Routers limit their errors to one address, so when many traces run at once, most are not answered at
 * first. The traces learn from each other: when a repeated request is answered, the others at the same
 * distance keep asking.
 */
export function createTraceroute(prober: Prober): Traceroute {
  const repeatAnsweredMs: number[] = [];
  return coalesceTraces((request, options) => trace(prober, request, repeatAnsweredMs, options));
}

/**
 * Probes are outstanding when a trace ends, until its signal aborts.
 *
 * @param repeatAnsweredMs when a trace last had a repeated request answered, by hop
 */
async function trace(
  prober: Prober,
  request: TraceRequest,
  repeatAnsweredMs: number[],
  { signal: callersSignal, onHop }: TraceOptions = {},
): Promise<TraceOutcome> {
  const { target, scopeId = 0, maxHops, timeoutMs } = request;
  const { clock } = prober;
  const route = prober.route(target, scopeId);
  if (typeof route === "string") return { kind: "unreachable", code: route };
  const signal = prober.signalFor(callersSignal);
  const hops = Array.from(
    { length: maxHops },
    (_, index): Hop => ({ hop: index + 1, responses: [], tries: 0, askedMs: 0, isClosed: false }),
  );
  const responses = hops.map((hop) => hop.responses);
  const stopMs = clock.nowMs() + MAX_PERSISTENCE_MS;
  let hasSent = false;
  let refusal: string | null = null;
  let wake = () => {};
  signal.addEventListener("abort", () => wake(), { once: true });

  const ask = async (hop: Hop) => {
    const tries = ++hop.tries;
    hop.askedMs = Infinity;
    const onSent = () => {
      hasSent = true;
      hop.askedMs = clock.nowMs();
      wake();
    };
    const probe = { target, scopeId, ...route, hopLimit: hop.hop, timeoutMs, signal, onSent };
    const answer = await prober.probe(probe);
    if (answer.kind === "refused") {
      refusal = answer.code;
      hop.isClosed = true;
    } else if (answer.kind === "reply" || answer.kind === "error") {
      hop.responses.push(answer);
      if (tries > 1 && endOf(answer) === null) repeatAnsweredMs[hop.hop] = clock.nowMs();
      onHop?.(describeHop(hop.hop, hop.responses, route.source, target));
    }
    wake();
  };
  const isLimited = ({ hop }: Hop) =>
    clock.nowMs() - (repeatAnsweredMs[hop] ?? -Infinity) < LIMITED_MS;
  const dueMs = (hop: Hop, laterRttMs: number | null) => {
    const backOff = isLimited(hop) ? Math.min(MAX_BACK_OFF, 2 ** (hop.tries - 1)) : 1;
    return hop.askedMs + backOff * waitMs(hop.tries, laterRttMs, timeoutMs);
  };

  let nextNewMs = -Infinity;
  while (!signal.aborted) {
    const nowMs = clock.nowMs();
    const last = finalHop(responses) ?? Math.min(maxHops, lastResponding(responses) + LOOK_AHEAD);
    const unasked = hops.slice(0, last).filter(({ tries }) => tries === 0);
    if (unasked.length > 0 && nowMs >= nextNewMs) {
      for (const hop of unasked.splice(0, HOPS_AT_ONCE)) void ask(hop);
      nextNewMs = nowMs + HOPS_PAUSE_MS;
    }
    let wakeMs = unasked.length > 0 ? nextNewMs : Infinity;
    let isOpen = unasked.length > 0;
    let laterRttMs: number | null = null;
    for (const hop of hops.toReversed()) {
      for (const { rttMs } of hop.responses) laterRttMs = Math.max(laterRttMs ?? 0, rttMs);
      if (hop.tries === 0 || hop.hop > last || hop.responses.length > 0 || hop.isClosed) continue;
      if (nowMs >= dueMs(hop, laterRttMs)) {
        if (hop.tries < MAX_TRIES || (isLimited(hop) && nowMs < stopMs)) void ask(hop);
        else hop.isClosed = true;
      }
      if (hop.isClosed) continue;
      isOpen = true;
      wakeMs = Math.min(wakeMs, dueMs(hop, laterRttMs));
    }
    if (!isOpen) break;
    const { promise, resolve } = Promise.withResolvers<void>();
    wake = resolve;
    const cancel = wakeMs === Infinity ? () => {} : clock.after(Math.max(0, wakeMs - nowMs), wake);
    await promise;
    cancel();
  }
  if (signal.aborted) return { kind: "aborted" };
  if (!hasSent && refusal !== null) return { kind: "unreachable", code: refusal };
  const report = describeTrace(responses, route.source, target);
  return { kind: "done", ...route, ...report };
}

/**
 * How long to wait for a silent hop after it was asked so often, in milliseconds. If later hops have
 * responded, it should take no longer than they did, so a small multiple of their time is enough;
 * otherwise the waits add up to the timeout.
 */
function waitMs(tries: number, laterRttMs: number | null, timeoutMs: number): number {
  const isLast = tries >= MAX_TRIES;
  const mostMs = timeoutMs / (isLast ? 2 : 4);
  const expectedMs = laterRttMs === null ? mostMs : laterRttMs * (isLast ? 2 : 1.5);
  return Math.max(MIN_WAIT_MS, Math.min(mostMs, expectedMs));
}
