import { ByteReader, OutOfBoundsError } from "../util/bytes.ts";
import { safeText } from "../util/text.ts";
import { DnsFormatError, encodeName, NameReader } from "./name.ts";
import { type RecordType, type ResourceRecord, tryDecodeRecord, typeCode } from "./record.ts";

/** A name in canonical form, and the type of the records to ask for. */
export interface Question {
  readonly name: string;
  readonly type: RecordType;
}

/** A query as it was sent; its response has to match it. */
export interface Query {
  readonly id: number;
  /** The name on the wire, in the case that the caller gave. */
  readonly name: Uint8Array;
  /** The message as it was sent, with the name in random case. */
  readonly bytes: Uint8Array;
}

/** The header up to the question count; RFC 1035 section 4.1.1. */
export interface Header {
  readonly id: number;
  /** `FLAG`, the opcode and the low four bits of the response code. */
  readonly flags: number;
  readonly questionCount: number;
}

/** What we use of a message. */
export interface Message {
  readonly flags: number;
  /** The name of the response code, all twelve bits of it (RFC 6891 section 6.1.3); `RCODE` and the number for one without a name. */
  readonly rcode: string;
  /** The records of the answer section that have class IN and a type that we know. */
  readonly answers: readonly ResourceRecord[];
  /** The type numbers of all records in the answer section. */
  readonly answerTypes: readonly number[];
  /** The type numbers of all records in the authority section. */
  readonly authorityTypes: readonly number[];
  /** At most eight, in order; null without an OPT record. */
  readonly extendedErrors: readonly ExtendedError[] | null;
}

/** The reason that a resolver gives for its answer; RFC 8914. */
export interface ExtendedError {
  /** The INFO-CODE. */
  readonly code: number;
  /** The code's name; absent if the registry has none. */
  readonly name?: string;
  /** The EXTRA-TEXT, safe to print and cut to 256 characters; absent when it is empty. */
  readonly text?: string;
}

/** Bytes of the header. */
export const HEADER_BYTES = 12;

/** Bits of the header's second field; RFC 1035 section 4.1.1, for AD RFC 4035 section 3. */
export const FLAG = {
  response: 0x8000,
  authoritative: 0x0400,
  truncated: 0x0200,
  recursionDesired: 0x0100,
  recursionAvailable: 0x0080,
  authenticated: 0x0020,
} as const;

/** The bits of the opcode, 0 for a standard query. */
export const OPCODE_MASK = 0x7800;

const RCODE_MASK = 0x000f;

/** The Internet's class of records; RFC 1035 section 3.2.4. */
const CLASS_IN = 1;

/** The number of the OPT pseudo-record; RFC 6891 section 6.1.1. */
const OPT = 41;

/** The number of the EDNS option for extended errors; RFC 8914 section 2. */
const EXTENDED_ERROR_OPTION = 15;

/** Bytes of a datagram that we ask for: passes every usual path without fragments; dnsflagday.net/2020. */
const EDNS_PAYLOAD_BYTES = 1232;

/** Extended errors kept of one response; resolvers send one to three. */
const MAX_EXTENDED_ERRORS = 8;

/** Characters kept of an extended error's text; RFC 8914 section 2 recommends short ones. */
const MAX_EXTENDED_TEXT_LENGTH = 256;

/** Names by number, from the IANA registry of DNS RCODEs. */
const RCODE_NAMES: Readonly<Record<number, string>> = {
  0: "NOERROR",
  1: "FORMERR",
  2: "SERVFAIL",
  3: "NXDOMAIN",
  4: "NOTIMP",
  5: "REFUSED",
  6: "YXDOMAIN",
  7: "YXRRSET",
  8: "NXRRSET",
  9: "NOTAUTH",
  10: "NOTZONE",
  11: "DSOTYPENI",
  16: "BADVERS",
  17: "BADKEY",
  18: "BADTIME",
  19: "BADMODE",
  20: "BADNAME",
  21: "BADALG",
  22: "BADTRUNC",
  23: "BADCOOKIE",
};

/** Names by INFO-CODE: 0 to 24 from RFC 8914 section 4, the rest from its IANA registry. */
const EXTENDED_ERROR_NAMES: readonly string[] = [
  "Other Error",
  "Unsupported DNSKEY Algorithm",
  "Unsupported DS Digest Type",
  "Stale Answer",
  "Forged Answer",
  "DNSSEC Indeterminate",
  "DNSSEC Bogus",
  "Signature Expired",
  "Signature Not Yet Valid",
  "DNSKEY Missing",
  "RRSIGs Missing",
  "No Zone Key Bit Set",
  "NSEC Missing",
  "Cached Error",
  "Not Ready",
  "Blocked",
  "Censored",
  "Filtered",
  "Prohibited",
  "Stale NXDOMAIN Answer",
  "Not Authoritative",
  "Not Supported",
  "No Reachable Authority",
  "Network Error",
  "Invalid Data",
  "Signature Expired before Valid",
  "Too Early",
  "Unsupported NSEC3 Iterations Value",
  "Unable to conform to policy",
  "Synthesized",
  "Invalid Query Type",
];

/**
 * A query with a random ID (RFC 5452 section 9.2) and random case of its letters
 * (draft-vixie-dnsext-dns0x20), except for PTR: middleboxes change the case of reverse names.
 *
 * @param withEdns whether to add an OPT record (RFC 6891): 1232 bytes, no options
 * @param fillRandom fills the bytes with random ones that are not predictable; for tests
 */
