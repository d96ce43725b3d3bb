import { describe, expect, test } from "bun:test";
import { type ExtendedError, rcodeName } from "../../../src/dns/message/codes.ts";
import { decodeMessage, type Message } from "../../../src/dns/message/message.ts";
import { FormatError } from "../../../src/util/bytes.ts";
import { aaaa, cname, hex } from "../messages.ts";

const QUESTION = "03777777 076578616d706c65 00 001c 0001"; // www.example. AAAA IN, from 12 to 29
const ADDRESS = "20010db8 00000000 00000000 00000001";
const ANSWER = `c00c 001c 0001 0000012c 0010 ${ADDRESS}`;
const OPT = "00 0029 04d0 00 00 0000 0000";

/** A reply with one question, and this many records in each section. */
function reply(counts: string, records: string): Uint8Array {
  return hex(`1234 8180 0001 ${counts} ${QUESTION} ${records}`);
}

describe("decoded", () => {
  const answer = aaaa("www.example.", "2001:db8::1");
  test.each<[string, Uint8Array, Partial<Message>]>([
    ["an answer", reply("0001 0000 0000", ANSWER), { answers: [answer], extendedErrors: null }],
    ["bytes after the message", reply("0001 0000 0000", `${ANSWER} ffff`), { answers: [answer] }],
    [
      "a TTL with the high bit set is unsigned",
      reply("0001 0000 0000", `c00c 001c 0001 ffffffff 0010 ${ADDRESS}`),
      { answers: [{ ...answer, ttl: 4_294_967_295 }] },
    ],
    [
      "a record of an unknown type spans its length",
      reply("0002 0000 0000", `c00c ff00 0001 00000000 0003 010203 ${ANSWER}`),
      { answers: [{ ...answer, type: "TYPE65280", value: "\\# 3 010203", ttl: 0 }, answer] },
    ],
    [
      "a record of another class is skipped",
      reply("0002 0000 0000", `c00c 001c 0003 00000000 0002 0102 ${ANSWER}`),
      { answers: [answer] },
    ],
    [
      "authority and additional records are left out",
      reply("0001 0001 0001", `${ANSWER} ${ANSWER} ${ANSWER}`),
      { answers: [answer] },
    ],
    [
      "compressed data",
      reply("0001 0000 0000", "c00c 0005 0001 0000012c 0004 0161 c010"),
      { answers: [cname("www.example.", "a.example.")] },
    ],
    [
      "EDNS with options, one of them an extended error, and an extended response code",
      reply(
        "0000 0000 0001",
        "00 0029 1000 01 00 8000 0012  000a 0004 01020304  000f 0006 0006 62616400",
      ),
      {
        rcode: "BADVERS",
        extendedErrors: [{ code: 6, name: "DNSSEC Bogus", text: "bad" }],
      },
    ],
    ["no question", hex("1234 8182 0000 0000 0000 0000"), { flags: 0x8182, rcode: "SERVFAIL" }],
    [
      "the types of all records in the answer and authority sections",
      reply(
        "0002 0001 0001",
        `${ANSWER} 00 0027 0003 00000000 0000 00 0006 0001 00000000 0016 00 00 ${"00000001".repeat(5)} ${OPT}`,
      ),
      {
        answers: [answer],
        answerTypes: [28, 39],
        authorityTypes: [6],
        soa: { owner: ".", type: "SOA", ttl: 0, value: ". . 1 1 1 1 1" },
        extendedErrors: [],
      },
    ],
  ])("%s", (_, bytes, expected) => {
    expect(decodeMessage(bytes)).toMatchObject(expected);
  });
});

/** What reads beyond the end say: of a name, of a field, and of a record. */
const CUT_SHORT = /^a name is cut short$|^\d+ bytes at offset|^range /;

