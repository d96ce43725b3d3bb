import { typeEntry } from "../../addr/classify.ts";
import { type EmbeddedIpv4, embeddedIpv4 } from "../../addr/embedded.ts";
import {
  formatIpv6,
  formatIpv6Binary,
  formatIpv6Expanded,
  formatIpv6Integer,
  reverseName,
} from "../../addr/format.ts";
import { interfaceIdOf } from "../../addr/interface-id.ts";
import { formatIpv4 } from "../../addr/ipv4.ts";
import type { Ipv6Address } from "../../addr/ipv6.ts";
import { multicastDetails, multicastScope, solicitedNodeGroup } from "../../addr/multicast.ts";
import { formatPrefix } from "../../addr/prefix.ts";
import {
  ASSIGNMENT_TABLE,
  REGISTRY_SNAPSHOT,
  SPECIAL_PURPOSE_BLOCKS,
} from "../../addr/registry.ts";
import type { Services } from "../services.ts";
import type { AddressDetails, Validation } from "./result.ts";

/** The type and both text forms of an address, and everything that can be derived from it. */
export function describeAddress(
  address: Ipv6Address,
  networks: Services["networks"] = null,
): Validation {
  const entry = typeEntry(address);
  const { type, block, rfc, status } = entry;
  const isMulticast = type === "Multicast";
  const scope = isMulticast ? multicastScope(address) : entry.scope;
  const special = SPECIAL_PURPOSE_BLOCKS.find(address);
  const embedded = embeddedIpv4(address, entry);
  const interfaceId = interfaceIdOf(address, entry);
  const network = networks?.find(address);
  const definedBy = { block, rfc: `RFC ${rfc}`, ...(status && { status }) };
  const details = { definedBy } as AddressDetails;
  if (scope) details.scope = scope;
  if (special) {
    const { prefix: _, flags, ...row } = special;
    details.specialPurpose = { ...row, rfcs: row.rfcs.map((each) => `RFC ${each}`), ...flags };
  }
  if (type === "GlobalUnicast") details.allocation = allocationOf(address);
  if (embedded.length > 0) details.embeddedIPv4 = embedded.map(describeEmbedded);
  if (interfaceId) details.interfaceId = interfaceId;
  if (isMulticast) details.multicast = multicastDetails(address);
  if (interfaceId) details.solicitedNode = formatIpv6(solicitedNodeGroup(address));
  details.reverseName = reverseName(address);
  details.integer = formatIpv6Integer(address);
  details.binary = formatIpv6Binary(address);
  details.registrySnapshot = REGISTRY_SNAPSHOT;
  if (network) details.network = network;
  const compressed = formatIpv6(address);
  return { valid: true, type, compressed, expanded: formatIpv6Expanded(address), details };
}

/** The allocation of a global unicast address. Not for special purposes: 2001:db8::/32 is inside a block of APNIC. */
function allocationOf(address: Ipv6Address): NonNullable<AddressDetails["allocation"]> {
  const assignment = ASSIGNMENT_TABLE.find(address);
  if (assignment === undefined) return { status: "unallocated" };
  const block = formatPrefix(assignment.prefix);
  if (assignment.assignee === "Reserved") return { status: "reserved", block };
  return { status: "allocated", registry: assignment.assignee, block };
}

function describeEmbedded(
  embedded: EmbeddedIpv4,
): NonNullable<AddressDetails["embeddedIPv4"]>[number] {
  if (embedded.mechanism !== "teredo") {
    return { ...embedded, address: formatIpv4(embedded.address) };
  }
  const { client, server, flags } = embedded;
  return {
    ...embedded,
    client: formatIpv4(client),
    server: formatIpv4(server),
    flags: `0x${flags.toString(16).padStart(4, "0")}`,
    cone: (flags & 0x8000) !== 0,
  };
}
