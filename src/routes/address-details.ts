import { z } from "zod";
import type { AddressDetails, EmbeddedDetails, SpecialPurposeDetails } from "../addr/describe.ts";
import type { InterfaceId } from "../addr/interface-id.ts";
import type { MulticastDetails } from "../addr/multicast.ts";
import { ipv4Text, ipv6Text, schemaOf } from "../http/schemas.ts";

const month = (description: string) =>
  z
    .string()
    .regex(/^\d{4}-\d{2}$/)
    .describe(description);

const rfc = () => z.string().regex(/^RFC \d+$/);

const flag = (description: string) =>
  z.boolean().nullable().exactOptional().describe(`${description} Null for N/A.`);

/** The schema of `AddressDetails`: everything that an address tells by itself. */
export function addressDetails() {
  return schemaOf<AddressDetails>()(
    z
      .strictObject({
        definedBy: z
          .strictObject({
            block: z.string().describe("In CIDR notation."),
            rfc: rfc().describe("The RFC that gives the block its meaning."),
            status: z
              .enum(["deprecated", "historic"])
              .exactOptional()
              .describe("Absent where the RFC is in force."),
          })
          .describe("The block that gives the type."),
        scope: z
          .string()
          .exactOptional()
          .describe("How far the address is valid: RFC 4007, for multicast RFC 7346."),
        specialPurpose: specialPurpose().exactOptional(),
        allocation: z
          .strictObject({
            status: z.enum(["allocated", "reserved", "unallocated"]),
            registry: z.string().exactOptional().describe("Whom the block was given to."),
            block: z.string().exactOptional().describe("In CIDR notation."),
          })
          .exactOptional()
          .describe("What IANA did with the block around a global unicast address."),
        embeddedIPv4: z
          .array(embedded())
          .exactOptional()
          .describe("IPv4 addresses inside, each by the mechanism that put it there."),
        interfaceId: interfaceId().exactOptional(),
        multicast: multicast().exactOptional(),
        solicitedNode: ipv6Text(
          "The group in which neighbours ask for the address, RFC 4291 section 2.7.1.",
        ).exactOptional(),
        reverseName: z.string().describe("The name of its PTR records, RFC 3596."),
        integer: z.string().regex(/^\d+$/).describe("The 128 bits as a decimal number."),
        binary: z
          .string()
          .regex(/^[01]{16}(:[01]{16}){7}$/)
          .describe("The 128 bits in eight groups of 16."),
        registrySnapshot: month("The month of the IANA registries that this is taken from."),
      })
      .meta({
        id: "AddressDetails",
        description: "What an address tells by itself; a key that does not apply is absent.",
      }),
  );
}

function specialPurpose() {
  return schemaOf<SpecialPurposeDetails>()(
    z
      .strictObject({
        block: z.string().describe("In CIDR notation."),
        name: z.string().describe("As the registry has it."),
        rfcs: z.array(rfc()),
        allocated: month("The month of the allocation."),
        terminated: month("The month in which it ended; absent where it holds.").exactOptional(),
        source: flag("Whether it may be a packet's source."),
        destination: flag("Whether it may be a packet's destination."),
        forwardable: flag("Whether a router may forward the packet."),
        globallyReachable: flag("Whether the packet may leave the administrative domain."),
        reservedByProtocol: flag("Whether the protocol itself gives the block its meaning."),
      })
      .meta({
        id: "SpecialPurpose",
        description: "The row of the IANA special-purpose address registry, RFC 6890.",
      }),
  );
}

function embedded() {
  return schemaOf<EmbeddedDetails>()(
    z
      .union([
        z.strictObject({
          mechanism: z.enum([
            "IPv4Mapped",
            "IPv4Translated",
            "IPv4Compatible",
            "Nat64",
            "SixToFour",
            "Isatap",
          ]),
          address: ipv4Text("The IPv4 address."),
        }),
        z.strictObject({
          mechanism: z.literal("Teredo"),
          client: ipv4Text("The client's address as its server sees it."),
          server: ipv4Text("The server's address."),
          port: z.int().min(0).max(65_535).describe("The client's UDP port as its server sees it."),
          flags: z
            .string()
            .regex(/^0x[0-9a-f]{4}$/)
            .describe("16 bits in hex."),
          cone: z.boolean().describe("Whether the flags say that the client is behind a cone NAT."),
        }),
      ])
      .meta({ id: "EmbeddedIPv4", description: "An IPv4 address inside an IPv6 address." }),
  );
}

function interfaceId() {
  return schemaOf<InterfaceId>()(
    z
      .strictObject({
        value: z
          .string()
          .regex(/^[0-9a-f]{4}(:[0-9a-f]{4}){3}$/)
          .describe("Four groups of four hex digits."),
        kind: z
          .enum([
            "SubnetRouterAnycast",
            "SubnetAnycast",
            "Eui64",
            "Isatap",
            "LowByte",
            "EmbeddedPort",
            "EmbeddedIPv4",
            "Random",
          ])
          .describe("How it seems to have been made, RFC 7707 section 4.1."),
        mac: z.string().exactOptional().describe("The interface's MAC address, of an Eui64."),
        port: z.int().min(0).max(65_535).exactOptional().describe("Of an EmbeddedPort."),
        ipv4: ipv4Text("Of an EmbeddedIPv4.").exactOptional(),
      })
      .meta({ id: "InterfaceId", description: "The last 64 bits of an address." }),
  );
}

function multicast() {
  return schemaOf<MulticastDetails>()(
    z
      .strictObject({
        flags: z.strictObject({
          transient: z.boolean().describe("T, RFC 4291: not assigned by IANA for good."),
          prefixBased: z.boolean().describe("P, RFC 3306: made from a network prefix."),
          rendezvousPoint: z.boolean().describe("R, RFC 3956: tells its rendezvous point."),
        }),
        group: z
          .strictObject({ name: z.string(), rfc: rfc().exactOptional() })
          .exactOptional()
          .describe("The well-known group; absent where IANA names none."),
        sourceSpecific: z.literal(true).exactOptional().describe("In ff3x::/32, RFC 4607."),
        networkPrefix: z
          .string()
          .exactOptional()
          .describe("The prefix that the group was made from, in CIDR notation."),
        rendezvousPointAddress: ipv6Text("The rendezvous point's address.").exactOptional(),
      })
      .meta({ id: "Multicast", description: "What a multicast address says about itself." }),
  );
}
