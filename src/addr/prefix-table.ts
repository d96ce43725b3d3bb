import type { IpAddress } from "./ip.ts";
import { type Prefix, prefixContains } from "./prefix.ts";

/** Rows about blocks of addresses of either family, to be asked for the one with the longest prefix. */
export interface PrefixTable<Row> {
  readonly ipv4: FamilyTable<Row>;
  readonly ipv6: FamilyTable<Row>;
}

/** The rows of one family, longest prefix first. */
interface FamilyTable<Row> {
  /** By the first 16 bits of an address, where a row has a prefix that long: every row that can match it. */
  readonly byFirstBits: ReadonlyMap<number, readonly Row[]>;
  /** The rows with shorter prefixes: all that can match any other address. */
  readonly short: readonly Row[];
}

/** Bits by which rows are looked up; the rows that are left are compared one by one. */
const INDEX_BITS = 16;

/** A table of these rows; of two with the same prefix the first one counts. */
export function prefixTable<Row extends { readonly prefix: Prefix }>(
  rows: readonly Row[],
): PrefixTable<Row> {
  const sorted = [...rows].sort((a, b) => b.prefix.length - a.prefix.length);
  return { ipv4: familyTable(sorted, 4), ipv6: familyTable(sorted, 6) };
}

/** Blocks of addresses without anything else to tell about them, as an operator lists them. */
export type PrefixList = PrefixTable<{ readonly prefix: Prefix }>;

/** A list of these prefixes, for `longestMatch`. */
export function prefixList(prefixes: readonly Prefix[]): PrefixList {
  return prefixTable(prefixes.map((prefix) => ({ prefix })));
}

/** The row with the longest prefix that the address lies in; null where no row matches. */
export function longestMatch<Row extends { readonly prefix: Prefix }>(
  table: PrefixTable<Row>,
  ip: IpAddress,
): Row | null {
  const { byFirstBits, short } = ip.version === 4 ? table.ipv4 : table.ipv6;
  for (const row of byFirstBits.get(firstBits(ip)) ?? short) {
    if (prefixContains(row.prefix, ip)) return row;
  }
  return null;
}

function familyTable<Row extends { readonly prefix: Prefix }>(
  sorted: readonly Row[],
  version: 4 | 6,
): FamilyTable<Row> {
  const rows = sorted.filter(({ prefix }) => prefix.network.version === version);
  const short = rows.filter(({ prefix }) => prefix.length < INDEX_BITS);
  const byFirstBits = new Map<number, Row[]>();
  for (const row of rows.slice(0, rows.length - short.length)) {
    const key = firstBits(row.prefix.network);
    const sharing = byFirstBits.get(key);
    if (sharing === undefined) byFirstBits.set(key, [row]);
    else sharing.push(row);
  }
  for (const sharing of byFirstBits.values()) sharing.push(...short);
  return { byFirstBits, short };
}

function firstBits(ip: IpAddress): number {
  return (ip.version === 4 ? ip.word : ip.word0) >>> (32 - INDEX_BITS);
}
