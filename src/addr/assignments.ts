import type { Ipv6Address } from "./ipv6.ts";
import { type Prefix, parsePrefix } from "./prefix.ts";
import { longestMatch, prefixTable } from "./prefix-table.ts";

/** Blocks of 2000::/3 by what IANA did with them: IPv6 Global Unicast Address Assignments, snapshot as in registry.ts. */
const ASSIGNMENTS = {
  IANA: ["2001::/23"],
  APNIC: [
    "2001:200::/23",
    "2001:c00::/23",
    "2001:e00::/23",
    "2001:4400::/23",
    "2001:8000::/19",
    "2001:a000::/20",
    "2001:b000::/20",
    "2400::/12",
    "2410::/12",
  ],
  ARIN: [
    "2001:400::/23",
    "2001:1800::/23",
    "2001:4800::/23",
    "2600::/12",
    "2610::/23",
    "2620::/23",
    "2630::/12",
  ],
  "RIPE NCC": [
    "2001:600::/23",
    "2001:800::/22",
    "2001:1400::/22",
    "2001:1a00::/23",
    "2001:1c00::/22",
    "2001:2000::/19",
    "2001:4000::/23",
    "2001:4600::/23",
    "2001:4a00::/23",
    "2001:4c00::/23",
    "2001:5000::/20",
    "2003::/18",
    "2a00::/12",
    "2a10::/12",
  ],
  LACNIC: ["2001:1200::/23", "2800::/12"],
  AFRINIC: ["2001:4200::/23", "2c00::/12"],
  "6to4": ["2002::/16"],
  Documentation: ["3fff::/20"],
  Reserved: [
    "2d00::/8",
    "2e00::/7",
    "3000::/5",
    "3800::/6",
    "3c00::/7",
    "3e00::/8",
    "3f00::/9",
    "3f80::/10",
    "3fc0::/11",
    "3fe0::/12",
    "3ff0::/13",
    "3ff8::/14",
    "3ffc::/15",
    "3ffe::/16",
  ],
} as const;

/** Who or what a block is assigned to. */
export type Assignee = keyof typeof ASSIGNMENTS;

/** A row of the registry of global unicast assignments. */
export interface Assignment {
  readonly prefix: Prefix;
  readonly assignee: Assignee;
}

/** The rows of the registry, 51 of them. */
export const ASSIGNMENT_TABLE: readonly Assignment[] = Object.entries(ASSIGNMENTS).flatMap(
  ([assignee, blocks]) =>
    blocks.map((block) => ({ prefix: parsePrefix(block), assignee: assignee as Assignee })),
);

const BY_PREFIX = prefixTable(ASSIGNMENT_TABLE);

/** The assignment that a global unicast address lies in; null where IANA has not given out the block. */
export function assignmentOf(address: Ipv6Address): Assignment | null {
  return longestMatch(BY_PREFIX, address);
}
