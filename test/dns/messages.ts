import { decodeMessage, encodeMessage, FLAG, type Message } from "../../src/dns/message.ts";
import type { ResourceRecord } from "../../src/dns/record.ts";
import { parseIpv6 } from "../addr/parse.ts";

/** Bytes from hex digits; white space is for the reader. */
export function hex(text: string): Uint8Array {
  return Uint8Array.fromHex(text.replace(/\s+/g, ""));
}

/** An AAAA record. */
export function aaaa(owner: string, address: string, ttl = 300): ResourceRecord {
  return { owner, type: "AAAA", ttl, data: parseIpv6(address) };
}

/** A CNAME record. */
export function cname(owner: string, target: string, ttl = 300): ResourceRecord {
  return { owner, type: "CNAME", ttl, data: target };
}

/** What a server that does everything right would reply to the query, with some of it changed. */
export function replyTo(query: Uint8Array, changes: Partial<Message> = {}): Uint8Array {
  return encodeMessage(replyMessage(query, changes));
}

/** As `replyTo`, before encoding. */
export function replyMessage(query: Uint8Array, changes: Partial<Message> = {}): Message {
  const asked = decodeMessage(query);
  return {
    id: asked.id,
    flags: FLAG.response | FLAG.recursionDesired | FLAG.recursionAvailable,
    rcode: 0,
    question: asked.question,
    answers: [],
    edns: asked.edns,
    ...changes,
  };
}

/**
 * A reply to the query that holds this many NS records, all but the first of 14 bytes, whose compressed
 * name has 940 characters when it is shown.
 */
export function swellingReply(query: Uint8Array, count: number): Uint8Array {
  const head = replyTo(query, { edns: null });
  head.set([count >>> 8, count & 0xff], 6);
  const name = [...[63, 63, 63, 45].flatMap((length) => [length, ...Array(length).fill(1)]), 0];
  const first = [0xc0, 0x0c, 0, 2, 0, 1, 0, 0, 1, 44, 0, name.length, ...name];
  const offset = head.length + 12;
  const other = [0xc0, 0x0c, 0, 2, 0, 1, 0, 0, 1, 44, 0, 2, 0xc0 | (offset >>> 8), offset & 0xff];
  return Uint8Array.from([
    ...head,
    ...first,
    ...Array(count - 1)
      .fill(other)
      .flat(),
  ]);
}

/** The reply with one more answer before the others: a DNAME of the root. */
export function withDname(reply: Uint8Array): Uint8Array {
  return withRecords(reply, ANSWER_COUNT, questionEnd(reply), [
    hex("00 0027 0001 0000012c 0001 00"),
  ]);
}

/** A reply without records but OPT, with records of these types in its authority section; their data is the root. */
export function withAuthority(reply: Uint8Array, types: readonly number[]): Uint8Array {
  const records = types.map((type) => Uint8Array.of(0, 0, type, 0, 1, 0, 0, 1, 44, 0, 1, 0));
  return withRecords(reply, AUTHORITY_COUNT, questionEnd(reply), records);
}

/** Offsets of the header's counts. */
const ANSWER_COUNT = 6;
const AUTHORITY_COUNT = 8;

function questionEnd(reply: Uint8Array): number {
  let at = 12;
  while (reply[at] !== 0) at += 1 + (reply[at] as number);
  return at + 5;
}

function withRecords(
  reply: Uint8Array,
  countAt: number,
  at: number,
  records: readonly Uint8Array[],
): Uint8Array {
  const added = Uint8Array.from([
    ...reply.subarray(0, at),
    ...records.flatMap((record) => [...record]),
    ...reply.subarray(at),
  ]);
  const count = new DataView(added.buffer);
  count.setUint16(countAt, count.getUint16(countAt) + records.length);
  return added;
}

/** The name that the query asks for, in the case that it was sent. */
export function askedName(query: Uint8Array): string {
  return decodeMessage(query).question?.name ?? "";
}
