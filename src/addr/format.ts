import { formatIpv4, type Ipv4Address, ipv4FromWord } from "./ipv4.ts";
import { type Ipv6Address, isIpv4Mapped } from "./ipv6.ts";

/** The digits of every byte: tables are faster than toString and padStart. */
const DIGITS = [..."0123456789abcdef"];
const NIBBLES = DIGITS.map((_, nibble) => (nibble + 16).toString(2).slice(1));
const PADDED_HEX = DIGITS.flatMap((high) => DIGITS.map((low) => high + low));
const HEX = [...DIGITS, ...PADDED_HEX.slice(16)];
const REVERSED = DIGITS.flatMap((high) => DIGITS.map((low) => `${low}.${high}.`));
const BINARY = NIBBLES.flatMap((high) => NIBBLES.map((low) => high + low));

/** The canonical text of RFC 5952: lower case, longest run of zero groups compressed, `::ffff:192.0.2.1` for mapped addresses. */
export function formatIpv6(address: Ipv6Address): string {
  if (isIpv4Mapped(address)) return `::ffff:${formatIpv4(ipv4FromWord(address.word3))}`;
  const { word0, word1, word2, word3 } = address;
  // biome-ignore format: the groups in pairs
  const groups = [
    word0 >>> 16, word0 & 0xffff, word1 >>> 16, word1 & 0xffff,
    word2 >>> 16, word2 & 0xffff, word3 >>> 16, word3 & 0xffff,
  ];
  const { start, end } = longestZeroRun(groups);
  if (start === end) return joinGroups(groups, 0, 8);
  return `${joinGroups(groups, 0, start)}::${joinGroups(groups, end, 8)}`;
}

/** Eight groups of four lower-case hex digits, 39 characters. */
export function formatIpv6Expanded(address: Ipv6Address): string {
  return expand(address, PADDED_HEX);
}

/** Eight groups of 16 binary digits, 135 characters. */
export function formatIpv6Binary(address: Ipv6Address): string {
  return expand(address, BINARY);
}

/** The address as one unsigned integer in decimal digits. */
export function formatIpv6Integer({ word0, word1, word2, word3 }: Ipv6Address): string {
  const high = (BigInt(word0) << 32n) | BigInt(word1);
  const low = (BigInt(word2) << 32n) | BigInt(word3);
  return ((high << 64n) | low).toString();
}

/** The DNS name of the address's PTR records, without a final dot: in `in-addr.arpa` (RFC 1035 section 3.5) or `ip6.arpa` (RFC 3596 section 2.5). */
export function reverseName(ip: Ipv4Address | Ipv6Address): string {
  if (ip.version === 4) return `${formatIpv4(ip).split(".").reverse().join(".")}.in-addr.arpa`;
  const nibbles = (word: number) =>
    `${REVERSED[word & 255]}${REVERSED[(word >>> 8) & 255]}${REVERSED[(word >>> 16) & 255]}${REVERSED[word >>> 24]}`;
  return `${nibbles(ip.word3)}${nibbles(ip.word2)}${nibbles(ip.word1)}${nibbles(ip.word0)}ip6.arpa`;
}

/** Eight groups of two bytes as in the table. */
function expand({ word0, word1, word2, word3 }: Ipv6Address, table: readonly string[]): string {
  const groups = (word: number) =>
    `${table[word >>> 24]}${table[(word >>> 16) & 255]}:${table[(word >>> 8) & 255]}${table[word & 255]}`;
  return `${groups(word0)}:${groups(word1)}:${groups(word2)}:${groups(word3)}`;
}

function joinGroups(groups: readonly number[], start: number, end: number): string {
  let text = "";
  for (let index = start; index < end; index++) {
    const group = groups[index] as number;
    if (index > start) text += ":";
    text += group < 256 ? HEX[group] : `${HEX[group >>> 8]}${PADDED_HEX[group & 255]}`;
  }
  return text;
}

/** The first of the longest runs of two or more zero groups; empty if there is no such run. RFC 5952 section 4.2. */
function longestZeroRun(groups: readonly number[]): { start: number; end: number } {
  let start = 0;
  let end = 0;
  let from = 0;
  for (let index = 0; index < 8; index++) {
    if (groups[index] !== 0) from = index + 1;
    else if (index > from && index + 1 - from > end - start) {
      start = from;
      end = index + 1;
    }
  }
  return { start, end };
}
