import assignments from "./assignments.json" with { type: "json" };
import { parsePrefix, prefixTable } from "./prefix.ts";
import registries from "./special-purpose.json" with { type: "json" };

/** The month of the IANA registries that are the source of the tables in this folder. */
export const REGISTRY_SNAPSHOT = registries.snapshot;

/** The flags of a row, in the registry's order. */
const FLAGS = [
  "source",
  "destination",
  "forwardable",
  "globallyReachable",
  "reservedByProtocol",
] as const;

/**
 * A row of an IANA special-purpose address registry, RFC 6890 section 2.2.1 as updated by RFC 8190:
 * block, name, RFCs, month of allocation, the five flags (T, F, - for N/A, empty for none), month of
 * termination.
 */
type Row = readonly [string, string, readonly number[], string, string, string?];

/** The special-purpose registries of both families, 25 and 26 rows. */
export const SPECIAL_PURPOSE_BLOCKS = prefixTable(
  ([...registries.ipv6, ...registries.ipv4] as unknown as Row[]).map(
    ([block, name, rfcs, allocated, flags, terminated]) => ({
      prefix: parsePrefix(block),
      /** The block as the registry writes it: `::ffff:0:0/96`. */
      block,
      name,
      /** Numbers of the RFCs that reserve the block. */
      rfcs,
      /** Month of the allocation: `2006-02`. */
      allocated,
      /** Month in which the allocation ended; absent if it is in force. */
      ...(terminated && { terminated }),
      /** Each flag is null for N/A; absent if the registry leaves them empty, as it does after a termination. */
      ...(flags && { flags: readFlags(flags) }),
    }),
  ),
);

function readFlags(letters: string): Record<(typeof FLAGS)[number], boolean | null> {
  const values = FLAGS.map((flag, at) => [flag, letters[at] === "-" ? null : letters[at] === "T"]);
  return Object.fromEntries(values);
}

/** IPv6 Global Unicast Address Assignments: the blocks of 2000::/3 by their assignee, 51 rows. */
export const ASSIGNMENT_TABLE = prefixTable(
  Object.entries(assignments).flatMap(([assignee, blocks]) =>
    blocks.map((block) => ({ prefix: parsePrefix(block), assignee })),
  ),
);
