import { describe, expect, test } from "bun:test";
import {
  createQuery,
  createQuestion,
  FLAG,
  type Message,
} from "../../../src/dns/message/message.ts";
import type { RecordType, ResourceRecord } from "../../../src/dns/message/record.ts";
import {
  type AskTcp,
  type DnsResponse,
  interpret,
  matchDatagram,
  matchStreamed,
} from "../../../src/dns/message/response.ts";
import { aaaa, askedName, cname, hex, questionOf, replyTo } from "../messages.ts";

/** Changes the case of every letter, and makes the ID 0xffff. */
const allOnes = (bytes: Uint8Array) => bytes.fill(0xff);

const query = createQuery(createQuestion("www.example.", "AAAA"), true, allOnes);
const asked = questionOf(query.bytes);
const RESPONSE = FLAG.response;
const address = aaaa("WWW.EXAMPLE.", "2001:db8::1");
const answer = replyTo(query.bytes, { answers: [address] });

describe("a query", () => {
  test("has the ID and the case from the random bytes, EDNS with 1232 bytes, and AD", () => {
    expect(query.bytes).toEqual(
      hex(
        "ffff 0120 0001 0000 0000 0001 03575757 074558414d504c45 00 001c 0001 00 0029 04d0 0000 0000 0000",
      ),
    );
  });

  test("keeps the case of a letter whose bit is zero, and of all letters for PTR", () => {
    const none = createQuery(createQuestion("wWw.", "A"), false, () => {});
    expect(none.bytes).toEqual(hex("0000 0120 0001 0000 0000 0000 03775777 00 0001 0001"));
    const pointer = createQuery(createQuestion("a.ip6.arpa.", "PTR"), false, allOnes);
    expect(askedName(pointer.bytes)).toBe("a.ip6.arpa.");
  });

  test("is filled up with a padding option to the bytes that are wanted", () => {
    const question = createQuestion(".", "NS", { paddedBytes: 40 });
    expect(createQuery(question, true, allOnes).bytes).toEqual(
      hex(
        "ffff 0120 0001 0000 0000 0001 00 0002 0001 00 0029 04d0 0000 0000 000c 000c 0008 0000000000000000",
      ),
    );
  });

  test("may have a name of 255 bytes", () => {
    const name = `${`${"a".repeat(63)}.`.repeat(3)}${"a".repeat(61)}.`;
    const { bytes } = createQuery(createQuestion(name, "AAAA"), true, allOnes);
    expect(askedName(bytes)).toBe(name.toUpperCase());
  });
});

describe("a datagram", () => {
  const cut = answer.subarray(0, answer.length - 20);
  test.each<[string, Uint8Array, DnsResponse["kind"] | AskTcp["kind"] | null]>([
    ["the answer", answer, "message"],
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
    ["no question, FORMERR", replyTo(query.bytes, { question: null, rcode: 1 }), "message"],
    ["no question, SERVFAIL", replyTo(query.bytes, { question: null, rcode: 2 }), "message"],
    ["no question, NOTIMP", replyTo(query.bytes, { question: null, rcode: 4 }), "message"],
    ["no question, REFUSED", replyTo(query.bytes, { question: null, rcode: 5 }), "message"],
    ["no question, BADVERS", replyTo(query.bytes, { question: null, rcode: 16 }), "message"],
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
      "a compressed name in the question",
      hex("ffff 8180 0001 0000 0000 0000 c000 001c 0001"),
      null,
    ],
  ])("%s", (_, bytes, kind) => {
    expect(matchDatagram(bytes, query)?.kind ?? null).toBe(kind);
  });

  test("with another character that differs in the case bit only does not match", () => {
    const hyphen = createQuery(createQuestion("a-b.example.", "AAAA"), false, allOnes);
    for (const name of ["a\\013b.example.", "a-b\\014example."]) {
      const question = { ...asked, name };
      expect(matchDatagram(replyTo(hyphen.bytes, { question }), hyphen)).toBeNull();
    }
  });

  test("is a fallback for TCP if only the case differs, not if it is truncated or has a wrong ID", () => {
    const question = { ...asked, name: "www.example." };
    const fallback = (changes: object) =>
      matchDatagram(replyTo(query.bytes, { question, answers: [address], ...changes }), query);
    expect(fallback({})).toMatchObject({ fallback: { message: { answers: [address] } } });
    expect(fallback({ flags: RESPONSE | FLAG.truncated })).toMatchObject({ fallback: null });
    expect(fallback({ id: 1 })).toMatchObject({ fallback: null });
  });

  test("with names that point into the question has them in the case that the caller gave", () => {
    const compressed = hex(
      "ffff 8180 0001 0001 0000 0000 03575757 074558414d504c45 00 0002 0001 c00c 0002 0001 00000001 0004 016e c010",
    );
    const nameServers = createQuery(createQuestion("www.example.", "NS"), false, allOnes);
    expect(matchDatagram(compressed, nameServers)).toMatchObject({
      kind: "message",
      message: { answers: [{ owner: "www.example.", value: "n.example." }] },
    });
  });
});

