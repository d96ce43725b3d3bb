import { FormatError } from "../../util/bytes.ts";

/** The verdicts of validation, RFC 4033 section 5, the worst last. */
export const VERDICTS = ["secure", "insecure", "indeterminate", "bogus"] as const;

/**
 * What a verdict that is neither `secure` nor `insecure` rests on:
 * - `signature`: a signature is there and not valid, or keys are there and none matches a DS record;
 * - `denial`: a signed proof is there and shows something else;
 * - `missing`: a signature, key, proof or answer is not there;
 * - `local`: a signed proof shows that the name does not exist, and the resolver knows it all the same;
 * - `budget`: the time or the work of a verdict is spent.
 */
export type Evidence = "signature" | "denial" | "missing" | "local" | "budget";

/** Why something is not secure, in a sentence. It ends the check of everything that depends on it. */
export class Problem extends Error {
  /** It is proven that something is not signed. */
  static readonly insecure = Problem.#maker("insecure", null);
  /** What would prove something is not there, so that it cannot be found out. */
  static readonly missing = Problem.#maker("indeterminate", "missing");
  /** The name is known to the network of the resolver alone. */
  static readonly local = Problem.#maker("indeterminate", "local");
  /** It would take more time or work than a verdict may cost. */
  static readonly budget = Problem.#maker("indeterminate", "budget");
  /** A signature or a key contradicts what it is of. */
  static readonly signature = Problem.#maker("bogus", "signature");
  /** A proof contradicts what it is of. */
  static readonly denial = Problem.#maker("bogus", "denial");

  override readonly name = "Problem";
  readonly verdict: Exclude<(typeof VERDICTS)[number], "secure">;
  /** Null for what is proven not to be signed. */
  readonly evidence: Evidence | null;

  constructor(verdict: Problem["verdict"], evidence: Problem["evidence"], text: string) {
    super(text);
    this.verdict = verdict;
    this.evidence = evidence;
  }

  /** Makes problems of a kind: the template is their text. */
  static #maker(verdict: Problem["verdict"], evidence: Problem["evidence"]) {
    return (raw: TemplateStringsArray, ...values: readonly (string | number)[]) =>
      new Problem(verdict, evidence, String.raw({ raw }, ...values));
  }
}

/** The problem of an error that a check ended with: data that breaks the format is one too. Throws other errors. */
export function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (!(error instanceof FormatError)) throw error;
  return Problem.missing`The resolver has no valid answer: MALFORMED (${error.message}).`;
}
