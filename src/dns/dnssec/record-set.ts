import { ByteReader } from "../../util/bytes.ts";
import { CLASSES, type RawRecord, readSections } from "../message/message.ts";
import { NameReader } from "../message/name.ts";
import {
  canonicalData,
  decodeRecord,
  type RecordType,
  typeCode,
  typeName,
} from "../message/record.ts";
import { indeterminate } from "./problem.ts";

/** All records of a name and type, in canonical form; RFC 4034 section 6. */
export interface RecordSet {
  readonly name: string;
  readonly type: RecordType;
  /** The data of each record, names in it uncompressed and in lower case, in canonical order, each once. */
  readonly data: Uint8Array[];
  readonly signatures: Signature[];
}

/** The data of an RRSIG record; RFC 4034 section 3.1. */
export type Signature = ReturnType<typeof readSignature>;

/** A reply of the resolver. */
export interface Reply {
  readonly rcode: string;
  readonly message: Uint8Array;
}

/** The parts of a reply that can prove something. */
export type Answer = ReturnType<typeof readReply>;

/**
 * Reads a reply, or the reason why there is none.
 *
 * @param question follows "no answer" in the sentence about one
 * @throws Problem for a reason; FormatError for a message that breaks the format
 */
export function readReply(reply: Reply | string, question = "") {
  if (typeof reply === "string") {
    throw indeterminate`The resolver has no answer${question}: ${reply}.`;
  }
  const names = new NameReader();
  const { sections } = readSections(new ByteReader(reply.message), names);
  const [answers = [], authority = []] = sections.map((records) => setsOf(records, names));
  return {
    answers,
    authority,
    /** True if it says that the name does not exist. */
    isNameError: reply.rcode === "NXDOMAIN",
  };
}

function setsOf(records: readonly RawRecord[], names: NameReader): readonly RecordSet[] {
  const sets = new Map<string, RecordSet>();
  const setOf = (name: string, type: RecordType) =>
    sets.getOrInsertComputed(`${type} ${name}`, () => ({ name, type, data: [], signatures: [] }));
  for (const record of records.filter((each) => each.class === CLASSES.IN)) {
    const [name, type] = [record.owner.toLowerCase(), typeName(record.code)];
    const canonical = canonicalData(type, record.data, names);
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

/** Reads the data of an RRSIG record, which has its length if its form is canonical. */
function readSignature(data: Uint8Array) {
  const reader = new ByteReader(data);
  const fields = {
    /** The type of the records that it is of. */
    covered: typeName(reader.uint16()),
    algorithm: reader.uint8(),
    /** Labels of the name that was signed, without those that a wildcard matched. */
    labels: reader.uint8(),
    originalTtl: reader.uint32(),
    /** Seconds since 1970, modulo 2^32. */
    expires: reader.uint32(),
    inception: reader.uint32(),
    keyTag: reader.uint16(),
    /** The zone whose key made it. */
    signer: new NameReader().read(reader),
  };
  /** The data before the signature itself, which is signed too. */
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
