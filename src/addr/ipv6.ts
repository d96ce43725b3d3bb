import { readOrThrow, type Stop, stopped } from "./address-error.ts";
import { readDottedDecimal } from "./ipv4.ts";

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

/** Characters of the longest text form: six groups of four digits and `255.255.255.255`. */
const MAX_TEXT_LENGTH = 45;

const COLON = 0x3a;
const DOT = 0x2e;

/** The groups of the address that is being parsed; parsing is synchronous, so one is enough. */
const groups = new Uint16Array(8);

/** The address with these four words; bits above 32 are cut off. */
export function ipv6FromWords(
  word0: number,
  word1: number,
  word2: number,
  word3: number,
): Ipv6Address {
  return {
    version: 6,
    word0: word0 >>> 0,
    word1: word1 >>> 0,
    word2: word2 >>> 0,
    word3: word3 >>> 0,
  };
}

/** Any of the text forms of RFC 4291 section 2.2, without zone, prefix length, brackets or white space; else null. */
export function tryParseIpv6(text: string): Ipv6Address | null {
  return readIpv6(text, null);
}

/** As `tryParseIpv6`, and throws AddressError for any other text. */
export function parseIpv6(text: string): Ipv6Address {
  return readOrThrow(readIpv6, text, "an IPv6 address");
}

/** As `tryParseIpv6`, and notes in `stop` where and why parsing stopped. */
export function readIpv6(text: string, stop: Stop | null): Ipv6Address | null {
  const { length } = text;
  if (length > MAX_TEXT_LENGTH) {
    return stopped(stop, `longer than ${MAX_TEXT_LENGTH} characters`, MAX_TEXT_LENGTH);
  }
  let at = 0;
  let count = 0;
  /** How many groups stand before `::`; -1 as long as there is none. */
  let gap = -1;
  if (length >= 2 && text.charCodeAt(0) === COLON && text.charCodeAt(1) === COLON) {
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
      group = (group << 4) | digit;
    }
    if (at === start) return stopped(stop, complaint(code), at);
    if (code === DOT) {
      if (count === 0 && gap < 0) return stopped(stop, "an IPv4 address is no IPv6 address", at);
      if (count > 6) return stopped(stop, "an IPv4 address after more than six groups", start);
      const word = readDottedDecimal(text, start, stop);
      if (word === null) return null;
      groups[count++] = word >>> 16;
      groups[count++] = word;
      break;
    }
    if (at - start > 4) return stopped(stop, "a group of more than four digits", start + 4);
    if (count === 8) return stopped(stop, "more than eight groups", start);
    groups[count++] = group;
    if (at === length) break;
    if (code !== COLON) return stopped(stop, complaint(code), at);
    at++;
    if (at === length) return stopped(stop, "a group is missing", at);
    if (text.charCodeAt(at) === COLON) {
      if (gap >= 0) return stopped(stop, '"::" stands twice', at - 1);
      gap = count;
      at++;
    }
  }
  if (gap < 0) {
    if (count < 8) return stopped(stop, "fewer than eight groups", length);
  } else {
    if (count === 8) return stopped(stop, '"::" stands for no group', length);
    openGap(gap, count);
  }
  return ipv6FromWords(wordAt(0), wordAt(2), wordAt(4), wordAt(6));
}

/** Moves the groups from `gap` up to `count` to the end and puts zeros where they stood. */
function openGap(gap: number, count: number): void {
  const zeros = 8 - count;
  for (let index = 7; index >= gap; index--) {
    groups[index] = index >= gap + zeros ? (groups[index - zeros] as number) : 0;
  }
}

function wordAt(index: number): number {
  return ((groups[index] as number) << 16) | (groups[index + 1] as number);
}

/** 0 to 15, or -1; letters differ from their lower case by bit 0x20 only. */
function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

/** Why an address cannot go on with this character. */
function complaint(code: number): string {
  switch (code) {
    case COLON:
      return "a group is missing";
    case 0x25:
      return "a zone is no part of an address";
    case 0x2f:
      return "a prefix length is no part of an address";
    case 0x5b:
    case 0x5d:
      return "brackets are no part of an address";
    case 0x09:
    case 0x20:
      return "white space is no part of an address";
    default:
      return "neither a hex digit nor a colon";
  }
}

/** The address in 16 bytes of network order; throws RangeError for another number of bytes. */
export function ipv6FromBytes(bytes: Uint8Array): Ipv6Address {
  if (bytes.length !== 16) {
    throw new RangeError(`an IPv6 address has 16 bytes, not ${bytes.length}`);
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, 16);
  return ipv6FromWords(view.getUint32(0), view.getUint32(4), view.getUint32(8), view.getUint32(12));
}

/** The 16 bytes of the address in network order. */
export function ipv6ToBytes(address: Ipv6Address): Uint8Array<ArrayBuffer> {
  const view = new DataView(new ArrayBuffer(16));
  view.setUint32(0, address.word0);
  view.setUint32(4, address.word1);
  view.setUint32(8, address.word2);
  view.setUint32(12, address.word3);
  return new Uint8Array(view.buffer);
}

/** Negative, zero or positive, as `a` stands before, at or behind `b` in numeric order. */
export function compareIpv6(a: Ipv6Address, b: Ipv6Address): number {
  return a.word0 - b.word0 || a.word1 - b.word1 || a.word2 - b.word2 || a.word3 - b.word3;
}

/** Whether both are the same 128 bits. */
export function equalIpv6(a: Ipv6Address, b: Ipv6Address): boolean {
  return a.word0 === b.word0 && a.word1 === b.word1 && a.word2 === b.word2 && a.word3 === b.word3;
}

/** Whether the address is an IPv4-mapped one, `::ffff:0:0/96`; RFC 4291 section 2.5.5.2. */
export function isIpv4Mapped({ word0, word1, word2 }: Ipv6Address): boolean {
  return word0 === 0 && word1 === 0 && word2 === 0xffff;
}
