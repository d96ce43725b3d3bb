import { FormatError } from "../../util/bytes.ts";

/** The verdicts of validation, RFC 4033 section 5, the worst last. */
export const VERDICTS = ["secure", "insecure", "indeterminate", "bogus"] as const;

/**
 * The basis of a verdict that is neither `secure` nor `insecure`:
 * - `signature`: a signature is there and not valid, or keys are there and none matches a DS record;
 * - `denial`: a signed proof is there and shows something else;
 * - `missing`: a signature, key, proof or answer is not there;
 * - `local`: a signed proof shows that the name does not exist, but the resolver knows it;
 * - `budget`: the time or the work of a verdict is spent.
 */
export type Evidence = "signature" | "denial" | "missing" | "local" | "budget";

/** The reason why data is not secure, in a sentence. It ends every check that depends on the data. */
export class Problem extends Error {
  /** A proof shows that the data is not signed. */
  static readonly insecure = Problem.#maker("insecure", null);
  /** A part of the proof is missing. */
  static readonly missing = Problem.#maker("indeterminate", "missing");
  /** The name is known to the network of the resolver alone. */
  static readonly local = Problem.#maker("indeterminate", "local");
  /** The check would take more time or work than a verdict may cost. */
  static readonly budget = Problem.#maker("indeterminate", "budget");
  /** A signature or a key does not match its data. */
  static readonly signature = Problem.#maker("bogus", "signature");
  /** A proof contradicts its claim. */
  static readonly denial = Problem.#maker("bogus", "denial");

  override readonly name = "Problem";
  readonly verdict: Exclude<(typeof VERDICTS)[number], "secure">;
  /** Null for data that is proven not to be signed. */
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

/** The problem that ended a check; a FormatError becomes one. Throws other errors. */
export function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (!(error instanceof FormatError)) throw error;
  return Problem.missing`The resolver has no valid answer: MALFORMED (${error.message}).`;
}
