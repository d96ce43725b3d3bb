import { describe, expect, test } from "bun:test";
import { DnsFormatError } from "../../src/dns/format-error.ts";
import {
  decodeMessage,
  encodeMessage,
  FLAG,
  type Message,
  tryDecodeHeader,
} from "../../src/dns/message.ts";
import { aaaa, cname, hex } from "./messages.ts";

const QUESTION = "03777777 076578616d706c65 00 001c 0001"; // www.example. AAAA IN, from 12 to 29
const ADDRESS = "20010db8 00000000 00000000 00000001";
const ANSWER = `c00c 001c 0001 0000012c 0010 ${ADDRESS}`;
const OPT = "00 0029 04d0 00 00 0000 0000";

/** A reply with one question, and this many records in each section. */
function reply(counts: string, records: string): Uint8Array {
  return hex(`1234 8180 0001 ${counts} ${QUESTION} ${records}`);
}

describe("encoded to the byte", () => {
  const query: Message = {
    id: 0x1234,
    flags: FLAG.recursionDesired | FLAG.authenticated,
    rcode: 0,
    question: { name: "www.example.", type: 28, class: 1 },
    answers: [],
    edns: { payloadBytes: 1232, version: 0, dnssecOk: false, extendedErrors: [] },
  };
  test.each<[string, Message, string]>([
    ["a query", query, `1234 0120 0001 0000 0000 0001 ${QUESTION} ${OPT}`],
    ["without EDNS", { ...query, edns: null }, `1234 0120 0001 0000 0000 0000 ${QUESTION}`],
    [
      "an answer",
      {
        ...query,
        flags: FLAG.response,
        answers: [aaaa("www.example.", "2001:db8::1")],
        edns: null,
      },
      `1234 8000 0001 0001 0000 0000 ${QUESTION} 03777777 076578616d706c65 00 001c 0001 0000012c 0010 ${ADDRESS}`,
    ],
    [
      "an extended response code",
      { ...query, flags: FLAG.response, question: null, rcode: 0xabc },
      "1234 800c 0000 0000 0000 0001 00 0029 04d0 ab 00 0000 0000",
    ],
    [
      "DO and an extended error",
      {
        ...query,
        question: null,
        edns: {
          payloadBytes: 512,
          version: 1,
          dnssecOk: true,
          extendedErrors: [{ code: 15, text: "no" }],
        },
      },
      "1234 0120 0000 0000 0000 0001 00 0029 0200 00 01 8000 0008 000f 0004 000f 6e6f",
    ],
  ])("%s", (_, message, bytes) => {
    expect(encodeMessage(message)).toEqual(hex(bytes));
  });

  test("no more than the limit", () => {
    expect(() => encodeMessage(query, 20)).toThrow("limit 20");
  });
});

describe("decoded", () => {
  const answer = aaaa("www.example.", "2001:db8::1");
  test.each<[string, Uint8Array, Partial<Message>]>([
    ["an answer", reply("0001 0000 0000", ANSWER), { answers: [answer], edns: null }],
    ["bytes behind the message", reply("0001 0000 0000", `${ANSWER} ffff`), { answers: [answer] }],
    [
      "a time to live with the high bit is unsigned",
      reply("0001 0000 0000", `c00c 001c 0001 ffffffff 0010 ${ADDRESS}`),
      { answers: [{ ...answer, ttl: 4_294_967_295 }] },
    ],
    [
      "a record of a type that we do not know is skipped by its length",
      reply("0002 0000 0000", `c00c 002e 0001 00000000 0003 010203 ${ANSWER}`),
      { answers: [answer] },
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
        rcode: 16,
        edns: {
          payloadBytes: 4096,
          version: 0,
          dnssecOk: true,
          extendedErrors: [{ code: 6, name: "DNSSEC Bogus", text: "bad" }],
        },
      },
    ],
    ["no question", hex("1234 8182 0000 0000 0000 0000"), { question: null, rcode: 2 }],
  ])("%s", (_, bytes, expected) => {
    expect(decodeMessage(bytes)).toMatchObject(expected);
  });

  test("a header, and nothing of what is shorter", () => {
    const bytes = hex("1234 8583 0001 0002 0003 0004");
    expect(tryDecodeHeader(bytes)).toEqual({
      id: 0x1234,
      flags: 0x8583,
      questionCount: 1,
      answerCount: 2,
      authorityCount: 3,
      additionalCount: 4,
    });
    expect(tryDecodeHeader(bytes.subarray(0, 11))).toBeNull();
  });
});

describe("refused", () => {
  test.each([
    ["nothing", hex(""), "cut short"],
    ["half a header", hex("1234 8180"), "cut short"],
    ["two questions", hex(`1234 8180 0002 0000 0000 0000 ${QUESTION} ${QUESTION}`), "2 questions"],
    ["counts of 65535", reply("ffff ffff ffff", ANSWER), "cut short"],
    ["65535 questions", hex(`1234 8180 ffff 0000 0000 0000 ${QUESTION}`), "65535 questions"],
    ["one record fewer than announced", reply("0002 0000 0000", ANSWER), "cut short"],
    [
      "data shorter than its type wants",
      reply("0001 0000 0000", `c00c 001c 0001 00000000 0004 ${ADDRESS}`),
      "cut short",
    ],
    [
      "data longer than its type wants",
      reply("0001 0000 0000", `c00c 0001 0001 00000000 0010 ${ADDRESS}`),
      "too long",
    ],
    [
      "data beyond the end",
      reply("0001 0000 0000", "c00c 002e 0001 00000000 ffff 00"),
      "cut short",
    ],
    ["two OPT records", reply("0000 0000 0002", `${OPT} ${OPT}`), "more than one OPT"],
    [
      "an OPT record that is not the root's",
      reply("0000 0000 0001", `c00c ${OPT.slice(2)}`),
      "root",
    ],
    [
      "an option beyond its record",
      reply("0000 0000 0001", "00 0029 04d0 00 00 0000 0004 000f 0004 0000"),
      "cut short",
    ],
    [
      "an extended error of one byte",
      reply("0000 0000 0001", "00 0029 04d0 00 00 0000 0005 000f 0001 00"),
      "cut short",
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
    expect(() => decodeMessage(bytes)).toThrow(DnsFormatError);
    expect(() => decodeMessage(bytes)).toThrow(message);
  });
});
