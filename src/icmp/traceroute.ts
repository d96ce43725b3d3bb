import { equalIpv6, type Ipv6Address } from "../addr/ipv6.ts";
import { coalesceTraces } from "./coalesced-traces.ts";
import type { NoResult, RunOptions, RunRequest } from "./ping.ts";
import { type Prober, REPLY_AFTER_ERROR_MS, SILENCE_MS } from "./prober.ts";
import type { Response } from "./response.ts";
import {
  describeHop,
  describeTrace,
  endOf,
  finalHop,
  lastResponding,
  nearerTarget,
  type RefusedProbe,
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

/** How long a trace keeps asking the hop at which the target seems to be, in milliseconds. */
export const MAX_SUSPICION_MS = 3000;

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
  const refused: RefusedProbe[] = [];
  const startMs = clock.nowMs();
  let sentMs = -Infinity;
  /** Until when a reply may follow an error. */
  let certainMs = -Infinity;
  let wake = () => {};
  signal.addEventListener("abort", () => wake(), { once: true });

  const ask = async (hop: Hop) => {
    const tries = ++hop.tries;
    hop.askedMs = Infinity;
    const onSent = () => {
      sentMs = clock.nowMs();
      hop.askedMs = sentMs;
      wake();
    };
    let known: Response | null = null;
    const onResponse = (response: Response) => {
      const isNews = known === null || (known.kind === "error" && response.kind === "reply");
      if (!isNews || (response.kind === "reply" && response.rttMs > timeoutMs)) return;
      known = response;
      hop.responses.push(response);
      if (isEndingError(response, route.source)) certainMs = clock.nowMs() + REPLY_AFTER_ERROR_MS;
      if (tries > 1 && endOf(response) === null) repeatAnsweredMs[hop.hop] = clock.nowMs();
      onHop?.(describeHop(hop.hop, hop.responses, route.source, target));
    };
    const probe = { target, scopeId, ...route, hopLimit: hop.hop, timeoutMs, signal };
    const answer = await prober.probe({ ...probe, onSent, onResponse });
    if (answer.kind === "refused") {
      refused.push({ hop: hop.hop, errno: answer.code });
      hop.isClosed = true;
    }
    wake();
  };
  const isLimited = ({ hop }: Hop) => {
    const nowMs = clock.nowMs();
    const isSuspect = hop === nearerTarget(responses) && nowMs < startMs + MAX_SUSPICION_MS;
    return isSuspect || nowMs < (repeatAnsweredMs[hop] ?? -Infinity) + LIMITED_MS;
  };
  /** The last of the hops that are asked up to three times. Those behind it are asked once, after them. */
  const nearEnd = () => Math.min(maxHops, lastResponding(responses) + LOOK_AHEAD);
  const hasTries = ({ hop, tries }: Hop) => tries < (hop > nearEnd() ? 1 : MAX_TRIES);
  const askedEnd = () => {
    const near = hops.slice(0, nearEnd());
    const isOver = near.every((hop) => hop.isClosed || hop.responses.length > 0 || !hasTries(hop));
    return isOver ? maxHops : near.length;
  };
  const dueMs = (hop: Hop, laterRttMs: number | null) => {
    const backOff = isLimited(hop) ? Math.min(MAX_BACK_OFF, 2 ** (hop.tries - 1)) : 1;
    return hop.askedMs + backOff * waitMs(!hasTries(hop), laterRttMs, timeoutMs);
  };

  let nextNewMs = -Infinity;
  while (!signal.aborted) {
    const nowMs = clock.nowMs();
    const final = finalHop(responses);
    let wakeMs = Infinity;
    let isOpen = false;
    let laterRttMs: number | null = null;
    for (const hop of hops.slice(0, final ?? maxHops).toReversed()) {
      for (const { rttMs } of hop.responses) laterRttMs = Math.max(laterRttMs ?? 0, rttMs);
      if (hop.tries === 0 || hop.responses.length > 0 || hop.isClosed) continue;
      if (nowMs >= dueMs(hop, laterRttMs)) {
        const isPersistent = isLimited(hop) && nowMs < startMs + MAX_PERSISTENCE_MS;
        if (hasTries(hop) || isPersistent) void ask(hop);
        else hop.isClosed = true;
      }
      if (hop.isClosed) continue;
      isOpen = true;
      wakeMs = Math.min(wakeMs, dueMs(hop, laterRttMs));
    }
    const unasked = hops.slice(0, final ?? askedEnd()).filter(({ tries }) => tries === 0);
    if (unasked.length > 0) {
      isOpen = true;
      if (nowMs >= nextNewMs) {
        for (const hop of unasked.slice(0, HOPS_AT_ONCE)) void ask(hop);
        nextNewMs = nowMs + HOPS_PAUSE_MS;
      }
      wakeMs = Math.min(wakeMs, nextNewMs);
    }
    if (!isOpen) break;
    const { promise, resolve } = Promise.withResolvers<void>();
    wake = resolve;
    const cancel = wakeMs === Infinity ? () => {} : clock.after(Math.max(0, wakeMs - nowMs), wake);
    await promise;
    cancel();
  }
  const listenMs = () => (lastResponding(responses) === 0 ? sentMs + SILENCE_MS : certainMs);
  while (!signal.aborted && clock.nowMs() < listenMs()) await prober.listen(signal);
  if (signal.aborted) return { kind: "aborted" };
  const [refusal] = refused;
  if (sentMs === -Infinity && refusal) return { kind: "unreachable", code: refusal.errno };
  const report = describeTrace(responses, refused, route.source, target);
  return { kind: "done", ...route, ...report };
}

/**
 * How long to wait for a silent hop, in milliseconds. If later hops have responded, it should take no
 * longer than they did, so a small multiple of their time is enough; otherwise the waits for its tries add
 * up to the timeout.
 */
function waitMs(isLast: boolean, laterRttMs: number | null, timeoutMs: number): number {
  const mostMs = timeoutMs / (isLast ? 2 : 4);
  const expectedMs = laterRttMs === null ? mostMs : laterRttMs * (isLast ? 2 : 1.5);
  return Math.max(MIN_WAIT_MS, Math.min(mostMs, expectedMs));
}

/** Whether another machine says that the path ends: a reply of the target may follow. */
function isEndingError(response: Response, source: Ipv6Address): boolean {
  return response.kind === "error" && endOf(response) !== null && !equalIpv6(response.from, source);
}
