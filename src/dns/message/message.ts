import { ByteReader } from "../../util/bytes.ts";
import { safeText } from "../../util/text.ts";
import { type ExtendedError, extendedErrorName, rcodeName } from "./codes.ts";
import { plainText, tryReadAddress } from "./data.ts";
import { DnsFormatError, decodeName, encodeName, readName } from "./name.ts";
import {
  decodeRecord,
  OPT_CODE,
  type RecordType,
  type ResourceRecord,
  typeCode,
} from "./record.ts";

/** A name and a type to ask for. */
export interface Question extends QuestionFlags {
  /** The name in canonical form. */
  readonly name: string;
  /** The name on the wire, in the case that the caller gave. */
  readonly wireName: Uint8Array;
  readonly type: RecordType;
}

/** The classes of records that can be asked for, with their numbers; RFC 1035 section 3.2.4. */
export const CLASSES = { IN: 1, CH: 3 } as const;

/** The parts of a question beside its name and type. */
export interface QuestionFlags {
  /** IN, the Internet, if it is absent. In CH, servers describe themselves; RFC 4892. */
  readonly class?: keyof typeof CLASSES;
  /** Asks for the server's name; RFC 5001. */
  readonly nsid?: boolean;
  /** Asks a server for its own data: without the RD bit, RFC 1035 section 4.1.1. */
  readonly isIterative?: boolean;
  /** Does not try UDP before TCP; of no effect on a server over TLS or HTTPS. */
  readonly overTcp?: boolean;
  /** Asks for signatures: the DO bit, RFC 3225. */
  readonly dnssec?: boolean;
  /** Asks for the answer even if the server's DNSSEC validation fails: the CD bit, RFC 4035 section 3.2.2. */
  readonly checkingDisabled?: boolean;
  /** Does not decode the records of an answer: the caller reads its message, which has at most 16 KiB. */
  readonly isUnread?: boolean;
  /** Fills the message with EDNS up to this many bytes, at least 32 and the name; RFC 7830. */
  readonly paddedBytes?: number;
}

/** A query as it was sent; its response has to match it. */
export type Query = ReturnType<typeof createQuery>;

/** The parts of a message that are used. */
export type Message = Readonly<ReturnType<typeof decodeMessage>>;

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
  checkingDisabled: 0x0010,
} as const;

/** The bits of the opcode, 0 for a standard query. */
export const OPCODE_MASK = 0x7800;

const RCODE_MASK = 0x000f;

const SOA = typeCode("SOA");

/** Bytes of an OPT record without options; RFC 6891 section 6.1.2. */
const OPT_BYTES = 11;

/** The bit of the OPT record's TTL that asks for signatures; RFC 3225 section 3. */
const DNSSEC_OK = 0x8000;

/** The numbers of EDNS options; RFC 5001, RFC 7871, RFC 7830, RFC 8914 section 2. */
const OPTION = { nsid: 3, clientSubnet: 8, padding: 12, extendedError: 15 } as const;

/** Bytes of the largest datagram that we accept: one that passes every usual path without fragments; dnsflagday.net/2020. */
const EDNS_PAYLOAD_BYTES = 1232;

/** Bytes of a message that is read later: more than the keys of a zone or a proof take. */
const MAX_UNREAD_BYTES = 16_384;

/** Extended errors kept of one response; resolvers send one to three. */
const MAX_EXTENDED_ERRORS = 8;

/** Characters kept of an extended error's text (RFC 8914 section 2 recommends short ones), and bytes of a server's name. */
const MAX_EXTENDED_TEXT_LENGTH = 256;

/**
 * The question for a name in presentation form, with or without the final dot. Throws DnsFormatError for
 * a name that breaks the rules of the DNS.
 */
export function createQuestion(name: string, type: RecordType, flags: QuestionFlags = {}) {
  const wireName = encodeName(name);
  return { name: decodeName(wireName), wireName, type, ...flags };
}

