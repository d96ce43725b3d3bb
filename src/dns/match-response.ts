import { DnsFormatError } from "./format-error.ts";
import {
  decodeMessage,
  FLAG,
  HEADER_BYTES,
  type Header,
  type Message,
  OPCODE_MASK,
  recordTypes,
  tryDecodeHeader,
} from "./message.ts";
import { givenCase, type Query } from "./query.ts";
import { RCODE } from "./response-code.ts";

/** The server's answer to a query, or something under the query's ID that cannot be one. */
export type Reply =
  | { readonly kind: "reply"; readonly message: Message }
  /** The server names others to ask and has not asked them itself; RFC 2308 section 2.2. */
  | { readonly kind: "referral" }
  | { readonly kind: "malformed" };

/** The answer has to come over TCP; `fallback` is what to take if none comes. */
export interface AskTcp {
  readonly kind: "ask-tcp";
  readonly fallback: Reply | null;
}

/** Response codes that may come without the question, from a server that did not get that far. */
const BARE_REFUSALS: readonly number[] = [
  RCODE.FORMERR,
  RCODE.SERVFAIL,
  RCODE.NOTIMP,
  RCODE.REFUSED,
  RCODE.BADVERS,
];

const MALFORMED = { kind: "malformed" } as const;

/** Numbers of record types that tell what kind of reply a message is; RFC 1035 section 3.2.2, RFC 6672 section 2.1. */
const TYPE = { NS: 2, SOA: 6, DNAME: 39 } as const;

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
  const reply = decodeReply(bytes, query);
  const isFinal = match === "exact" || reply.kind === "malformed";
  return isFinal ? reply : { kind: "ask-tcp", fallback: reply };
}

/** What the message that came over a TCP connection means for the query; nobody can have slipped it in. */
export function judgeStreamed(bytes: Uint8Array, query: Query): Reply {
  const header = tryDecodeHeader(bytes);
  if (header === null || !isResponse(header) || header.id !== query.id) return MALFORMED;
  if (header.questionCount === 0) {
    const message = decodeBareRefusal(bytes);
    return message === null ? MALFORMED : { kind: "reply", message };
  }
  const isOther = matchQuestion(header, bytes, query) === "other";
  return isOther || (header.flags & FLAG.truncated) !== 0 ? MALFORMED : decodeReply(bytes, query);
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
 * point into it, or be made of it by a DNAME, and nobody shall see random case.
 */
function decodeReply(bytes: Uint8Array, query: Query): Reply {
  const restored = bytes.slice();
  restored.set(query.name, HEADER_BYTES);
  const message = tryDecodeMessage(restored);
  if (message === null) return MALFORMED;
  if (isReferral(message, restored)) return { kind: "referral" };
  const hasAlias = message.answers.some(({ type }) => type === "CNAME");
  if (!hasAlias || !recordTypes(restored).answer.includes(TYPE.DNAME)) {
    return { kind: "reply", message };
  }
  const restoreCase = givenCase(query);
  const answers = message.answers.map((record) =>
    record.type === "CNAME" ? { ...record, data: restoreCase(record.data) } : record,
  );
  return { kind: "reply", message: { ...message, answers } };
}

/** Whether a server that does not ask others names those that know; RFC 2308 section 2.2. */
function isReferral({ rcode, flags, answers }: Message, bytes: Uint8Array): boolean {
  const knows = flags & (FLAG.authoritative | FLAG.recursionAvailable);
  if (rcode !== RCODE.NOERROR || answers.length > 0 || knows !== 0) return false;
  const { answer, authority } = recordTypes(bytes);
  return answer.length === 0 && authority.includes(TYPE.NS) && !authority.includes(TYPE.SOA);
}

function tryDecodeMessage(bytes: Uint8Array): Message | null {
  try {
    return decodeMessage(bytes);
  } catch (error) {
    if (error instanceof DnsFormatError) return null;
    throw error;
  }
}
