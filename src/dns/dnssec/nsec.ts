import { ByteReader } from "../../util/bytes.ts";
import { NameReader } from "../name.ts";
import { type DenialRecord, type Denials, readTypes, typesText } from "./denial.ts";
import { ancestorOf, commonLabels, compareNames, isWithin } from "./names.ts";
import { type RecordSet, TYPE } from "./record-set.ts";

/** A name that exists, and the next one in canonical order. */
interface Link extends DenialRecord {
  readonly owner: string;
  readonly next: string;
}

const NO_TYPES: ReadonlySet<number> = new Set();

/** The NSEC records of a zone; RFC 4034 section 4. Throws OutOfBoundsError or DnsFormatError for data that is cut short. */
export function readNsec(sets: readonly RecordSet[]): Denials {
  const links = sets.flatMap(({ name, data }) => data.map((each) => readLink(name, each)));
  const between = (name: string) => links.find((link) => isBetween(link, name)) ?? null;
  return {
    at(name) {
      const own = links.find(({ owner }) => owner === name);
      if (own !== undefined) return own;
      const before = between(name);
      // It exists, because a name below it does.
      return before && isWithin(before.next, name) ? { ...before, types: NO_TYPES } : null;
    },
    over(name) {
      const before = between(name);
      return before === null || isWithin(before.next, name) ? null : before;
    },
    encloser(name) {
      const before = between(name);
      if (before === null) return null;
      const labels = [before.owner, before.next].map((other) => commonLabels(name, other));
      return ancestorOf(name, Math.max(...labels));
    },
  };
}

function readLink(owner: string, data: Uint8Array): Link {
  const reader = new ByteReader(data);
  const next = new NameReader().read(reader).toLowerCase();
  const types = readTypes(reader);
  return { owner, next, types, isOptOut: false, text: `${owner} NSEC ${next} ${typesText(types)}` };
}

/** True if a name is between the names of a link; the last name of a zone is followed by its first. */
function isBetween({ owner, next, types }: Link, name: string): boolean {
  // The zone above knows nothing below a delegation or a DNAME; RFC 6840 section 4.1.
  const leadsAway = types.has(TYPE.DNAME) || (types.has(TYPE.NS) && !types.has(TYPE.SOA));
  if (compareNames(owner, name) >= 0 || (leadsAway && isWithin(name, owner))) return false;
  const isLast = compareNames(next, owner) <= 0;
  return isLast ? isWithin(name, next) : compareNames(name, next) < 0;
}
