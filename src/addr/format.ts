import { formatIpv4, type Ipv4Address, ipv4FromWord } from "./ipv4.ts";
import { type Ipv6Address, ipv6ToBytes, isIpv4Mapped } from "./ipv6.ts";

/** Two or more groups that are zero, where no group has a leading zero. */
const ZERO_GROUPS = /\b0(?::0)+/g;

/** The canonical text of RFC 5952: lower case, longest run of zero groups compressed, `::ffff:192.0.2.1` for mapped addresses. */
export function formatIpv6(address: Ipv6Address): string {
  if (isIpv4Mapped(address)) return `::ffff:${formatIpv4(ipv4FromWord(address.word3))}`;
  const text = groupsOf(address)
    .map((group) => group.toString(16))
    .join(":");
  // The first of the longest, section 4.2.3.
  const [run] = [...text.matchAll(ZERO_GROUPS)].sort(([a], [b]) => b.length - a.length);
  if (run === undefined) return text;
  const end = run.index + run[0].length;
  return `${text.slice(0, Math.max(0, run.index - 1))}::${text.slice(end + 1)}`;
}

/** Eight groups of four lower-case hex digits, 39 characters. */
export function formatIpv6Expanded(address: Ipv6Address): string {
  return expand(address, 16, 4);
}

/** Eight groups of 16 binary digits, 135 characters. */
export function formatIpv6Binary(address: Ipv6Address): string {
  return expand(address, 2, 16);
}

/** The address as one unsigned integer in decimal digits. */
export function formatIpv6Integer(address: Ipv6Address): string {
  return BigInt(`0x${ipv6ToBytes(address).toHex()}`).toString();
}

/** The DNS name of the address's PTR records, without a final dot: in `in-addr.arpa` (RFC 1035 section 3.5) or `ip6.arpa` (RFC 3596 section 2.5). */
export function reverseName(ip: Ipv4Address | Ipv6Address): string {
  return ip.version === 4
    ? `${formatIpv4(ip).split(".").reverse().join(".")}.in-addr.arpa`
    : `${[...ipv6ToBytes(ip).toHex()].reverse().join(".")}.ip6.arpa`;
}

function groupsOf({ word0, word1, word2, word3 }: Ipv6Address): readonly number[] {
  // biome-ignore format: the groups in pairs
  return [
    word0 >>> 16, word0 & 0xffff, word1 >>> 16, word1 & 0xffff,
    word2 >>> 16, word2 & 0xffff, word3 >>> 16, word3 & 0xffff,
  ];
}

function expand(address: Ipv6Address, radix: number, digits: number): string {
  const groups = groupsOf(address).map((group) => group.toString(radix).padStart(digits, "0"));
  return groups.join(":");
}
