import { ByteReader } from "../util/bytes.ts";

/*
 * Code holds a name as text in presentation form (RFC 1035 section 5.1), escaped in one way only, with
 * the final dot. Two texts are equal exactly when the names are equal on the wire, and `toLowerCase` of
 * the text is the form in which names compare (RFC 4343).
 */

/** Bytes of a label; RFC 1035 section 2.3.4. */
export const MAX_LABEL_BYTES = 63;

/** Bytes of a name on the wire, with length bytes and the root; RFC 1035 section 2.3.4. */
const MAX_NAME_BYTES = 255;

/**
 * Compression pointers in one name: a name of 255 bytes has at most 127 labels, so more never help. With
 * the limit of bytes, this bounds the work for a hostile message.
 */
const MAX_POINTERS = 126;

/** Both high bits set: not a label, but the offset of the rest of the name. */
const POINTER = 0xc0;

/** A name or message that breaks the format of the DNS. */
export class DnsFormatError extends Error {
  override readonly name = "DnsFormatError";
}

/**
 * The presentation form of each byte: `special` characters behind a backslash, bytes outside `lowest`
 * to 0x7e as `\DDD`; RFC 1035 section 5.1.
 */
export function byteTexts(lowest: number, special: string): readonly string[] {
  return Array.from({ length: 256 }, (_, byte) => {
    if (byte < lowest || byte > 0x7e) return `\\${String(byte).padStart(3, "0")}`;
    const character = String.fromCharCode(byte);
    return special.includes(character) ? `\\${character}` : character;
  });
}

const BYTE_TEXT = byteTexts(0x21, '".;\\()@$');

/**
 * The name at the reader's offset; RFC 1035 section 4.1.4. Throws DnsFormatError for a name that is cut
 * short, has more than 255 bytes or 126 pointers, an unknown label type, or a pointer that does not lead
 * backwards.
 */
export function readName(reader: ByteReader): string {
  const { bytes, end } = reader;
  let at = reader.offset;
  let text = "";
  let size = 1;
  let pointers = 0;
  const byteAt = (index: number) => {
    if (index >= end) throw new DnsFormatError("a name is cut short");
    return bytes[index] as number;
  };
  for (let length = byteAt(at); length > 0; length = byteAt(at)) {
    if (length >= POINTER) {
      const target = ((length - POINTER) << 8) | byteAt(at + 1);
      if (pointers === 0) reader.offset = at + 2;
      pointers += 1;
      if (pointers > MAX_POINTERS) {
        throw new DnsFormatError(`a name has more than ${MAX_POINTERS} compression pointers`);
      }
      if (target >= at) throw new DnsFormatError("a compression pointer does not lead backwards");
      at = target;
      continue;
    }
    if (length > MAX_LABEL_BYTES) {
      throw new DnsFormatError(`label type 0x${(length & POINTER).toString(16)} is not in use`);
    }
    size += length + 1;
    checkSize(size);
    const next = at + 1 + length;
    for (at += 1; at < next; at++) text += BYTE_TEXT[byteAt(at)];
    text += ".";
  }
  if (pointers === 0) reader.offset = at + 1;
  return text || ".";
}

/** The name in a message at an offset. Throws as `readName`. */
export function decodeName(bytes: Uint8Array, offset = 0): string {
  return readName(new ByteReader(bytes, offset));
}

/**
 * The name on the wire, without compression, from its presentation form with or without the final dot.
 * Throws DnsFormatError for an empty label inside, a label of more than 63 bytes, a name of more than
 * 255, an unfinished escape, or a character that is not printable ASCII.
 */
export function encodeName(text: string): Uint8Array {
  const name: number[] = [];
  let label: number[] = [];
  const endLabel = () => {
    if (label.length === 0) throw new DnsFormatError("a name has an empty label");
    if (label.length > MAX_LABEL_BYTES) {
      throw new DnsFormatError(`a label has more than ${MAX_LABEL_BYTES} bytes`);
    }
    name.push(label.length, ...label);
    label = [];
  };
  if (text !== ".") {
    for (const [token] of text.matchAll(/\\\d{3}|\\?./gs)) {
      if (token === ".") endLabel();
      else label.push(byteOf(token));
    }
    if (label.length > 0 || !text.endsWith(".")) endLabel();
  }
  name.push(0);
  checkSize(name.length);
  return Uint8Array.from(name);
}

/** The byte of a character, of `\DDD`, or of a backslash and a character; RFC 1035 section 5.1. */
function byteOf(token: string): number {
  if (/^\\\d/.test(token)) {
    const byte = Number(token.slice(1));
    if (token.length === 4 && byte <= 255) return byte;
    throw new DnsFormatError("a name has an escape that is not \\ and three digits up to 255");
  }
  if (/^(?:\\[ -~]|[ -[\]-~])$/.test(token)) return token.charCodeAt(token.length - 1);
  throw new DnsFormatError("a name has a character that is not printable ASCII");
}

/** The one spelling of a name: escapes normalised, with the final dot. Throws as `encodeName`. */
export function canonicalName(text: string): string {
  return decodeName(encodeName(text));
}

/** The name without its final dot, as host names are written; the root stays a dot. */
export function withoutFinalDot(name: string): string {
  return name === "." ? name : name.slice(0, -1);
}

function checkSize(bytes: number): void {
  if (bytes > MAX_NAME_BYTES) {
    throw new DnsFormatError(`a name has more than ${MAX_NAME_BYTES} bytes`);
  }
}