/**
 * A query with a random ID (RFC 5452 section 9.2) and random case of its letters
 * (draft-vixie-dnsext-dns0x20), except for PTR: middleboxes change the case of reverse names.
 *
 * @param withEdns true to add an OPT record (RFC 6891): 1232 bytes, no options but NSID or padding
 * @param fillRandom fills the bytes with random ones that are not predictable; for tests
 */
export function createQuery(
  question: Question,
  withEdns: boolean,
  fillRandom: (bytes: Uint8Array<ArrayBuffer>) => void = (bytes) => crypto.getRandomValues(bytes),
) {
  const { wireName, type, dnssec, checkingDisabled, nsid, paddedBytes, isIterative } = question;
  const random = new Uint8Array(2 + 32); // The ID, and a bit for each byte of the name.
  fillRandom(random);
  const id = new ByteReader(random).uint16();
  const nameEnd = HEADER_BYTES + wireName.length;
  const paddingBytes = paddedBytes ? paddedBytes - (nameEnd + 4 + OPT_BYTES) : 0;
  const optionBytes = paddingBytes || (nsid ? 4 : 0);
  const bytes: Uint8Array = new Uint8Array(nameEnd + 4 + (withEdns ? OPT_BYTES + optionBytes : 0));
  const view = new DataView(bytes.buffer);
  view.setUint16(0, id);
  // AD asks for the resolver's DNSSEC verdict without the signatures; RFC 6840 section 5.7.
  const flags = FLAG.authenticated | (isIterative ? 0 : FLAG.recursionDesired);
  view.setUint16(2, flags | (checkingDisabled ? FLAG.checkingDisabled : 0));
  view.setUint16(4, 1);
  bytes.set(wireName, HEADER_BYTES);
  if (type !== "PTR") randomizeCase(bytes.subarray(HEADER_BYTES, nameEnd), random.subarray(2));
  view.setUint16(nameEnd, typeCode(type));
  view.setUint16(nameEnd + 2, CLASSES[question.class ?? "IN"]);
  if (withEdns) {
    view.setUint16(10, 1);
    view.setUint16(nameEnd + 5, OPT_CODE);
    view.setUint16(nameEnd + 7, EDNS_PAYLOAD_BYTES);
    view.setUint16(nameEnd + 11, dnssec ? DNSSEC_OK : 0);
    view.setUint16(nameEnd + 13, optionBytes);
    if (optionBytes) {
      view.setUint16(nameEnd + 15, paddingBytes ? OPTION.padding : OPTION.nsid);
      view.setUint16(nameEnd + 17, optionBytes - 4);
    }
  }
  return {
    id,
    question,
    /** The message as it was sent, with the name in random case. */
    bytes,
  };
}

/** Changes the case of every letter of the name on the wire whose bit is set. */
function randomizeCase(name: Uint8Array, bits: Uint8Array): void {
  for (let at = 0; at < name.length; at++) {
    const byte = name[at] as number;
    const isSet = ((bits[at >>> 3] as number) >>> (at & 7)) & 1;
    if (isSet && isLetter(byte)) name[at] = byte ^ 0x20;
  }
}

/** True for a letter of a name on the wire, whose length bytes are at most 63: less than any letter. */
export function isLetter(byte: number): boolean {
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x7a;
}

/**
 * Decodes a message; ignores bytes behind it. Throws FormatError for bytes that break the format,
 * also in a record that the result leaves out, for more than one question (RFC 9619 section 4), and
 * for more than one OPT record (RFC 6891 section 6.1.1).
 */
