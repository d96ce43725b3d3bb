/** An IPv4 address: an immutable value. */
export interface Ipv4Address {
  readonly version: 4;
  /** The address as an unsigned 32-bit integer. */
  readonly word: number;
}

/** The reason why a text is not an address or a prefix. */
export interface ParseFailure {
  /** A clause without the text: `a group is missing`. */
  readonly reason: string;
  /** The character at which parsing stopped, from 1; one past the end if something is missing there. */
  readonly position: number;
}

const DOT = 0x2e;
const ZERO = 0x30;

/** The address with these 32 bits; higher bits are ignored. */
export function ipv4FromWord(word: number): Ipv4Address {
  return { version: 4, word: word >>> 0 };
}

/** Parses four decimals from 0 to 255 without leading zeros, RFC 6943 section 3.1.1 "strict"; null for any other text. */
export function tryParseIpv4(text: string): Ipv4Address | null {
  const result = readIpv4(text);
  return "reason" in result ? null : result;
}

/** Like `tryParseIpv4`, but says why a text is not an IPv4 address. */
export function readIpv4(text: string): Ipv4Address | ParseFailure {
  const word = readDottedDecimal(text, 0);
  return typeof word === "number" ? ipv4FromWord(word) : word;
}

/** Reads the dotted decimal from the offset `start` to the end of `text`; its 32 bits, or the failure. */
export function readDottedDecimal(text: string, start: number): number | ParseFailure {
  let word = 0;
  let dots = 0;
  let octet = -1;
  for (let at = start; at < text.length; at++) {
    const code = text.charCodeAt(at);
    const digit = code - ZERO;
    if (code === DOT) {
      if (octet < 0) return failureAt(at, "a decimal is missing");
      if (dots === 3) return failureAt(at, "more than four decimals");
      word = (word << 8) | octet;
      octet = -1;
      dots++;
    } else if (digit < 0 || digit > 9) {
      return failureAt(at, "neither a decimal digit nor a dot");
    } else if (octet === 0) {
      return failureAt(at, "a decimal has a leading zero");
    } else {
      octet = octet < 0 ? digit : octet * 10 + digit;
      if (octet > 255) return failureAt(at, "a decimal is greater than 255");
    }
  }
  if (octet < 0) return failureAt(text.length, "a decimal is missing");
  if (dots < 3) return failureAt(text.length, "fewer than four decimals");
  return ((word << 8) | octet) >>> 0;
}

/** The failure of a parser that stopped at this offset. */
export function failureAt(offset: number, reason: string): ParseFailure {
  return { reason, position: offset + 1 };
}

/** Dotted decimal: `192.0.2.1`. */
export function formatIpv4({ word }: Ipv4Address): string {
  return `${word >>> 24}.${(word >>> 16) & 255}.${(word >>> 8) & 255}.${word & 255}`;
}
