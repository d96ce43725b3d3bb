import { expect, test } from "bun:test";
import words from "../../src/tools/here/words.json" with { type: "json" };

/** A list that may have one row or several, right before a verb of one, or right behind a noun of one. */
const ONE_ALONE =
  /\b[Tt]he (default router|resolver) \{|\{(routers|ips|usable|duplicates|dead|alive|answering|silent|echoing|narrow)\}( (on|of) \{name\})? (sends|says|advertises|answers|does|has|is)\b/;

test("no sentence is wrong of one, or of several", () => {
  const texts = Object.values(words).map(({ text }) => text);
  expect(texts.filter((text) => ONE_ALONE.test(text))).toEqual([]);
});
