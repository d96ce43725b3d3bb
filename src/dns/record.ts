import type { ByteReader } from "../util/bytes.ts";
import { algorithmName, certificateTypeName } from "./codes.ts";
import {
  base32Text,
  base64Text,
  hexText,
  plainText,
  quotedText,
  readIpv4,
  readIpv6,
  readLocation,
  readPrefixes,
  readTexts,
  readTypeCodes,
  readUnknown,
  timeText,
} from "./data.ts";
import { DnsFormatError, type NameReader } from "./name.ts";
import registries from "./registries.json" with { type: "json" };
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

/** The number of the OPT pseudo-record; RFC 6891 section 6.1.1. */
export const OPT_CODE = 41;

/** The fields of the data of each type that has a text form of its own, in order. A type without a row has the form of RFC 3597. A new form is a new row. */
const FIELDS: Partial<Record<NamedType, readonly (keyof typeof READERS)[]>> = {
  /** RFC 3596 section 2.1. */
  AAAA: ["ipv6"],
  /** RFC 1035 section 3; RFC 7505 defines the null MX `0 .`. */
  A: ["ipv4"],
  NS: ["name"],
  CNAME: ["name"],
  SOA: ["name", "name", "uint32", "uint32", "uint32", "uint32", "uint32"],
  PTR: ["name"],
  HINFO: ["string", "string"],
  MINFO: ["name", "name"],
  MB: ["name"],
  MG: ["name"],
  MR: ["name"],
  MX: ["uint16", "name"],
  TXT: ["strings"],
  SPF: ["strings"],
  /** RFC 1183. */
  RP: ["name", "name"],
  AFSDB: ["uint16", "name"],
  RT: ["uint16", "name"],
  X25: ["string"],
  /** RFC 1876. */
  LOC: ["location"],
  /** RFC 2230. */
  KX: ["uint16", "name"],
  /** RFC 2782. */
  SRV: ["uint16", "uint16", "uint16", "name"],
  /** RFC 3123. */
  APL: ["prefixes"],
  /** RFC 3403 section 4.1. */
  NAPTR: ["uint16", "uint16", "string", "string", "string", "name"],
  /** RFC 4034. */
  DS: ["uint16", "uint8", "uint8", "hex"],
  DNSKEY: ["uint16", "uint8", "uint8", "base64"],
  RRSIG: ["type", "uint8", "uint8", "uint32", "time", "time", "uint16", "name", "base64"],
  NSEC: ["name", "types"],
  /** RFC 2535. */
  SIG: ["type", "uint8", "uint8", "uint32", "time", "time", "uint16", "name", "base64"],
  KEY: ["uint16", "uint8", "uint8", "base64"],
  /** RFC 4255 section 3.1. */
  SSHFP: ["uint8", "uint8", "hex"],
  /** RFC 4398 section 2. */
  CERT: ["certificateType", "uint16", "algorithm", "base64"],
  /** RFC 4431. */
  DLV: ["uint16", "uint8", "uint8", "hex"],
  /** RFC 4701. */
  DHCID: ["base64"],
  /** RFC 5155 sections 3 and 4. */
  NSEC3: ["uint8", "uint8", "uint16", "salt", "hash", "types"],
  NSEC3PARAM: ["uint8", "uint8", "uint16", "salt"],
  /** RFC 6672. */
  DNAME: ["name"],
  /** RFC 6698 section 2.1, and RFC 8162. */
  TLSA: ["uint8", "uint8", "uint8", "hex"],
  SMIMEA: ["uint8", "uint8", "uint8", "hex"],
  /** RFC 6742 section 2. */
  L32: ["uint16", "ipv4"],
  LP: ["uint16", "name"],
  /** RFC 7043. */
  EUI48: ["eui48"],
  EUI64: ["eui64"],
  /** RFC 7344. */
  CDS: ["uint16", "uint8", "uint8", "hex"],
  CDNSKEY: ["uint16", "uint8", "uint8", "base64"],
  /** RFC 7477 section 2.1. */
  CSYNC: ["uint32", "uint16", "types"],
  /** RFC 7553 section 4. */
  URI: ["uint16", "uint16", "text"],
  /** RFC 7929 section 2. */
  OPENPGPKEY: ["base64"],
  /** RFC 8659 section 4.1. */
  CAA: ["uint8", "tag", "text"],
  /** RFC 8976 section 2. */
  ZONEMD: ["uint32", "uint8", "uint8", "hex"],
  /** RFC 9460. */
  HTTPS: ["serviceBinding"],
  SVCB: ["serviceBinding"],
};

