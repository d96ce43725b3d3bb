import { parseIpv6 } from "../../src/addr/ipv6.ts";
import { decodeMessage, encodeMessage, FLAG, type Message } from "../../src/dns/message.ts";
import type { ResourceRecord } from "../../src/dns/record.ts";

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

/** The name that the query asks for, in the case that it was sent. */
export function askedName(query: Uint8Array): string {
  return decodeMessage(query).question?.name ?? "";
}
