import { DnsFormatError } from "./format-error.ts";
import {
  decodeMessage,
  FLAG,
  HEADER_BYTES,
  type Header,
  type Message,
  OPCODE_MASK,
  tryDecodeHeader,
} from "./message.ts";
import type { Query } from "./query.ts";
import { RCODE } from "./response-code.ts";

/** The server's answer to a query, or something under the query's ID that cannot be one. */
export type Reply =
  | { readonly kind: "reply"; readonly message: Message }
  | { readonly kind: "malformed" };

/** The answer has to come over TCP; `fallback` is what to take if none comes. */
export interface AskTcp {
  readonly kind: "ask-tcp";
  readonly fallback: Message | null;
}

/** Response codes that may come without the question, from a server that did not get that far. */
const BARE_REFUSALS: readonly number[] = [
  RCODE.FORMERR,
  RCODE.SERVFAIL,
  RCODE.NOTIMP,
  RCODE.REFUSED,
  RCODE.BADVERS,
];

/** Bytes of the type and class behind a question's name. */
const TYPE_AND_CLASS_BYTES = 4;

/**
 * What a datagram from the server means for the query; RFC 5452 section 9.1. Null for what is nothing
 * of ours, bytes that are no message among it: keep waiting.
 */
export function judgeDatagram(bytes: Uint8Array, query: Query): Reply | AskTcp | null {
  const header = tryDecodeHeader(bytes);
  if (header === null || !isResponse(header)) return null;
  if (header.questionCount === 0) {
    const message = header.id === query.id ? decodeBareRefusal(bytes) : null;
    return message && { kind: "reply", message };
  }
  const match = matchQuestion(header, bytes, query);
  if (match === "other") return null;
  // Somebody who knows the question is guessing the ID.
  if (header.id !== query.id) return { kind: "ask-tcp", fallback: null };
  // What a truncated message holds is thrown away unread.
  if ((header.flags & FLAG.truncated) !== 0) return { kind: "ask-tcp", fallback: null };
  const message = decodeReply(bytes, query);
  if (message === null) return { kind: "malformed" };
  return match === "exact" ? { kind: "reply", message } : { kind: "ask-tcp", fallback: message };
}

/** What the message that came over a TCP connection means for the query; nobody can have slipped it in. */
export function judgeStreamed(bytes: Uint8Array, query: Query): Reply {
  const header = tryDecodeHeader(bytes);
  const message =
    header !== null && isResponse(header) && header.id === query.id
      ? decodeStreamed(header, bytes, query)
      : null;
  return message === null ? { kind: "malformed" } : { kind: "reply", message };
}

function decodeStreamed(header: Header, bytes: Uint8Array, query: Query): Message | null {
  if (header.questionCount === 0) return decodeBareRefusal(bytes);
  if (matchQuestion(header, bytes, query) === "other") return null;
  return (header.flags & FLAG.truncated) === 0 ? decodeReply(bytes, query) : null;
}

/** Whether the server does not take EDNS, so that it has to be asked without; RFC 6891 section 7. */
export function refusesEdns({ rcode, edns }: Message): boolean {
  if (rcode === RCODE.BADVERS) return true;
  return edns === null && (rcode === RCODE.FORMERR || rcode === RCODE.NOTIMP);
}

/** Whether it is a response to a standard query; RFC 1035 section 4.1.1. */
function isResponse({ flags }: Header): boolean {
  return (flags & (FLAG.response | OPCODE_MASK)) === FLAG.response;
}

/**
 * Whether the message repeats the query's question: to the letter, in other case, or not at all. The
 * first name of a message cannot be compressed, so that bytes can be compared; a length byte is less
 * than any letter.
 */
function matchQuestion(
  { questionCount }: Header,
  bytes: Uint8Array,
  { name, bytes: sent }: Query,
): "exact" | "folded" | "other" {
  const end = HEADER_BYTES + name.length + TYPE_AND_CLASS_BYTES;
  if (questionCount !== 1 || bytes.length < end) return "other";
  let match: "exact" | "folded" = "exact";
  for (let at = HEADER_BYTES; at < end; at++) {
    const [received, expected] = [bytes[at] as number, sent[at] as number];
    if (received === expected) continue;
    const isName = at < HEADER_BYTES + name.length;
    if (!isName || lowerCase(received) !== lowerCase(expected)) return "other";
    match = "folded";
  }
  return match;
}

function lowerCase(byte: number): number {
  return byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte;
}

/** The message if it refuses without repeating the question, else null. */
function decodeBareRefusal(bytes: Uint8Array): Message | null {
  const message = tryDecodeMessage(bytes);
  return message?.answers.length === 0 && BARE_REFUSALS.includes(message.rcode) ? message : null;
}

/**
 * The message with the question's name as it was given, not as it was sent: names in the records may
 * point into it, and nobody shall see random case.
 */
function decodeReply(bytes: Uint8Array, { name }: Query): Message | null {
  const restored = bytes.slice();
  restored.set(name, HEADER_BYTES);
  return tryDecodeMessage(restored);
}

function tryDecodeMessage(bytes: Uint8Array): Message | null {
  try {
    return decodeMessage(bytes);
  } catch (error) {
    if (error instanceof DnsFormatError) return null;
    throw error;
  }
}
