import type { KeyRecord } from "./key-file.ts";

const FIELDS = ["name", "sha256", "created", "limit", "expires", "revoked"] as const;

/**
 * All keys that one of the lists knows, oldest first. Where they differ about a key, it has the lesser
 * right: it is revoked if one says so, and expires and is limited at the least.
 *
 * Lists can be merged in any order and as often as one likes with the same result, so copies that lose and
 * regain each other agree in the end, and a key that was revoked never comes back.
 */
export function mergeKeys(...lists: readonly (readonly KeyRecord[])[]): readonly KeyRecord[] {
  const known = Map.groupBy(lists.flat(), ({ sha256 }) => sha256);
  const merged = [...known.values()].map((same) => {
    const fields = FIELDS.flatMap((field) => {
      const [least] = same.flatMap((key) => key[field] ?? []).sort((a, b) => (a < b ? -1 : 1));
      return least === undefined ? [] : [[field, least]];
    });
    return Object.fromEntries(fields) as KeyRecord;
  });
  const order = ({ created, sha256 }: KeyRecord) => `${created} ${sha256}`;
  return merged.sort((a, b) => (order(a) < order(b) ? -1 : 1));
}

/** The keys that were revoked: only they may be merged from a copy that is too old to be believed. */
export function revokedKeys(keys: readonly KeyRecord[]): readonly KeyRecord[] {
  return keys.filter(({ revoked }) => revoked !== undefined);
}
