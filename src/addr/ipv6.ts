import { failureAt, type ParseFailure, readDottedDecimal } from "./ipv4.ts";

/** An IPv6 address: an immutable value of four unsigned 32-bit integers, the first bits first. */
export interface Ipv6Address {
  readonly version: 6;
  /** Bits 0 to 31. */
  readonly word0: number;
  /** Bits 32 to 63. */
  readonly word1: number;
  /** Bits 64 to 95. */
  readonly word2: number;
  /** Bits 96 to 127. */
  readonly word3: number;
}

const COLON = 0x3a;
const DOT = 0x2e;

/** The address with these four words; bits above 32 are ignored. */
export function ipv6FromWords(word0: number, word1: number, word2: number, word3: number) {
  return {
    version: 6,
    word0: word0 >>> 0,
    word1: word1 >>> 0,
    word2: word2 >>> 0,
    word3: word3 >>> 0,
  } as const satisfies Ipv6Address;
}

/** Parses the text forms of RFC 4291 section 2.2, without zone, prefix length, brackets or white space; null for any other text. */
export function tryParseIpv6(text: string): Ipv6Address | null {
  const result = readIpv6(text);
  return "reason" in result ? null : result;
}

/** Like `tryParseIpv6`, but says why a text is not an IPv6 address. */
export function readIpv6(text: string): Ipv6Address | ParseFailure {
  const { length } = text;
  const groups: number[] = [];
  /** The number of groups before `::`; -1 until it occurs. */
  let gap = -1;
  let at = 0;
  if (text.startsWith("::")) {
    gap = 0;
    at = 2;
  }
  while (at < length) {
    const start = at;
    let group = 0;
    let code = 0;
    for (; at < length; at++) {
      code = text.charCodeAt(at);
      const digit = hexDigit(code);
      if (digit < 0) break;
      if (at === start + 4) return failureAt(at, "a group of more than four digits");
      group = (group << 4) | digit;
    }
    if (at === start) return failureAt(at, reasonAgainst(code));
    if (code === DOT) {
      if (groups.length === 0 && gap < 0) return failureAt(at, "it begins like an IPv4 address");
      if (groups.length > 6) return failureAt(start, "an IPv4 address after more than six groups");
      const word = readDottedDecimal(text, start);
      if (typeof word !== "number") return word;
      groups.push(word >>> 16, word & 0xffff);
      break;
    }
    if (groups.length === 8) return failureAt(start, "more than eight groups");
    groups.push(group);
    if (at === length) break;
    if (code !== COLON) return failureAt(at, reasonAgainst(code));
    at++;
    if (at === length) return failureAt(at, "a group is missing");
    if (text.charCodeAt(at) === COLON) {
      if (gap >= 0) return failureAt(at - 1, '"::" occurs twice');
      gap = groups.length;
      at++;
    }
  }
  const zeros = 8 - groups.length;
  if (gap < 0 && zeros > 0) return failureAt(length, "fewer than eight groups");
  if (gap >= 0 && zeros === 0) return failureAt(length, '"::" replaces no group');
  if (gap >= 0) groups.splice(gap, 0, ...new Array<number>(zeros).fill(0));
  const wordAt = (at: number) => ((groups[at] as number) << 16) | (groups[at + 1] as number);
  return ipv6FromWords(wordAt(0), wordAt(2), wordAt(4), wordAt(6));
}

/** 0 to 15, or -1; letters differ from their lower case only in bit 0x20. */
function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

/** The reasons why an address cannot continue with a character. */
const REASONS: Readonly<Record<string, string>> = {
  ":": "a group is missing",
  "%": "a zone is not part of an address",
  "/": "a prefix length is not part of an address",
  "[": "brackets are not part of an address",
  "]": "brackets are not part of an address",
  " ": "white space is not part of an address",
  "\t": "white space is not part of an address",
};

function reasonAgainst(code: number): string {
  return REASONS[String.fromCharCode(code)] ?? "neither a hex digit nor a colon";
}

/** An interface name that Linux allows: up to 15 printable ASCII characters without slash and colon; also without `%`. */
const ZONE = /^[!-$&-.0-9;-~]{1,15}$/;

/**
 * Parses `fe80::1%eth0`, RFC 4007 section 11; null without a zone, and for any address that is not link-local
 * unicast. `fe80::1%25eth0` is the same in a URI; RFC 6874. The zone is the name of an interface, which may not exist.
 * A number is a name too, not an index.
 */
export function tryParseZoned(text: string) {
  const percent = text.indexOf("%");
  if (percent < 0) return null;
  // A number may begin with 25.
  const zone = text.slice(percent + 1).replace(/^25(?=.*\D)/, "");
  const address = tryParseIpv6(text.slice(0, percent));
  return address !== null && isLinkLocal(address) && ZONE.test(zone) ? { address, zone } : null;
}

/** The address in 16 bytes of network order; throws RangeError for another number of bytes. */
export function ipv6FromBytes(bytes: Uint8Array): Ipv6Address {
  if (bytes.length !== 16) {
    throw new RangeError(`an IPv6 address has 16 bytes, not ${bytes.length}`);
  }
  return ipv6At(new DataView(bytes.buffer, bytes.byteOffset, 16), 0);
}

/** The address whose 16 bytes in network order begin here. */
export function ipv6At(view: DataView, at: number): Ipv6Address {
  const word = (index: number) => view.getUint32(at + 4 * index);
  return ipv6FromWords(word(0), word(1), word(2), word(3));
}

/** The 16 bytes of the address in network order. */
export function ipv6ToBytes(address: Ipv6Address): Uint8Array<ArrayBuffer> {
  const view = new DataView(new ArrayBuffer(16));
  writeIpv6(address, view, 0);
  return new Uint8Array(view.buffer);
}

/** Writes the 16 bytes of the address in network order. */
export function writeIpv6(address: Ipv6Address, into: DataView, at: number): void {
  into.setUint32(at, address.word0);
  into.setUint32(at + 4, address.word1);
  into.setUint32(at + 8, address.word2);
  into.setUint32(at + 12, address.word3);
}

/** True if both are the same 128 bits. */
export function equalIpv6(a: Ipv6Address, b: Ipv6Address): boolean {
  return a.word0 === b.word0 && a.word1 === b.word1 && a.word2 === b.word2 && a.word3 === b.word3;
}

/** True if the address is IPv4-mapped, `::ffff:0:0/96`; RFC 4291 section 2.5.5.2. */
export function isIpv4Mapped({ word0, word1, word2 }: Ipv6Address): boolean {
  return word0 === 0 && word1 === 0 && word2 === 0xffff;
}

/** True if the address is link-local unicast, `fe80::/10`; RFC 4291 section 2.5.6. */
export function isLinkLocal({ word0 }: Ipv6Address): boolean {
  return word0 >>> 22 === 0x3fa;
}
