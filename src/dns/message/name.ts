import { ByteReader, FormatError } from "../../util/bytes.ts";

/*
 * Code holds a name as text in presentation form (RFC 1035 section 5.1), escaped in one way only, with
 * the final dot. Two texts are equal exactly when the names are equal on the wire, and `toLowerCase` of
 * the text is the form in which names compare (RFC 4343).
 */

/** Bytes of a label; RFC 1035 section 2.3.4. */
export const MAX_LABEL_BYTES = 63;

/** Bytes of a name on the wire, with length bytes and the root; RFC 1035 section 2.3.4. */
const MAX_NAME_BYTES = 255;

/** Compression pointers in one name: a name of 255 bytes has at most 127 labels, so more never help. */
const MAX_POINTERS = 126;

/** Both high bits set: not a label, but the offset of the rest of the name. */
const POINTER = 0xc0;

const DOT = 0x2e;
const BACKSLASH = 0x5c;

/** A name or message that breaks a rule of the DNS. */
export class DnsFormatError extends FormatError {
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

/** A name, or the rest of one. */
interface Suffix {
  /** Empty for the root. */
  readonly text: string;
  /** Bytes on the wire without compression. */
  readonly bytes: number;
  /** Compression pointers followed. */
  readonly pointers: number;
  /** The offset behind it, or behind its first pointer. */
  readonly end: number;
}

/**
 * The targets of pointers in each message, by their offsets. Each is read once, so that the size of the message bounds
 * the work, however its names point at each other. A message is an array of its own, whose bytes nobody changes.
 */
const suffixesIn = new WeakMap<Uint8Array, Map<number, Suffix>>();

/**
 * Reads the name at the reader's offset, whose pointers lead into the whole message; RFC 1035 section 4.1.4. A name has at
 * most 255 bytes and 126 pointers.
 *
 * @throws DnsFormatError if it has more, is cut short, has a label of an unknown type, or a pointer to itself or behind it
 */
export function readName(reader: ByteReader): string {
  const { text, end } = readSuffix(reader.bytes, reader.offset, reader.end, 0);
  reader.offset = end;
  return text || ".";
}

/** @param followed pointers that led here */
function readSuffix(bytes: Uint8Array, start: number, end: number, followed: number): Suffix {
  let text = "";
  for (let at = start; ; ) {
    const labels = at - start;
    checkSize(labels + 1, followed);
    const length = byteAt(bytes, at, end);
    if (length === 0) return { text, bytes: labels + 1, pointers: 0, end: at + 1 };
    if (length >= POINTER) {
      const target = ((length - POINTER) << 8) | byteAt(bytes, at + 1, end);
      if (target >= at) throw new DnsFormatError("a compression pointer does not lead backwards");
      const rest = suffixesIn
        .getOrInsertComputed(bytes, () => new Map<number, Suffix>())
        .getOrInsertComputed(target, () => readSuffix(bytes, target, bytes.length, followed + 1));
      const pointers = rest.pointers + 1;
      checkSize(labels + rest.bytes, pointers);
      return { text: text + rest.text, bytes: labels + rest.bytes, pointers, end: at + 2 };
    }
    if (length > MAX_LABEL_BYTES) {
      throw new DnsFormatError(`label type 0x${(length & POINTER).toString(16)} is not in use`);
    }
    for (const next = at + length; at < next; ) text += BYTE_TEXT[byteAt(bytes, ++at, end)];
    text += ".";
    at += 1;
  }
}

function byteAt(bytes: Uint8Array, at: number, end: number): number {
  if (at >= end) throw new DnsFormatError("a name is cut short");
  return bytes[at] as number;
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
  if (text === ".") return new Uint8Array(1);
  const name = [0];
  let labelAt = 0;
  const endLabel = () => {
    const bytes = name.length - labelAt - 1;
    if (bytes === 0) throw new DnsFormatError("a name has an empty label");
    if (bytes > MAX_LABEL_BYTES) {
      throw new DnsFormatError(`a label has more than ${MAX_LABEL_BYTES} bytes`);
    }
    name[labelAt] = bytes;
    labelAt = name.length;
    name.push(0);
  };
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === DOT) {
      endLabel();
    } else if (code === BACKSLASH) {
      const [sequence, byte] = readEscape(text, at);
      name.push(byte);
      at += sequence.length - 1;
    } else if (code >= 0x20 && code <= 0x7e) {
      name.push(code);
    } else {
      throw new DnsFormatError("a name has a character that is not printable ASCII");
    }
  }
  if (name.length - labelAt > 1 || !text.endsWith(".")) endLabel();
  checkSize(name.length, 0);
  return Uint8Array.from(name);
}

/** `\DDD`, or a backslash and a character, and the byte that it means; RFC 1035 section 5.1. */
function readEscape(text: string, at: number): readonly [string, number] {
  const [sequence = "", digits] = /^\\(?:(\d{3})|[ -/:-~])/.exec(text.slice(at, at + 4)) ?? [];
  const byte = digits === undefined ? sequence.charCodeAt(1) : Number(digits);
  // Not a number without an escape.
  if (byte <= 255) return [sequence, byte];
  throw new DnsFormatError("a name has an escape that is not \\ and three digits up to 255");
}

/** The one spelling of a name: escapes normalised, with the final dot. Throws as `encodeName`. */
export function canonicalName(text: string): string {
  return decodeName(encodeName(text));
}

/** The name without its final dot, as host names are written; the root stays a dot. */
export function withoutFinalDot(name: string): string {
  return name === "." ? name : name.slice(0, -1);
}

function checkSize(bytes: number, pointers: number): void {
  if (bytes > MAX_NAME_BYTES) {
    throw new DnsFormatError(`a name has more than ${MAX_NAME_BYTES} bytes`);
  }
  if (pointers > MAX_POINTERS) {
    throw new DnsFormatError(`a name has more than ${MAX_POINTERS} compression pointers`);
  }
}
