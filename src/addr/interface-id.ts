import { typeEntry } from "./classify.ts";
import { isIsatap } from "./embedded.ts";
import { formatIpv6Expanded } from "./format.ts";
import { formatIpv4, ipv4FromWord } from "./ipv4.ts";
import type { Ipv6Address } from "./ipv6.ts";

/** The last 64 bits of an address, and how they seem to have been made. */
export interface InterfaceId {
  /** Four groups of four hex digits. */
  readonly value: string;
  /**
   * `SubnetRouterAnycast` (RFC 4291 section 2.6.1) and `SubnetAnycast` (RFC 2526) are reserved values.
   * `Eui64` (RFC 4291 appendix A) and `Isatap` (RFC 5214) follow a fixed format. `LowByte`,
   * `EmbeddedPort` and `EmbeddedIPv4` are habits of administrators, and `Random` is what is left:
   * RFC 7707 section 4.1.
   */
  readonly kind: InterfaceIdKind;
  /** The interface's MAC address, of an `Eui64`. */
  readonly mac?: string;
  /** The port that an `EmbeddedPort` spells in decimal digits. */
  readonly port?: number;
  /** The IPv4 address of an `EmbeddedIPv4`. */
  readonly ipv4?: string;
}

/** The kinds of interface ID that are told apart. */
export type InterfaceIdKind =
  | "SubnetRouterAnycast"
  | "SubnetAnycast"
  | "Eui64"
  | "Isatap"
  | "LowByte"
  | "EmbeddedPort"
  | "EmbeddedIPv4"
  | "Random";

/** Characters of four groups of the expanded form. */
const VALUE_LENGTH = 19;

/** In the first byte of the interface ID; RFC 4291 appendix A. */
const UNIVERSAL_BIT = 0x02;
const GROUP_BIT = 0x01000000;

/** Ports of services that servers are numbered by. */
const SERVICE_PORTS: ReadonlySet<number> = new Set([
  21, 22, 23, 25, 53, 80, 110, 123, 143, 179, 389, 443, 465, 587, 636, 853, 993, 995, 1194, 3306,
  3389, 5060, 5432, 8080, 8443,
]);

/** The interface ID of an address; null where its type has none. */
export function interfaceIdOf(address: Ipv6Address): InterfaceId | null {
  if (!typeEntry(address).interfaceId) return null;
  const value = formatIpv6Expanded(address).slice(-VALUE_LENGTH);
  return { value, ...recognize(address, value) };
}

/** First match wins: reserved values and fixed formats before habits. */
function recognize(address: Ipv6Address, value: string): Omit<InterfaceId, "value"> {
  const { word2, word3 } = address;
  if (word2 === 0 && word3 === 0) return { kind: "SubnetRouterAnycast" };
  if (word2 === 0xfdffffff && word3 >= 0xffffff80) return { kind: "SubnetAnycast" };
  if (isIsatap(address)) return { kind: "Isatap" };
  if (isEui64(address)) return { kind: "Eui64", mac: macOf(word2, value) };
  if (word2 === 0) {
    const port = decimalReading(word3);
    if (port !== null && SERVICE_PORTS.has(port)) return { kind: "EmbeddedPort", port };
    if (word3 < 0x01000000) return { kind: "LowByte" };
    return { kind: "EmbeddedIPv4", ipv4: formatIpv4(ipv4FromWord(word3)) };
  }
  const octets = [word2 >>> 16, word2 & 0xffff, word3 >>> 16, word3 & 0xffff].map(decimalReading);
  if (octets.every((octet) => octet !== null && octet <= 255) && octets[0] !== 0) {
    return { kind: "EmbeddedIPv4", ipv4: octets.join(".") };
  }
  return { kind: "Random" };
}

/**
 * Whether it is a modified EUI-64 made of a MAC address: `ff:fe` stands in its middle. No interface
 * has a group address, so where that bit is set it is something else.
 */
function isEui64({ word2, word3 }: Ipv6Address): boolean {
  return (word2 & 0xff) === 0xff && word3 >>> 24 === 0xfe && (word2 & GROUP_BIT) === 0;
}

/** The MAC address in a modified EUI-64 of the form `0211:22ff:fe33:4455`: its universal bit is inverted. */
function macOf(word2: number, value: string): string {
  const first = ((word2 >>> 24) ^ UNIVERSAL_BIT).toString(16).padStart(2, "0");
  const [, second, third, fourth, fifth, sixth] =
    /^..(..):(..)ff:fe(..):(..)(..)$/.exec(value) ?? [];
  return [first, second, third, fourth, fifth, sixth].join(":");
}

/** What hex digits say to whoever reads them as decimal ones: 80 for 0x80, null for 0x8a. */
function decimalReading(group: number): number | null {
  const digits = group.toString(16);
  return /^[0-9]+$/.test(digits) ? Number(digits) : null;
}
