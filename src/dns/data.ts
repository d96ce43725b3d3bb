import { formatIpv6 } from "../addr/format.ts";
import { formatIpv4, ipv4FromWord } from "../addr/ipv4.ts";
import { ipv6FromWords } from "../addr/ipv6.ts";
import { ByteReader } from "../util/bytes.ts";
import { byteTexts, DnsFormatError } from "./name.ts";

/** Characters in a row of hex or base64, as `dig` cuts them. */
const WORD_CHARACTERS = 56;

/** The bytes of a character-string. */
const QUOTED_BYTE_TEXT = byteTexts(0x20, '"\\');

/** Types in one bitmap: more than any name has, and fewer than a bitmap could. */
const MAX_TYPES = 1024;

/** The digits of base32 with the extended hex alphabet; RFC 4648 section 7. */
const BASE32 = "0123456789ABCDEFGHIJKLMNOPQRSTUV";

/** Reads four bytes as dotted decimal. */
export function readIpv4(reader: ByteReader): string {
  return formatIpv4(ipv4FromWord(reader.uint32()));
}

/** Reads sixteen bytes as an IPv6 address; RFC 5952. */
export function readIpv6(reader: ByteReader): string {
  return formatIpv6(
    ipv6FromWords(reader.uint32(), reader.uint32(), reader.uint32(), reader.uint32()),
  );
}

/** Reads one or more character-strings, up to the end. Throws DnsFormatError for none, or for one that is cut short. */
export function readTexts(reader: ByteReader): string {
  // There can be 65,000 of them, which is too many for a view of each.
  const strings = reader.take(reader.remaining);
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
export function quotedText(bytes: Uint8Array): string {
  return `"${plainText(bytes)}"`;
}

/** The same without quotes. @param byteText the text of each byte */
export function plainText(bytes: Uint8Array, byteText = QUOTED_BYTE_TEXT): string {
  let text = "";
  for (const byte of bytes) text += byteText[byte];
  return text;
}

/** Reads the rest in upper-case hex. */
export function hexText(reader: ByteReader): string {
  return inWords(reader.take(reader.remaining).toHex().toUpperCase());
}

/** Reads the rest in base64. */
export function base64Text(reader: ByteReader): string {
  return inWords(reader.take(reader.remaining).toBase64());
}

function inWords(text: string): string {
  return text.match(new RegExp(`.{1,${WORD_CHARACTERS}}`, "g"))?.join(" ") ?? "";
}

/** Seconds since 1970 as `YYYYMMDDHHmmSS` in UTC; RFC 4034 section 3.2. */
export function timeText(seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace(/\.\d+|\D/g, "");
}

/** Reads the rest in the form for types that are not known; RFC 3597 section 5. */
export function readUnknown(reader: ByteReader): string {
  const bytes = reader.remaining;
  return bytes === 0 ? "\\# 0" : `\\# ${bytes} ${hexText(reader)}`;
}

/** Bytes in base32 with the extended hex alphabet, without padding; RFC 5155 section 3.3. */
export function base32Text(bytes: Uint8Array): string {
  let text = "";
  let bits = 0;
  let value = 0;
  for (const byte of bytes) {
    value = ((value << 8) | byte) & 0xfff;
    for (bits += 8; bits >= 5; bits -= 5) text += BASE32[(value >>> (bits - 5)) & 31];
  }
  return bits > 0 ? text + BASE32[(value << (5 - bits)) & 31] : text;
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
export function readLocation(reader: ByteReader): string {
  if (reader.bytes[reader.offset] !== 0) return readUnknown(reader);
  reader.uint8();
  const lengths = [...reader.take(3)].map((byte) => {
    const [base, exponent] = [byte >>> 4, byte & 0xf];
    if (exponent > 1) return `${base}${"0".repeat(exponent - 2)}m`;
    return `0.${String(base * 10 ** exponent).padStart(2, "0")}m`;
  });
  const angle = (positive: string, negative: string) => {
    const ms = reader.uint32() - 2 ** 31;
    const all = Math.abs(ms);
    const [degrees, minutes] = [Math.floor(all / 3_600_000), Math.floor(all / 60_000) % 60];
    const seconds = ((all % 60_000) / 1000).toFixed(3);
    return `${degrees} ${minutes} ${seconds} ${ms < 0 ? negative : positive}`;
  };
  const angles = `${angle("N", "S")} ${angle("E", "W")}`;
  const altitude = ((reader.uint32() - 10_000_000) / 100).toFixed(2);
  return `${angles} ${altitude}m ${lengths.join(" ")}`;
}

/** Reads the rest as address prefixes; RFC 3123 section 4. Those of other families have the unknown form. */
export function readPrefixes(reader: ByteReader): string {
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

/** The address of a family (1 or 2) whose last bytes are left out if they are zero; null for other families and more bytes. */
export function tryReadAddress(family: number, bytes: Uint8Array): string | null {
  const whole = new Uint8Array(family === 1 ? 4 : 16);
  if ((family !== 1 && family !== 2) || bytes.length > whole.length) return null;
  whole.set(bytes);
  return (family === 1 ? readIpv4 : readIpv6)(new ByteReader(whole));
}
