import type { Ipv6Address } from "./ipv6.ts";
import { type Prefix, parsePrefix, prefixTable } from "./prefix.ts";
import types from "./types.json" with { type: "json" };

/** The name of a type of IPv6 address. */
export type AddressType = keyof typeof types;

/** A block of addresses that have one type, and its source. */
interface Block {
  readonly block: string;
  /** The RFC that defines the block. */
  readonly rfc: number;
  readonly status?: "deprecated" | "historic";
  /** RFC 4007 section 4; absent if the RFCs define none or if it depends on more than the block. */
  readonly scope?: "Link-Local" | "Site-Local" | "Global";
  /** True if the addresses belong to interfaces and end in a 64-bit interface ID, RFC 4291 section 2.5.1. */
  readonly interfaceId?: true;
}

/** A row of the type table: a block with its type. */
export interface TypeEntry extends Block {
  readonly type: AddressType;
  readonly prefix: Prefix;
}

/** The type table, 31 rows: every address has the type of the longest block that contains it. */
export const TYPE_TABLE = prefixTable<TypeEntry>(
  (Object.entries(types) as [AddressType, Block[]][]).flatMap(([type, blocks]) =>
    blocks.map((row) => ({ type, ...row, prefix: parsePrefix(row.block) })),
  ),
);

/** The row of the type table for an address. */
export function typeEntry(address: Ipv6Address): TypeEntry {
  // The last row, ::/0, matches every address.
  return TYPE_TABLE.find(address) as TypeEntry;
}

/** The type of an address, by the longest prefix that contains it. */
export function classifyIpv6(address: Ipv6Address): AddressType {
  return typeEntry(address).type;
}
