import { ByteReader, ByteWriter, OutOfBoundsError } from "../util/bytes.ts";
import { decodeEdns, type Edns, encodeEdns, OPT_CODE } from "./edns.ts";
import { DnsFormatError } from "./format-error.ts";
import { MAX_MESSAGE_BYTES } from "./limits.ts";
import { NameReader, writeName } from "./name.ts";
import {
  decodeRecord,
  encodeRecordData,
  type ResourceRecord,
  typeCode,
  typeOfCode,
} from "./record.ts";

/** What a message asks; RFC 1035 section 4.1.2. */
export interface Question {
  readonly name: string;
  /** The number of the type, also of one that we do not know. */
  readonly type: number;
  readonly class: number;
}

/** The Internet's class of records; RFC 1035 section 3.2.4. */
export const CLASS_IN = 1;

/** The header as it stands on the wire; RFC 1035 section 4.1.1. */
export interface Header {
  readonly id: number;
  /** The second field: `FLAG`, the opcode and the low four bits of the response code. */
  readonly flags: number;
  readonly questionCount: number;
  readonly answerCount: number;
  readonly authorityCount: number;
  readonly additionalCount: number;
}

/** Bytes of the header. */
export const HEADER_BYTES = 12;

/** Bits of the header's second field; RFC 1035 section 4.1.1, for AD and CD RFC 4035 section 3. */
export const FLAG = {
  response: 0x8000,
  authoritative: 0x0400,
  truncated: 0x0200,
  recursionDesired: 0x0100,
  recursionAvailable: 0x0080,
  authenticated: 0x0020,
  checkingDisabled: 0x0010,
} as const;

/** The bits that hold the kind of query, 0 for a standard one. */
export const OPCODE_MASK = 0x7800;

const RCODE_MASK = 0x000f;

/** A message as far as we use it: authority and additional records are left out, and other types and classes. */
export interface Message {
  readonly id: number;
  /** `FLAG` and the opcode, without the response code. */
  readonly flags: number;
  /** All twelve bits, the high eight from the OPT record; RFC 6891 section 6.1.3. */
  readonly rcode: number;
  /** Null in a message that holds no question. */
  readonly question: Question | null;
  readonly answers: readonly ResourceRecord[];
  /** Null without an OPT record. */
  readonly edns: Edns | null;
}

/** Decodes the header, which tells whose reply a message is. Null for fewer than 12 bytes. */
export function tryDecodeHeader(bytes: Uint8Array): Header | null {
  return bytes.length < HEADER_BYTES ? null : readHeader(new ByteReader(bytes));
}

function readHeader(reader: ByteReader): Header {
  return {
    id: reader.uint16(),
    flags: reader.uint16(),
    questionCount: reader.uint16(),
    answerCount: reader.uint16(),
    authorityCount: reader.uint16(),
    additionalCount: reader.uint16(),
  };
}

/**
 * Decodes a message; bytes behind it are ignored. Throws DnsFormatError for bytes that break the
 * format, also in a record that is left out, for more than one question (RFC 9619 section 4), and for
 * more than one OPT record (RFC 6891 section 6.1.1).
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
  const header = readHeader(reader);
  const { id, flags, questionCount, answerCount } = header;
  if (questionCount > 1) throw new DnsFormatError(`a message with ${questionCount} questions`);
  const question =
    questionCount === 0
      ? null
      : { name: names.read(reader), type: reader.uint16(), class: reader.uint16() };
  const recordCount = answerCount + header.authorityCount + header.additionalCount;
  const answers: ResourceRecord[] = [];
  let edns: Edns | null = null;
  let rcode = flags & RCODE_MASK;
  for (let index = 0; index < recordCount; index++) {
    const owner = names.read(reader);
    const code = reader.uint16();
    const recordClass = reader.uint16();
    const ttl = reader.uint32();
    const data = takeSpan(reader, reader.uint16());
    if (code === OPT_CODE) {
      if (edns !== null) throw new DnsFormatError("more than one OPT record");
      if (owner !== ".") throw new DnsFormatError("an OPT record that is not the root's");
      edns = decodeEdns(recordClass, ttl, data);
      rcode |= (ttl >>> 24) << 4;
    } else if (index < answerCount && recordClass === CLASS_IN) {
      const type = typeOfCode(code);
      if (type !== null) answers.push(decodeRecord(owner, type, ttl, data, names));
    }
  }
  return { id, flags: flags & ~RCODE_MASK, rcode, question, answers, edns };
}

/** Numbers of record types by section, also of records that `decodeMessage` leaves out. */
export interface RecordTypes {
  readonly answer: readonly number[];
  readonly authority: readonly number[];
}

/** The types of the records of a message that `decodeMessage` has taken. */
export function recordTypes(bytes: Uint8Array): RecordTypes {
  const reader = new ByteReader(bytes);
  const names = new NameReader();
  const { questionCount, answerCount, authorityCount } = readHeader(reader);
  if (questionCount > 0) {
    names.read(reader);
    reader.take(4);
  }
  const codes = Array.from({ length: answerCount + authorityCount }, () => {
    names.read(reader);
    const code = reader.uint16();
    reader.take(6);
    reader.take(reader.uint16());
    return code;
  });
  return { answer: codes.slice(0, answerCount), authority: codes.slice(answerCount) };
}

/** A reader of the next `count` bytes, which knows the whole message: names in it may point back. */
function takeSpan(reader: ByteReader, count: number): ByteReader {
  const span = new ByteReader(reader.bytes, reader.offset, reader.offset + count);
  reader.offset = span.end;
  return span;
}

/**
 * Encodes a message, names without compression. Throws DnsFormatError for a name that is none, and
 * OutOfBoundsError for a message of more than `limitBytes`.
 */
export function encodeMessage(message: Message, limitBytes = MAX_MESSAGE_BYTES): Uint8Array {
  const { id, flags, rcode, question, answers, edns } = message;
  const writer = new ByteWriter(limitBytes)
    .uint16(id)
    .uint16(flags | (rcode & RCODE_MASK))
    .uint16(question === null ? 0 : 1)
    .uint16(answers.length)
    .uint16(0)
    .uint16(edns === null ? 0 : 1);
  if (question !== null) {
    writeName(writer, question.name);
    writer.uint16(question.type).uint16(question.class);
  }
  for (const record of answers) {
    const data = new ByteWriter(MAX_MESSAGE_BYTES);
    encodeRecordData(data, record);
    writeName(writer, record.owner);
    writer.uint16(typeCode(record.type)).uint16(CLASS_IN).uint32(record.ttl);
    writer.uint16(data.length).put(data.finish());
  }
  if (edns !== null) encodeEdns(writer, edns, rcode >>> 4);
  return writer.finish();
}
