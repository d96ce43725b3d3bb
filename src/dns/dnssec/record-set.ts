import { ByteReader, OutOfBoundsError } from "../../util/bytes.ts";
import { HEADER_BYTES } from "../message.ts";
import { DnsFormatError, encodeName, NameReader } from "../name.ts";
import { type Signature, tryParseSignature } from "./signature-record.ts";

/** Numbers of record types that DNSSEC knows of; RFC 4034, RFC 5155, RFC 6672, RFC 9824. */
export const TYPE = {
  NS: 2,
  CNAME: 5,
  SOA: 6,
  NAPTR: 35,
  DNAME: 39,
  DS: 43,
  RRSIG: 46,
  NSEC: 47,
  DNSKEY: 48,
  NSEC3: 50,
  /** In the types of a name that does not exist, although its NSEC record does. */
  NXNAME: 128,
} as const;

const CLASS_IN = 1;

/** All records of a name and type, in canonical form; RFC 4034 section 6. */
export interface RecordSet {
  readonly name: string;
  readonly type: number;
  /** The data of each record, names in it uncompressed and in lower case, in canonical order, each once. */
  readonly data: readonly Uint8Array[];
  readonly signatures: readonly Signature[];
}

/** The sections of a message that can prove something. */
export interface Sections {
  readonly answers: readonly RecordSet[];
  readonly authority: readonly RecordSet[];
}

/**
 * The bytes before, and the number of, the names in the data of types whose names have a canonical form:
 * RFC 4034 section 6.2, without NSEC and HINFO by RFC 6840 section 5.1. NAPTR has texts before its name.
 */
const LAYOUTS: readonly (readonly [before: number, names: number, types: readonly number[]])[] = [
  [0, 1, [2, 3, 4, 5, 7, 8, 9, 12, 30, 39]],
  [0, 2, [6, 14, 17]],
  [2, 1, [15, 18, 21, 36]],
  [2, 2, [26]],
  [6, 1, [33]],
  [18, 1, [24, 46]],
];

const LAYOUT_OF = new Map(
  LAYOUTS.flatMap(([before, names, types]) =>
    types.map((type) => [type, [before, names]] as const),
  ),
);

/** Reads the record sets of a message. Null for bytes that break the format. */
export function tryReadSections(message: Uint8Array): Sections | null {
  try {
    return readSections(message);
  } catch (error) {
    if (error instanceof DnsFormatError || error instanceof OutOfBoundsError) return null;
    throw error;
  }
}

function readSections(message: Uint8Array): Sections {
  const reader = new ByteReader(message);
  const names = new NameReader();
  reader.take(4);
  const [questions, answers, authority] = [reader.uint16(), reader.uint16(), reader.uint16()];
  reader.take(HEADER_BYTES - reader.offset);
  for (let index = 0; index < questions; index++) {
    names.read(reader);
    reader.take(4);
  }
  return {
    answers: readSection(reader, names, answers),
    authority: readSection(reader, names, authority),
  };
}

function readSection(reader: ByteReader, names: NameReader, count: number): RecordSet[] {
  const sets = new Map<string, { name: string; type: number; data: Uint8Array[] }>();
  const signatures = new Map<string, Signature[]>();
  for (let index = 0; index < count; index++) {
    const name = names.read(reader).toLowerCase();
    const type = reader.uint16();
    const isInternet = reader.uint16() === CLASS_IN;
    reader.uint32();
    const bytes = reader.uint16();
    const data = new ByteReader(reader.bytes, reader.offset, reader.offset + bytes);
    reader.offset = data.end;
    if (!isInternet) continue;
    const canonical = canonicalData(type, data, names);
    if (type === TYPE.RRSIG) {
      const signature = tryParseSignature(canonical);
      if (signature !== null) append(signatures, `${signature.covered} ${name}`, signature);
    } else {
      const key = `${type} ${name}`;
      const set = sets.get(key) ?? { name, type, data: [] };
      sets.set(key, set);
      set.data.push(canonical);
    }
  }
  return [...sets].map(([key, { name, type, data }]) => {
    const sorted = data.sort(Buffer.compare);
    const once = sorted.filter(
      (each, at) => at === 0 || !Buffer.from(each).equals(sorted[at - 1] as Uint8Array),
    );
    return { name, type, data: once, signatures: signatures.get(key) ?? [] };
  });
}

function append<T>(lists: Map<string, T[]>, key: string, item: T): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [item]);
  else list.push(item);
}

function canonicalData(type: number, data: ByteReader, names: NameReader): Uint8Array {
  let [before, nameCount] = LAYOUT_OF.get(type) ?? [0, 0];
  if (type === TYPE.NAPTR) {
    const texts = new ByteReader(data.bytes, data.offset, data.end);
    texts.take(4);
    for (let text = 0; text < 3; text++) texts.take(texts.uint8());
    [before, nameCount] = [texts.offset - data.offset, 1];
  }
  const parts = [data.take(before)];
  for (let name = 0; name < nameCount; name++) {
    parts.push(encodeName(names.read(data).toLowerCase()));
  }
  return Buffer.concat([...parts, data.take(data.remaining)]);
}

/** The set of a name and type among others; undefined if it is not there. */
export function findSet(sets: readonly RecordSet[], name: string, type: number) {
  return sets.find((set) => set.name === name && set.type === type);
}
