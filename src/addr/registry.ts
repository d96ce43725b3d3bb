import { type Prefix, PrefixTable, parsePrefix } from "./prefix.ts";

/** The month of the IANA registries that the tables of this folder are copied from. */
export const REGISTRY_SNAPSHOT = "2025-10";

/** The flags of a row, in the registry's order. */
const FLAGS = [
  "source",
  "destination",
  "forwardable",
  "globallyReachable",
  "reservedByProtocol",
] as const;

/** A row of an IANA special-purpose address registry, RFC 6890 section 2.2.1 as updated by RFC 8190. */
export interface SpecialPurposeBlock {
  readonly prefix: Prefix;
  /** The block as the registry writes it: `::ffff:0:0/96`. */
  readonly block: string;
  readonly name: string;
  /** Numbers of the RFCs that reserve the block. */
  readonly rfcs: readonly number[];
  /** Month of the allocation: `2006-02`. */
  readonly allocated: string;
  /** Month in which the allocation ended; absent if it is in force. */
  readonly terminated?: string;
  /** Each flag is null for N/A; absent if the registry leaves them empty, as it does after a termination. */
  readonly flags?: Readonly<Record<(typeof FLAGS)[number], boolean | null>>;
}

/** Block, name, RFCs, month of allocation, the five flags (T, F, - for N/A, empty for none), month of termination. */
type Row = readonly [string, string, readonly number[], string, string, string?];

const IPV6_ROWS: readonly Row[] = [
  ["::1/128", "Loopback Address", [4291], "2006-02", "FFFFT"],
  ["::/128", "Unspecified Address", [4291], "2006-02", "TFFFT"],
  ["::ffff:0:0/96", "IPv4-mapped Address", [4291], "2006-02", "FFFFT"],
  ["64:ff9b::/96", "IPv4-IPv6 Translat.", [6052], "2010-10", "TTTTF"],
  ["64:ff9b:1::/48", "IPv4-IPv6 Translat.", [8215], "2017-06", "TTTFF"],
  ["100::/64", "Discard-Only Address Block", [6666], "2012-06", "TTTFF"],
  ["100:0:0:1::/64", "Dummy IPv6 Prefix", [9780], "2025-04", "TFFFF"],
  ["2001::/23", "IETF Protocol Assignments", [2928], "2000-09", "FFFFF"],
  ["2001::/32", "TEREDO", [4380, 8190], "2006-01", "TTT-F"],
  ["2001:1::1/128", "Port Control Protocol Anycast", [7723], "2015-10", "TTTTF"],
  ["2001:1::2/128", "Traversal Using Relays around NAT Anycast", [8155], "2017-02", "TTTTF"],
  ["2001:1::3/128", "DNS-SD Service Registration Protocol Anycast", [9665], "2024-04", "TTTTF"],
  ["2001:2::/48", "Benchmarking", [5180], "2008-04", "TTTFF"],
  ["2001:3::/32", "AMT", [7450], "2014-12", "TTTTF"],
  ["2001:4:112::/48", "AS112-v6", [7535], "2014-12", "TTTTF"],
  ["2001:10::/28", "Deprecated (previously ORCHID)", [4843], "2007-03", "", "2014-03"],
  ["2001:20::/28", "ORCHIDv2", [7343], "2014-07", "TTTTF"],
  // biome-ignore format: a table
  ["2001:30::/28", "Drone Remote ID Protocol Entity Tags (DETs) Prefix", [9374], "2022-12", "TTTTF"],
  ["2001:db8::/32", "Documentation", [3849], "2004-07", "FFFFF"],
  ["2002::/16", "6to4", [3056], "2001-02", "TTT-F"],
  ["2620:4f:8000::/48", "Direct Delegation AS112 Service", [7534], "2011-05", "TTTTF"],
  ["3fff::/20", "Documentation", [9637], "2024-07", "FFFFF"],
  ["5f00::/16", "Segment Routing (SRv6) SIDs", [9602], "2024-04", "TTTFF"],
  ["fc00::/7", "Unique-Local", [4193, 8190], "2005-10", "TTTFF"],
  ["fe80::/10", "Link-Local Unicast", [4291], "2006-02", "TTFFT"],
];

