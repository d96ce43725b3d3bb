import { z } from "zod";
import { classifyIpv6 } from "../addr/classify.ts";
import { describeIpv6 } from "../addr/describe.ts";
import { formatIpv6, formatIpv6Expanded } from "../addr/format.ts";
import { type Ipv6Address, parseIpv6, tryParseIpv6 } from "../addr/ipv6.ts";
import { endpoint } from "../http/endpoint.ts";
import { invalidAddress } from "../http/errors.ts";
import { textParameter } from "../http/parameters.ts";
import { addressType, ipv6Text } from "../http/schemas.ts";
import { addressDetails } from "./address-details.ts";

/** What the interface document shows. */
const EXAMPLE = "2001:0db8::0001";

/** `GET /validate`: what an IPv6 address is, in both its text forms. */
export const validate = endpoint(
  {
    path: "/validate",
    operationId: "validateAddress",
    summary: "Type and text forms of an IPv6 address",
    description:
      "Zone, prefix length, brackets and white space are not part of an address. Everything is derived from the address and the IANA registries alone.",
    needsKey: false,
    parameters: {
      address: textParameter("an IPv6 address", {
        description: "The IPv6 address.",
        example: EXAMPLE,
      }),
    },
    response: () =>
      z
        .strictObject({
          valid: z.literal(true).describe("Always true: a text that is none is an error."),
          type: addressType(),
          compressed: ipv6Text("The shortest form, RFC 5952."),
          expanded: ipv6Text("Eight groups of four hex digits."),
          details: addressDetails(),
        })
        .meta({ id: "Validation", description: "What an IPv6 address is." }),
    example: describe(parseIpv6(EXAMPLE)),
    errors: ["INVALID_ADDRESS"],
  },
  () =>
    ({ address: text }) => {
      const address = tryParseIpv6(text);
      if (address === null) throw invalidAddress(text);
      return describe(address);
    },
);

function describe(address: Ipv6Address) {
  return {
    valid: true,
    type: classifyIpv6(address),
    compressed: formatIpv6(address),
    expanded: formatIpv6Expanded(address),
    details: describeIpv6(address),
  } as const;
}
