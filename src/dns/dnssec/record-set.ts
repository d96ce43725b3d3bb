import { ByteReader } from "../../util/bytes.ts";
import { CLASSES } from "../message.ts";
import { encodeName, NameReader } from "../name.ts";
import { decodeRecord, type RecordType, typeCode, typeName } from "../record.ts";
import { Problem } from "./problem.ts";

/** All records of a name and type, in canonical form; RFC 4034 section 6. */
export interface RecordSet {
  readonly name: string;
  readonly type: RecordType;
  /** The data of each record, names in it uncompressed and in lower case, in canonical order, each once. */
  readonly data: Uint8Array[];
  readonly signatures: Signature[];
}

/** The data of an RRSIG record; RFC 4034 section 3.1. */
export interface Signature {
  /** The type of the records that it is of. */
  readonly covered: RecordType;
  readonly algorithm: number;
  /** Labels of the name that was signed, without those that a wildcard matched. */
  readonly labels: number;
  readonly originalTtl: number;
  /** Seconds since 1970, modulo 2^32. */
  readonly expires: number;
  readonly inception: number;
  readonly keyTag: number;
  /** The zone whose key made it. */
  readonly signer: string;
  /** The data before the signature itself, which is signed too. */
  readonly header: Uint8Array;
  readonly bytes: Uint8Array;
}

/** A reply of the resolver. */
export interface Reply {
  readonly rcode: string;
  readonly message: Uint8Array;
}

/** The parts of a reply that can prove something. */
export interface Answer {
  readonly answers: readonly RecordSet[];
  readonly authority: readonly RecordSet[];
  /** True if it says that the name does not exist. */
  readonly isNameError: boolean;
}

/**
 * The bytes before, and the number of, the names in the data of types whose names have a canonical form:
 * RFC 4034 section 6.2, without NSEC and HINFO by RFC 6840 section 5.1. NAPTR has texts before its name.
 */
const LAYOUTS: readonly (readonly [before: number, names: number, types: string])[] = [
  [0, 1, "NS MD MF CNAME MB MG MR PTR NXT DNAME"],
  [0, 2, "SOA MINFO RP"],
  [2, 1, "MX AFSDB RT KX"],
  [2, 2, "PX"],
  [6, 1, "SRV"],
  [18, 1, "SIG RRSIG"],
];

/**
 * Reads a reply, or the reason why there is none.
 *
 * @param question follows "no answer" in the sentence about one
 * @throws Problem for a reason; DnsFormatError or OutOfBoundsError for a message that breaks the format
 */
export function readReply(reply: Reply | string, question = ""): Answer {
  if (typeof reply === "string") {
    throw new Problem("indeterminate", `The resolver has no answer${question}: ${reply}.`);
  }
  const reader = new ByteReader(reply.message);
  const names = new NameReader();
  const header = Array.from({ length: 6 }, () => reader.uint16());
  const [, , questions = 0, answers = 0, authority = 0] = header;
  for (let index = 0; index < questions; index++) {
    names.read(reader);
    reader.take(4);
  }
  return {
    answers: readSection(reader, names, answers),
    authority: readSection(reader, names, authority),
    isNameError: reply.rcode === "NXDOMAIN",
  };
}

function readSection(reader: ByteReader, names: NameReader, count: number): RecordSet[] {
  const sets = new Map<string, RecordSet>();
  const setOf = (name: string, type: RecordType) =>
    sets.getOrInsertComputed(`${type} ${name}`, () => ({ name, type, data: [], signatures: [] }));
  for (let index = 0; index < count; index++) {
    const name = names.read(reader).toLowerCase();
    const code = reader.uint16();
    const isInternet = reader.uint16() === CLASSES.IN;
    reader.uint32();
    const data = reader.take(reader.uint16());
    if (!isInternet) continue;
    const end = reader.offset;
    const type = typeName(code);
    const canonical = canonicalData(
      type,
      new ByteReader(reader.bytes, end - data.length, end),
      names,
    );
    const signature = type === "RRSIG" && readSignature(canonical);
    if (signature) setOf(name, signature.covered).signatures.push(signature);
    else setOf(name, type).data.push(canonical);
  }
  // A signature can come without its records.
  const whole = [...sets.values()].filter(({ data }) => data.length > 0);
  return whole.map((set) => ({ ...set, data: inOrder(set.data) }));
}

function inOrder(data: readonly Uint8Array[]): Uint8Array[] {
  const isOther = (a: Uint8Array, b?: Uint8Array) => !b || Buffer.compare(a, b) !== 0;
  return data.toSorted(Buffer.compare).filter((each, at, all) => isOther(each, all[at - 1]));
}

function canonicalData(type: RecordType, data: ByteReader, names: NameReader): Uint8Array {
  let [before, nameCount] = LAYOUTS.find(([, , types]) => types.split(" ").includes(type)) ?? [
    0, 0,
  ];
  if (type === "NAPTR") {
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

/** Reads the data of an RRSIG record, which has its length if its form is canonical. */
function readSignature(data: Uint8Array): Signature {
  const reader = new ByteReader(data);
  const fields = {
    covered: typeName(reader.uint16()),
    algorithm: reader.uint8(),
    labels: reader.uint8(),
    originalTtl: reader.uint32(),
    expires: reader.uint32(),
    inception: reader.uint32(),
    keyTag: reader.uint16(),
    signer: new NameReader().read(reader),
  };
  const header = data.subarray(0, reader.offset);
  return { ...fields, header, bytes: reader.take(reader.remaining) };
}

/** The set of a name and type among others; undefined if it is not there. */
export function findSet(sets: readonly RecordSet[], name: string, type: RecordType) {
  return sets.find((set) => set.name === name && set.type === type);
}

/** The data of each record in presentation form. Throws as `decodeRecord`. */
export function valuesOf({ name, type, data }: RecordSet): readonly string[] {
  const record = { owner: name, code: typeCode(type), ttl: 0 };
  return data.map((each) => decodeRecord(record, new ByteReader(each), new NameReader()).value);
}
