import type { IpAddress } from "./ip.ts";
import { formatIpv4 } from "./ipv4.ts";

/** Both hex digits of every byte, as they stand in a name. */
const REVERSED_NIBBLES = Array.from(
  { length: 256 },
  (_, byte) => `${(byte & 15).toString(16)}.${(byte >>> 4).toString(16)}.`,
);

/** The name whose PTR records name the address, without a final dot: under `in-addr.arpa` (RFC 1035 section 3.5) or `ip6.arpa` (RFC 3596 section 2.5). */
export function reverseName(ip: IpAddress): string {
  if (ip.version === 4) return `${formatIpv4(ip).split(".").reverse().join(".")}.in-addr.arpa`;
  const { word0, word1, word2, word3 } = ip;
  return `${nibbles(word3)}${nibbles(word2)}${nibbles(word1)}${nibbles(word0)}ip6.arpa`;
}

/** The eight hex digits of a word, the last first, each with a dot behind it. */
function nibbles(word: number): string {
  const bytes = REVERSED_NIBBLES;
  return `${bytes[word & 255]}${bytes[(word >>> 8) & 255]}${bytes[(word >>> 16) & 255]}${bytes[word >>> 24]}`;
}
