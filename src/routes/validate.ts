import { z } from "zod";
import { classifyIpv6 } from "../addr/classify.ts";
import { formatIpv6, formatIpv6Expanded } from "../addr/format.ts";
import { type Ipv6Address, tryParseIpv6 } from "../addr/ipv6.ts";
import { endpoint, type Tools } from "../http/endpoint.ts";
import { invalidAddress } from "../http/errors.ts";
import { addressType, ipv6Text, textSchema } from "../http/schemas.ts";
import { addressDetails, describeIpv6 } from "./address-details.ts";

/** `GET /validate`: what an IPv6 address is, in both its text forms. */
export const validate = endpoint({
  path: "/validate",
  operationId: "validateAddress",
  summary: "Type and text forms of an IPv6 address",
  description:
    "Zone, prefix length, brackets and white space are not part of an address. Everything is derived from the address and the IANA registries alone, except the network, which is in the operator's files.",
  needsKey: false,
  parameters: {
    address: {
      in: "query",
      schema: textSchema,
      expected: "an IPv6 address",
      description: "The IPv6 address.",
      example: "2001:0db8::0001",
    },
  },
  response: () =>
    z
      .strictObject({
        valid: z.literal(true).describe("Always true: other texts are an error."),
        type: addressType(),
        compressed: ipv6Text("The shortest form, RFC 5952."),
        expanded: ipv6Text("Eight groups of four hex digits."),
        details: addressDetails(),
      })
      .meta({ id: "Validation", description: "What an IPv6 address is." }),
  example: {
    valid: true,
    type: "Documentation",
    compressed: "2001:db8::1",
    expanded: "2001:0db8:0000:0000:0000:0000:0000:0001",
    details: {
      definedBy: {
        block: "2001:db8::/32",
        rfc: "RFC 3849",
      },
      scope: "Global",
      specialPurpose: {
        block: "2001:db8::/32",
        name: "Documentation",
        rfcs: ["RFC 3849"],
        allocated: "2004-07",
        source: false,
        destination: false,
        forwardable: false,
        globallyReachable: false,
        reservedByProtocol: false,
      },
      interfaceId: {
        value: "0000:0000:0000:0001",
        kind: "LowByte",
      },
      solicitedNode: "ff02::1:ff00:1",
      reverseName: "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa",
      integer: "42540766411282592856903984951653826561",
      binary:
        "0010000000000001:0000110110111000:0000000000000000:0000000000000000:0000000000000000:0000000000000000:0000000000000000:0000000000000001",
      registrySnapshot: "2025-10",
    },
  },
  errors: ["INVALID_ADDRESS"],
  handle({ address: text }, _, { networks }) {
    const address = tryParseIpv6(text);
    if (address === null) throw invalidAddress(text);
    return describeAddress(address, networks);
  },
});

/** The answer for a valid address. */
export function describeAddress(address: Ipv6Address, networks: Tools["networks"]) {
  const details = describeIpv6(address);
  const network = networks?.find(address);
  return {
    valid: true as const,
    type: classifyIpv6(address),
    compressed: formatIpv6(address),
    expanded: formatIpv6Expanded(address),
    details: network ? { ...details, network } : details,
  };
}
