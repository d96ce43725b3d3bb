import type { Response } from "../../icmp/prober/response.ts";
import { finalHop, findLoop, lastResponding, nearerEnd } from "./responses.ts";

/** How often a silent hop is asked. */
const MAX_TRIES = 3;
/** The shortest wait for a hop in milliseconds: Linux sends one error in 100 ms to one address. */
const MIN_WAIT_MS = 100;
/** How many times longer the waits for limited hops become at most: in six times 100 ms, Linux refills its whole burst. */
const MAX_BACK_OFF = 6;
/** Hops asked behind the last one that responded: routers hide in rows of five and more. */
export const LOOK_AHEAD = 16;
/** Hops first asked at once, and the pause in milliseconds before the next ones: a near target replies meanwhile. */
export const HOPS_AT_ONCE = 4;
const HOPS_PAUSE_MS = 2;
/** Milliseconds after the answer to a repeat in which other traces keep asking at that distance. */
const LIMITED_MS = 2000;
/** How long a trace keeps asking hops that seem to rate-limit their errors, in milliseconds. */
export const MAX_PERSISTENCE_MS = 10_000;
/** How long a trace keeps asking the hop at which the path seems to end, in milliseconds. */
export const MAX_SUSPICION_MS = 3000;

/** Repeated answers in a loop after which a trace waits for no others. */
const CERTAIN_REPEATS = 8;

/** A hop while its trace runs. */
export interface Hop {
  readonly hop: number;
  readonly responses: Response[];
  tries: number;
  /** When it was last asked; infinite while a request waits to be sent. */
  askedMs: number;
  /** True if it is not asked again. */
  isClosed: boolean;
}

/** The part of a path that a trace looks at, and how long. */
export interface Bounds {
  /** The only hops that are asked, in their order; by default all. */
  readonly hops?: readonly number[] | undefined;
  /** The longest round-trip time of other traces to the target in milliseconds, if there is one. */
  readonly knownRttMs?: number | null;
  /** Milliseconds after which the trace ends with what it has. */
  readonly longestMs?: number;
}

/**
 * Decides which hops of a trace are asked when.
 *
 * @param repeatAnsweredMs when a repeated request of a trace was last answered, by hop
 */
export function createSchedule(
  maxHops: number,
  timeoutMs: number,
  repeatAnsweredMs: readonly number[],
  startMs: number,
  { hops: only, knownRttMs = null, longestMs = Infinity }: Bounds = {},
) {
  const endMs = startMs + longestMs;
  // With chosen hops, other traces ask for the same hops.
  const patienceMs = only ? timeoutMs : MAX_PERSISTENCE_MS;
  const hops = Array.from({ length: maxHops }, (_, index): Hop => {
    const hop = index + 1;
    const isClosed = only?.includes(hop) === false;
    return { hop, responses: [], tries: isClosed ? 1 : 0, askedMs: 0, isClosed };
  });
  const responses = hops.map((hop) => hop.responses);
  let nextNewMs = -Infinity;

  return {
    /** The responses by hop. */
    responses,
    /** The hops to ask now, and when to look again at the latest; null if no hop is open any more. */
    next(nowMs: number) {
      const final = finalHop(responses);
      if (nowMs >= endMs) return null;
      if (final === null && (findLoop(responses)?.repeats ?? 0) >= CERTAIN_REPEATS) return null;
      const near = Math.max(lastResponding(responses), (only?.[0] ?? 1) - 1) + LOOK_AHEAD;
      const hasTries = ({ hop, tries }: Hop) => tries < (hop > near ? 1 : MAX_TRIES);
      const due: Hop[] = [];
      let wakeMs = endMs;
      let isOpen = false;
      let laterRttMs = knownRttMs;
      const suspect = nowMs < startMs + MAX_SUSPICION_MS ? nearerEnd(responses) : null;
      for (const hop of hops.slice(0, final ?? undefined).toReversed()) {
        for (const { rttMs } of hop.responses) laterRttMs = Math.max(laterRttMs ?? 0, rttMs);
        if (hop.tries === 0 || hop.isClosed || hop.responses.length > 0) continue;
        // The hop seems to rate-limit its answers, so it may be silent only for now.
        const isLimited =
          hop.hop === suspect || nowMs < (repeatAnsweredMs[hop.hop] ?? -Infinity) + LIMITED_MS;
        const backOff = isLimited ? Math.min(MAX_BACK_OFF, 2 ** (hop.tries - 1)) : 1;
        const dueMs = hop.askedMs + backOff * waitMs(!hasTries(hop), laterRttMs, timeoutMs);
        const isPatient = isLimited && nowMs < startMs + patienceMs;
        if (nowMs < dueMs) wakeMs = Math.min(wakeMs, dueMs);
        else if (hasTries(hop) || isPatient) due.push(hop);
        else hop.isClosed = true;
        if (!hop.isClosed) isOpen = true;
      }
      // Hops behind `near` are asked once, after the others.
      const isDone = (hop: Hop) => hop.isClosed || hop.responses.length > 0 || !hasTries(hop);
      const end = final ?? (hops.slice(0, near).every(isDone) ? hops.length : near);
      const unasked = hops.slice(0, end).filter(({ tries }) => tries === 0);
      if (unasked.length > 0 && nowMs >= nextNewMs) {
        due.push(...unasked.slice(0, HOPS_AT_ONCE));
        nextNewMs = nowMs + HOPS_PAUSE_MS;
      }
      if (unasked.length > 0) wakeMs = Math.min(wakeMs, nextNewMs);
      return isOpen || unasked.length > 0 ? { due, wakeMs } : null;
    },
  };
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
