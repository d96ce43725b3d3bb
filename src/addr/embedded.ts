import { type AddressType, type TypeEntry, typeEntry } from "./classify.ts";
import { type Ipv4Address, ipv4FromWord } from "./ipv4.ts";
import { type Ipv6Address, ipv6ToBytes } from "./ipv6.ts";
import { formatPrefix, type Prefix, prefixOf } from "./prefix.ts";

/** The mechanisms that put one IPv4 address into an IPv6 address. */
export const EMBEDDINGS = [
  "ipv4-mapped",
  "ipv4-translated",
  "ipv4-compatible",
  "nat64",
  "6to4",
  "isatap",
] as const;

/** The names of all mechanisms in texts. */
export const MECHANISM_NAMES: Readonly<Record<EmbeddedIpv4["mechanism"], string>> = {
  "ipv4-mapped": "IPv4-mapped",
  "ipv4-translated": "IPv4-translated",
  "ipv4-compatible": "IPv4-compatible",
  nat64: "NAT64",
  "6to4": "6to4",
  isatap: "ISATAP",
  teredo: "Teredo",
};

/** The mechanisms of types whose last 32 bits are the IPv4 address. */
const IN_LAST_WORD: Readonly<Partial<Record<AddressType, (typeof EMBEDDINGS)[number]>>> = {
  IPv4Mapped: "ipv4-mapped",
  IPv4Translated: "ipv4-translated",
  IPv4Compatible: "ipv4-compatible",
  Nat64: "nat64",
};

/** The IPv4 addresses inside an IPv6 address, by mechanism. */
export type EmbeddedIpv4 =
  | { readonly mechanism: (typeof EMBEDDINGS)[number]; readonly address: Ipv4Address }
  | {
      readonly mechanism: "teredo";
      /** The client's address as its server sees it, behind NAT. */
      readonly client: Ipv4Address;
      readonly server: Ipv4Address;
      /** The client's UDP port as its server sees it. */
      readonly port: number;
      /** 16 bits; 0x8000 means that the client is behind a cone NAT. RFC 4380 section 4, RFC 5991 section 3. */
      readonly flags: number;
    };

/** The IPv4 addresses in an address, by mechanism: none, one, or two for ISATAP over 6to4. */
export function embeddedIpv4(
  address: Ipv6Address,
  { type, interfaceId }: TypeEntry = typeEntry(address),
): readonly EmbeddedIpv4[] {
  const { word0, word1, word2, word3 } = address;
  const found: EmbeddedIpv4[] = [];
  const mechanism = IN_LAST_WORD[type];
  if (mechanism) found.push({ mechanism, address: ipv4FromWord(word3) });
  if (type === "SixToFour") {
    // Bits 16 to 47, RFC 3056 section 2.
    found.push({ mechanism: "6to4", address: ipv4FromWord((word0 << 16) | (word1 >>> 16)) });
  }
  if (type === "Teredo") {
    // Port and client have every bit inverted, so that NATs do not translate them. RFC 4380 section 4.
    found.push({
      mechanism: "teredo",
      client: ipv4FromWord(~word3),
      server: ipv4FromWord(word1),
      port: ~word2 & 0xffff,
      flags: word2 >>> 16,
    });
  }
  if (interfaceId && isIsatap(address)) {
    found.push({ mechanism: "isatap", address: ipv4FromWord(word3) });
  }
  return found;
}

/**
 * The IPv4 addresses that a translator may derive from an address in 64:ff9b:1::/48, one for each
 * length of its prefix; none for any other address. The operator chooses the length (RFC 8215 section
 * 5), and the address does not say which one, so a policy must check them all.
 */
export function localNat64Candidates(address: Ipv6Address): readonly Ipv4Address[] {
  if (typeEntry(address).type !== "Nat64Local") return [];
  return [96, 64, 56, 48].map((prefixLength) => extractNat64(address, prefixLength));
}

/** Bits of a translator's prefix, RFC 6052 section 2.2. */
const NAT64_LENGTHS = [32, 40, 48, 56, 64, 96] as const;

/** The IPv4 addresses of ipv4only.arpa: 192.0.0.170 and 192.0.0.171, RFC 7050 section 8.2. */
const IPV4_ONLY: readonly number[] = [0xc00000aa, 0xc00000ab];

/**
 * The prefixes from which a resolver synthesizes IPv6 addresses, read from its addresses of ipv4only.arpa:
 * the bits before a well-known IPv4 address; RFC 7050 section 3. If there are several candidates, those
 * with both IPv4 addresses count.
 */
export function nat64Prefixes(addresses: readonly Ipv6Address[]): readonly Prefix[] {
  const found = new Map<string, { readonly prefix: Prefix; readonly inside: Set<number> }>();
  for (const address of addresses) {
    for (const length of NAT64_LENGTHS) {
      const { word } = extractNat64(address, length);
      if (!IPV4_ONLY.includes(word)) continue;
      const prefix = prefixOf(address, length);
      found.getOrInsert(formatPrefix(prefix), { prefix, inside: new Set() }).inside.add(word);
    }
  }
  return [...found.values()]
    .filter(({ inside }) => found.size === 1 || inside.size === 2)
    .map(({ prefix }) => prefix);
}

/** The IPv4 address after a translator's prefix of 32, 40, 48, 56, 64 or 96 bits; RFC 6052 section 2.3. */
export function extractNat64(address: Ipv6Address, prefixLength: number): Ipv4Address {
  // Byte 8 is always zero and not part of the IPv4 address; RFC 6052 section 2.2.
  const octets = [...ipv6ToBytes(address)]
    .filter((_, at) => at >= prefixLength / 8 && at !== 8)
    .slice(0, 4);
  return ipv4FromWord(octets.reduce((word, octet) => (word << 8) | octet, 0));
}

/** True if the interface ID is 0000:5efe or 0200:5efe and an IPv4 address, RFC 5214 section 6.1. */
export function isIsatap({ word2 }: Ipv6Address): boolean {
  return (word2 & ~0x02000000) === 0x00005efe;
}
