import { classifyIpv6 } from "./classify.ts";
import { type Ipv6Address, tryParseIpv6 } from "./ipv6.ts";

/** A link-local address and the link that it is meant on. */
export interface ZonedAddress {
  readonly address: Ipv6Address;
  /** What the interface is called, such as `eth0`; a number is a name too, and no index. Whether there is such an interface is not checked. */
  readonly zone: string;
}

/** What Linux lets an interface be called: up to 15 printable ASCII characters, neither slash nor colon; nor a second `%`. */
const ZONE = /^[!-$&-.0-9;-~]{1,15}$/;

/** `fe80::1%eth0`, RFC 4007 section 11; null without a zone, for a malformed one, and for any address that is not link-local unicast. */
export function tryParseZoned(text: string): ZonedAddress | null {
  const percent = text.indexOf("%");
  if (percent < 0) return null;
  const zone = text.slice(percent + 1);
  const address = tryParseIpv6(text.slice(0, percent));
  if (address === null || classifyIpv6(address) !== "LinkLocal" || !ZONE.test(zone)) return null;
  return { address, zone };
}
