import { ByteReader, FormatError } from "../../util/bytes.ts";
import { attempt } from "../../util/errors.ts";
import {
  decodeMessage,
  FLAG,
  HEADER_BYTES,
  isLetter,
  type Message,
  OPCODE_MASK,
  type Query,
  type Question,
} from "./message.ts";
import { type RecordType, type ResourceRecord, typeCode } from "./record.ts";

/** The response to a query, or the kind of its fault. */
export type DnsResponse =
  | { readonly kind: "message"; readonly message: Message; readonly bytes: Uint8Array }
  /** The server names others to ask and has not asked them itself; RFC 2308 section 2.2. */
  | { readonly kind: "referral"; readonly bytes: Uint8Array }
  | { readonly kind: "malformed" };

/** The answer has to come over TCP. */
export interface AskTcp {
  readonly kind: "ask-tcp";
  /** The response to use if TCP fails. */
  readonly fallback: DnsResponse | null;
}

/** No response can be used yet. */
export const ASK_TCP: AskTcp = { kind: "ask-tcp", fallback: null };

const MALFORMED = { kind: "malformed" } as const;

/** Response codes that a server may send without the question, which it did not read. */
const BARE_FAILURES: readonly string[] = ["FORMERR", "SERVFAIL", "NOTIMP", "REFUSED", "BADVERS"];

/** Bytes of the type and class behind a question's name. */
const TYPE_AND_CLASS_BYTES = 4;

/**
 * Matches a datagram from the server with the query; RFC 5452 section 9.1. Null for anything that is
 * not a response to the query: keep waiting.
 */
export function matchDatagram(bytes: Uint8Array, query: Query): DnsResponse | AskTcp | null {
  if (bytes.length < HEADER_BYTES) return null;
  const header = new ByteReader(bytes);
  const [id, flags, questions] = [header.uint16(), header.uint16(), header.uint16()];
  // A standard query has opcode 0; RFC 1035 section 4.1.1.
  if ((flags & (FLAG.response | OPCODE_MASK)) !== FLAG.response) return null;
  if (questions === 0) return id === query.id ? tryBareFailure(bytes) : null;
  const match = questions === 1 ? matchQuestion(bytes, query) : "other";
  if (match === "other") return null;
  // With another ID it is probably a forgery, and a truncated message is not used in part.
  if (id !== query.id || (flags & FLAG.truncated) !== 0) return ASK_TCP;
  const response = decodeResponse(bytes, query);
  const isFinal = match === "exact" || response.kind === "malformed";
  return isFinal ? response : { kind: "ask-tcp", fallback: response };
}

/** Matches the message from a connection with the query. Only the server can have sent it. */
export function matchStreamed(bytes: Uint8Array, query: Query): DnsResponse {
  const match = matchDatagram(bytes, query) ?? MALFORMED;
  return match.kind === "ask-tcp" ? (match.fallback ?? MALFORMED) : match;
}

/** True if the server must be asked again without EDNS, because it does not support it; RFC 6891 section 7. */
export function refusesEdns({ rcode, extendedErrors }: Message): boolean {
  if (rcode === "BADVERS") return true;
  return extendedErrors === null && (rcode === "FORMERR" || rcode === "NOTIMP");
}

/**
 * Compares the question of a message with that of the query: the same, in another case, or another. The first
 * name of a message cannot be compressed, so that bytes can be compared.
 */
function matchQuestion(bytes: Uint8Array, { question: { wireName }, bytes: sent }: Query) {
  const end = HEADER_BYTES + wireName.length + TYPE_AND_CLASS_BYTES;
  const received = bytes.subarray(HEADER_BYTES, end);
  const expected = sent.subarray(HEADER_BYTES, end);
  if (received.length < expected.length) return "other";
  if (Buffer.compare(received, expected) === 0) return "exact";
  const isSame = received.every((byte, at) => {
    const change = byte ^ (expected[at] as number);
    return change === 0 || (change === 0x20 && isLetter(byte) && at < wireName.length);
  });
  return isSame ? "folded" : "other";
}

