import { expect, test } from "bun:test";
import { decodeExtendedError, type ExtendedError } from "../../src/dns/extended-error.ts";
import { ByteReader } from "../../src/util/bytes.ts";

const UNPRINTABLE = "\ufffd";

test.each<[string, number, string | number[], ExtendedError]>([
  ["a code with a name", 22, "", { code: 22, name: "No Reachable Authority" }],
  ["the last code of RFC 8914", 24, "", { code: 24, name: "Invalid Data" }],
  ["a code without a name", 49_152, "", { code: 49_152 }],
  ["a text", 0, "at delegation é", { code: 0, name: "Other Error", text: "at delegation é" }],
  ["a text that ends in a NUL", 0, "no\0", { code: 0, name: "Other Error", text: "no" }],
  [
    "controls, escapes and line ends",
    0,
    "a\x1b[31m\r\n\x7f\x85\u2028",
    { code: 0, name: "Other Error", text: "a�[31m�����".replaceAll("�", UNPRINTABLE) },
  ],
  [
    "what turns the direction of text",
    0,
    "\u202eabc\u2066",
    { code: 0, name: "Other Error", text: `${UNPRINTABLE}abc${UNPRINTABLE}` },
  ],
  ["no UTF-8", 0, [0x61, 0xff], { code: 0, name: "Other Error", text: `a${UNPRINTABLE}` }],
  ["a long text", 0, "😀".repeat(300), { code: 0, name: "Other Error", text: "😀".repeat(256) }],
])("%s", (_, code, text, expected) => {
  const data = typeof text === "string" ? new TextEncoder().encode(text) : Uint8Array.from(text);
  const reader = new ByteReader(Uint8Array.of(code >>> 8, code, ...data));
  expect(decodeExtendedError(reader)).toEqual(expected);
});
