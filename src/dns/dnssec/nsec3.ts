import { base32Text } from "../message/data.ts";
import { encodeName } from "../message/name.ts";
import { type Denials, isAround, leadsAway } from "./denial.ts";
import { COST_US, type Work } from "./limits.ts";
import { ancestorOf, labelsOf } from "./names.ts";
import { type RecordSet, valuesOf } from "./record-set.ts";

const SHA1_BYTES = 20;

/** The number of SHA-1 (the only hash), opt-out, iterations, salt, a hash of 20 bytes, and types. */
const VALUE = /^1 ([01]) (\d+) ([\dA-F]*)-? ([\dA-V]{32})(?: (.*))?$/;

/** The NSEC3 records of a zone; RFC 5155. Throws as `valuesOf`; a hash throws a Problem for more work than is left. */
export function readNsec3(sets: readonly RecordSet[], zone: string, work: Work): Denials {
  const rows = sets.flatMap((set) => valuesOf(set).flatMap((value) => readLink(set.name, value)));
  const { iterations = 0, salt = "" } = rows[0] ?? {};
  // Even while a zone changes its salt, each answer has records of one salt.
  const links = rows.filter((link) => link.iterations === iterations && link.salt === salt);
  const hashes = new Map<string, string>();
  const hashOf = (name: string) =>
    hashes.getOrInsertComputed(name, () => {
      work.spend("cpuUs", COST_US.hashRound * (iterations + 1));
      return hashName(name, iterations, Buffer.from(salt, "hex"));
    });
  const at = (name: string) => links.find(({ owner }) => owner === hashOf(name));
  return {
    hashing: { iterations, salt },
    at,
    over: (name) => links.find(({ owner, next }) => isAround(owner, next, hashOf(name))),
    encloser(name) {
      for (let labels = labelsOf(name).length - 1; labels >= labelsOf(zone).length; labels--) {
        const ancestor = ancestorOf(name, labels);
        const record = at(ancestor);
        if (record) return leadsAway(record.types) ? undefined : ancestor;
      }
      return undefined;
    },
  };
}

/**
 * Reads the hash of an existing name and the next hash, both in base32, which sorts as the bytes do, and the salt in
 * hex. Empty for a hash or flags that are not known; RFC 5155 sections 8.1 and 8.2.
 */
function readLink(name: string, value: string) {
  const [, optOut, iterations, salt = "", next = "", types = ""] = VALUE.exec(value) ?? [];
  if (optOut === undefined) return [];
  const owner = labelsOf(name)[0]?.toUpperCase() ?? "";
  const fields = { owner, next, iterations: Number(iterations), salt, types: types.split(" ") };
  return [{ ...fields, isOptOut: optOut === "1", text: `${name} NSEC3 ${value}` }];
}

/** The hash of a name in base32; RFC 5155 section 5. */
function hashName(name: string, iterations: number, salt: Uint8Array): string {
  const salted = new Uint8Array(SHA1_BYTES + salt.length);
  const hash = salted.subarray(0, SHA1_BYTES);
  salted.set(salt, SHA1_BYTES);
  Bun.SHA1.hash(Buffer.concat([encodeName(name), salt]), hash);
  for (let round = 0; round < iterations; round++) Bun.SHA1.hash(salted, hash);
  return base32Text(hash);
}
