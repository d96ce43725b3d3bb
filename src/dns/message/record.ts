import type { ByteReader } from "../../util/bytes.ts";
import { algorithmName, certificateTypeName } from "./codes.ts";
import { DATA_READERS, readTypeCodes, readUnknown } from "./data.ts";
import { DnsFormatError, encodeName, readName } from "./name.ts";
import types from "./record-types.json" with { type: "json" };
import { readServiceBinding } from "./service-binding.ts";

/** A record as the interface shows it. */
export interface DnsRecord {
  readonly type: RecordType;
  /** The data in presentation form, exactly as `dig` prints it; RFC 1035 section 5.1. */
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

/** Readers of the fields of a record's data: those of `data.ts`, and those that need names or registries. */
const READERS = {
  ...DATA_READERS,
  name: readName,
  type: (reader) => typeName(reader.uint16()),
  types: (reader) => readTypeCodes(reader).map(typeName).join(" "),
  certificateType: (reader) => certificateTypeName(reader.uint16()),
  algorithm: (reader) => algorithmName(reader.uint8()),
  serviceBinding: readServiceBinding,
  /** The number of its form is two bytes before it; RFC 4025 section 2.3. */
  gateway: (reader) => readHost(reader.bytes[reader.offset - 2] ?? 0, reader),
  relay: readRelay,
  hostIdentity: readHostIdentity,
} satisfies Record<string, (reader: ByteReader) => string>;

/** The forms of a host by their numbers: none, an address, or a name. */
const HOSTS = [() => ".", DATA_READERS.ipv4, DATA_READERS.ipv6, readName] as const;

/** Reads a host by the number of its form; a host of another form is read as unknown data. */
function readHost(form: number, reader: ByteReader): string {
  return (HOSTS[form] ?? readUnknown)(reader);
}

/** Reads the bit of optional discovery, the form of a relay, and the relay; RFC 8777 section 4.2. */
function readRelay(reader: ByteReader): string {
  const kind = reader.uint8();
  return `${kind >>> 7} ${kind & 0x7f} ${readHost(kind & 0x7f, reader)}`;
}

/** Reads a host identity: algorithm, tag, key, and rendezvous servers; RFC 8005 section 5. */
function readHostIdentity(reader: ByteReader): string {
  const [tagBytes, algorithm, keyBytes] = [reader.uint8(), reader.uint8(), reader.uint16()];
  const tag = reader.take(tagBytes).toHex().toUpperCase();
  const words = [algorithm, tag, reader.take(keyBytes).toBase64()];
  while (reader.remaining > 0) words.push(readName(reader));
  return words.join(" ");
}

/** The kind of a field of a record's data. */
type Field = keyof typeof READERS;

/** A record type with a name in the IANA registry. */
type NamedType = keyof typeof types;

/** A row of the table of types. */
interface TypeRow {
  readonly code: number;
  /** The RFC that defines the form of its data. */
  readonly rfc?: number;
  /** The fields of its data, in order; without them, it has the form of RFC 3597. */
  readonly fields?: readonly Field[];
}

const TYPES = types as Readonly<Record<NamedType, TypeRow>>;

/** One of the record types that a caller can ask for; `TYPE` and its number for one without a name (RFC 3597 section 5). */
export type RecordType = NamedType | `TYPE${number}`;

const NAMES = Object.keys(TYPES) as readonly NamedType[];

/** The record types that a caller can ask for by name: those of the interface in its order, then further ones. */
export const RECORD_TYPES = NAMES.filter((type) => isData(TYPES[type].code));

const TYPES_BY_CODE = new Map(NAMES.map((type) => [TYPES[type].code, type]));

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

/** The row of a type; undefined for one without a name. */
const rowOf = (type: RecordType): TypeRow | undefined => TYPES[type as NamedType];

/** The number of a record type. */
export function typeCode(type: RecordType): number {
  return rowOf(type)?.code ?? Number(type.slice("TYPE".length));
}

/** The type of a number; `TYPE` and the number for one without a name. */
export function typeName(code: number): RecordType {
  return TYPES_BY_CODE.get(code) ?? `TYPE${code}`;
}

/** The data of a record in the form for comparison: its names in lower case, RFC 4343. */
export function comparableValue(type: RecordType, value: string): string {
  const fields = rowOf(type)?.fields ?? [];
  const lower = (name: string) => name.toLowerCase();
  if (fields.includes("serviceBinding")) return value.replace(/ \S+/, lower);
  if (!fields.includes("name") || fields.includes("base64")) return value;
  // A name at the end, behind strings, has no space.
  const at = fields.includes("string") ? value.lastIndexOf(" ") : 0;
  return `${value.slice(0, at)}${lower(value.slice(at))}`;
}

/** Types whose names have no canonical form: RFC 6840 section 5.1, and one that is newer than RFC 4034. */
const UNCHANGED: readonly RecordType[] = ["NSEC", "LP"];

/** Reads a record's data in canonical form, with names uncompressed and in lower case; RFC 4034 section 6.2. */
export function canonicalData(type: RecordType, data: ByteReader): Uint8Array {
  const fields = rowOf(type)?.fields ?? [];
  const hasNames = fields.includes("name") && !UNCHANGED.includes(type);
  const parts = (hasNames ? fields : []).map((field) => {
    const start = data.offset;
    const text = READERS[field](data);
    return field === "name"
      ? encodeName(text.toLowerCase())
      : data.bytes.subarray(start, data.offset);
  });
  return Buffer.concat([...parts, data.rest()]);
}

/**
 * Reads a record's data in presentation form; the reader spans exactly the data. A type without fields has the text of
 * RFC 3597 section 5. Throws DnsFormatError if the data is longer than its content, FormatError if it is shorter.
 */
export function decodeData(type: RecordType, data: ByteReader): string {
  const fields = rowOf(type)?.fields;
  const texts = fields?.map((field) => READERS[field](data)) ?? [readUnknown(data)];
  if (data.remaining > 0) {
    throw new DnsFormatError(`the data of a ${type} record is ${data.remaining} bytes too long`);
  }
  // The last field can be empty.
  return texts.filter(Boolean).join(" ");
}

/** A record without its class, its data as bytes. */
interface Encoded extends Pick<ResourceRecord, "owner" | "ttl"> {
  readonly code: number;
  readonly data: ByteReader;
}

/** A record with its data as text. Throws as `decodeData`. */
export function decodeRecord({ owner, code, ttl, data }: Encoded): ResourceRecord {
  const type = typeName(code);
  return { owner, type, value: decodeData(type, data), ttl };
}
