import { formatIpv6 } from "../../addr/format.ts";
import { formatIpv4, ipv4FromWord } from "../../addr/ipv4.ts";
import { ipv6FromBytes } from "../../addr/ipv6.ts";
import { ByteReader } from "../../util/bytes.ts";
import { byteTexts, DnsFormatError } from "./name.ts";

/** The characters in a row of hex or base64, as `dig` cuts them. */
const WORD = /.{1,56}/g;

/** The text of each byte in a character-string. */
const QUOTED_BYTE_TEXT = byteTexts(0x20, '"\\');

/** Types in one bitmap: more than any name has, and fewer than a bitmap could. */
const MAX_TYPES = 1024;

/** Readers of the fields of a record's data that need only its bytes. A field without a length ends with the data. */
export const DATA_READERS = {
  uint8: (reader) => String(reader.uint8()),
  uint16: (reader) => String(reader.uint16()),
  uint32: (reader) => String(reader.uint32()),
  ipv4: (reader) => formatIpv4(ipv4FromWord(reader.uint32())),
  /** RFC 5952. */
  ipv6: (reader) => formatIpv6(ipv6FromBytes(reader.take(16))),
  string: (reader) => quotedText(reader.take(reader.uint8())),
  strings: readTexts,
  tag: readTag,
  text: (reader) => quotedText(reader.rest()),
  hex: hexText,
  base64: (reader) => inWords(reader.rest().toBase64()),
  /** Seconds since 1970 as `YYYYMMDDHHmmSS` in UTC; RFC 4034 section 3.2. */
  time: (reader) => new Date(reader.uint32() * 1000).toISOString().replace(/\.\d+|\D/g, ""),
  salt: (reader) => reader.take(reader.uint8()).toHex().toUpperCase() || "-",
  hash: (reader) => base32Text(reader.take(reader.uint8())),
  eui48: (reader) => octetsText(reader.take(6)),
  eui64: (reader) => octetsText(reader.take(8)),
  /** 64 bits as four groups of hex, without leading zeros, as `dig` prints them; RFC 6742 section 2.1.1. */
  locator: (reader) => Array.from({ length: 4 }, () => reader.uint16().toString(16)).join(":"),
  location: readLocation,
  prefixes: readPrefixes,
} satisfies Record<string, (reader: ByteReader) => string>;

/** Reads the name of a property. Throws DnsFormatError if it is not of letters and digits; RFC 8659 section 4.1. */
function readTag(reader: ByteReader): string {
  const tag = plainText(reader.take(reader.uint8()));
  if (!/^[a-z0-9]+$/i.test(tag))
    throw new DnsFormatError("the tag of a CAA record breaks its form");
  return tag;
}

/** Reads one or more character-strings, up to the end. Throws DnsFormatError for none, or for one that is cut short. */
function readTexts(reader: ByteReader): string {
  // There can be 65,000 of them, and a view of each would take ten times as long.
  const strings = reader.rest();
  let text = "";
  for (let at = 0; at < strings.length; ) {
    const end = at + 1 + (strings[at] as number);
    if (end > strings.length) throw new DnsFormatError("a string of a TXT record is cut short");
    text += at === 0 ? '"' : ' "';
    for (at += 1; at < end; at++) text += QUOTED_BYTE_TEXT[strings[at] as number];
    text += '"';
  }
  if (text === "") throw new DnsFormatError("a TXT record has no string");
  return text;
}

/** A character-string in quotes; RFC 1035 section 5.1. */
function quotedText(bytes: Uint8Array): string {
  return `"${plainText(bytes)}"`;
}

/** A character-string without quotes. @param byteText the text of each byte */
export function plainText(bytes: Uint8Array, byteText = QUOTED_BYTE_TEXT): string {
  let text = "";
  for (const byte of bytes) text += byteText[byte];
  return text;
}

/** Reads the rest in upper-case hex. */
function hexText(reader: ByteReader): string {
  return inWords(reader.rest().toHex().toUpperCase());
}

function inWords(text: string): string {
  return text.match(WORD)?.join(" ") ?? "";
}

