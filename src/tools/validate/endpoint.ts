import { z } from "zod";
import { classifyIpv6 } from "../../addr/classify.ts";
import { formatIpv6, formatIpv6Expanded } from "../../addr/format.ts";
import { type Ipv6Address, tryParseIpv6 } from "../../addr/ipv6.ts";
import { invalidAddress } from "../../api/errors.ts";
import { addressType, ipv6Text, named, textSchema } from "../../api/schemas.ts";
import { endpoint, type Services } from "../services.ts";
import { addressDetails, describeIpv6 } from "./address-details.ts";
import example from "./example.json" with { type: "json" };

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
      label: "IPv6 address",
      hint: "Checked as you type",
      example: "2001:0db8::0001",
    },
  },
  response: () =>
    named("Validation", "What an IPv6 address is.", {
      valid: z.literal(true).describe("Always true: other texts are an error."),
      type: addressType(),
      compressed: ipv6Text("The shortest form, RFC 5952."),
      expanded: ipv6Text("Eight groups of four hex digits."),
      details: addressDetails(),
    }),
  example,
  errors: ["INVALID_ADDRESS"],
  handle({ address: text }, _, { networks }) {
    const address = tryParseIpv6(text);
    if (address === null) throw invalidAddress(text);
    return describeAddress(address, networks);
  },
});

/** The answer for a valid address. */
export function describeAddress(address: Ipv6Address, networks: Services["networks"]) {
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
