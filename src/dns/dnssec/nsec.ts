import { type Denials, isAround, leadsAway } from "./denial.ts";
import { ancestorOf, commonLabels, isWithin, sortKey } from "./names.ts";
import { type RecordSet, valuesOf } from "./record-set.ts";

/** The NSEC records of a zone, one of each name; RFC 4034 section 4. Throws as `valuesOf`. */
export function readNsec(sets: readonly RecordSet[]): Denials {
  const links = sets.map((set) => {
    const [value = ""] = valuesOf(set);
    const [next = "", ...types] = value.split(" ");
    const text = `${set.name} NSEC ${value}`;
    return { owner: set.name, next: next.toLowerCase(), types, isOptOut: false, text };
  });
  const between = (name: string) =>
    links.find(({ owner, next, types }) => {
      const isBelowCut = leadsAway(types) && isWithin(name, owner);
      return !isBelowCut && isAround(sortKey(owner), sortKey(next), sortKey(name));
    });
  return {
    at(name) {
      const own = links.find(({ owner }) => owner === name);
      const before = between(name);
      // A name without a record of its own exists if a name below it does.
      return own ?? (before && isWithin(before.next, name) ? { ...before, types: [] } : undefined);
    },
    over(name) {
      const before = between(name);
      return before && isWithin(before.next, name) ? undefined : before;
    },
    encloser(name) {
      const before = between(name);
      if (before === undefined) return undefined;
      const labels = [before.owner, before.next].map((other) => commonLabels(name, other));
      return ancestorOf(name, Math.max(...labels));
    },
  };
}
