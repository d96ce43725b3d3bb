/** The work that one verdict may cost, because every zone on the way says how much there is to do. */
export const LIMITS = {
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

/** Keys with the tag and algorithm of a signature that are tried: two keys have one tag once in 65,536. */
export const MAX_KEYS = 4;

/** Iterations of NSEC3 above which a zone counts as not signed; RFC 9276 section 3.2. */
export const MAX_ITERATIONS = 100;

/** Milliseconds for a verdict. */
export const VERDICT_TIMEOUT_MS = 5000;

/** A verdict would cost more than it may. */
export class LimitError extends Error {
  override readonly name = "LimitError";
}

/** Counts the work of one verdict. */
export class Work {
  readonly #done = { questions: 0, signatures: 0, hashes: 0 };

  /** Counts one piece of work. Throws LimitError if it is one too many. */
  spend(kind: keyof typeof LIMITS): void {
    this.#done[kind] += 1;
    if (this.#done[kind] > LIMITS[kind]) {
      throw new LimitError(
        `The check ended early: it would need more than ${LIMITS[kind]} ${kind}.`,
      );
    }
  }
}
