import type { Ipv6Address } from "./ipv6.ts";
import { type Prefix, PrefixTable, parsePrefix } from "./prefix.ts";

/** A row of the type table: the name of a block's addresses, and its source. */
interface TypeRow {
  readonly type: string;
  readonly block: string;
  /** The RFC that defines the block. */
  readonly rfc: number;
  readonly status?: "deprecated" | "historic";
  /** RFC 4007 section 4; absent if the RFCs define none or if it depends on more than the block. */
  readonly scope?: "Link-Local" | "Site-Local" | "Global";
  /** True if the addresses belong to interfaces and end in a 64-bit interface ID, RFC 4291 section 2.5.1. */
  readonly interfaceId?: true;
}

/** Every address has the type of the first row that matches, which is also the longest. */
const TYPES = [
  { type: "Unspecified", block: "::/128", rfc: 4291 },
  { type: "Loopback", block: "::1/128", rfc: 4291, scope: "Link-Local" },
  { type: "PcpAnycast", block: "2001:1::1/128", rfc: 7723, scope: "Global" },
  { type: "TurnAnycast", block: "2001:1::2/128", rfc: 8155, scope: "Global" },
  { type: "SrpAnycast", block: "2001:1::3/128", rfc: 9665, scope: "Global" },
  { type: "IPv4Mapped", block: "::ffff:0:0/96", rfc: 4291 },
  { type: "IPv4Translated", block: "::ffff:0:0:0/96", rfc: 2765, status: "historic" },
  { type: "Nat64", block: "64:ff9b::/96", rfc: 6052, scope: "Global" },
  { type: "IPv4Compatible", block: "::/96", rfc: 4291, status: "deprecated" },
  { type: "DiscardOnly", block: "100::/64", rfc: 6666, scope: "Global" },
  { type: "DummyPrefix", block: "100:0:0:1::/64", rfc: 9780, scope: "Global" },
  { type: "Nat64Local", block: "64:ff9b:1::/48", rfc: 8215, scope: "Global" },
  { type: "Benchmarking", block: "2001:2::/48", rfc: 5180, scope: "Global", interfaceId: true },
  { type: "As112", block: "2001:4:112::/48", rfc: 7535, scope: "Global", interfaceId: true },
  { type: "As112", block: "2620:4f:8000::/48", rfc: 7534, scope: "Global", interfaceId: true },
  { type: "Teredo", block: "2001::/32", rfc: 4380, scope: "Global" },
  { type: "Amt", block: "2001:3::/32", rfc: 7450, scope: "Global", interfaceId: true },
  { type: "Documentation", block: "2001:db8::/32", rfc: 3849, scope: "Global", interfaceId: true },
  { type: "OrchidDeprecated", block: "2001:10::/28", rfc: 4843, status: "deprecated" },
  { type: "OrchidV2", block: "2001:20::/28", rfc: 7343, scope: "Global" },
  { type: "DroneRemoteId", block: "2001:30::/28", rfc: 9374, scope: "Global" },
  { type: "ProtocolAssignment", block: "2001::/23", rfc: 2928, scope: "Global" },
  { type: "Documentation", block: "3fff::/20", rfc: 9637, scope: "Global", interfaceId: true },
  { type: "SixToFour", block: "2002::/16", rfc: 3056, scope: "Global", interfaceId: true },
  { type: "SegmentRouting", block: "5f00::/16", rfc: 9602, scope: "Global" },
  { type: "LinkLocal", block: "fe80::/10", rfc: 4291, scope: "Link-Local", interfaceId: true },
  {
    type: "SiteLocal",
    block: "fec0::/10",
    rfc: 3879,
    status: "deprecated",
    scope: "Site-Local",
    interfaceId: true,
  },
  { type: "Multicast", block: "ff00::/8", rfc: 4291 },
  { type: "UniqueLocal", block: "fc00::/7", rfc: 4193, scope: "Global", interfaceId: true },
  { type: "GlobalUnicast", block: "2000::/3", rfc: 4291, scope: "Global", interfaceId: true },
  { type: "Reserved", block: "::/0", rfc: 4291 },
] as const satisfies readonly TypeRow[];

/** The name of a type of IPv6 address. */
export type AddressType = (typeof TYPES)[number]["type"];

/** A row of the type table with its parsed prefix. */
export interface TypeEntry extends TypeRow {
  readonly type: AddressType;
  readonly prefix: Prefix;
}

/** The type table in order, 31 rows: the first that matches is also the longest that matches. */
export const TYPE_TABLE = new PrefixTable<TypeEntry>(
  TYPES.map((row) => ({ ...row, prefix: parsePrefix(row.block) })),
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
