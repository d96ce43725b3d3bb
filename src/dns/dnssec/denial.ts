import type { ByteReader } from "../../util/bytes.ts";
import { typeName } from "../record.ts";
import { ancestorOf, labelsOf, wildcardOf } from "./names.ts";
import { TYPE } from "./record-set.ts";
import { nameText } from "./wording.ts";

/** An NSEC or NSEC3 record whose signature is valid. */
export interface DenialRecord {
  /** The record in presentation form, with its owner. */
  readonly text: string;
  /** The types of records at its name; empty for a name that only has names below it. */
  readonly types: ReadonlySet<number>;
  /** True if it says nothing about names between that have no signature; RFC 5155 section 6. */
  readonly isOptOut: boolean;
}

/** The NSEC or the NSEC3 records of one zone that came with an answer. */
export interface Denials {
  /** The record of a name, which exists; null if there is none. */
  at(name: string): DenialRecord | null;
  /** The record that shows that a name does not exist; null if there is none. */
  over(name: string): DenialRecord | null;
  /** The longest name above one that exists; null if that is not proven. */
  encloser(name: string): string | null;
}

/** A record, and what it proves. */
export interface ProofStep {
  readonly record: string;
  readonly proves: string;
}

/** The proof about a name and type, or what is missing. */
export type Denial =
  | {
      readonly isProven: true;
      readonly steps: readonly ProofStep[];
      /** True if the name may exist without signatures. */
      readonly isOptOut: boolean;
      /** True if the name begins a zone that is not signed. */
      readonly isDelegation: boolean;
    }
  | { readonly isProven: false; readonly text: string };

/**
 * Reads what the records prove: that a name has no record of a type, also by a wildcard, or that there is
 * no such name. RFC 4035 section 5.4, RFC 5155 section 8, RFC 6840 section 4.
 *
 * @param isNameError true if the answer says that the name does not exist
 */
export function prove(
  denials: Denials,
  {
    name,
    type,
    isNameError,
  }: { readonly name: string; readonly type: number; readonly isNameError: boolean },
): Denial {
  const here = denials.at(name);
  if (here !== null) return proveNoData(here, name, type, isNameError);
  const encloser = denials.encloser(name);
  const nextCloser = encloser && childTowards(encloser, name);
  const cover = nextCloser && denials.over(nextCloser);
  if (!encloser || !nextCloser || !cover) return unproven(`that ${nameText(name)} does not exist`);
  const steps = [step(cover, `${nameText(nextCloser)} does not exist`)];
  const { isOptOut } = cover;
  const wildcard = wildcardOf(encloser);
  const atWildcard = denials.at(wildcard);
  if (isNameError) {
    const noWildcard = denials.over(wildcard);
    if (noWildcard === null) return unproven(`that ${wildcard} does not exist`);
    steps.push(step(noWildcard, `${nameText(wildcard)} does not exist`));
  } else if (atWildcard !== null) {
    const denial = proveNoData(atWildcard, wildcard, type, false);
    return denial.isProven ? { ...denial, steps: [...steps, ...denial.steps], isOptOut } : denial;
  } else if (!isOptOut) {
    return unproven(`that ${nameText(name)} has no ${typeName(type)} record`);
  }
  return { isProven: true, steps, isOptOut, isDelegation: false };
}

/**
 * The proof in the records about a name that a wildcard matches: that it does not exist itself; RFC 4035
 * section 5.3.4.
 *
 * @param labels of the name below which the wildcard is
 */
export function proveExpansion(denials: Denials, name: string, labels: number): Denial {
  const nextCloser = ancestorOf(name, labels + 1);
  const cover = denials.over(nextCloser);
  if (cover === null)
    return unproven(`that ${nameText(nextCloser)} does not exist, so that a wildcard may match`);
  const steps = [step(cover, `${nameText(nextCloser)} does not exist, so the wildcard matches`)];
  return { isProven: true, steps, isOptOut: cover.isOptOut, isDelegation: false };
}

function proveNoData(
  record: DenialRecord,
  name: string,
  type: number,
  isNameError: boolean,
): Denial {
  const { types } = record;
  const isDelegation = types.has(TYPE.NS) && !types.has(TYPE.SOA);
  const wrong =
    (isNameError && !types.has(TYPE.NXNAME) && "the name exists") ||
    ([type, TYPE.CNAME].some((each) => types.has(each)) && "the record that was denied exists") ||
    (type === TYPE.DS && types.has(TYPE.SOA) && name !== "." && "it is from the zone below") ||
    (type !== TYPE.DS && isDelegation && "it is from the zone above");
  if (wrong)
    return {
      isProven: false,
      text: `The proof about ${nameText(name)} contradicts the answer: ${wrong}.`,
    };
  const proves = isNameError ? "does not exist" : `has no ${typeName(type)} record`;
  const steps = [step(record, `${nameText(name)} ${proves}`)];
  return { isProven: true, steps, isOptOut: false, isDelegation: type === TYPE.DS && isDelegation };
}

function step({ text }: DenialRecord, proves: string): ProofStep {
  return { record: text, proves };
}

function unproven(what: string): Denial {
  return { isProven: false, text: `The answer does not prove ${what}.` };
}

/** The name right below an ancestor that leads to a name. */
export function childTowards(ancestor: string, name: string): string {
  return ancestorOf(name, labelsOf(ancestor).length + 1);
}

/** Reads the list of types at the end of the data; RFC 4034 section 4.1.2. */
export function readTypes(reader: ByteReader): ReadonlySet<number> {
  const types = new Set<number>();
  while (reader.remaining > 0) {
    const window = reader.uint8() << 8;
    for (const [at, byte] of reader.take(reader.uint8()).entries()) {
      for (let bit = 0; bit < 8; bit++) {
        if (byte & (0x80 >>> bit)) types.add(window | (at << 3) | bit);
      }
    }
  }
  return types;
}

/** A list of types in presentation form. */
export function typesText(types: ReadonlySet<number>): string {
  return [...types].map(typeName).join(" ");
}
