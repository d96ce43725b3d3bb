/** The answer that the code of a verdict gives. This file imports no schemas, so the page can load it. */

import { capitalized, inWords } from "../util/text.ts";
import { FINDINGS } from "./check/findings.ts";
import { WARNINGS } from "./here/codes.ts";
import { toneOf } from "./report.ts";

/** Answers of tools other than check that are not yes, no or not known. */
const ANSWERS: ReadonlyMap<string, string> = new Map([
  ["ending", "ends"],
  ["loss", "sometimes"],
]);

const ROWS = new Map(Object.entries(FINDINGS));

/** Whether something works by the code of its verdict, such as `Yes` or `Not known`. */
export function answerOf(code: string): string {
  const finding = ROWS.get(code);
  // A warning of a check or of a look at this machine does not keep IPv6 from working.
  const isFlaw = finding !== undefined || WARNINGS.some((each) => each === code);
  const byTone = { good: "yes", warn: isFlaw ? "yes" : "not known", bad: "no" }[toneOf(code)];
  const answer = finding?.answer ?? ANSWERS.get(code) ?? byTone;
  return capitalized(inWords(answer));
}
