import type { ByteReader } from "../util/bytes.ts";
import {
  base64Text,
  hexText,
  plainText,
  quotedText,
  readIpv4,
  readIpv6,
  readTexts,
  readUnknown,
  timeText,
} from "./data.ts";
import { DnsFormatError, type NameReader } from "./name.ts";
import { readServiceBinding } from "./service-binding.ts";

/** A record as the interface shows it. */
export interface DnsRecord {
  readonly type: RecordType;
  /** The data in presentation form, to the byte as `dig` prints it; RFC 1035 section 5.1. */
  readonly value: string;
  /** Seconds. */
  readonly ttl: number;
}

/** A record of class IN in a message. */
export interface ResourceRecord extends DnsRecord {
  readonly owner: string;
}

interface RecordRow {
  /** The type's number in the IANA registry of resource record types. */
  readonly code: number;
  /** Reads the data in presentation form; the reader ends where the data ends. */
  read(reader: ByteReader, names: NameReader): string;
}

const readName: RecordRow["read"] = (reader, names) => names.read(reader);

/** Some bytes as numbers, then the rest in hex. */
const hashText = (reader: ByteReader, numbers: number) =>
  [...reader.take(numbers), hexText(reader)].join(" ");

/** The record types with a text form of their own: those of the interface in its order, then further ones. A new type is a new row. */
const ROWS = {
  /** RFC 3596 section 2.1. */
  AAAA: { code: 28, read: readIpv6 },
  /** RFC 1035 section 3.4.1. */
  A: { code: 1, read: readIpv4 },
  /** RFC 1035 section 3.3.9; RFC 7505 defines the null MX `0 .`. */
  MX: { code: 15, read: (reader, names) => `${reader.uint16()} ${names.read(reader)}` },
  /** RFC 1035 section 3.3.14. */
  TXT: { code: 16, read: readTexts },
  /** RFC 1035 section 3.3.11. */
  NS: { code: 2, read: readName },
  /** RFC 1035 section 3.3.1. */
  CNAME: { code: 5, read: readName },
  /** RFC 1035 section 3.3.13. */
  SOA: {
    code: 6,
    read(reader, names) {
      const servers = `${names.read(reader)} ${names.read(reader)}`;
      const times = Array.from({ length: 5 }, () => reader.uint32());
      return `${servers} ${times.join(" ")}`;
    },
  },
  /** RFC 1035 section 3.3.12. */
  PTR: { code: 12, read: readName },
  /** RFC 2782. */
  SRV: {
    code: 33,
    read: (reader, names) =>
      `${reader.uint16()} ${reader.uint16()} ${reader.uint16()} ${names.read(reader)}`,
  },
  /** RFC 8659 section 4.1. */
  CAA: {
    code: 257,
    read: (reader) =>
      `${reader.uint8()} ${plainText(reader.take(reader.uint8()))} ${quotedText(reader.take(reader.remaining))}`,
  },
  /** RFC 9460. */
  HTTPS: { code: 65, read: readServiceBinding },
  SVCB: { code: 64, read: readServiceBinding },
  /** RFC 4034 section 5.1. */
  DS: { code: 43, read: (reader) => `${reader.uint16()} ${hashText(reader, 2)}` },
  /** RFC 4034 section 2.1. */
  DNSKEY: {
    code: 48,
    read: (reader) =>
      `${reader.uint16()} ${reader.uint8()} ${reader.uint8()} ${base64Text(reader)}`,
  },
  /** RFC 6698 section 2.1. */
  TLSA: { code: 52, read: (reader) => hashText(reader, 3) },
  /** RFC 4255 section 3.1. */
  SSHFP: { code: 44, read: (reader) => hashText(reader, 2) },
  /** RFC 3403 section 4.1. */
  NAPTR: {
    code: 35,
    read(reader, names) {
      const order = `${reader.uint16()} ${reader.uint16()}`;
      const texts = Array.from({ length: 3 }, () => quotedText(reader.take(reader.uint8())));
      return `${order} ${texts.join(" ")} ${names.read(reader)}`;
    },
  },
  /** RFC 4034 section 3.1. */
  RRSIG: {
    code: 46,
    read(reader, names): string {
      const covered = typeName(reader.uint16());
      const numbers = `${reader.uint8()} ${reader.uint8()} ${reader.uint32()}`;
      const times = `${timeText(reader.uint32())} ${timeText(reader.uint32())}`;
      return `${covered} ${numbers} ${times} ${reader.uint16()} ${names.read(reader)} ${base64Text(reader)}`;
    },
  },
} satisfies Record<string, RecordRow>;

/** A record type with a text form of its own. */
type NamedType = keyof typeof ROWS;

/** One of the record types that a caller can ask for; `TYPE` and its number for one without a row (RFC 3597 section 5). */
export type RecordType = NamedType | `TYPE${number}`;

/** The record types that a caller can ask for by name. */
export const RECORD_TYPES = Object.keys(ROWS) as readonly NamedType[];

const TYPES_BY_CODE = new Map<number, NamedType>(
  RECORD_TYPES.map((type) => [ROWS[type].code, type]),
);

/** The type that a text names, in any case; null for none, and for numbers that are not types of records (RFC 6895 section 3.1). */
export function tryParseRecordType(text: string): RecordType | null {
  const upper = text.toUpperCase();
  const named = RECORD_TYPES.find((type) => type === upper);
  if (named !== undefined) return named;
  const [, digits] = /^TYPE(0|[1-9][0-9]{0,4})$/.exec(upper) ?? [];
  const code = Number(digits);
  const isData = (code >= 1 && code <= 127 && code !== OPT_CODE) || (code >= 256 && code <= 65_534);
  return isData ? typeName(code) : null;
}

/** The number of the OPT pseudo-record; RFC 6891 section 6.1.1. */
export const OPT_CODE = 41;

/** The number of a record type. */
export function typeCode(type: RecordType): number {
  return type in ROWS ? ROWS[type as NamedType].code : Number(type.slice("TYPE".length));
}

/** The type of a number; `TYPE` and the number for one without a name. */
export function typeName(code: number): RecordType {
  return TYPES_BY_CODE.get(code) ?? `TYPE${code}`;
}

/**
 * Reads a record's data; the reader spans exactly the data. A type without a row has the text of RFC
 * 3597 section 5. Throws DnsFormatError if the data is longer than its content, OutOfBoundsError if it
 * is shorter.
 */
export function decodeRecord(
  { owner, code, ttl }: { readonly owner: string; readonly code: number; readonly ttl: number },
  reader: ByteReader,
  names: NameReader,
): ResourceRecord {
  const type = typeName(code);
  const row: RecordRow | undefined = ROWS[type as NamedType];
  const value = row === undefined ? readUnknown(reader) : row.read(reader, names);
  if (reader.remaining > 0) {
    throw new DnsFormatError(`the data of a ${type} record is ${reader.remaining} bytes too long`);
  }
  return { owner, type, value, ttl };
}