describe("a message over TCP", () => {
  const folded = { ...asked, name: "www.example." };
  test.each<[string, Uint8Array, DnsResponse["kind"]]>([
    ["the answer", answer, "message"],
    ["in another case", replyTo(query.bytes, { question: folded, answers: [address] }), "message"],
    [
      "a refusal without the question",
      replyTo(query.bytes, { question: null, rcode: 5 }),
      "message",
    ],
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
    expect(matchStreamed(bytes, query).kind).toBe(kind);
  });
});

function message(answers: readonly ResourceRecord[], rcode = "NOERROR"): Message {
  return {
    flags: FLAG.response,
    rcode,
    answers,
    answerTypes: [],
    authorityTypes: [],
    soa: null,
    extendedErrors: null,
  };
}

/** A chain of this many links from `n0.`, and an address at its end. */
function chainOf(links: number): ResourceRecord[] {
  const chain = Array.from({ length: links }, (_, at) => cname(`n${at}.`, `n${at + 1}.`));
  return [...chain, aaaa(`n${links}.`, "2001:db8::1")];
}

const one = aaaa("a.", "2001:db8::1");
const two = aaaa("a.", "2001:db8::2");
const link = cname("a.", "b.");
const end = aaaa("b.", "2001:db8::3");
const stranger = aaaa("stranger.", "2001:db8:bad::");

describe("what a message says", () => {
  test.each<[string, readonly ResourceRecord[], string, readonly ResourceRecord[], string?]>([
    ["the requested records, in order", [two, one], "answer", [two, one]],
    ["the same record twice", [one, one], "answer", [one, one]],
    ["nothing", [], "no-data", []],
    ["a chain and its end", [link, end], "answer", [link, end]],
    ["a chain in the wrong order", [end, link], "answer", [link, end]],
    ["a chain without an end", [link], "no-data", [link]],
    ["a chain to a name that does not exist", [link], "name-error", [link], "NXDOMAIN"],
    ["a name that does not exist", [], "name-error", [], "NXDOMAIN"],
    ["NXDOMAIN with records", [one], "name-error", [], "NXDOMAIN"],
    ["records of another name", [stranger], "no-data", []],
    ["such records among the others", [stranger, link, stranger, end], "answer", [link, end]],
    ["a chain that begins elsewhere", [cname("c.", "b."), end], "no-data", []],
    ["records of another type", [{ owner: "a.", type: "NS", ttl: 1, value: "b." }], "no-data", []],
    [
      "two links from one name: the first is followed",
      [link, cname("a.", "c."), end],
      "answer",
      [link, end],
    ],
    ["an alias beside the requested records", [link, one, end], "answer", [one]],
    ["a loop", [cname("b.", "A."), link], "loop", [link, cname("b.", "A.")]],
    ["a loop of one", [cname("a.", "a.")], "loop", [cname("a.", "a.")]],
    [
      "a loop behind a chain",
      [link, cname("b.", "c."), cname("c.", "b.")],
      "loop",
      [link, cname("b.", "c."), cname("c.", "b.")],
    ],
    [
      "a loop of a name that does not exist",
      [link, cname("b.", "a.")],
      "loop",
      [link, cname("b.", "a.")],
      "NXDOMAIN",
    ],
    ["a failure in the middle of a chain", [link], "failure", [link], "SERVFAIL"],
    ["a failure", [], "failure", [], "SERVFAIL"],
    ["a refusal with records", [one], "failure", [], "REFUSED"],
    ["an extended response code", [one], "failure", [], "BADCOOKIE"],
  ])("%s", (_, answers, kind, records, rcode = "NOERROR") => {
    expect(interpret(message(answers, rcode), createQuestion("a.", "AAAA"))).toEqual({
      kind,
      records,
    } as never);
  });

  test("names compare without regard to case, and keep their case", () => {
    const answers = [cname("A.", "B."), aaaa("b.", "2001:db8::1")];
    expect(interpret(message(answers), createQuestion("a.", "AAAA"))).toEqual({
      kind: "answer",
      records: answers,
    });
  });

  test.each<[RecordType, string]>([
    ["CNAME", "answer"],
    ["MX", "no-data"],
  ])("an alias, with the question %s", (type, kind) => {
    expect(interpret(message([link]), createQuestion("a.", type))).toEqual({
      kind,
      records: [link],
    } as never);
  });

  test("a chain is followed to its end, however long it is", () => {
    const question = createQuestion("n0.", "AAAA");
    expect(interpret(message(chainOf(1000)), question)).toEqual({
      kind: "answer",
      records: chainOf(1000),
    });
  });
});
