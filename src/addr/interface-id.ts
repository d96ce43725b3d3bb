import type { TypeEntry } from "./classify.ts";
import { isIsatap } from "./embedded.ts";
import { formatIpv6Expanded } from "./format.ts";
import { formatIpv4, ipv4FromWord } from "./ipv4.ts";
import { type Ipv6Address, ipv6ToBytes } from "./ipv6.ts";

/**
 * The likely origins of an interface ID. `subnet-router-anycast` (RFC 4291 section 2.6.1) and
 * `subnet-anycast` (RFC 2526) are reserved values. `eui64` (RFC 4291 appendix A) and `isatap` (RFC
 * 5214) have a fixed format. `low-byte`, `embedded-port` and `embedded-ipv4` are habits of
 * administrators, and `random` is everything else: RFC 7707 section 4.1.
 */
export const INTERFACE_ID_KINDS = [
  "subnet-router-anycast",
  "subnet-anycast",
  "eui64",
  "isatap",
  "low-byte",
  "embedded-port",
  "embedded-ipv4",
  "random",
] as const;

/** The pattern of an interface ID, and the values that it contains. */
interface Pattern {
  readonly kind: (typeof INTERFACE_ID_KINDS)[number];
  /** The interface's MAC address, of an `eui64`. */
  readonly mac?: string;
  /** The port that the hex digits of an `embedded-port` spell in decimal. */
  readonly port?: number;
  /** The IPv4 address of an `embedded-ipv4`. */
  readonly ipv4?: string;
}

/** Characters of four groups of the expanded form. */
const VALUE_LENGTH = 19;

/** Bits of the first byte of the interface ID; RFC 4291 appendix A. */
const UNIVERSAL_BIT = 0x02000000;
const GROUP_BIT = 0x01000000;

/** Ports by which administrators number servers. */
const SERVICE_PORTS: ReadonlySet<number> = new Set([
  21, 22, 23, 25, 53, 80, 110, 123, 143, 179, 389, 443, 465, 587, 636, 853, 993, 995, 1194, 3306,
  3389, 5060, 5432, 8080, 8443,
]);

/** The last 64 bits of an address as four groups of four hex digits, and their pattern; null if its type has no interface ID. */
export function interfaceIdOf(address: Ipv6Address, { interfaceId }: TypeEntry) {
  if (!interfaceId) return null;
  const value = formatIpv6Expanded(address).slice(-VALUE_LENGTH);
  return { value, ...patternOf(address) };
}

/** The first match wins: reserved values and fixed formats before habits. */
function patternOf(address: Ipv6Address): Pattern {
  const { word2, word3 } = address;
  if (word2 === 0 && word3 === 0) return { kind: "subnet-router-anycast" };
  if (word2 === 0xfdffffff && word3 >= 0xffffff80) return { kind: "subnet-anycast" };
  if (isIsatap(address)) return { kind: "isatap" };
  if (isEui64(address)) return { kind: "eui64", mac: macOf(address) };
  if (word2 === 0) {
    const port = word3 <= 0xffff ? asDecimal(word3) : 0;
    if (SERVICE_PORTS.has(port)) return { kind: "embedded-port", port };
    if (word3 < 0x01000000) return { kind: "low-byte" };
    return { kind: "embedded-ipv4", ipv4: formatIpv4(ipv4FromWord(word3)) };
  }
  const groups = [word2 >>> 16, word2 & 0xffff, word3 >>> 16, word3 & 0xffff];
  if (word2 >>> 16 > 0 && groups.every((group) => asDecimal(group) <= 255)) {
    return { kind: "embedded-ipv4", ipv4: groups.map(asDecimal).join(".") };
  }
  return { kind: "random" };
}

/** The hex digits of a group read as a decimal number, 80 for 0x80; NaN if one is a letter. */
function asDecimal(group: number): number {
  if ((group & 15) > 9) return Number.NaN;
  return (group & 15) + (group < 16 ? 0 : 10 * asDecimal(group >>> 4));
}

/** True if the interface ID is a modified EUI-64 made from a MAC address, with `ff:fe` in the middle; interfaces do not have group addresses. */
function isEui64({ word2, word3 }: Ipv6Address): boolean {
  return (word2 & 0xff) === 0xff && word3 >>> 24 === 0xfe && (word2 & GROUP_BIT) === 0;
}

/** The MAC address in a modified EUI-64, which inverts the universal bit and inserts `ff:fe`. */
function macOf(address: Ipv6Address): string {
  const bytes = ipv6ToBytes({ ...address, word2: address.word2 ^ UNIVERSAL_BIT }).subarray(8);
  return Uint8Array.from([...bytes].toSpliced(3, 2))
    .toHex()
    .replace(/..(?=.)/g, "$&:");
}
