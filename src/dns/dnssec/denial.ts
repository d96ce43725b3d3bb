import { ancestorOf, labelsOf, type NameAndType, wildcardOf } from "./names.ts";
import { Problem } from "./problem.ts";
import type { Signature } from "./record-set.ts";
import { nameText } from "./wording.ts";

/** An NSEC or NSEC3 record whose signature is valid. */
export interface DenialRecord {
  /** The record in presentation form, with its owner. */
  readonly text: string;
  /** The types of records at its name; empty for a name that only has names below it. */
  readonly types: readonly string[];
  /** True if unsigned names may exist between its two names; RFC 5155 section 6. */
  readonly isOptOut: boolean;
}

/** The NSEC or the NSEC3 records of one zone that came with an answer. */
export interface Denials {
  /** The record of a name, which exists; undefined if there is none. */
  at(name: string): DenialRecord | undefined;
  /** The record that shows that a name does not exist; undefined if there is none. */
  over(name: string): DenialRecord | undefined;
  /** The longest name above one that exists; undefined if that is not proven. */
  encloser(name: string): string | undefined;
  /** How NSEC3 records hash names. */
  readonly hashing?: { readonly iterations: number; readonly salt: string };
}

/** What an answer denies: a name, or its records of a type. */
export interface Claim extends NameAndType {
  /** True if the name does not exist, false if it only has no record of the type. */
  readonly isNameError?: boolean;
  /** The signature of records from a wildcard, whose use claims that the name itself does not exist. */
  readonly wildcard?: Signature;
}

/** The proof of a claim. */
export type Proof = ReturnType<typeof prove>;

/**
 * Reads the proof of a claim from the records: RFC 4035 sections 5.3.4 and 5.4, RFC 5155 section 8, RFC 6840
 * section 4. Throws a Problem if they do not prove it.
 *
 * @returns `steps`: the records, and the statement that each proves; `isOptOut`: true if the name may exist without signatures;
 * `isDelegation`: true if an unsigned zone begins at the name
 */
export function prove(denials: Denials, claim: Claim) {
  const { name, type, isNameError = false, wildcard: expanded } = claim;
  const own = expanded ? undefined : denials.at(name);
  if (own !== undefined) return proveNoData(own, claim);
  const encloser = expanded ? ancestorOf(name, expanded.labels) : denials.encloser(name);
  // One label longer than the encloser.
  const nextCloser = encloser && ancestorOf(name, labelsOf(encloser).length + 1);
  const cover = nextCloser && denials.over(nextCloser);
  if (!encloser || !nextCloser || !cover) throw unproven(`${nameText(name)} does not exist`);
  const { isOptOut } = cover;
  const absent = isOptOut ? "does not exist, or is not signed (opt-out)" : "does not exist";
  const steps = [{ record: cover.text, proves: `${nameText(nextCloser)} ${absent}` }];
  const wildcard = wildcardOf(encloser);
  if (isNameError) {
    const noWildcard = denials.over(wildcard);
    if (!noWildcard) throw unproven(`${nameText(wildcard)} does not exist`);
    steps.push({ record: noWildcard.text, proves: `${nameText(wildcard)} does not exist` });
  } else if (!expanded && !isOptOut) {
    const atWildcard = denials.at(wildcard);
    if (!atWildcard) throw unproven(`${nameText(name)} has no ${type} record`);
    const proof = proveNoData(atWildcard, { name: wildcard, type });
    return { ...proof, steps: [...steps, ...proof.steps] };
  }
  return { steps, isOptOut, isDelegation: false };
}

/** The proof in the record of the name itself. */
function proveNoData(record: DenialRecord, { name, type, isNameError }: Claim) {
  const has = (other: string) => record.types.includes(other);
  const isDelegation = has("NS") && !has("SOA");
  const wrong =
    // RFC 9824 section 3.
    (isNameError && !has("NXNAME") && "the name exists") ||
    ((has(type) || has("CNAME")) && "the record that was denied exists") ||
    (type === "DS" && has("SOA") && name !== "." && "it is from the zone below") ||
    (type !== "DS" && isDelegation && "it is from the zone above");
  if (wrong)
    throw Problem.denial`The proof about ${nameText(name)} contradicts the answer: ${wrong}.`;
  const proves = `${nameText(name)} ${isNameError ? "does not exist" : `has no ${type} record`}`;
  return { steps: [{ record: record.text, proves }], isOptOut: false, isDelegation };
}

function unproven(denial: string) {
  return Problem.denial`The answer does not prove that ${denial}.`;
}

/** True if a key is between two neighbours of a zone's circle, in which the first follows the last. */
export function isAround(owner: string, next: string, key: string): boolean {
  return owner < next ? owner < key && key < next : key !== owner && (key > owner || key < next);
}

/** True if a name with these types redirects or delegates all names below it; RFC 6840 section 4.1, RFC 5155 section 8.3. */
export function leadsAway(types: readonly string[]): boolean {
  return types.includes("DNAME") || (types.includes("NS") && !types.includes("SOA"));
}
