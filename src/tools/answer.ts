/** What a code of a verdict means in a tone and a word, without the schemas, so that the page can have it. */

import { capitalized, inWords } from "../util/text.ts";
import { FINDINGS } from "./check/findings.ts";
import { WARNINGS } from "./here/codes.ts";
import { type Tone, tonedVerdict } from "./report.ts";

/** Answers of other tools than check that are more than yes, no and not known. */
const ANSWERS: ReadonlyMap<string, string> = new Map([
  ["ending", "ends"],
  ["loss", "sometimes"],
]);

const ROWS = new Map(Object.entries(FINDINGS));

/** The tone of a code of a verdict; that of an error about the target, which is in capitals, is bad. */
export const toneOf = (code: string): Tone =>
  (/^[A-Z0-9_]+$/.test(code) ? null : tonedVerdict({ code: code as "loss", text: "" }))?.tone ??
  "bad";

/** The first word of the answer to whether something works, such as `Yes` or `Not known`, by the code of its verdict. */
export function answerOf(code: string): string {
  const finding = ROWS.get(code);
  // What a check or a look at this machine warns of does not keep IPv6 from working.
  const isFlaw = finding !== undefined || WARNINGS.some((each) => each === code);
  const byTone = { good: "yes", warn: isFlaw ? "yes" : "not known", bad: "no" }[toneOf(code)];
  const answer = finding?.answer ?? ANSWERS.get(code) ?? byTone;
  return capitalized(inWords(answer));
}
