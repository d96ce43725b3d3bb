import { ByteReader } from "../../util/bytes.ts";
import { CLASSES, type RawRecord, readSections } from "../message/message.ts";
import { encodeName, readName } from "../message/name.ts";
import { canonicalData, decodeData, type RecordType, typeName } from "../message/record.ts";
import { COST_US, type Work } from "./limits.ts";
import type { NameAndType } from "./names.ts";
import { Problem } from "./problem.ts";

/** All records of a name and type, in canonical form; RFC 4034 section 6. */
export interface RecordSet extends NameAndType {
  /** The data of each record, names in it uncompressed and in lower case, in canonical order, each once. */
  readonly data: Uint8Array[];
  readonly signatures: Signature[];
  /** Seconds that they may be cached; set when a signature is found to be valid; RFC 4035 section 5.3.3. */
  ttl?: number;
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

/** Types in the authority section that can prove something. */
const PROOFS: readonly RecordType[] = ["SOA", "NSEC", "NSEC3"];

/**
 * Reads a reply, or the reason why there is none, with the records that bear on a question for a type.
 *
 * @param question follows "no answer" in the sentence of a problem
 * @throws Problem for a reason, or for more work than is left; FormatError for a message that breaks the format
 */
export function readReply(reply: Reply | string, type: RecordType, work: Work, question = "") {
  if (reply === "timeout")
    throw Problem.budget`The time was over before there was an answer${question}.`;
  if (typeof reply === "string")
    throw Problem.missing`The resolver has no answer${question}: ${reply}.`;
  work.spend("cpuUs", COST_US.byte * reply.message.length);
  const { sections } = readSections(new ByteReader(reply.message));
  const [answers = [], authority = []] = sections;
  return {
    answers: setsOf(answers, [type, "CNAME", "DNAME"], work),
    authority: setsOf(authority, PROOFS, work),
    /** True if it says that the name does not exist. */
    isNameError: reply.rcode === "NXDOMAIN",
  };
}

/** The sets of some types, each with its signatures. */
function setsOf(
  records: readonly RawRecord[],
  types: readonly RecordType[],
  work: Work,
): readonly RecordSet[] {
  const sets = new Map<string, RecordSet>();
  for (const record of records.filter((each) => each.class === CLASSES.IN)) {
    const isSignature = typeName(record.code) === "RRSIG";
    // A signature begins with the type of the records that it covers.
    const type = typeName(isSignature ? record.data.uint16() : record.code);
    if (!types.includes(type)) continue;
    work.spend("cpuUs", COST_US.record + COST_US.byte * record.owner.length);
    const name = record.owner.toLowerCase();
    const set = sets.getOrInsert(`${type} ${name}`, { name, type, data: [], signatures: [] });
    if (isSignature) {
      set.signatures.push(readSignature(record.data, work));
      continue;
    }
    const compressedBytes = record.data.remaining;
    const data = canonicalData(type, record.data);
    work.spend("cpuUs", COST_US.expandedByte * (data.length - compressedBytes));
    set.data.push(data);
  }
  // A signature can come without its records.
  const complete = [...sets.values()].filter(({ data }) => data.length > 0);
  return complete.map((set) => ({ ...set, data: sortedUnique(set.data) }));
}

function sortedUnique(data: readonly Uint8Array[]): Uint8Array[] {
  const isOther = (a: Uint8Array, b?: Uint8Array) => !b || Buffer.compare(a, b) !== 0;
  return data.toSorted(Buffer.compare).filter((each, at, all) => isOther(each, all[at - 1]));
}

/** Reads the data of an RRSIG record behind its first field. */
function readSignature(reader: ByteReader, work: Work) {
  const start = reader.offset - 2;
  const fields = {
    algorithm: reader.uint8(),
    /** Labels of the name that was signed, without those that a wildcard matched. */
    labels: reader.uint8(),
    originalTtl: reader.uint32(),
    /** Seconds since 1970, modulo 2^32. */
    expires: reader.uint32(),
    inception: reader.uint32(),
    /** The tag of the key that made it. */
    tag: reader.uint16(),
  };
  const numbers = reader.bytes.subarray(start, reader.offset);
  /** The zone whose key made it. */
  const signer = readName(reader).toLowerCase();
  work.spend("cpuUs", COST_US.byte * signer.length);
  /** The data before the signature itself, which is signed too. */
  const header = Buffer.concat([numbers, encodeName(signer)]);
  return { ...fields, signer, header, bytes: reader.rest() };
}

/** The set of a name and type among others; undefined if it is not there. */
export function findSet(sets: readonly RecordSet[], name: string, type: RecordType) {
  return sets.find((set) => set.name === name && set.type === type);
}

/** The data of each record in presentation form. Throws as `decodeData`. */
export function valuesOf({ type, data }: RecordSet): readonly string[] {
  return data.map((each) => decodeData(type, new ByteReader(each)));
}
