import { formatIpv4, ipv4FromWord } from "./ipv4.ts";
import { type Ipv6Address, isIpv4Mapped } from "./ipv6.ts";

/** The hex digits of every byte, without and with a leading zero: joining these is faster than toString(16). */
const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16));
const PADDED_HEX = HEX.map((digits) => digits.padStart(2, "0"));
const BINARY = HEX.map((_, byte) => byte.toString(2).padStart(8, "0"));

/** The canonical text of RFC 5952: lower case, longest run of zero groups compressed, `::ffff:192.0.2.1` for mapped addresses. */
export function formatIpv6(address: Ipv6Address): string {
  if (isIpv4Mapped(address)) return `::ffff:${formatIpv4(ipv4FromWord(address.word3))}`;
  const groups = groupsOf(address);
  const { start, end } = longestZeroRun(groups);
  if (start === end) return joinGroups(groups, 0, 8);
  return `${joinGroups(groups, 0, start)}::${joinGroups(groups, end, 8)}`;
}

/** Eight groups of four lower-case hex digits, 39 characters. */
export function formatIpv6Expanded({ word0, word1, word2, word3 }: Ipv6Address): string {
  return `${expand(word0)}:${expand(word1)}:${expand(word2)}:${expand(word3)}`;
}

/** The address as one unsigned integer in decimal digits. */
export function formatIpv6Integer({ word0, word1, word2, word3 }: Ipv6Address): string {
  const high = (BigInt(word0) << 32n) | BigInt(word1);
  const low = (BigInt(word2) << 32n) | BigInt(word3);
  return ((high << 64n) | low).toString();
}

/** Eight groups of 16 binary digits, separated as in the expanded form, 135 characters. */
export function formatIpv6Binary({ word0, word1, word2, word3 }: Ipv6Address): string {
  return `${expand(word0, BINARY)}:${expand(word1, BINARY)}:${expand(word2, BINARY)}:${expand(word3, BINARY)}`;
}

function groupsOf({ word0, word1, word2, word3 }: Ipv6Address): readonly number[] {
  return [
    word0 >>> 16,
    word0 & 0xffff,
    word1 >>> 16,
    word1 & 0xffff,
    word2 >>> 16,
    word2 & 0xffff,
    word3 >>> 16,
    word3 & 0xffff,
  ];
}

/** The first of the longest runs of two or more zero groups; empty where there is none. RFC 5952 section 4.2. */
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

function joinGroups(groups: readonly number[], start: number, end: number): string {
  let text = "";
  for (let index = start; index < end; index++) {
    if (index > start) text += ":";
    const group = groups[index] as number;
    text += group < 256 ? HEX[group] : `${HEX[group >>> 8]}${PADDED_HEX[group & 255]}`;
  }
  return text;
}

/** Two groups of a word, each of two bytes as the table writes them. */
function expand(word: number, bytes: readonly string[] = PADDED_HEX): string {
  return `${bytes[word >>> 24]}${bytes[(word >>> 16) & 255]}:${bytes[(word >>> 8) & 255]}${bytes[word & 255]}`;
}
