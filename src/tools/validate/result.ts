import { z } from "zod";
import { EMBEDDINGS } from "../../addr/embedded.ts";
import { INTERFACE_ID_KINDS } from "../../addr/interface-id.ts";
import {
  addressType,
  flag,
  formed,
  ipv4Text,
  ipv6Text,
  list,
  named,
  network,
  oneOf,
  record,
  shape,
  text,
  whole,
} from "../../api/schemas.ts";

const month = (description: string) => formed(/^\d{4}-\d{2}$/, description);

const rfc = () => z.string().regex(/^RFC \d+$/);

const registryFlag = (description: string) =>
  flag(`${description} Null for N/A.`).nullable().exactOptional();

/** The schema of everything that is known of an address. */
export const addressDetails = shape(
  "AddressDetails",
  "What is known of an address; keys that do not apply are absent.",
  () => ({
    definedBy: record("The block that determines the type.", {
      block: text("In CIDR notation."),
      rfc: rfc().describe("The RFC that defines the block."),
      status: oneOf(["deprecated", "historic"], "Absent if the RFC is in force.").exactOptional(),
    }),
    scope: text("Where the address is valid: RFC 4007, for multicast RFC 7346.").exactOptional(),
    specialPurpose: specialPurpose().exactOptional(),
    allocation: record("IANA's status of the block around a global unicast address.", {
      status: z.enum(["allocated", "reserved", "unallocated"]),
      registry: text("Who the block is allocated to.").exactOptional(),
      block: text("In CIDR notation.").exactOptional(),
    }).exactOptional(),
    embeddedIPv4: list(
      embedded(),
      "Embedded IPv4 addresses, each with the mechanism that put it there.",
    ).exactOptional(),
    interfaceId: interfaceId().exactOptional(),
    multicast: multicast().exactOptional(),
    solicitedNode: ipv6Text(
      "The group that neighbour solicitations for the address go to, RFC 4291 section 2.7.1.",
    ).exactOptional(),
    reverseName: text("The name of its PTR records, RFC 3596."),
    integer: formed(/^\d+$/, "The 128 bits as a decimal number."),
    binary: formed(/^[01]{16}(:[01]{16}){7}$/, "The 128 bits in eight groups of 16."),
    registrySnapshot: month("The month of the IANA registries used."),
    network: network().exactOptional(),
  }),
);

const specialPurpose = shape(
  "SpecialPurpose",
  "The row of the IANA special-purpose address registry, RFC 6890.",
  () => ({
    block: text("In CIDR notation."),
    name: text("As in the registry."),
    rfcs: z.array(rfc()),
    allocated: month("The month of the allocation."),
    terminated: month("The month in which it ended; absent if it is in force.").exactOptional(),
    source: registryFlag("Whether it may be the source of a packet."),
    destination: registryFlag("Whether it may be the destination of a packet."),
    forwardable: registryFlag("Whether a router may forward the packet."),
    globallyReachable: registryFlag("Whether the packet may leave the administrative domain."),
    reservedByProtocol: registryFlag("Whether the protocol itself reserves the block."),
  }),
);

function embedded() {
  return z
    .union([
      z.strictObject({ mechanism: z.enum(EMBEDDINGS), address: ipv4Text("The IPv4 address.") }),
      z.strictObject({
        mechanism: z.literal("teredo"),
        client: ipv4Text("The client's address as its server sees it."),
        server: ipv4Text("The server's address."),
        port: whole("The client's UDP port as its server sees it.", 0, 65_535),
        flags: formed(/^0x[0-9a-f]{4}$/, "16 bits in hex."),
        cone: flag("Whether the client is behind a cone NAT, by the flags."),
      }),
    ])
    .meta({ id: "EmbeddedIpv4", description: "An IPv4 address inside an IPv6 address." });
}

const interfaceId = shape("InterfaceId", "The last 64 bits of an address.", () => ({
  value: formed(/^[0-9a-f]{4}(:[0-9a-f]{4}){3}$/, "Four groups of four hex digits."),
  kind: oneOf(INTERFACE_ID_KINDS, "How it was probably made, RFC 7707 section 4.1."),
  mac: text("The interface's MAC address, if `eui64`.").exactOptional(),
  port: whole("The port, if `embedded-port`.", 0, 65_535).exactOptional(),
  ipv4: ipv4Text("The address, if `embedded-ipv4`.").exactOptional(),
}));

const multicast = shape("Multicast", "What a multicast address says about itself.", () => ({
  flags: z.strictObject({
    transient: flag("T, RFC 4291: not permanently assigned by IANA."),
    prefixBased: flag("P, RFC 3306: derived from a network prefix."),
    rendezvousPoint: flag("R, RFC 3956: contains the rendezvous point."),
  }),
  group: record("The well-known group; absent if IANA has none.", {
    name: z.string(),
    rfc: rfc().exactOptional(),
  }).exactOptional(),
  sourceSpecific: z.literal(true).exactOptional().describe("In ff3x::/32, RFC 4607."),
  networkPrefix: text(
    "The prefix that the group is derived from, in CIDR notation.",
  ).exactOptional(),
  rendezvousPointAddress: ipv6Text("The rendezvous point's address.").exactOptional(),
}));

/** The schema of the result. */
export const validation = () =>
  named("Validation", "What an IPv6 address is.", {
    valid: z.literal(true).describe("Always true: other texts are an error."),
    type: addressType(),
    compressed: ipv6Text("The shortest form, RFC 5952."),
    expanded: ipv6Text("Eight groups of four hex digits."),
    details: addressDetails(),
  });

/** What an IPv6 address is. */
export type Validation = z.output<ReturnType<typeof validation>>;

export type AddressDetails = Validation["details"];