/** The message if it is a failure that does not repeat the question, else null. */
function tryBareFailure(bytes: Uint8Array): DnsResponse | null {
  const message = tryDecodeMessage(bytes);
  return message?.answers.length === 0 && BARE_FAILURES.includes(message.rcode)
    ? { kind: "message", message, bytes }
    : null;
}

/**
 * Decodes the message with the question's name in the case that the caller gave, because names in the
 * records may point into it and the random case must not show. A server copies it also into the alias that it
 * synthesizes from a DNAME (RFC 6672 section 2.2); such an answer has its aliases in lower case.
 */
function decodeResponse(bytes: Uint8Array, query: Query): DnsResponse {
  const restored = new Uint8Array(bytes);
  restored.set(query.question.wireName, HEADER_BYTES);
  const message = tryDecodeMessage(restored, query.question);
  if (message === null) return MALFORMED;
  if (isReferral(message, query.question)) return { kind: "referral", bytes: restored };
  const kind = "message";
  if (!message.answerTypes.includes(typeCode("DNAME"))) return { kind, message, bytes: restored };
  const answers = message.answers.map((record) =>
    record.type === "CNAME" ? { ...record, value: record.value.toLowerCase() } : record,
  );
  return { kind, message: { ...message, answers }, bytes: restored };
}

/**
 * True if a server that does not ask others refers to them, RFC 2308 section 2.2, or if a server that was asked
 * for its own data has none.
 */
function isReferral(
  { rcode, flags, answerTypes, authorityTypes }: Message,
  { isIterative }: Question,
): boolean {
  const canAnswer = FLAG.authoritative | (isIterative ? 0 : FLAG.recursionAvailable);
  if (rcode !== "NOERROR" || answerTypes.length > 0 || (flags & canAnswer) !== 0) return false;
  const hasServers = isIterative || authorityTypes.includes(typeCode("NS"));
  return hasServers && !authorityTypes.includes(typeCode("SOA"));
}

const tryDecodeMessage = (bytes: Uint8Array, question?: Question): Message | null =>
  attempt(() => decodeMessage(bytes, question), FormatError) ?? null;

/**
 * The answer of a message to the question, with the records that belong to it: the CNAME chain from the
 * question's name on, in order, then the requested records at its end, each set with its signatures if
 * the question asks for them.
 * - `answer`: records of the requested type exist;
 * - `no-data`: the end of the chain exists without such records; RFC 2308 section 2.2;
 * - `name-error`: the end of the chain does not exist; RFC 6604 section 2;
 * - `failure`: the server did not answer the question;
 * - `loop`: the chain returns to one of its names.
 */
export function interpret({ rcode, answers }: Message, { name, type, dnssec }: Question) {
  const byOwner = Map.groupBy(answers, ({ owner }) => owner.toLowerCase());
  // The text of a signature begins with the type that it covers.
  const signatures = (records: readonly ResourceRecord[], of: RecordType) =>
    dnssec ? records.filter((one) => one.type === "RRSIG" && one.value.startsWith(`${of} `)) : [];
  const chain: ResourceRecord[] = [];
  const seen = new Set<string>();
  let end = name.toLowerCase();
  for (;;) {
    const records = byOwner.get(end) ?? [];
    const requested = records.filter((record) => record.type === type);
    if (requested.length > 0 && rcode === "NOERROR") {
      chain.push(...requested, ...signatures(records, type));
      return { kind: "answer", records: chain } as const;
    }
    const link = records.find((record) => record.type === "CNAME");
    if (link === undefined) break;
    chain.push(link, ...signatures(records, "CNAME"));
    seen.add(end);
    end = link.value.toLowerCase();
    if (seen.has(end)) return { kind: "loop", records: chain } as const;
  }
  const errorKind = rcode === "NXDOMAIN" ? "name-error" : "failure";
  return { kind: rcode === "NOERROR" ? "no-data" : errorKind, records: chain } as const;
}