export function decodeMessage(bytes: Uint8Array, { isUnread }: QuestionFlags = {}) {
  if (isUnread && bytes.length > MAX_UNREAD_BYTES) {
    throw new DnsFormatError(`a message of more than ${MAX_UNREAD_BYTES} bytes`);
  }
  const { flags, askedClass, sections } = readSections(new ByteReader(bytes));
  const [answers = [], authority = []] = sections;
  const [options, ...others] = sections.flat().filter(({ code }) => code === OPT_CODE);
  if (others.length > 0) throw new DnsFormatError("more than one OPT record");
  if (options && options.owner !== ".") {
    throw new DnsFormatError("an OPT record whose owner is not the root");
  }
  const ofClass = (records: readonly RawRecord[]) =>
    records.filter((record) => record.class === askedClass && record.code !== OPT_CODE);
  const soa = ofClass(authority).find(({ code }) => code === SOA);
  return {
    flags,
    /** The name of the response code, all twelve bits of it (RFC 6891 section 6.1.3); `RCODE` and the number for one without a name. */
    rcode: rcodeName((flags & RCODE_MASK) | (((options?.ttl ?? 0) >>> 24) << 4)),
    /** The records of the answer section that have the class of the question; none if they are left unread. */
    answers: (isUnread ? [] : ofClass(answers)).map(decodeRecord) as readonly ResourceRecord[],
    /** The type numbers of all records in the answer section. */
    answerTypes: answers.map(({ code }) => code),
    /** The type numbers of all records in the authority section. */
    authorityTypes: authority.map(({ code }) => code),
    /** The first SOA record of the authority section, which comes with a negative answer; RFC 2308 section 2. */
    soa: soa === undefined ? null : decodeRecord(soa),
    ...readOptions(options?.data),
  };
}

/** A record of any class; its data spans its own bytes, but names in it may point back into the whole message. */
export type RawRecord = ReturnType<typeof readRecord>;

/** Reads the header and the three sections of records. Throws as `decodeMessage`. */
export function readSections(reader: ByteReader) {
  const header = Array.from({ length: 6 }, () => reader.uint16());
  const [, flags = 0, questions = 0, ...counts] = header;
  if (questions > 1) throw new DnsFormatError(`a message with ${questions} questions`);
  let askedClass: number = CLASSES.IN;
  if (questions === 1) {
    readName(reader);
    reader.take(2);
    askedClass = reader.uint16();
  }
  const sections = counts.map((count) => {
    const records: RawRecord[] = [];
    while (records.length < count) records.push(readRecord(reader));
    return records;
  });
  return { flags, askedClass, sections };
}

function readRecord(reader: ByteReader) {
  const owner = readName(reader);
  const [code, recordClass, ttl] = [reader.uint16(), reader.uint16(), reader.uint32()];
  const dataBytes = reader.uint16();
  const data = new ByteReader(reader.bytes, reader.offset, reader.offset + dataBytes);
  reader.offset = data.end;
  return { owner, code, class: recordClass, ttl, data };
}

interface Options {
  /** At most eight, in order; null without an OPT record. */
  extendedErrors: readonly ExtendedError[] | null;
  /** The server's name, in hex if it is not printable; RFC 5001. */
  nsid?: string;
  /** The client's network for which the answer was chosen, and how much of it was used: `2001:db8::/56/48`; RFC 7871. */
  clientSubnet?: string;
}

/** Reads the options of an OPT record; RFC 6891 section 6.1.2. */
function readOptions(options: ByteReader | undefined): Options {
  if (options === undefined) return { extendedErrors: null };
  const extendedErrors: ExtendedError[] = [];
  const parsed: Options = { extendedErrors };
  while (options.remaining > 0) {
    const option = options.uint16();
    const data = new ByteReader(options.take(options.uint16()));
    if (option === OPTION.nsid) {
      const name = data.rest().subarray(0, MAX_EXTENDED_TEXT_LENGTH);
      const isPrintable = name.every((byte) => byte >= 0x20 && byte <= 0x7e);
      parsed.nsid = isPrintable ? plainText(name) : name.toHex();
    } else if (option === OPTION.clientSubnet) {
      const family = data.uint16();
      const lengths = [...data.take(2)];
      const address = tryReadAddress(family, data.rest());
      if (address !== null) parsed.clientSubnet = [address, ...lengths].join("/");
    } else if (option === OPTION.extendedError && extendedErrors.length < MAX_EXTENDED_ERRORS) {
      const code = data.uint16();
      const name = extendedErrorName(code);
      const text = safeText(data.rest(), MAX_EXTENDED_TEXT_LENGTH);
      extendedErrors.push({ code, ...(name && { name }), ...(text !== "" && { text }) });
    }
  }
  return parsed;
}
