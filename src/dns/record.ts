import { formatIpv6 } from "../addr/format.ts";
import { formatIpv4, type Ipv4Address, ipv4FromWord } from "../addr/ipv4.ts";
import { type Ipv6Address, ipv6FromWords } from "../addr/ipv6.ts";
import type { ByteReader, ByteWriter } from "../util/bytes.ts";
import { DnsFormatError } from "./format-error.ts";
import { MAX_ANSWER_CHARACTERS } from "./limits.ts";
import { escapedByte, type NameReader, writeName } from "./name.ts";

/** The record types that can be asked for, in the order of the interface. */
export const RECORD_TYPES = ["AAAA", "A", "MX", "TXT", "NS", "CNAME", "SOA", "PTR"] as const;

/** One of the record types that can be asked for. */
export type RecordType = (typeof RECORD_TYPES)[number];

/** A mail exchange; RFC 1035 section 3.3.9. */
export interface MailExchange {
  readonly preference: number;
  readonly exchange: string;
}

/** A start of authority; RFC 1035 section 3.3.13. The times are in seconds. */
export interface StartOfAuthority {
  readonly primaryServer: string;
  readonly mailbox: string;
  readonly serial: number;
  readonly refresh: number;
  readonly retry: number;
  readonly expire: number;
  readonly minimum: number;
}

/** What a record of each type holds. */
export interface RecordData {
  AAAA: Ipv6Address;
  A: Ipv4Address;
  MX: MailExchange;
  /** One or more character-strings, each behind its length: kept whole, for there can be 65,535 of them. */
  TXT: Uint8Array;
  NS: string;
  CNAME: string;
  SOA: StartOfAuthority;
  PTR: string;
}

/** A record of class IN as a message holds it, with its data decoded. */
export type ResourceRecord = {
  readonly [Type in RecordType]: {
    readonly owner: string;
    readonly type: Type;
    /** Seconds. */
    readonly ttl: number;
    readonly data: RecordData[Type];
  };
}[RecordType];

/** A record as the interface shows it. */
export interface DnsRecord {
  readonly type: RecordType;
  /** The data in presentation form, to the byte as `dig` prints it; RFC 1035 section 5.1. */
  readonly value: string;
  /** Seconds. */
  readonly ttl: number;
}

/** How the data of one record type is read, written and shown. */
interface RecordCodec<Data> {
  /** The type's number in the IANA registry of resource record types. */
  readonly code: number;
  /** Reads the data; the reader ends where the data ends. */
  decode(reader: ByteReader, names: NameReader): Data;
  encode(writer: ByteWriter, data: Data): void;
  format(data: Data): string;
}

function nameCodec(code: number): RecordCodec<string> {
  return {
    code,
    decode: (reader, names) => names.read(reader),
    encode: writeName,
    format: (name) => name,
  };
}

/**
 * The codec of every record type. To add a type: its name in RECORD_TYPES, its data in RecordData,
 * its codec here.
 */
