import { readOrThrow, type Stop, stopped } from "./address-error.ts";
import { formatIp, type IpAddress } from "./ip.ts";
import { ipv4FromWord, readIpv4 } from "./ipv4.ts";
import { equalIpv6, ipv6FromWords, isIpv4Mapped, readIpv6 } from "./ipv6.ts";

/** A block of addresses of one family: all that share the first `length` bits of `network`. */
export interface Prefix {
  /** The first address of the block; its bits behind `length` are zero. */
  readonly network: IpAddress;
  /** Bits that count: 0 to 32 for IPv4, 0 to 128 for IPv6. */
  readonly length: number;
}

/** Bits of `::ffff:0:0/96`, RFC 4291 section 2.5.5.2. */
const MAPPED_BITS = 96;

/** Characters of the longest text form: 45 of an address, a slash and three digits. */
const MAX_TEXT_LENGTH = 49;

/** `2001:db8::/32`, `10.0.0.0/8`, or an address alone for a block of one; null for any other text, also where bits behind the length are set. */
export function tryParsePrefix(text: string): Prefix | null {
  return readPrefix(text, null);
}

/** As `tryParsePrefix`, and throws AddressError for any other text. */
export function parsePrefix(text: string): Prefix {
  return readOrThrow(readPrefix, text, "an address prefix");
}

function readPrefix(text: string, stop: Stop | null): Prefix | null {
  if (text.length > MAX_TEXT_LENGTH) {
    return stopped(stop, `longer than ${MAX_TEXT_LENGTH} characters`, MAX_TEXT_LENGTH);
  }
  const slash = text.indexOf("/");
  const addressText = slash < 0 ? text : text.slice(0, slash);
  const address = addressText.includes(":")
    ? readIpv6(addressText, stop)
    : readIpv4(addressText, stop);
  if (address === null) return null;

  const bits = address.version === 4 ? 32 : 128;
  if (slash < 0) return { network: address, length: bits };
  const length = readLength(text.slice(slash + 1));
  if (length === null || length > bits) {
    return stopped(stop, `the prefix length is no number from 0 to ${bits}`, slash + 1);
  }
  const prefix = prefixOf(address, length);
  if (!sameIp(prefix.network, address)) {
    const reason = `bits are set behind the prefix length, did you mean ${formatPrefix(prefix)}?`;
    return stopped(stop, reason, slash + 1);
  }
  return prefix;
}

/** One to three decimal digits without a leading zero. */
function readLength(text: string): number | null {
  return /^(?:0|[1-9][0-9]{0,2})$/.test(text) ? Number(text) : null;
}

/** The block of `length` bits that the address lies in. */
export function prefixOf(ip: IpAddress, length: number): Prefix {
  if (ip.version === 4) return { network: ipv4FromWord(ip.word & mask(length)), length };
  const network = ipv6FromWords(
    ip.word0 & mask(length),
    ip.word1 & mask(length - 32),
    ip.word2 & mask(length - 64),
    ip.word3 & mask(length - 96),
  );
  return { network, length };
}

/** The IPv4 block that a block of IPv4-mapped addresses stands for; any other block as it is. */
export function unmapPrefix(prefix: Prefix): Prefix {
  const { network, length } = prefix;
  const bits = length - MAPPED_BITS;
  return bits >= 0 && network.version === 6 && isIpv4Mapped(network)
    ? { network: ipv4FromWord(network.word3), length: bits }
    : prefix;
}

/** The canonical text: `2001:db8::/32`; the length stands also behind a single address. */
export function formatPrefix({ network, length }: Prefix): string {
  return `${formatIp(network)}/${length}`;
}

/** Whether the address lies in the block; never for an address of the other family, IPv4-mapped ones included. */
export function prefixContains({ network, length }: Prefix, ip: IpAddress): boolean {
  if (network.version === 4) {
    return ip.version === 4 && ((network.word ^ ip.word) & mask(length)) === 0;
  }
  return (
    ip.version === 6 &&
    ((network.word0 ^ ip.word0) & mask(length)) === 0 &&
    ((network.word1 ^ ip.word1) & mask(length - 32)) === 0 &&
    ((network.word2 ^ ip.word2) & mask(length - 64)) === 0 &&
    ((network.word3 ^ ip.word3) & mask(length - 96)) === 0
  );
}

/** The first `count` bits of a word set, none where `count` is negative. */
function mask(count: number): number {
  if (count <= 0) return 0;
  return count >= 32 ? -1 : -1 << (32 - count);
}

function sameIp(a: IpAddress, b: IpAddress): boolean {
  if (a.version === 4) return b.version === 4 && a.word === b.word;
  return b.version === 6 && equalIpv6(a, b);
}
