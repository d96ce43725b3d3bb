import { type Prefix, PrefixTable, parsePrefix } from "./prefix.ts";
import registries from "./special-purpose.json" with { type: "json" };

/** The month of the IANA registries that the tables of this folder are copied from. */
export const REGISTRY_SNAPSHOT = registries.snapshot;

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

/** The special-purpose registries of both families, 25 and 26 rows. */
export const SPECIAL_PURPOSE_BLOCKS = new PrefixTable<SpecialPurposeBlock>(() =>
  ([...registries.ipv6, ...registries.ipv4] as unknown as Row[]).map(
    ([block, name, rfcs, allocated, flags, terminated]) => ({
      prefix: parsePrefix(block),
      block,
      name,
      rfcs,
      allocated,
      ...(terminated && { terminated }),
      ...(flags && { flags: readFlags(flags) }),
    }),
  ),
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