/** Reads the rest in the form for types that are not known; RFC 3597 section 5. */
export function readUnknown(reader: ByteReader): string {
  const bytes = reader.remaining;
  // Stated for speed: a message can have thousands of records without data.
  return bytes === 0 ? "\\# 0" : `\\# ${bytes} ${hexText(reader)}`;
}

/** Bytes in base32 with the extended hex alphabet, whose digits are those of numbers to the base 32; RFC 4648 section 7. */
export function base32Text(bytes: Uint8Array): string {
  const digits = Math.ceil((8 * bytes.length) / 5);
  const padding = BigInt(5 * digits - 8 * bytes.length);
  const text = (BigInt(`0x0${bytes.toHex()}`) << padding).toString(32).toUpperCase();
  return bytes.length === 0 ? "" : text.padStart(digits, "0");
}

/** Octets in hex with hyphens between them; RFC 7043. */
function octetsText(bytes: Uint8Array): string {
  return bytes.toHex().match(/../g)?.join("-") ?? "";
}

/** Reads the rest as a bitmap of type numbers; RFC 4034 section 4.1.2. */
export function readTypeCodes(reader: ByteReader): number[] {
  const codes: number[] = [];
  for (let least = 0; reader.remaining > 0; ) {
    const first = reader.uint8() << 8;
    const bits = reader.take(reader.uint8());
    if (first < least || bits.length === 0 || bits.length > 32) {
      throw new DnsFormatError("a bitmap of types breaks its form");
    }
    least = first + 256;
    for (let bit = 0; bit < 8 * bits.length; bit++) {
      if (((bits[bit >>> 3] as number) << (bit & 7)) & 0x80) codes.push(first + bit);
    }
    if (codes.length > MAX_TYPES) throw new DnsFormatError(`more than ${MAX_TYPES} types`);
  }
  return codes;
}

/** Reads a LOC record: latitude, longitude, altitude, size, and precisions; RFC 1876. Other versions have the unknown form. */
function readLocation(reader: ByteReader): string {
  if (reader.bytes[reader.offset] !== 0) return readUnknown(reader);
  reader.uint8();
  const lengths = [...reader.take(3)].map((byte) => {
    const [base, exponent] = [byte >>> 4, byte & 0xf];
    if (exponent > 1) return `${base}${"0".repeat(exponent - 2)}m`;
    return `0.${String(base * 10 ** exponent).padStart(2, "0")}m`;
  });
  const angle = (positive: string, negative: string) => {
    const ms = reader.uint32() - 2 ** 31;
    const absMs = Math.abs(ms);
    const [degrees, minutes] = [Math.floor(absMs / 3_600_000), Math.floor(absMs / 60_000) % 60];
    const seconds = ((absMs % 60_000) / 1000).toFixed(3);
    return `${degrees} ${minutes} ${seconds} ${ms < 0 ? negative : positive}`;
  };
  const angles = `${angle("N", "S")} ${angle("E", "W")}`;
  const altitude = ((reader.uint32() - 10_000_000) / 100).toFixed(2);
  return `${angles} ${altitude}m ${lengths.join(" ")}`;
}

/** Reads the rest as address prefixes; RFC 3123 section 4. Those of other families have the unknown form. */
function readPrefixes(reader: ByteReader): string {
  const start = reader.offset;
  const prefixes: string[] = [];
  while (reader.remaining > 0) {
    const family = reader.uint16();
    const length = reader.uint8();
    const size = reader.uint8();
    const address = tryReadAddress(family, reader.take(size & 0x7f));
    if (address === null) {
      reader.offset = start;
      return readUnknown(reader);
    }
    prefixes.push(`${size > 0x7f ? "!" : ""}${family}:${address}/${length}`);
  }
  return prefixes.join(" ");
}

/** The address of a family (1 or 2) without some of its last bytes, which are zero; null for other families and for too many bytes. */
export function tryReadAddress(family: number, bytes: Uint8Array): string | null {
  const padded = new Uint8Array(family === 1 ? 4 : 16);
  if ((family !== 1 && family !== 2) || bytes.length > padded.length) return null;
  padded.set(bytes);
  return DATA_READERS[family === 1 ? "ipv4" : "ipv6"](new ByteReader(padded));
}
