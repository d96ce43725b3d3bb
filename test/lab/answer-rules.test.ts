import { expect, test } from "bun:test";
import { addressBytes, addressText } from "./address.ts";
import { answersByRules, type Draft } from "./answer-rules.ts";
import type { AnswerRule, Change } from "./internet-description.ts";
import { ECHO_REPLY, formatEcho, formatError, icmpChecksum, parsePacket } from "./packet.ts";

const SOURCE = addressBytes("2001:db8:2::7");
const DESTINATION = addressBytes("2001:db8::1");
const REPLY = formatEcho({
  type: ECHO_REPLY,
  identifier: 0x1234,
  sequence: 0x0001,
  data: Uint8Array.fromHex("00010203040506070809"),
});
const ERROR = formatError({
  type: 3,
  code: 0,
  word: 0,
  quotation: Uint8Array.from({ length: 64 }, (_, index) => index),
  extensions: new Uint8Array(),
});

function draftOf(message: Uint8Array): Draft {
  return { source: SOURCE, destination: DESTINATION, hopLimit: 60, message };
}

/** The result of a rule for a message: its sender, and the message without its checksum. */
function changed(message: Uint8Array, change: Change): { from: string; message: Uint8Array } {
  const [answer] = answersByRules([{ change }], 1, draftOf(message), 0, () => 0.5);
  const packet = answer && parsePacket(answer.packet);
  if (!packet) throw new Error("no packet");
  const sum = icmpChecksum(packet.source, packet.destination, packet.payload);
  expect(sum === 0).toBe(change !== "checksum");
  return { from: addressText(packet.source), message: packet.payload.fill(0, 2, 4) };
}

test.each<[Change, string]>([
  ["identifier", "81000000edcb000100010203040506070809"],
  ["sequence", "810000001234fffe00010203040506070809"],
  ["cookie", "8100000012340001fffefdfcfbfaf9f80809"],
  ["destination", "810000001234000100010203040506070809"],
  ["checksum", "810000001234000100010203040506070809"],
  ["garbage", "810000008080808080808080808080808080"],
  [{ cutTo: 6 }, "810000001234"],
])("a reply with another %j", (change, expected) => {
  expect(changed(REPLY, change)).toEqual({
    from: "2001:db8:2::7",
    message: Uint8Array.fromHex(expected),
  });
});

test.each<[Change, number, number]>([
  ["destination", 39, 40],
  ["identifier", 44, 46],
  ["sequence", 46, 48],
  ["cookie", 48, 56],
])("an error that quotes another %s", (change, start, end) => {
  const expected = ERROR.map((byte, at) => (at >= 8 + start && at < 8 + end ? ~byte : byte));
  expect(changed(ERROR, change).message).toEqual(expected);
});

test("an answer from another source", () => {
  expect(changed(REPLY, "source").from).toBe("2001:db8:2::f8");
});

test.each<[string, AnswerRule[], number, number[]]>([
  ["no rule", [], 1, [20]],
  ["a late answer", [{ afterMs: 3000 }], 1, [3020]],
  ["a duplicate", [{ beside: true, afterMs: 5 }], 1, [25, 20]],
  ["three copies in its place", [{ copies: 3 }], 1, [20, 20, 20]],
  ["nothing in its place", [{ copies: 0 }], 1, []],
  ["an earlier one, but not before the probe", [{ beside: true, afterMs: -30 }], 1, [0, 20]],
  ["a rule for another probe", [{ probes: [2, 3], copies: 0 }], 1, [20]],
  ["a rule for this probe", [{ probes: [2, 3], copies: 0 }], 3, []],
  ["two rules", [{ beside: true, afterMs: 1 }, { afterMs: 2 }], 1, [21, 22]],
])("%s", (_, rules, count, expected) => {
  const answers = answersByRules(rules, count, draftOf(REPLY), 20, () => 0);
  expect(answers.map(({ afterMs }) => afterMs)).toEqual(expected);
});