const IPV4_ROWS: readonly Row[] = [
  ["0.0.0.0/8", "This network", [791], "1981-09", "TFFFT"],
  ["0.0.0.0/32", "This host on this network", [1122], "1981-09", "TFFFT"],
  ["10.0.0.0/8", "Private-Use", [1918], "1996-02", "TTTFF"],
  ["100.64.0.0/10", "Shared Address Space", [6598], "2012-04", "TTTFF"],
  ["127.0.0.0/8", "Loopback", [1122], "1981-09", "FFFFT"],
  ["169.254.0.0/16", "Link Local", [3927], "2005-05", "TTFFT"],
  ["172.16.0.0/12", "Private-Use", [1918], "1996-02", "TTTFF"],
  ["192.0.0.0/24", "IETF Protocol Assignments", [6890], "2010-01", "FFFFF"],
  ["192.0.0.0/29", "IPv4 Service Continuity Prefix", [7335], "2011-06", "TTTFF"],
  ["192.0.0.8/32", "IPv4 dummy address", [7600], "2015-03", "TFFFF"],
  ["192.0.0.9/32", "Port Control Protocol Anycast", [7723], "2015-10", "TTTTF"],
  ["192.0.0.10/32", "Traversal Using Relays around NAT Anycast", [8155], "2017-02", "TTTTF"],
  ["192.0.0.170/32", "NAT64/DNS64 Discovery", [8880, 7050], "2013-02", "FFFFT"],
  ["192.0.0.171/32", "NAT64/DNS64 Discovery", [8880, 7050], "2013-02", "FFFFT"],
  ["192.0.2.0/24", "Documentation (TEST-NET-1)", [5737], "2010-01", "FFFFF"],
  ["192.31.196.0/24", "AS112-v4", [7535], "2014-12", "TTTTF"],
  ["192.52.193.0/24", "AMT", [7450], "2014-12", "TTTTF"],
  ["192.88.99.0/24", "Deprecated (6to4 Relay Anycast)", [7526], "2001-06", "", "2015-03"],
  ["192.88.99.2/32", "6a44-relay anycast address", [6751], "2012-10", "TTTFF"],
  ["192.168.0.0/16", "Private-Use", [1918], "1996-02", "TTTFF"],
  ["192.175.48.0/24", "Direct Delegation AS112 Service", [7534], "1996-01", "TTTTF"],
  ["198.18.0.0/15", "Benchmarking", [2544], "1999-03", "TTTFF"],
  ["198.51.100.0/24", "Documentation (TEST-NET-2)", [5737], "2010-01", "FFFFF"],
  ["203.0.113.0/24", "Documentation (TEST-NET-3)", [5737], "2010-01", "FFFFF"],
  ["240.0.0.0/4", "Reserved", [1112], "1989-08", "FFFFT"],
  ["255.255.255.255/32", "Limited Broadcast", [8190, 919], "1984-10", "FTFFT"],
];

/** The special-purpose registries of both families, 25 and 26 rows. */
export const SPECIAL_PURPOSE_BLOCKS = new PrefixTable<SpecialPurposeBlock>(() =>
  [...IPV6_ROWS, ...IPV4_ROWS].map(([block, name, rfcs, allocated, flags, terminated]) => ({
    prefix: parsePrefix(block),
    block,
    name,
    rfcs,
    allocated,
    ...(terminated && { terminated }),
    ...(flags && { flags: readFlags(flags) }),
  })),
);

function readFlags(letters: string): NonNullable<SpecialPurposeBlock["flags"]> {
  const values = FLAGS.map((flag, at) => [flag, letters[at] === "-" ? null : letters[at] === "T"]);
  return Object.fromEntries(values);
}

/** IPv6 Global Unicast Address Assignments: the blocks of 2000::/3 by what IANA did with them. */
const ASSIGNMENTS = {
  IANA: "2001::/23",
  APNIC: `
    2001:200::/23 2001:c00::/23 2001:e00::/23 2001:4400::/23 2001:8000::/19 2001:a000::/20
    2001:b000::/20 2400::/12 2410::/12`,
  ARIN: `
    2001:400::/23 2001:1800::/23 2001:4800::/23 2600::/12 2610::/23 2620::/23 2630::/12`,
  "RIPE NCC": `
    2001:600::/23 2001:800::/22 2001:1400::/22 2001:1a00::/23 2001:1c00::/22 2001:2000::/19
    2001:4000::/23 2001:4600::/23 2001:4a00::/23 2001:4c00::/23 2001:5000::/20 2003::/18
    2a00::/12 2a10::/12`,
  LACNIC: "2001:1200::/23 2800::/12",
  AFRINIC: "2001:4200::/23 2c00::/12",
  "6to4": "2002::/16",
  Documentation: "3fff::/20",
  Reserved: `
    2d00::/8 2e00::/7 3000::/5 3800::/6 3c00::/7 3e00::/8 3f00::/9 3f80::/10 3fc0::/11 3fe0::/12
    3ff0::/13 3ff8::/14 3ffc::/15 3ffe::/16`,
};

/** The assignments of global unicast addresses, 51 rows. */
export const ASSIGNMENT_TABLE = new PrefixTable(() =>
  Object.entries(ASSIGNMENTS).flatMap(([assignee, blocks]) =>
    blocks
      .trim()
      .split(/\s+/)
      .map((block) => ({ prefix: parsePrefix(block), assignee })),
  ),
);