export function createQuery(
  { name, type }: Question,
  withEdns: boolean,
  fillRandom: (bytes: Uint8Array<ArrayBuffer>) => void = (bytes) => crypto.getRandomValues(bytes),
): Query {
  const given = encodeName(name);
  const random = new Uint8Array(2 + 32); // The ID, and a bit for each byte of the name.
  fillRandom(random);
  const id = new ByteReader(random).uint16();
  const sent = type === "PTR" ? given : withRandomCase(given, random.subarray(2));
  // AD asks for the resolver's DNSSEC verdict without the signatures; RFC 6840 section 5.7.
  const flags = FLAG.recursionDesired | FLAG.authenticated;
  const opt = withEdns ? [0, ...uint16s(OPT, EDNS_PAYLOAD_BYTES, 0, 0, 0)] : [];
  const bytes = Uint8Array.from([
    ...uint16s(id, flags, 1, 0, 0, withEdns ? 1 : 0),
    ...sent,
    ...uint16s(typeCode(type), CLASS_IN),
    ...opt,
  ]);
  return { id, name: given, bytes };
}

/** The numbers as big-endian bytes. */
function uint16s(...values: number[]): number[] {
  return values.flatMap((value) => [value >>> 8, value & 0xff]);
}

/** The name on the wire with the case of every letter changed whose bit is set. */
function withRandomCase(name: Uint8Array, bits: Uint8Array): Uint8Array {
  return name.map((byte, at) => {
    const lower = byte | 0x20;
    // A length byte is at most 63, less than any letter.
    const isLetter = lower >= 0x61 && lower <= 0x7a;
    const isSet = ((bits[at >>> 3] as number) >>> (at & 7)) & 1;
    return isLetter && isSet ? byte ^ 0x20 : byte;
  });
}

/** Decodes the header, which tells whether a message is a response to ours. Null for fewer than 12 bytes. */
export function tryDecodeHeader(bytes: Uint8Array): Header | null {
  if (bytes.length < HEADER_BYTES) return null;
  const reader = new ByteReader(bytes);
  return { id: reader.uint16(), flags: reader.uint16(), questionCount: reader.uint16() };
}

/**
 * Decodes a message; ignores bytes behind it. Throws DnsFormatError for bytes that break the format,
 * also in a record that the result leaves out, for more than one question (RFC 9619 section 4), and
 * for more than one OPT record (RFC 6891 section 6.1.1).
 */
export function decodeMessage(bytes: Uint8Array): Message {
  try {
    return readMessage(new ByteReader(bytes));
  } catch (error) {
    if (!(error instanceof OutOfBoundsError)) throw error;
    throw new DnsFormatError(`a message is cut short: ${error.message}`, { cause: error });
  }
}

function readMessage(reader: ByteReader): Message {
  const names = new NameReader();
  reader.take(2);
  const flags = reader.uint16();
  const questionCount = reader.uint16();
  const answerCount = reader.uint16();
  const authorityEnd = answerCount + reader.uint16();
  const recordCount = authorityEnd + reader.uint16();
  if (questionCount > 1) throw new DnsFormatError(`a message with ${questionCount} questions`);
  if (questionCount === 1) {
    names.read(reader);
    reader.take(4);
  }
  const answers: ResourceRecord[] = [];
  const answerTypes: number[] = [];
  const authorityTypes: number[] = [];
  let extendedErrors: readonly ExtendedError[] | null = null;
  let rcode = flags & RCODE_MASK;
  for (let index = 0; index < recordCount; index++) {
    const owner = names.read(reader);
    const code = reader.uint16();
    const recordClass = reader.uint16();
    const ttl = reader.uint32();
    const dataBytes = reader.uint16();
    // The data spans these bytes, but names in it may point back into the whole message.
    const data = new ByteReader(reader.bytes, reader.offset, reader.offset + dataBytes);
    reader.offset = data.end;
    if (code === OPT) {
      if (extendedErrors !== null) throw new DnsFormatError("more than one OPT record");
      if (owner !== ".") throw new DnsFormatError("an OPT record whose owner is not the root");
      extendedErrors = readExtendedErrors(data);
      rcode |= (ttl >>> 24) << 4;
    } else if (index < answerCount && recordClass === CLASS_IN) {
      const record = tryDecodeRecord({ owner, code, ttl }, data, names);
      if (record !== null) answers.push(record);
    }
    if (index < answerCount) answerTypes.push(code);
    else if (index < authorityEnd) authorityTypes.push(code);
  }
  return { flags, rcode: rcodeName(rcode), answers, answerTypes, authorityTypes, extendedErrors };
}

/** Reads the options of an OPT record; RFC 6891 section 6.1.2. */
function readExtendedErrors(options: ByteReader): readonly ExtendedError[] {
  const errors: ExtendedError[] = [];
  while (options.remaining > 0) {
    const option = options.uint16();
    const data = new ByteReader(options.take(options.uint16()));
    if (option !== EXTENDED_ERROR_OPTION || errors.length === MAX_EXTENDED_ERRORS) continue;
    const code = data.uint16();
    const name = EXTENDED_ERROR_NAMES[code];
    const text = safeText(data.take(data.remaining), MAX_EXTENDED_TEXT_LENGTH);
    errors.push({ code, ...(name !== undefined && { name }), ...(text !== "" && { text }) });
  }
  return errors;
}

/** The response code's name in upper case, `RCODE` and the number for one without a name. */
export function rcodeName(rcode: number): string {
  return RCODE_NAMES[rcode] ?? `RCODE${rcode}`;
}
