import { describe, expect, test } from "bun:test";
import { interpret } from "../../src/dns/interpret.ts";
import { FLAG, type Message } from "../../src/dns/message.ts";
import type { RecordType, ResourceRecord } from "../../src/dns/record.ts";
import { aaaa, cname } from "./messages.ts";

function message(answers: readonly ResourceRecord[], rcode = 0): Message {
  return { id: 0, flags: FLAG.response, rcode, question: null, answers, edns: null };
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

describe("what a reply says", () => {
  test.each<[string, readonly ResourceRecord[], string, readonly ResourceRecord[], number?]>([
    ["the records asked for, in order", [two, one], "answer", [two, one]],
    ["the same record twice", [one, one], "answer", [one, one]],
    ["nothing", [], "no-data", []],
    ["a chain and its end", [link, end], "answer", [link, end]],
    ["a chain in the wrong order", [end, link], "answer", [link, end]],
    ["a chain without an end", [link], "no-data", [link]],
    ["a chain to a name that does not exist", [link], "name-error", [link], 3],
    ["a name that does not exist", [], "name-error", [], 3],
    ["a name that is said not to exist, with records", [one], "name-error", [], 3],
    ["records of a name that nobody asked for", [stranger], "no-data", []],
    ["such records among others", [stranger, link, stranger, end], "answer", [link, end]],
    ["a chain that begins elsewhere", [cname("c.", "b."), end], "no-data", []],
    ["records of another type", [{ owner: "a.", type: "NS", ttl: 1, data: "b." }], "no-data", []],
    [
      "two links from one name: the first counts",
      [link, cname("a.", "c."), end],
      "answer",
      [link, end],
    ],
    ["an alias beside the records asked for", [link, one, end], "answer", [one]],
    ["a loop", [link, cname("b.", "a.")], "malformed", []],
    ["a loop of one", [cname("a.", "a.")], "malformed", []],
    ["a loop of a name that does not exist", [link, cname("b.", "a.")], "malformed", [], 3],
    ["a failure", [], "failure", [], 2],
    ["a refusal with records", [one], "failure", [], 5],
    ["an extended response code", [one], "failure", [], 23],
  ])("%s", (_, answers, kind, records, rcode = 0) => {
    expect(interpret(message(answers, rcode), "a.", "AAAA")).toEqual({ kind, records } as never);
  });

  test("names compare without regard to case, and are shown as they came", () => {
    const answers = [cname("A.", "B."), aaaa("b.", "2001:db8::1")];
    expect(interpret(message(answers), "a.", "AAAA")).toEqual({ kind: "answer", records: answers });
  });

  test.each<[RecordType, string]>([
    ["CNAME", "answer"],
    ["MX", "no-data"],
  ])("an alias, asked for by %s", (type, kind) => {
    expect(interpret(message([link]), "a.", type)).toEqual({ kind, records: [link] } as never);
  });

  test("16 links are followed, 17 are not", () => {
    expect(interpret(message(chainOf(16)), "n0.", "AAAA")).toEqual({
      kind: "answer",
      records: chainOf(16),
    });
    expect(interpret(message(chainOf(17)), "n0.", "AAAA").kind).toBe("malformed");
  });
});