describe("refused", () => {
  test.each<[string, Uint8Array, string | RegExp]>([
    ["nothing", hex(""), CUT_SHORT],
    ["half a header", hex("1234 8180"), CUT_SHORT],
    ["two questions", hex(`1234 8180 0002 0000 0000 0000 ${QUESTION} ${QUESTION}`), "2 questions"],
    ["counts of 65535", reply("ffff ffff ffff", ANSWER), CUT_SHORT],
    ["65535 questions", hex(`1234 8180 ffff 0000 0000 0000 ${QUESTION}`), "65535 questions"],
    ["one record fewer than announced", reply("0002 0000 0000", ANSWER), CUT_SHORT],
    [
      "data shorter than its type",
      reply("0001 0000 0000", `c00c 001c 0001 00000000 0004 ${ADDRESS}`),
      CUT_SHORT,
    ],
    [
      "data longer than its type",
      reply("0001 0000 0000", `c00c 0001 0001 00000000 0010 ${ADDRESS}`),
      "too long",
    ],
    ["data beyond the end", reply("0001 0000 0000", "c00c 002e 0001 00000000 ffff 00"), CUT_SHORT],
    ["two OPT records", reply("0000 0000 0002", `${OPT} ${OPT}`), "more than one OPT"],
    [
      "an OPT record whose owner is not the root",
      reply("0000 0000 0001", `c00c ${OPT.slice(2)}`),
      "root",
    ],
    [
      "an option beyond its record",
      reply("0000 0000 0001", "00 0029 04d0 00 00 0000 0004 000f 0004 0000"),
      CUT_SHORT,
    ],
    [
      "an extended error of one byte",
      reply("0000 0000 0001", "00 0029 04d0 00 00 0000 0005 000f 0001 00"),
      CUT_SHORT,
    ],
    [
      "an owner that points at itself",
      reply("0001 0000 0000", `c01d ${ANSWER.slice(4)}`),
      "backwards",
    ],
    [
      "an owner that points forward",
      reply("0001 0000 0000", `c0ff ${ANSWER.slice(4)}`),
      "backwards",
    ],
    [
      "a broken record in the authority section",
      reply("0000 0001 0000", `c0ff ${ANSWER.slice(4)}`),
      "backwards",
    ],
  ])("%s", (_, bytes, message) => {
    expect(() => decodeMessage(bytes)).toThrow(FormatError);
    expect(() => decodeMessage(bytes)).toThrow(message);
  });
});

const UNPRINTABLE = "\ufffd";

describe("an extended error", () => {
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
      "characters that change the text direction",
      0,
      "\u202eabc\u2066",
      { code: 0, name: "Other Error", text: `${UNPRINTABLE}abc${UNPRINTABLE}` },
    ],
    ["invalid UTF-8", 0, [0x61, 0xff], { code: 0, name: "Other Error", text: `a${UNPRINTABLE}` }],
    ["a long text", 0, "😀".repeat(300), { code: 0, name: "Other Error", text: "😀".repeat(256) }],
  ])("%s", (_, code, text, expected) => {
    const data = typeof text === "string" ? new TextEncoder().encode(text) : Uint8Array.from(text);
    const option = [0, 15, 0, 0, code >>> 8, code & 0xff, ...data];
    const length = option.length - 4;
    option.splice(2, 2, length >>> 8, length & 0xff);
    const opt = [
      0,
      0,
      41,
      4,
      208,
      0,
      0,
      0,
      0,
      option.length >>> 8,
      option.length & 0xff,
      ...option,
    ];
    const message = Uint8Array.from([...hex("1234 8180 0000 0000 0000 0001"), ...opt]);
    expect(decodeMessage(message).extendedErrors).toEqual([expected]);
  });

  test("after the eighth is left out", () => {
    const options = "000f 0002 0003".repeat(9);
    const bytes = reply("0000 0000 0001", `00 0029 04d0 00000000 0036 ${options}`);
    expect(decodeMessage(bytes).extendedErrors).toHaveLength(8);
  });
});

test("a response code without a name has its number", () => {
  expect([rcodeName(0), rcodeName(23), rcodeName(3841)]).toEqual([
    "NOERROR",
    "BADCOOKIE",
    "RCODE3841",
  ]);
});

describe("of a message whose records are left unread", () => {
  const isUnread = { isUnread: true };

  test("the data is not looked at", () => {
    const bytes = reply("0001 0000 0000", "c00c 001c 0001 0000012c 0003 010203");
    expect(() => decodeMessage(bytes)).toThrow(FormatError);
    expect(decodeMessage(bytes, isUnread)).toMatchObject({ rcode: "NOERROR", answers: [] });
  });

  test("at most 16 KiB are taken", () => {
    const bytes = new Uint8Array(16_385);
    expect(decodeMessage(bytes.subarray(1), isUnread).rcode).toBe("NOERROR");
    expect(() => decodeMessage(bytes, isUnread)).toThrow("more than 16384 bytes");
    expect(decodeMessage(bytes).rcode).toBe("NOERROR");
  });
});