/** Reads one field of a record's data as text; `rest` fields end where the data ends. */
const READERS = {
  uint8: (reader) => String(reader.uint8()),
  uint16: (reader) => String(reader.uint16()),
  uint32: (reader) => String(reader.uint32()),
  name: (reader, names) => names.read(reader),
  ipv4: readIpv4,
  ipv6: readIpv6,
  string: (reader) => quotedText(reader.take(reader.uint8())),
  strings: readTexts,
  tag: (reader) => plainText(reader.take(reader.uint8())),
  text: (reader) => quotedText(reader.take(reader.remaining)),
  hex: hexText,
  base64: base64Text,
  time: (reader) => timeText(reader.uint32()),
  salt: (reader) => reader.take(reader.uint8()).toHex().toUpperCase() || "-",
  hash: (reader) => base32Text(reader.take(reader.uint8())),
  eui48: (reader) =>
    reader
      .take(6)
      .toHex()
      .replace(/\B(?=(..)+$)/g, "-"),
  eui64: (reader) =>
    reader
      .take(8)
      .toHex()
      .replace(/\B(?=(..)+$)/g, "-"),
  type: (reader) => typeName(reader.uint16()),
  types: (reader) => readTypeCodes(reader).map(typeName).join(" "),
  certificateType: (reader) => certificateTypeName(reader.uint16()),
  algorithm: (reader) => algorithmName(reader.uint8()),
  location: readLocation,
  prefixes: readPrefixes,
  serviceBinding: readServiceBinding,
} satisfies Record<string, (reader: ByteReader, names: NameReader) => string>;

/** A record type with a name in the IANA registry. */
type NamedType = keyof typeof registries.types;

/** One of the record types that a caller can ask for; `TYPE` and its number for one without a name (RFC 3597 section 5). */
export type RecordType = NamedType | `TYPE${number}`;

const NAMES = Object.keys(registries.types) as readonly NamedType[];

/** The record types that a caller can ask for by name: those of the interface in its order, then further ones. */
export const RECORD_TYPES = NAMES.filter((type) => isData(registries.types[type]));

const TYPES_BY_CODE = new Map<number, NamedType>(
  NAMES.map((type) => [registries.types[type], type]),
);

/** The type that a text names, in any case; null for none, and for numbers that are not types of records (RFC 6895 section 3.1). */
export function tryParseRecordType(text: string): RecordType | null {
  const upper = text.toUpperCase();
  const named = RECORD_TYPES.find((type) => type === upper);
  if (named !== undefined) return named;
  const [, digits] = /^TYPE(0|[1-9][0-9]{0,4})$/.exec(upper) ?? [];
  return isData(Number(digits)) ? typeName(Number(digits)) : null;
}

function isData(code: number): boolean {
  return (code >= 1 && code <= 127 && code !== OPT_CODE) || (code >= 256 && code <= 65_534);
}

/** The number of a record type. */
export function typeCode(type: RecordType): number {
  return registries.types[type as NamedType] ?? Number(type.slice("TYPE".length));
}

/** The type of a number; `TYPE` and the number for one without a name. */
export function typeName(code: number): RecordType {
  return TYPES_BY_CODE.get(code) ?? `TYPE${code}`;
}

/** The data of a record as it compares: names without regard to case, RFC 4343. */
export function comparableValue(type: RecordType, value: string): string {
  const fields = FIELDS[type as NamedType] ?? [];
  const lower = (name: string) => name.toLowerCase();
  if (fields.includes("serviceBinding")) return value.replace(/ \S+/, lower);
  if (!fields.includes("name") || fields.includes("base64")) return value;
  return fields.includes("string") ? value.replace(/\S+$/, lower) : lower(value);
}

/**
 * Reads a record's data; the reader spans exactly the data. A type without fields has the text of RFC
 * 3597 section 5. Throws DnsFormatError if the data is longer than its content, OutOfBoundsError if it
 * is shorter.
 */
export function decodeRecord(
  { owner, code, ttl }: { readonly owner: string; readonly code: number; readonly ttl: number },
  reader: ByteReader,
  names: NameReader,
): ResourceRecord {
  const type = typeName(code);
  const fields = FIELDS[type as NamedType];
  const texts = fields?.map((field) => READERS[field](reader, names)) ?? [readUnknown(reader)];
  // The last field can be empty.
  const value = texts.filter(Boolean).join(" ");
  if (reader.remaining > 0) {
    throw new DnsFormatError(`the data of a ${type} record is ${reader.remaining} bytes too long`);
  }
  return { owner, type, value, ttl };
}
