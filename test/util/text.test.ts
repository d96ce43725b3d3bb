import { expect, test } from "bun:test";
import { formatPercent, plural, quote, safeText, shareText } from "../../src/util/text.ts";

test.each<[string, string | number[], string]>([
  ["nothing", "", ""],
  ["letters of any script", "eth0 é 例え עברית", "eth0 é 例え עברית"],
  ["NULs at the end", "eth0\0\0\0", "eth0"],
  ["only NULs", "\0\0", ""],
  ["a NUL inside the text", "a\0b", "a\ufffdb"],
  ["controls and escapes", "a\x1b[31m\r\n\x7f\x85", "a\ufffd[31m\ufffd\ufffd\ufffd\ufffd"],
  ["line and paragraph separators", "a\u2028b\u2029", "a\ufffdb\ufffd"],
  ["characters that change the direction", "\u202eabc\u2066\u200f", "\ufffdabc\ufffd\ufffd"],
  ["characters without width", "a\u200bb\u00adc", "a\ufffdb\ufffdc"],
  ["private use and unassigned", "\ue000\u0378\u{10ffff}", "\ufffd\ufffd\ufffd"],
  ["invalid UTF-8", [0x61, 0xff], "a\ufffd"],
  ["a surrogate as UTF-8", [0xed, 0xa0, 0x80], "\ufffd\ufffd\ufffd"],
  ["the maximum length", "😀".repeat(20), "😀".repeat(20)],
  ["a longer text, cut between characters", "😀".repeat(21), "😀".repeat(20)],
])("%s", (_, text, expected) => {
  const bytes = typeof text === "string" ? new TextEncoder().encode(text) : Uint8Array.from(text);
  expect(safeText(bytes, 20)).toBe(expected);
});

test.each([
  ["letters of any script", "é 例え עברית", '"é 例え עברית"'],
  ["quotes and line ends", 'a"b\\c\n', '"a\\"b\\\\c\\n"'],
  ["characters that turn text around", "a\u202eb\u2066", '"a\\u202eb\\u2066"'],
  ["controls beyond ASCII", "\x7f\x85\u2028", '"\\u007f\\u0085\\u2028"'],
  ["characters without width", "a\u200bb\u00adc", '"a\\u200bb\\u00adc"'],
  ["a character of two code units", "\u{e0001}", '"\\udb40\\udc01"'],
  ["a long text", "x".repeat(81), `"${"x".repeat(80)}…"`],
])("a message shows %s safely, and as JSON", (_, text, expected) => {
  expect(quote(text)).toBe(expected);
  if (text.length <= 80) expect(JSON.parse(quote(text))).toBe(text);
});

test("counts take the plural but of one, and shares always", () => {
  expect([plural(1, "hop"), plural(0, "hop"), plural(2, "address")]).toEqual([
    ...["1 hop", "0 hops", "2 addresses"],
  ]);
  expect([shareText(0, 1, "SYN"), shareText(1, 2, "address")]).toEqual([
    ...["0 of 1 SYNs", "1 of 2 addresses"],
  ]);
});

test.each([
  [0, "0 %"],
  [100 / 3000, "<0.1 %"],
  [0.05, "0.1 %"],
  [33.333, "33.3 %"],
  [99.94, "99.9 %"],
  [299_900 / 3000, ">99.9 %"],
  [100, "100 %"],
])("of %f percent it shows neither none nor all that is not exact", (percent, expected) => {
  expect(formatPercent(percent)).toBe(expected);
});
