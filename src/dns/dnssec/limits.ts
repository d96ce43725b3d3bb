import { type Clock, systemClock } from "../../util/clock.ts";
import { indeterminate } from "./problem.ts";

/** The work that one verdict may cost, because every zone on the way says how much there is to do. */
const LIMITS = {
  /** Questions to the resolver; six zones take twelve. */
  questions: 40,
  /** Signatures checked, whatever the number of keys and of signatures: CVE-2023-50387 (KeyTrap). */
  signatures: 64,
  /** Names hashed for NSEC3, at most 101 times each: CVE-2023-50868. */
  hashes: 256,
} as const;

/** Signatures of a record set that are looked at; a rollover of keys and algorithm needs four. */
export const MAX_SIGNATURES = 8;

/** DS records of a zone that are looked at. */
export const MAX_DIGESTS = 16;

/** Keys with the tag and algorithm of a signature or DS record that are tried: two keys have one tag once in 65,536. */
export const MAX_KEYS = 4;

/** Iterations of NSEC3 above which a zone counts as not signed; RFC 9276 section 3.2. */
export const MAX_ITERATIONS = 100;

/** Milliseconds for a verdict. */
const VERDICT_TIMEOUT_MS = 5000;

/** See `createWork`. */
export type Work = ReturnType<typeof createWork>;

/** Counts the work of one verdict, and its time. Throws a Problem for more than it may cost. */
export function createWork(clock: Pick<Clock, "nowMs"> = systemClock) {
  const done = { questions: 0, signatures: 0, hashes: 0 };
  const deadlineMs = clock.nowMs() + VERDICT_TIMEOUT_MS;
  return {
    /** Counts one piece of work. */
    spend(kind: keyof typeof LIMITS): void {
      done[kind] += 1;
      if (clock.nowMs() >= deadlineMs) {
        throw indeterminate`The check ended after ${VERDICT_TIMEOUT_MS / 1000} seconds.`;
      }
      if (done[kind] <= LIMITS[kind]) return;
      throw indeterminate`The check ended early: it would need more than ${LIMITS[kind]} ${kind}.`;
    },
    /** Milliseconds left for a question. */
    leftMs: () => Math.max(1, deadlineMs - clock.nowMs()),
  };
}
