import { formatIpv6 } from "./format.ts";
import { formatIpv4, type Ipv4Address, ipv4FromWord, tryParseIpv4 } from "./ipv4.ts";
import { type Ipv6Address, isIpv4Mapped, tryParseIpv6 } from "./ipv6.ts";

/** An address of either family, distinguished by `version`. */
export type IpAddress = Ipv4Address | Ipv6Address;

/** Parses an address of either family in its strict text form (see `tryParseIpv4`, `tryParseIpv6`); null for any other text. */
export function tryParseIp(text: string): IpAddress | null {
  return tryParseIpv4(text) ?? tryParseIpv6(text);
}

/** Dotted decimal, or the canonical text of RFC 5952. */
export function formatIp(ip: IpAddress): string {
  return ip.version === 4 ? formatIpv4(ip) : formatIpv6(ip);
}

/** The IPv4 address inside `::ffff:0:0/96`, RFC 4291 section 2.5.5.2; any other address unchanged. */
export function unmapIp(ip: IpAddress): IpAddress {
  return ip.version === 6 && isIpv4Mapped(ip) ? ipv4FromWord(ip.word3) : ip;
}

/** The key of an IPv4 address, or of an IPv6 /64, because one host can own a whole /64. */
export function networkOf(ip: IpAddress): string {
  return ip.version === 4 ? `${ip.word}` : `${ip.word0}:${ip.word1}`;
}

/** Characters of the longest DNS name in text form. */
const MAX_NAME_LENGTH = 254;

/**
 * True if a text has the form of an IPv4 address, valid or not, perhaps with the final dot of a host
 * name. Top-level domains are not numbers (RFC 3696 section 2), so `999.1.1.1` is a wrong address,
 * not a name.
 */
export function looksLikeIpv4(text: string): boolean {
  return text.length <= MAX_NAME_LENGTH && /^[0-9]+(?:\.[0-9]+){3}\.?$/.test(text);
}
