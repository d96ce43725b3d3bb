import { typeEntry } from "./classify.ts";
import { isIsatap } from "./embedded.ts";
import { formatIpv4, ipv4FromBytes } from "./ipv4.ts";
import { type Ipv6Address, ipv6ToBytes } from "./ipv6.ts";

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

/** Ports of services that servers are numbered by. */
const SERVICE_PORTS: ReadonlySet<number> = new Set([
  21, 22, 23, 25, 53, 80, 110, 123, 143, 179, 389, 443, 465, 587, 636, 853, 993, 995, 1194, 3306,
  3389, 5060, 5432, 8080, 8443,
]);

/** The interface ID of an address; null where its type has none. */
export function interfaceIdOf(address: Ipv6Address): InterfaceId | null {
  if (!typeEntry(address).interfaceId) return null;
  const bytes = ipv6ToBytes(address).subarray(8);
  const value = bytes.toHex().replace(/....(?=.)/g, "$&:");
  return { value, ...recognize(address, bytes) };
}

/** First match wins: reserved values and fixed formats before habits. */
function recognize(address: Ipv6Address, bytes: Uint8Array): Omit<InterfaceId, "value"> {
  const { word2, word3 } = address;
  if (word2 === 0 && word3 === 0) return { kind: "SubnetRouterAnycast" };
  if (word2 === 0xfdffffff && word3 >= 0xffffff80) return { kind: "SubnetAnycast" };
  if (isIsatap(address)) return { kind: "Isatap" };
  const mac = macOf(bytes);
  if (mac !== null) return { kind: "Eui64", mac };
  if (word2 === 0) {
    const port = decimalReading(word3);
    if (port !== null && SERVICE_PORTS.has(port)) return { kind: "EmbeddedPort", port };
    if (word3 < 0x01000000) return { kind: "LowByte" };
    return { kind: "EmbeddedIPv4", ipv4: formatIpv4(ipv4FromBytes(bytes.subarray(4))) };
  }
  const octets = [word2 >>> 16, word2 & 0xffff, word3 >>> 16, word3 & 0xffff].map(decimalReading);
  if (octets.every((octet) => octet !== null && octet <= 255) && octets[0] !== 0) {
    return { kind: "EmbeddedIPv4", ipv4: octets.join(".") };
  }
  return { kind: "Random" };
}

/**
 * The MAC address of a modified EUI-64: `ff:fe` stands in its middle and its universal bit is
 * inverted. No interface has a group address, so where that bit is set it is something else.
 */
function macOf(bytes: Uint8Array): string | null {
  const [first = 0, second, third, fourth, fifth, ...rest] = bytes;
  if (fourth !== 0xff || fifth !== 0xfe || (first & 1) === 1) return null;
  return [first ^ 2, second, third, ...rest]
    .map((byte = 0) => byte.toString(16).padStart(2, "0"))
    .join(":");
}

/** What hex digits say to whoever reads them as decimal ones: 80 for 0x80, null for 0x8a. */
function decimalReading(group: number): number | null {
  const digits = group.toString(16);
  return /^[0-9]+$/.test(digits) ? Number(digits) : null;
}
