import { readOrThrow, type Stop, stopped } from "./address-error.ts";

/** An IPv4 address: an immutable value. */
export interface Ipv4Address {
  readonly version: 4;
  /** The address as an unsigned 32-bit integer. */
  readonly word: number;
}

/** Characters of the longest text form, `255.255.255.255`. */
const MAX_TEXT_LENGTH = 15;

const DOT = 0x2e;
const ZERO = 0x30;

/** The address with these 32 bits; bits above are cut off. */
export function ipv4FromWord(word: number): Ipv4Address {
  return { version: 4, word: word >>> 0 };
}

/** Four decimals from 0 to 255 without leading zeros, RFC 6943 section 3.1.1 "strict"; null for any other text. */
export function tryParseIpv4(text: string): Ipv4Address | null {
  return readIpv4(text, null);
}

/** As `tryParseIpv4`, and throws AddressError for any other text. */
export function parseIpv4(text: string): Ipv4Address {
  return readOrThrow(readIpv4, text, "an IPv4 address");
}

/** As `tryParseIpv4`, and notes in `stop` where and why parsing stopped. */
export function readIpv4(text: string, stop: Stop | null): Ipv4Address | null {
  if (text.length > MAX_TEXT_LENGTH) {
    return stopped(stop, `longer than ${MAX_TEXT_LENGTH} characters`, MAX_TEXT_LENGTH);
  }
  const word = readDottedDecimal(text, 0, stop);
  return word === null ? null : ipv4FromWord(word);
}

/** Reads the dotted decimal from `start` to the end of `text`; its 32 bits, or null. */
export function readDottedDecimal(text: string, start: number, stop: Stop | null): number | null {
  let word = 0;
  let dots = 0;
  let octet = -1;
  for (let at = start; at < text.length; at++) {
    const code = text.charCodeAt(at);
    const digit = code - ZERO;
    if (code === DOT) {
      if (octet < 0) return stopped(stop, "a decimal is missing", at);
      if (dots === 3) return stopped(stop, "more than four decimals", at);
      word = (word << 8) | octet;
      octet = -1;
      dots++;
    } else if (digit < 0 || digit > 9) {
      return stopped(stop, "neither a decimal digit nor a dot", at);
    } else if (octet === 0) {
      return stopped(stop, "a decimal has a leading zero", at);
    } else {
      octet = octet < 0 ? digit : octet * 10 + digit;
      if (octet > 255) return stopped(stop, "a decimal is greater than 255", at);
    }
  }
  if (octet < 0) return stopped(stop, "a decimal is missing", text.length);
  if (dots < 3) return stopped(stop, "fewer than four decimals", text.length);
  return ((word << 8) | octet) >>> 0;
}

/** Dotted decimal: `192.0.2.1`. */
export function formatIpv4({ word }: Ipv4Address): string {
  return `${word >>> 24}.${(word >>> 16) & 255}.${(word >>> 8) & 255}.${word & 255}`;
}

/** The address in 4 bytes of network order; throws RangeError for another number of bytes. */
export function ipv4FromBytes(bytes: Uint8Array): Ipv4Address {
  if (bytes.length !== 4) throw new RangeError(`an IPv4 address has 4 bytes, not ${bytes.length}`);
  return ipv4FromWord(new DataView(bytes.buffer, bytes.byteOffset, 4).getUint32(0));
}

/** The 4 bytes of the address in network order. */
export function ipv4ToBytes({ word }: Ipv4Address): Uint8Array<ArrayBuffer> {
  return Uint8Array.of(word >>> 24, word >>> 16, word >>> 8, word);
}
