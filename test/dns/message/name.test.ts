import { describe, expect, test } from "bun:test";
import {
  canonicalName,
  DnsFormatError,
  encodeName,
  readName,
  withoutFinalDot,
} from "../../../src/dns/message/name.ts";
import { ByteReader } from "../../../src/util/bytes.ts";
import { hex } from "../messages.ts";

/** Reads the name at an offset of a message, and returns the offset of the reader afterwards. */
function read(message: Uint8Array, offset = 0): { name: string; end: number } {
  const reader = new ByteReader(message, offset);
  return { name: readName(reader), end: reader.offset };
}

/** A label of this many bytes, on the wire. */
function label(bytes: number): string {
  return bytes.toString(16).padStart(2, "0") + "61".repeat(bytes);
}

describe("a name on the wire and its text", () => {
  test.each([
    ["the root", "00", "."],
    ["a name", "03777777 076578616d706c65 00", "www.example."],
    ["case is kept", "03577757 00", "WwW."],
    ["a dot inside a label", "03612e62 00", "a\\.b."],
    ["a backslash", "03615c62 00", "a\\\\b."],
    ["every other character that is escaped", "07 22 3b 28 29 40 24 2a 00", '\\"\\;\\(\\)\\@\\$*.'],
    [
      "a space, a control, DEL and bytes above 127",
      "05 20 00 7f 80 ff 00",
      "\\032\\000\\127\\128\\255.",
    ],
    ["a label of 63 bytes", `${label(63)} 00`, `${"a".repeat(63)}.`],
    [
      "255 bytes in all",
      `${label(63)} ${label(63)} ${label(63)} ${label(61)} 00`,
      `${["a".repeat(63), "a".repeat(63), "a".repeat(63), "a".repeat(61)].join(".")}.`,
    ],
    ["127 labels", `${"0161".repeat(127)} 00`, "a.".repeat(127)],
  ])("%s", (_, wire, text) => {
    expect(read(hex(wire))).toEqual({ name: text, end: hex(wire).length });
    expect(encodeName(text)).toEqual(hex(wire));
    expect(canonicalName(text)).toBe(text);
  });
});

describe("compression", () => {
  const example = "076578616d706c65 00"; // at 0, 9 bytes
  test.each([
    ["a pointer alone", `${example} c000`, 9, "example.", 11],
    ["labels before it", `${example} 03777777 c000`, 9, "www.example.", 15],
    ["a pointer to a pointer", `${example} c000 0161 c009`, 11, "a.example.", 15],
    ["into the middle of a name", `03777777 ${example} c004`, 13, "example.", 15],
    ["to the root", "00 0161 c000", 1, "a.", 5],
  ])("%s", (_, wire, offset, name, end) => {
    expect(read(hex(wire), offset)).toEqual({ name, end });
  });

  test("126 pointers are followed, 127 are not", () => {
    const chain = [0xc0, 0]; // Behind the root at 0, a pointer to it, then each to the one before.
    for (let at = 1; at < 2 * 127; at += 2) chain.push(0xc0 | (at >> 8), at & 0xff);
    const message = Uint8Array.from([0, ...chain]);
    expect(read(message, 1 + 2 * 125)).toEqual({ name: ".", end: 1 + 2 * 126 });
    expect(() => read(message, 1 + 2 * 126)).toThrow(DnsFormatError);
  });

  test("pointers are counted the same whether or not a part was read before", () => {
    const chain = [0];
    for (let at = 0; at < 2 * 200; at += 2) {
      const target = at === 0 ? 0 : at - 1;
      chain.push(0xc0 | (target >> 8), target & 0xff);
    }
    const message = Uint8Array.from(chain);
    expect(readName(new ByteReader(message, 1 + 2 * 100))).toBe(".");
    expect(() => readName(new ByteReader(message, 1 + 2 * 190))).toThrow(DnsFormatError);
  });

  test("a name does not depend on what was read before", () => {
    // The first label of the name at 4 contains a name, at 5, and the pointer after the second leads to it.
    const message = hex("00000000  03 016100  0162 c005  c008");
    const whole = "\\001a\\000.b.a.";
    for (const offsets of [
      [4, 8, 12],
      [12, 8, 4],
      [8, 4, 12],
    ]) {
      const bytes = Uint8Array.from(message);
      const read = (offset: number) => readName(new ByteReader(bytes, offset));
      expect(offsets.map(read)).toEqual(offsets.map((offset) => (offset === 4 ? whole : "b.a.")));
    }
  });

  test("a name in bounded data may point out of it, but not extend beyond it", () => {
    const message = hex(`${example} 0161 c000 00`);
    expect(readName(new ByteReader(message, 9, 13))).toBe("a.example.");
    expect(() => readName(new ByteReader(message, 9, 12))).toThrow("cut short");
    expect(() => readName(new ByteReader(message, 9, 10))).toThrow("cut short");
  });
});

