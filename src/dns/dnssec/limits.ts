import { type Clock, systemClock } from "../../util/clock.ts";
import { Problem } from "./problem.ts";

/** The work that one verdict may cost. Every zone on the way decides how much there is to do, so it needs a limit. */
const LIMITS = {
  /** Questions to the resolver; six zones take twelve. */
  questions: [40, "40 questions"],
  /** Microseconds of computing: junk signatures, CVE-2023-50387 (KeyTrap), CVE-2023-50868, or long messages. */
  cpuUs: [20_000, "20 ms of computing"],
} as const;

/** Microseconds of CPU that work takes at most, on a machine of 2020; keys have theirs in `key.ts`. */
export const COST_US = {
  /** A byte of a message, or a character of a name in it. */
  byte: 0.1,
  /** A byte of a name that the message does not have, because it is compressed. */
  expandedByte: 0.3,
  /** A signed byte, for each signature. */
  signedByte: 0.02,
  /** A record that bears on the question. */
  record: 3,
  /** One round of the hash of NSEC3. */
  hashRound: 0.4,
} as const;

/** How much of a zone is read. */
export const MAX = {
  /** Signatures of a record set; a rollover of keys and algorithm needs four. */
  signatures: 8,
  /** DS records of a zone. */
  digests: 16,
  /** Keys with the tag and algorithm of a signature or DS record: two keys have one tag once in 65,536. */
  keys: 4,
  /** Iterations of NSEC3, above which a zone counts as not signed; RFC 9276 section 3.2. */
  iterations: 100,
  /** Labels of names that are asked about before they are known to be zones; deeper zones are rare. */
  labelsAhead: 4,
} as const;

/** Milliseconds for a verdict. */
const VERDICT_TIMEOUT_MS = 5000;

/** See `createWork`. */
export type Work = ReturnType<typeof createWork>;

/** Limits the work and the time of one verdict. */
export function createWork(clock: Pick<Clock, "nowMs"> = systemClock) {
  const spent = { questions: 0, cpuUs: 0 };
  const deadlineMs = clock.nowMs() + VERDICT_TIMEOUT_MS;
  return {
    /** Counts work before it is done. Throws a Problem for more than a verdict may cost. */
    spend(kind: keyof typeof LIMITS, amount = 1): void {
      spent[kind] += amount;
      if (clock.nowMs() >= deadlineMs) {
        throw Problem.budget`The check ended after ${VERDICT_TIMEOUT_MS / 1000} seconds.`;
      }
      const [most, text] = LIMITS[kind];
      if (spent[kind] > most)
        throw Problem.budget`The check ended early: it would need more than ${text}.`;
    },
    /** Milliseconds left for a question. */
    leftMs: () => Math.max(1, deadlineMs - clock.nowMs()),
  };
}
