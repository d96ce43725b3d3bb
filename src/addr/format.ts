import { formatIpv4, type Ipv4Address, ipv4FromWord } from "./ipv4.ts";
import { type Ipv6Address, ipv6ToBytes, isIpv4Mapped } from "./ipv6.ts";

/** The canonical text of RFC 5952: lower case, longest run of zero groups compressed, `::ffff:192.0.2.1` for mapped addresses. */
export function formatIpv6(address: Ipv6Address): string {
  if (isIpv4Mapped(address)) return `::ffff:${formatIpv4(ipv4FromWord(address.word3))}`;
  const groups = groupsOf(address);
  // The first of the longest runs of two zero groups or more, section 4.2.
  let [longest, end] = [1, 0];
  for (let at = 0, run = 0; at < groups.length; at++) {
    run = groups[at] === 0 ? run + 1 : 0;
    if (run > longest) [longest, end] = [run, at + 1];
  }
  if (end === 0) return hexOf(groups);
  return `${hexOf(groups.slice(0, end - longest))}::${hexOf(groups.slice(end))}`;
}

const hexOf = (groups: readonly number[]) => groups.map((group) => group.toString(16)).join(":");

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
