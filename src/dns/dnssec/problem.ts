import { FormatError } from "../../util/bytes.ts";

/** The verdicts of validation, RFC 4033 section 5, the worst last. */
export const VERDICTS = ["secure", "insecure", "indeterminate", "bogus"] as const;

/** Why something is not secure, in a sentence. It ends the check of everything that depends on it. */
export class Problem extends Error {
  override readonly name = "Problem";
  readonly verdict: Exclude<(typeof VERDICTS)[number], "secure">;

  constructor(verdict: Problem["verdict"], text: string) {
    super(text);
    this.verdict = verdict;
  }
}

/** Makes problems of a verdict: the template is their text. */
const problemsOf =
  (verdict: Problem["verdict"]) =>
  (raw: TemplateStringsArray, ...values: readonly (string | number)[]) =>
    new Problem(verdict, String.raw({ raw }, ...values));

/** It is proven that something is not signed. */
export const insecure = problemsOf("insecure");

/** It cannot be found out. */
export const indeterminate = problemsOf("indeterminate");

/** A signature or a proof is wrong or missing. */
export const bogus = problemsOf("bogus");

/** The problem of an error that a check ended with: data that breaks the format is one too. Throws other errors. */
export function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (!(error instanceof FormatError)) throw error;
  return indeterminate`The resolver has no valid answer: MALFORMED (${error.message}).`;
}
