import { typeEntry } from "./classify.ts";
import { type Ipv4Address, ipv4FromBytes, ipv4FromWord } from "./ipv4.ts";
import { type Ipv6Address, ipv6ToBytes } from "./ipv6.ts";

/** What an IPv6 address tells about IPv4, by the mechanism that put it there. */
export type EmbeddedIpv4 =
  | {
      readonly mechanism:
        | "IPv4Mapped"
        | "IPv4Translated"
        | "IPv4Compatible"
        | "Nat64"
        | "SixToFour"
        | "Isatap";
      readonly address: Ipv4Address;
    }
  | {
      readonly mechanism: "Teredo";
      /** The client's address as its server sees it, behind NAT. */
      readonly client: Ipv4Address;
      readonly server: Ipv4Address;
      /** The client's UDP port as its server sees it. */
      readonly port: number;
      /** 16 bits; 0x8000 says that the client is behind a cone NAT. RFC 4380 section 4, RFC 5991 section 3. */
      readonly flags: number;
    };

/** Lengths of the prefixes behind which a translator may put an IPv4 address, RFC 6052 section 2.2. */
export type Nat64PrefixLength = 32 | 40 | 48 | 56 | 64 | 96;

/** Those that a prefix inside 64:ff9b:1::/48 can have; the operator is free to choose, RFC 8215 section 5. */
const LOCAL_NAT64_LENGTHS: readonly Nat64PrefixLength[] = [96, 64, 56, 48];

/** Byte 8, bits 64 to 71, stays zero and is skipped; RFC 6052 section 2.2. */
const NAT64_SKIPPED_BYTE = 8;

/** Every IPv4 address (with what surrounds it) that the address embeds: none, one, or two where ISATAP runs over 6to4. */
export function embeddedIpv4(address: Ipv6Address): readonly EmbeddedIpv4[] {
  const { type, interfaceId } = typeEntry(address);
  const found: EmbeddedIpv4[] = [];
  switch (type) {
    case "IPv4Mapped":
    case "IPv4Translated":
    case "IPv4Compatible":
      found.push({ mechanism: type, address: ipv4FromWord(address.word3) });
      break;
    case "Nat64":
      found.push({ mechanism: type, address: extractNat64(address, 96) });
      break;
    case "SixToFour":
      found.push({ mechanism: type, address: sixToFourRouter(address) });
      break;
    case "Teredo":
      found.push(teredo(address));
      break;
  }
  if (interfaceId && isIsatap(address)) {
    found.push({ mechanism: "Isatap", address: ipv4FromWord(address.word3) });
  }
  return found;
}

/** The IPv4 addresses alone, for a judgement: of Teredo both the client and the server. */
export function carriedAddresses(embedded: EmbeddedIpv4): readonly Ipv4Address[] {
  return embedded.mechanism === "Teredo" ? [embedded.client, embedded.server] : [embedded.address];
}

/**
 * The IPv4 addresses that a translator may make of an address in 64:ff9b:1::/48, one for each length
 * that its prefix can have; none for any other address. Only one of them is meant, and the address does
 * not tell which: for a judgement that has to be on the safe side.
 */
export function localNat64Candidates(address: Ipv6Address): readonly Ipv4Address[] {
  if (typeEntry(address).type !== "Nat64Local") return [];
  return LOCAL_NAT64_LENGTHS.map((length) => extractNat64(address, length));
}

/** The IPv4 address behind a translator's prefix of that many bits; RFC 6052 section 2.3. */
export function extractNat64(address: Ipv6Address, prefixLength: Nat64PrefixLength): Ipv4Address {
  const bytes = ipv6ToBytes(address);
  const octets: number[] = [];
  for (let at = prefixLength / 8; octets.length < 4; at++) {
    if (at !== NAT64_SKIPPED_BYTE) octets.push(bytes[at] as number);
  }
  return ipv4FromBytes(Uint8Array.from(octets));
}

/** Bits 16 to 47, RFC 3056 section 2. */
function sixToFourRouter({ word0, word1 }: Ipv6Address): Ipv4Address {
  return ipv4FromWord((word0 << 16) | (word1 >>> 16));
}

/** Port and client are written with every bit inverted, so that no NAT translates them. RFC 4380 section 4. */
function teredo({ word1, word2, word3 }: Ipv6Address): EmbeddedIpv4 {
  return {
    mechanism: "Teredo",
    client: ipv4FromWord(~word3),
    server: ipv4FromWord(word1),
    port: ~word2 & 0xffff,
    flags: word2 >>> 16,
  };
}

/** Whether the interface ID is 0000:5efe or 0200:5efe and an IPv4 address, RFC 5214 section 6.1. */
export function isIsatap({ word2 }: Ipv6Address): boolean {
  return (word2 & ~0x02000000) === 0x00005efe;
}
