import { type Ipv6Address, tryParseIpv6 } from "../../src/addr/ipv6.ts";

/** An IPv6 address that a test is sure about; throws for any other text. */
export function parseIpv6(text: string): Ipv6Address {
  const address = tryParseIpv6(text);
  if (address === null) throw new Error(`${text} is not an IPv6 address`);
  return address;
}