const CODECS: { readonly [Type in RecordType]: RecordCodec<RecordData[Type]> } = {
  /** RFC 3596 section 2.1. */
  AAAA: {
    code: 28,
    decode: (reader) =>
      ipv6FromWords(reader.uint32(), reader.uint32(), reader.uint32(), reader.uint32()),
    encode: (writer, { word0, word1, word2, word3 }) => {
      writer.uint32(word0).uint32(word1).uint32(word2).uint32(word3);
    },
    format: formatIpv6,
  },
  /** RFC 1035 section 3.4.1. */
  A: {
    code: 1,
    decode: (reader) => ipv4FromWord(reader.uint32()),
    encode: (writer, { word }) => {
      writer.uint32(word);
    },
    format: formatIpv4,
  },
  /** RFC 1035 section 3.3.9; the null MX `0 .` is of RFC 7505. */
  MX: {
    code: 15,
    decode: (reader, names) => ({ preference: reader.uint16(), exchange: names.read(reader) }),
    encode: (writer, { preference, exchange }) => {
      writeName(writer.uint16(preference), exchange);
    },
    format: ({ preference, exchange }) => `${preference} ${exchange}`,
  },
  /** RFC 1035 section 3.3.14. */
  TXT: {
    code: 16,
    decode: (reader) => {
      const strings = reader.take(reader.remaining);
      let end = 0;
      while (end < strings.length) end += 1 + (strings[end] as number);
      if (end === 0) throw new DnsFormatError("a TXT record holds no string");
      if (end > strings.length) throw new DnsFormatError("a string of a TXT record is cut short");
      return strings;
    },
    encode: (writer, strings) => {
      writer.put(strings);
    },
    format: formatCharacterStrings,
  },
  /** RFC 1035 section 3.3.11. */
  NS: nameCodec(2),
  /** RFC 1035 section 3.3.1. */
  CNAME: nameCodec(5),
  /** RFC 1035 section 3.3.13. */
  SOA: {
    code: 6,
    decode: (reader, names) => ({
      primaryServer: names.read(reader),
      mailbox: names.read(reader),
      serial: reader.uint32(),
      refresh: reader.uint32(),
      retry: reader.uint32(),
      expire: reader.uint32(),
      minimum: reader.uint32(),
    }),
    encode: (writer, { primaryServer, mailbox, serial, refresh, retry, expire, minimum }) => {
      writeName(writer, primaryServer);
      writeName(writer, mailbox);
      writer.uint32(serial).uint32(refresh).uint32(retry).uint32(expire).uint32(minimum);
    },
    format: ({ primaryServer, mailbox, serial, refresh, retry, expire, minimum }) =>
      `${primaryServer} ${mailbox} ${serial} ${refresh} ${retry} ${expire} ${minimum}`,
  },
  /** RFC 1035 section 3.3.12. */
  PTR: nameCodec(12),
};

const TYPES_BY_CODE: ReadonlyMap<number, RecordType> = new Map(
  RECORD_TYPES.map((type) => [CODECS[type].code, type]),
);

/** How each byte of a character-string is written. */
const BYTE_TEXT: readonly string[] = Array.from({ length: 256 }, (_, byte) => {
  if (byte < 0x20 || byte > 0x7e) return escapedByte(byte);
  const character = String.fromCharCode(byte);
  return character === '"' || character === "\\" ? `\\${character}` : character;
});

function formatCharacterStrings(strings: Uint8Array): string {
  const texts: string[] = [];
  for (let at = 0; at < strings.length; ) {
    const end = at + 1 + (strings[at] as number);
    let text = "";
    for (at += 1; at < end; at++) text += BYTE_TEXT[strings[at] as number];
    texts.push(`"${text}"`);
  }
  return texts.join(" ");
}

/** The number of a record type. */
export function typeCode(type: RecordType): number {
  return CODECS[type].code;
}

/** The record type with this number, or null for one that we do not know. */
export function typeOfCode(code: number): RecordType | null {
  return TYPES_BY_CODE.get(code) ?? null;
}

/**
 * Reads a record's data; the reader spans exactly the data. Throws DnsFormatError where the data does
 * not use up its length, and OutOfBoundsError where it needs more.
 */
export function decodeRecord(
  owner: string,
  type: RecordType,
  ttl: number,
  reader: ByteReader,
  names: NameReader,
): ResourceRecord {
  const data = CODECS[type].decode(reader, names);
  if (reader.remaining > 0) {
    throw new DnsFormatError(`the data of a ${type} record is ${reader.remaining} bytes too long`);
  }
  return { owner, type, ttl, data } as ResourceRecord;
}

/** Writes a record's data, without its length. Throws DnsFormatError for a name that is none. */
export function encodeRecordData(writer: ByteWriter, record: ResourceRecord): void {
  codecOf(record).encode(writer, record.data);
}

/** The record as the interface shows it. */
export function formatRecord(record: ResourceRecord): DnsRecord {
  return { type: record.type, value: codecOf(record).format(record.data), ttl: record.ttl };
}

/** The records as the interface shows them; null where their values have more than 262,144 characters. */
export function tryFormatRecords(records: Iterable<ResourceRecord>): readonly DnsRecord[] | null {
  const shown: DnsRecord[] = [];
  let characters = 0;
  for (const record of records) {
    const formatted = formatRecord(record);
    characters += formatted.value.length;
    if (characters > MAX_ANSWER_CHARACTERS) return null;
    shown.push(formatted);
  }
  return shown;
}

/** The codec that fits the record's data; that the two belong together is beyond the type checker. */
function codecOf(record: ResourceRecord): RecordCodec<ResourceRecord["data"]> {
  return CODECS[record.type] as unknown as RecordCodec<ResourceRecord["data"]>;
}
