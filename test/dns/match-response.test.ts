import { describe, expect, test } from "bun:test";
import {
  type AskTcp,
  judgeDatagram,
  judgeStreamed,
  type Reply,
} from "../../src/dns/match-response.ts";
import { decodeMessage, FLAG } from "../../src/dns/message.ts";
import { createQuery } from "../../src/dns/query.ts";
import { aaaa, hex, replyTo } from "./messages.ts";

/** Turns the case of every letter, and gives the ID 0xffff. */
const allOnes = (bytes: Uint8Array) => bytes.fill(0xff);

const query = createQuery("www.example.", "AAAA", true, allOnes);
const asked = decodeMessage(query.bytes).question as NonNullable<
  ReturnType<typeof decodeMessage>["question"]
>;
const RESPONSE = FLAG.response;
const address = aaaa("WWW.EXAMPLE.", "2001:db8::1");
const answer = replyTo(query.bytes, { answers: [address] });

describe("a query", () => {
  test("has the ID and the case that the random bytes say, asks for EDNS with 1232 bytes and AD", () => {
    expect(query.bytes).toEqual(
      hex(
        "ffff 0120 0001 0000 0000 0001 03575757 074558414d504c45 00 001c 0001 00 0029 04d0 0000 0000 0000",
      ),
    );
  });

  test("keeps the case of its name where a bit is zero, and everywhere for PTR", () => {
    const none = createQuery("wWw.", "A", false, () => {});
    expect(none.bytes).toEqual(hex("0000 0120 0001 0000 0000 0000 03775777 00 0001 0001"));
    const pointer = createQuery("a.ip6.arpa.", "PTR", false, allOnes);
    expect(decodeMessage(pointer.bytes).question?.name).toBe("a.ip6.arpa.");
  });

  test("takes a name of 255 bytes", () => {
    const name = `${`${"a".repeat(63)}.`.repeat(3)}${"a".repeat(61)}.`;
    const { bytes } = createQuery(name, "AAAA", true, allOnes);
    expect(decodeMessage(bytes).question?.name).toBe(name.toUpperCase());
  });
});

describe("a datagram", () => {
  const cut = answer.subarray(0, answer.length - 20);
  test.each<[string, Uint8Array, Reply["kind"] | AskTcp["kind"] | null]>([
    ["the answer", answer, "reply"],
    ["nothing", hex(""), null],
    ["half a header", answer.subarray(0, 11), null],
    ["the query itself", query.bytes, null],
    ["QR=0", replyTo(query.bytes, { flags: 0, answers: [address] }), null],
    ["another opcode", replyTo(query.bytes, { flags: RESPONSE | 0x2800 }), null],
    ["another name", replyTo(query.bytes, { question: { ...asked, name: "evil.example." } }), null],
    ["another type", replyTo(query.bytes, { question: { ...asked, type: 1 } }), null],
    ["another class", replyTo(query.bytes, { question: { ...asked, class: 3 } }), null],
    ["two questions", answer.with(5, 2), null],
    [
      "no question, with an answer",
      replyTo(query.bytes, { question: null, answers: [address] }),
      null,
    ],
    ["no question, NXDOMAIN", replyTo(query.bytes, { question: null, rcode: 3 }), null],
    ["no question, NOERROR", replyTo(query.bytes, { question: null }), null],
    ["no question, FORMERR", replyTo(query.bytes, { question: null, rcode: 1 }), "reply"],
    ["no question, SERVFAIL", replyTo(query.bytes, { question: null, rcode: 2 }), "reply"],
    ["no question, NOTIMP", replyTo(query.bytes, { question: null, rcode: 4 }), "reply"],
    ["no question, REFUSED", replyTo(query.bytes, { question: null, rcode: 5 }), "reply"],
    ["no question, BADVERS", replyTo(query.bytes, { question: null, rcode: 16 }), "reply"],
    [
      "no question, REFUSED, wrong ID",
      replyTo(query.bytes, { id: 1, question: null, rcode: 5 }),
      null,
    ],
    ["wrong ID", replyTo(query.bytes, { id: 1, answers: [address] }), "ask-tcp"],
    ["wrong ID, broken records", cut.with(0, 0), "ask-tcp"],
    [
      "wrong ID, another name",
      replyTo(query.bytes, { id: 1, question: { ...asked, name: "x." } }),
      null,
    ],
    ["truncated", replyTo(query.bytes, { flags: RESPONSE | FLAG.truncated }), "ask-tcp"],
    ["truncated in the middle of a record", cut.with(2, 0x83), "ask-tcp"],
    [
      "case folded",
      replyTo(query.bytes, { question: { ...asked, name: "www.example." } }),
      "ask-tcp",
    ],
    ["broken records", cut, "malformed"],
    [
      "a name compressed where none can be",
      hex("ffff 8180 0001 0000 0000 0000 c000 001c 0001"),
      null,
    ],
  ])("%s", (_, bytes, kind) => {
    expect(judgeDatagram(bytes, query)?.kind ?? null).toBe(kind);
  });

  test("with another character that differs in the bit of the case is not the answer", () => {
    const hyphen = createQuery("a-b.example.", "AAAA", false, allOnes);
    for (const name of ["a\\013b.example.", "a-b\\014example."]) {
      const question = { ...asked, name };
      expect(judgeDatagram(replyTo(hyphen.bytes, { question }), hyphen)).toBeNull();
    }
  });

  test("whose case is folded is kept in case TCP gives nothing; a truncated one or one of a wrong ID is not", () => {
    const question = { ...asked, name: "www.example." };
    const fallback = (changes: object) =>
      judgeDatagram(replyTo(query.bytes, { question, answers: [address], ...changes }), query);
    expect(fallback({})).toMatchObject({ fallback: { message: { answers: [address] } } });
    expect(fallback({ flags: RESPONSE | FLAG.truncated })).toMatchObject({ fallback: null });
    expect(fallback({ id: 1 })).toMatchObject({ fallback: null });
  });

  test("whose names point into the question shows them as they were given, not in random case", () => {
    const compressed = hex(
      "ffff 8180 0001 0001 0000 0000 03575757 074558414d504c45 00 0002 0001 c00c 0002 0001 00000001 0004 016e c010",
    );
    const nameServers = createQuery("www.example.", "NS", false, allOnes);
    expect(judgeDatagram(compressed, nameServers)).toMatchObject({
      kind: "reply",
      message: { answers: [{ owner: "www.example.", data: "n.example." }] },
    });
  });
});

describe("a message over TCP", () => {
  const folded = { ...asked, name: "www.example." };
  test.each<[string, Uint8Array, Reply["kind"]]>([
    ["the answer", answer, "reply"],
    ["in other case", replyTo(query.bytes, { question: folded, answers: [address] }), "reply"],
    ["a refusal without the question", replyTo(query.bytes, { question: null, rcode: 5 }), "reply"],
    ["nothing", hex(""), "malformed"],
    ["truncated", replyTo(query.bytes, { flags: RESPONSE | FLAG.truncated }), "malformed"],
    ["wrong ID", replyTo(query.bytes, { id: 1 }), "malformed"],
    ["QR=0", replyTo(query.bytes, { flags: 0 }), "malformed"],
    [
      "another name of the same length",
      replyTo(query.bytes, { question: { ...asked, name: "wwx.example." } }),
      "malformed",
    ],
    ["another type", replyTo(query.bytes, { question: { ...asked, type: 1 } }), "malformed"],
    ["broken records", answer.subarray(0, answer.length - 20), "malformed"],
  ])("%s", (_, bytes, kind) => {
    expect(judgeStreamed(bytes, query).kind).toBe(kind);
  });
});
