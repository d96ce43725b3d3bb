import { createHash } from "node:crypto";
import { ByteReader } from "../../util/bytes.ts";
import { encodeName } from "../name.ts";
import { type DenialRecord, type Denials, readTypes, typesText } from "./denial.ts";
import { MAX_ITERATIONS, type Work } from "./limits.ts";
import { ancestorOf, labelsOf } from "./names.ts";
import { type RecordSet, TYPE } from "./record-set.ts";

/** The only hash: SHA-1; RFC 5155 section 11. */
const SHA1 = 1;

const OPT_OUT = 1;

/** Bytes of a hash, and its digits in base32hex. */
const HASH_BYTES = 20;
const HASH_DIGITS = 32;

/** How a zone hashes its names; RFC 5155 section 3.1. */
interface Hashing {
  readonly iterations: number;
  readonly salt: Uint8Array;
}

/** The hash of a name that exists, and the next one. */
interface Link extends DenialRecord, Hashing {
  readonly owner: string;
  readonly next: string;
}

/**
 * The NSEC3 records of a zone; RFC 5155. A number if they have more iterations than are computed.
 * Throws OutOfBoundsError for data that is cut short.
 */
export function readNsec3(sets: readonly RecordSet[], zone: string, work: Work): Denials | number {
  const all = sets.flatMap(({ name, data }) => data.flatMap((each) => readLink(name, each) ?? []));
  // A zone that changes its salt answers with records of one.
  const links = all.filter((link) => isHashedAs(link, all[0] as Link));
  const [first] = links;
  if (first === undefined) return { at: () => null, over: () => null, encloser: () => null };
  if (first.iterations > MAX_ITERATIONS) return first.iterations;
  const known = new Map<string, string>();
  const hashOf = (name: string) => {
    let hash = known.get(name);
    if (hash === undefined) {
      work.spend("hashes");
      hash = hashName(name, first);
      known.set(name, hash);
    }
    return hash;
  };
  const at = (name: string) => links.find(({ owner }) => owner === hashOf(name)) ?? null;
  return {
    at,
    over: (name) => links.find((link) => isBetween(link, hashOf(name))) ?? null,
    encloser(name) {
      for (let labels = labelsOf(name).length - 1; labels >= labelsOf(zone).length; labels--) {
        const ancestor = ancestorOf(name, labels);
        const record = at(ancestor);
        if (record === null) continue;
        const { types } = record;
        // The zone above knows nothing below a delegation or a DNAME; RFC 5155 section 8.3.
        const leadsAway = types.has(TYPE.DNAME) || (types.has(TYPE.NS) && !types.has(TYPE.SOA));
        return leadsAway ? null : ancestor;
      }
      return null;
    },
  };
}

/** Null for a hash or flags that are not known; RFC 5155 sections 8.1 and 8.2. */
function readLink(name: string, data: Uint8Array): Link | null {
  const reader = new ByteReader(data);
  const [hash, flags] = [reader.uint8(), reader.uint8()];
  const iterations = reader.uint16();
  const salt = reader.take(reader.uint8());
  const nextHash = reader.take(reader.uint8());
  const types = readTypes(reader);
  if (hash !== SHA1 || flags > OPT_OUT || nextHash.length !== HASH_BYTES) return null;
  const next = base32hex(nextHash);
  const saltText = salt.length === 0 ? "-" : salt.toHex().toUpperCase();
  const text = `${name} NSEC3 ${hash} ${flags} ${iterations} ${saltText} ${next} ${typesText(types)}`;
  const owner = labelsOf(name)[0] ?? "";
  return { owner, next, iterations, salt, types, isOptOut: flags === OPT_OUT, text };
}

function isHashedAs(a: Hashing, b: Hashing): boolean {
  return a.iterations === b.iterations && Buffer.compare(a.salt, b.salt) === 0;
}

/** True if a hash is between those of a link; the last hash of a zone is followed by its first. */
function isBetween({ owner, next }: Link, hash: string): boolean {
  return owner < next
    ? owner < hash && hash < next
    : hash !== owner && (hash > owner || hash < next);
}

/** RFC 5155 section 5. */
function hashName(name: string, { iterations, salt }: Hashing): string {
  let hash: Uint8Array = encodeName(name);
  for (let round = 0; round <= iterations; round++) {
    hash = createHash("sha1").update(hash).update(salt).digest();
  }
  return base32hex(hash);
}

/** RFC 4648 section 7, whose order is that of the bytes. */
function base32hex(hash: Uint8Array): string {
  return BigInt(`0x${hash.toHex()}`).toString(32).padStart(HASH_DIGITS, "0");
}
