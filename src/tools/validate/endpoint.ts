import { tryParseIpv6 } from "../../addr/ipv6.ts";
import { invalidAddress } from "../../api/errors.ts";
import { textSchema } from "../../api/schemas.ts";
import { endpoint } from "../services.ts";
import { describeAddress } from "./engine.ts";
import example from "./example.json" with { type: "json" };
import { validation } from "./result.ts";

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
  response: validation,
  example,
  errors: ["INVALID_ADDRESS"],
  handle({ address: text }, _, { networks }) {
    const address = tryParseIpv6(text);
    if (address === null) throw invalidAddress(text);
    return describeAddress(address, networks);
  },
});