describe("refused on the wire", () => {
  test("as many labels as a message can hold, without a stack overflow", () => {
    const message = hex(`${"0161".repeat(32_767)} 00`);
    expect(() => read(message)).toThrow(DnsFormatError);
  });

  test.each([
    ["nothing at all", "", 0, "cut short"],
    ["no end", "0161", 0, "cut short"],
    ["a label cut short", "056161", 0, "cut short"],
    ["half a pointer", "00 c0", 1, "cut short"],
    ["a pointer to itself", "c000", 0, "backwards"],
    ["a pointer forward", "c002 00", 0, "backwards"],
    ["a pointer to a label of its own name", "0161 0161 c000", 0, "126 compression pointers"],
    ["two pointers at each other", "c002 c000", 2, "backwards"],
    ["a pointer beyond the end", "00 ffff", 1, "backwards"],
    ["label type 0x40", `40 ${"61".repeat(64)} 00`, 0, "label type 0x40"],
    ["label type 0x80", "80 00", 0, "label type 0x80"],
    ["256 bytes", `${label(63)} ${label(63)} ${label(63)} ${label(62)} 00`, 0, "255 bytes"],
    [
      "256 bytes by a pointer",
      `${label(63)} ${label(63)} ${label(62)} 00 ${label(63)} c000`,
      192,
      "255 bytes",
    ],
    ["128 labels", `${"0161".repeat(128)} 00`, 0, "255 bytes"],
  ])("%s", (_, wire, offset, message) => {
    expect(() => read(hex(wire), offset)).toThrow(DnsFormatError);
    expect(() => read(hex(wire), offset)).toThrow(message);
  });
});

describe("other spellings of a name's text", () => {
  test.each([
    ["without the final dot", "www.example", "www.example."],
    ["an escape that is not necessary", "w\\ww", "www."],
    ["a letter by its number", "\\119\\087w", "wWw."],
    ["a dot by its number", "a\\046b", "a\\.b."],
    ["a space as it is", "a b", "a\\032b."],
    ["an escaped dot at the end is not the final dot", "a\\.", "a\\.."],
  ])("%s", (_, text, canonical) => {
    expect(canonicalName(text)).toBe(canonical);
  });
});

describe("refused as text", () => {
  test.each([
    ["nothing", "", "empty label"],
    ["two dots", "a..b", "empty label"],
    ["a dot before", ".a", "empty label"],
    ["dots alone", "..", "empty label"],
    ["a label of 64 bytes", "a".repeat(64), "63 bytes"],
    ["a label of 64 bytes by escapes", "\\200".repeat(64), "63 bytes"],
    ["a name of 256 bytes", `${"a".repeat(63)}.`.repeat(3) + "a".repeat(62), "255 bytes"],
    ["an escape above 255", "\\256", "escape"],
    ["an escape of two digits", "\\12", "escape"],
    ["an escape at the end", "a\\", "escape"],
    ["a character beyond ASCII", "é", "printable"],
    ["a control", "a\tb", "printable"],
  ])("%s", (_, text, message) => {
    expect(() => canonicalName(text)).toThrow(DnsFormatError);
    expect(() => canonicalName(text)).toThrow(message);
  });
});

test("the final dot is removed, except from the root", () => {
  expect(withoutFinalDot("www.example.")).toBe("www.example");
  expect(withoutFinalDot(".")).toBe(".");
});
