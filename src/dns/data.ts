import { formatIpv6 } from "../addr/format.ts";
import { formatIpv4, ipv4FromWord } from "../addr/ipv4.ts";
import { ipv6FromWords } from "../addr/ipv6.ts";
import type { ByteReader } from "../util/bytes.ts";
import { byteTexts, DnsFormatError } from "./name.ts";

/** Characters in a row of hex or base64, as `dig` cuts them. */
const WORD_CHARACTERS = 56;

/** The bytes of a character-string. */
const QUOTED_BYTE_TEXT = byteTexts(0x20, '"\\');

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
