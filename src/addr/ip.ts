import { formatIpv6 } from "./format.ts";
import { formatIpv4, type Ipv4Address, ipv4FromWord, tryParseIpv4 } from "./ipv4.ts";
import { type Ipv6Address, isIpv4Mapped, tryParseIpv6 } from "./ipv6.ts";

/** An address of either family, told apart by `version`. */
export type IpAddress = Ipv4Address | Ipv6Address;

/** Characters of the longest text that a name in the DNS can have; anything longer is no address either. */
const MAX_NAME_LENGTH = 254;

const DOT = 0x2e;

/** An address of either family in its strict text form (see `tryParseIpv4`, `tryParseIpv6`); null for any other text. */
export function tryParseIp(text: string): IpAddress | null {
  return tryParseIpv4(text) ?? tryParseIpv6(text);
}

/** Dotted decimal, or the canonical text of RFC 5952. */
export function formatIp(ip: IpAddress): string {
  return ip.version === 4 ? formatIpv4(ip) : formatIpv6(ip);
}

/** The IPv4 address inside `::ffff:0:0/96`, RFC 4291 section 2.5.5.2; any other address as it is. */
export function unmapIp(ip: IpAddress): IpAddress {
  return ip.version === 6 && isIpv4Mapped(ip) ? ipv4FromWord(ip.word3) : ip;
}

/**
 * Whether a text has the shape of an IPv4 address, valid or not: four runs of decimal digits with
 * dots between them, and perhaps the final dot of a host name. No host name looks like that, for no
 * top-level domain is a number (RFC 3696 section 2), so `999.1.1.1` is a bad address, not a name.
 */
export function looksLikeIpv4(text: string): boolean {
  const end = text.endsWith(".") ? text.length - 1 : text.length;
  if (end > MAX_NAME_LENGTH) return false;
  let dots = 0;
  let digits = 0;
  for (let at = 0; at < end; at++) {
    const code = text.charCodeAt(at);
    if (code === DOT) {
      if (digits === 0) return false;
      dots++;
      digits = 0;
    } else if (code >= 0x30 && code <= 0x39) {
      digits++;
    } else {
      return false;
    }
  }
  return dots === 3 && digits > 0;
}
