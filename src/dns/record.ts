import { formatIpv6 } from "../addr/format.ts";
import { formatIpv4, ipv4FromWord } from "../addr/ipv4.ts";
import { ipv6FromWords } from "../addr/ipv6.ts";
import type { ByteReader } from "../util/bytes.ts";
import { byteTexts, DnsFormatError, type NameReader } from "./name.ts";

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

/** The record types that a caller can ask for, in the order of the interface. A new type is a new row. */
const ROWS = {
  /** RFC 3596 section 2.1. */
  AAAA: {
    code: 28,
    read: (reader) =>
      formatIpv6(ipv6FromWords(reader.uint32(), reader.uint32(), reader.uint32(), reader.uint32())),
  },
  /** RFC 1035 section 3.4.1. */
  A: { code: 1, read: (reader) => formatIpv4(ipv4FromWord(reader.uint32())) },
  /** RFC 1035 section 3.3.9; RFC 7505 defines the null MX `0 .`. */
  MX: { code: 15, read: (reader, names) => `${reader.uint16()} ${names.read(reader)}` },
  /** RFC 1035 section 3.3.14. */
  TXT: { code: 16, read: readCharacterStrings },
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
} satisfies Record<string, RecordRow>;

/** One of the record types that a caller can ask for. */
export type RecordType = keyof typeof ROWS;

/** The record types that a caller can ask for, in the order of the interface. */
export const RECORD_TYPES = Object.keys(ROWS) as readonly RecordType[];

const TYPES_BY_CODE = new Map<number, RecordType>(
  RECORD_TYPES.map((type) => [ROWS[type].code, type]),
);

/** The number of a record type. */
export function typeCode(type: RecordType): number {
  return ROWS[type].code;
}

/**
 * Reads a record's data; the reader spans exactly the data. Null for a type without a row. Throws
 * DnsFormatError if the data is longer than its content, OutOfBoundsError if it is shorter.
 */
export function tryDecodeRecord(
  { owner, code, ttl }: { readonly owner: string; readonly code: number; readonly ttl: number },
  reader: ByteReader,
  names: NameReader,
): ResourceRecord | null {
  const type = TYPES_BY_CODE.get(code);
  if (type === undefined) return null;
  const row: RecordRow = ROWS[type];
  const value = row.read(reader, names);
  if (reader.remaining > 0) {
    throw new DnsFormatError(`the data of a ${type} record is ${reader.remaining} bytes too long`);
  }
  return { owner, type, value, ttl };
}

const BYTE_TEXT = byteTexts(0x20, '"\\');

function readCharacterStrings(reader: ByteReader): string {
  const strings = reader.take(reader.remaining);
  let text = "";
  for (let at = 0; at < strings.length; ) {
    const end = at + 1 + (strings[at] as number);
    if (end > strings.length) throw new DnsFormatError("a string of a TXT record is cut short");
    text += at === 0 ? '"' : ' "';
    for (at += 1; at < end; at++) text += BYTE_TEXT[strings[at] as number];
    text += '"';
  }
  if (text === "") throw new DnsFormatError("a TXT record has no string");
  return text;
}
