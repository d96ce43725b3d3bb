import { assignmentOf } from "./assignments.ts";
import { type TypeEntry, typeEntry } from "./classify.ts";
import { type EmbeddedIpv4, embeddedIpv4 } from "./embedded.ts";
import { formatIpv6, formatIpv6Binary, formatIpv6Integer } from "./format.ts";
import { type InterfaceId, interfaceIdOf } from "./interface-id.ts";
import { formatIpv4 } from "./ipv4.ts";
import type { Ipv6Address } from "./ipv6.ts";
import {
  type MulticastDetails,
  multicastDetails,
  multicastScope,
  solicitedNodeGroup,
} from "./multicast.ts";
import { formatPrefix } from "./prefix.ts";
import { REGISTRY_SNAPSHOT, type SpecialPurposeFlags, specialPurposeBlock } from "./registry.ts";
import { reverseName } from "./reverse.ts";

/** Everything that an address tells by itself, as plain JSON; a key that does not apply is absent. */
export interface AddressDetails {
  /** The block that gives the address its type, and the RFC that says so. */
  readonly definedBy: {
    readonly block: string;
    readonly rfc: string;
    /** Absent where the RFC is in force. */
    readonly status?: "deprecated" | "historic";
  };
  /** How far the address is valid: RFC 4007 section 4 for unicast, RFC 7346 section 2 for multicast. */
  readonly scope?: string;
  /** The row of the IANA special-purpose registry; absent where there is none. */
  readonly specialPurpose?: SpecialPurposeDetails;
  /** What IANA did with the block around an ordinary global unicast address. */
  readonly allocation?: {
    readonly status: "allocated" | "reserved" | "unallocated";
    /** The regional registry that the block was given to. */
    readonly registry?: string;
    readonly block?: string;
  };
  /** IPv4 addresses inside, each by the mechanism that put it there. */
  readonly embeddedIPv4?: readonly EmbeddedDetails[];
  /** The last 64 bits, of an address that is given to an interface. */
  readonly interfaceId?: InterfaceId;
  /** What a multicast address says about itself. */
  readonly multicast?: MulticastDetails;
  /** The multicast group that neighbours ask in for this address, RFC 4291 section 2.7.1. */
  readonly solicitedNode?: string;
  /** The DNS name of the PTR records, RFC 3596 section 2.5. */
  readonly reverseName: string;
  /** The 128 bits as a decimal number; text, for JSON numbers end at 2^53. */
  readonly integer: string;
  /** The 128 bits in eight groups of 16. */
  readonly binary: string;
  /** The month of the registries that all this is taken from. */
  readonly registrySnapshot: string;
}

/** A row of the special-purpose registry; a flag is null where the registry says N/A, and all five are absent where it leaves them empty. */
export interface SpecialPurposeDetails extends Partial<SpecialPurposeFlags> {
  readonly block: string;
  readonly name: string;
  readonly rfcs: readonly string[];
  /** The month of the allocation. */
  readonly allocated: string;
  /** The month in which it ended; absent where it holds. */
  readonly terminated?: string;
}

/** An IPv4 address inside an IPv6 address: one `address`, or what Teredo tells about client and server. */
export type EmbeddedDetails =
  | { readonly mechanism: Exclude<EmbeddedIpv4["mechanism"], "Teredo">; readonly address: string }
  | {
      readonly mechanism: "Teredo";
      readonly client: string;
      readonly server: string;
      /** The client's UDP port behind NAT. */
      readonly port: number;
      /** 16 bits in hex. */
      readonly flags: string;
      /** Whether the flags say that the client is behind a cone NAT. */
      readonly cone: boolean;
    };

/** Everything that can be derived from an address alone. */
export function describeIpv6(address: Ipv6Address): AddressDetails {
  const entry = typeEntry(address);
  const scope = entry.type === "Multicast" ? multicastScope(address) : entry.scope;
  const specialPurpose = describeSpecialPurpose(address);
  const embedded = embeddedIpv4(address).map(describeEmbedded);
  const interfaceId = interfaceIdOf(address);
  return {
    definedBy: describeType(entry),
    ...(scope && { scope }),
    ...(specialPurpose && { specialPurpose }),
    ...(entry.type === "GlobalUnicast" && { allocation: describeAllocation(address) }),
    ...(embedded.length > 0 && { embeddedIPv4: embedded }),
    ...(interfaceId && { interfaceId }),
    ...(entry.type === "Multicast" && { multicast: multicastDetails(address) }),
    ...(interfaceId && { solicitedNode: formatIpv6(solicitedNodeGroup(address)) }),
    reverseName: reverseName(address),
    integer: formatIpv6Integer(address),
    binary: formatIpv6Binary(address),
    registrySnapshot: REGISTRY_SNAPSHOT,
  };
}

function describeType({ block, rfc, status }: TypeEntry): AddressDetails["definedBy"] {
  return { block, rfc: `RFC ${rfc}`, ...(status && { status }) };
}

function describeSpecialPurpose(address: Ipv6Address): SpecialPurposeDetails | null {
  const row = specialPurposeBlock(address);
  return (
    row && {
      block: row.block,
      name: row.name,
      rfcs: row.rfcs.map((rfc) => `RFC ${rfc}`),
      allocated: row.allocated,
      ...(row.terminated && { terminated: row.terminated }),
      ...row.flags,
    }
  );
}

/** Only for addresses without a special purpose: 2001:db8::/32 lies inside a block of APNIC's that nobody was given. */
function describeAllocation(address: Ipv6Address): NonNullable<AddressDetails["allocation"]> {
  const assignment = assignmentOf(address);
  if (assignment === null) return { status: "unallocated" };
  const { assignee, prefix } = assignment;
  const block = formatPrefix(prefix);
  if (assignee === "Reserved") return { status: "reserved", block };
  return { status: "allocated", registry: assignee, block };
}

function describeEmbedded(embedded: EmbeddedIpv4): EmbeddedDetails {
  const { mechanism } = embedded;
  if (mechanism !== "Teredo") return { mechanism, address: formatIpv4(embedded.address) };
  const { client, server, port, flags } = embedded;
  return {
    mechanism,
    client: formatIpv4(client),
    server: formatIpv4(server),
    port,
    flags: `0x${flags.toString(16).padStart(4, "0")}`,
    cone: (flags & 0x8000) !== 0,
  };
}
