import { formatIpv6Expanded } from "./format.ts";
import type { IpAddress } from "./ip.ts";
import { formatIpv4 } from "./ipv4.ts";

/** The name whose PTR records name the address, without a final dot: under `in-addr.arpa` (RFC 1035 section 3.5) or `ip6.arpa` (RFC 3596 section 2.5). */
export function reverseName(ip: IpAddress): string {
  if (ip.version === 4) return `${formatIpv4(ip).split(".").reverse().join(".")}.in-addr.arpa`;
  const digits = formatIpv6Expanded(ip).replaceAll(":", "");
  return `${[...digits].reverse().join(".")}.ip6.arpa`;
}
