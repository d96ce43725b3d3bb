import { expect, test } from "bun:test";
import { answerOf } from "../../src/tools/answer.ts";
import type { Tone } from "../../src/tools/report.ts";
import { toneOf } from "../../src/tools/report.ts";

test.each<[code: string, answer: string, tone: Tone]>([
  ["works", "Yes", "good"],
  ["no-loss", "Yes", "good"],
  ["slower", "Yes", "warn"],
  ["address-deprecated", "Yes", "warn"],
  ["ending", "Ends", "warn"],
  ["partly", "Partly", "warn"],
  ["sometimes", "Sometimes", "warn"],
  ["loss", "Sometimes", "bad"],
  ["unclear", "Not known", "warn"],
  ["names-unknown", "Not known", "bad"],
  ["not-sent", "Not from here", "bad"],
  ["port-silent", "No", "bad"],
  ["link-down", "No", "bad"],
  ["HOSTNAME_NOT_FOUND", "No", "bad"],
  ["toString", "Not known", "warn"],
])("%s: %s", (code, answer, tone) => {
  expect([answerOf(code), toneOf(code)]).toEqual([answer, tone]);
});
