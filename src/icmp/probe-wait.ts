import { LIMITS } from "./limits.ts";

/** How long a silent hop is waited for. */
export interface Patience {
  /** From one request to the next, in milliseconds. */
  readonly repeatMs: number;
  /** Behind the last request, in milliseconds. */
  readonly lastMs: number;
}

/** A router answers for another somewhat later than those behind it let one expect. */
const REPEAT_FACTOR = 1.5;
const LAST_FACTOR = 2;

/**
 * How long to wait for a hop that is silent. Where hops behind it have answered, its answer should take
 * no longer than theirs, and a small multiple of their time is enough. Where none has, the answer may
 * take all of the timeout from the first request on.
 *
 * @param laterRttMs the longest time of a later hop; null where none has answered
 */
export function patienceFor(laterRttMs: number | null, timeoutMs: number): Patience {
  const least = LIMITS.minRepeatMs;
  if (laterRttMs === null) {
    return { repeatMs: Math.max(least, timeoutMs / 4), lastMs: timeoutMs / 2 };
  }
  return {
    repeatMs: Math.max(least, Math.min(REPEAT_FACTOR * laterRttMs, timeoutMs / 4)),
    lastMs: Math.max(least, Math.min(LAST_FACTOR * laterRttMs, timeoutMs / 2)),
  };
}
