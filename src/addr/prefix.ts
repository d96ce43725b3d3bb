import { formatIp, type IpAddress } from "./ip.ts";
import { failureAt, ipv4FromWord, type ParseFailure, readIpv4 } from "./ipv4.ts";
import { ipv6FromWords, isIpv4Mapped, readIpv6 } from "./ipv6.ts";

/** A block of addresses of one family: all that share the first `length` bits of `network`. */
export interface Prefix {
  /** The first address of the block; its bits after `length` are zero. */
  readonly network: IpAddress;
  /** Significant bits: 0 to 32 for IPv4, 0 to 128 for IPv6. */
  readonly length: number;
}

/** A text is not an address prefix; the message has the reason and the position, without the text. */
export class AddressError extends Error {
  override readonly name = "AddressError";
}

/** Bits of `::ffff:0:0/96`, RFC 4291 section 2.5.5.2. */
const MAPPED_BITS = 96;

/** Parses `2001:db8::/32`, `10.0.0.0/8`, or an address alone as a block of one; throws AddressError for any other text, also if bits after the length are set. */
export function parsePrefix(text: string): Prefix {
  const slash = text.indexOf("/");
  const addressText = slash < 0 ? text : text.slice(0, slash);
  const address = addressText.includes(":") ? readIpv6(addressText) : readIpv4(addressText);
  if ("reason" in address) throw errorOf(address);
  const bits = address.version === 4 ? 32 : 128;
  if (slash < 0) return { network: address, length: bits };
  const lengthText = text.slice(slash + 1);
  const length = Number(lengthText);
  if (!/^(?:0|[1-9][0-9]{0,2})$/.test(lengthText) || length > bits) {
    throw errorOf(failureAt(slash + 1, `the prefix length must be a number from 0 to ${bits}`));
  }
  const prefix = prefixOf(address, length);
  if (!prefixContains({ network: address, length: bits }, prefix.network)) {
    const reason = `bits are set after the prefix length; did you mean ${formatPrefix(prefix)}?`;
    throw errorOf(failureAt(slash + 1, reason));
  }
  return prefix;
}

function errorOf({ reason, position }: ParseFailure): AddressError {
  return new AddressError(`${reason} (at character ${position})`);
}

/** RFC 1122 section 3.2.1.3 and RFC 4291 section 2.5.3. */
export const LOOPBACK: readonly Prefix[] = ["127.0.0.0/8", "::1/128"].map(parsePrefix);

/** The block of `length` bits that contains the address. */
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

/** The IPv4 block for a block of IPv4-mapped addresses; any other block unchanged. */
export function unmapPrefix(prefix: Prefix): Prefix {
  const { network, length } = prefix;
  const bits = length - MAPPED_BITS;
  return bits >= 0 && network.version === 6 && isIpv4Mapped(network)
    ? { network: ipv4FromWord(network.word3), length: bits }
    : prefix;
}

/** The canonical text: `2001:db8::/32`; a single address has its length too. */
export function formatPrefix({ network, length }: Prefix): string {
  return `${formatIp(network)}/${length}`;
}

/** True if the block contains the address; never one of the other family, IPv4-mapped ones included. */
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

/** Rows with a prefix each, in their own order; an address is looked up by its longest prefix. */
export function prefixTable<Row extends { readonly prefix: Prefix }>(rows: readonly Row[]) {
  const longestFirst = rows.toSorted((a, b) => b.prefix.length - a.prefix.length);
  return {
    rows,
    /** The row with the longest prefix that contains the address; undefined if no row does. */
    find: (ip: IpAddress) => longestFirst.find(({ prefix }) => prefixContains(prefix, ip)),
  };
}

/** A word with the first `count` bits set; 0 if `count` is negative. */
function mask(count: number): number {
  if (count <= 0) return 0;
  return count >= 32 ? -1 : -1 << (32 - count);
}
