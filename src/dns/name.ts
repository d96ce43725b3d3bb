import { ByteReader, ByteWriter } from "../util/bytes.ts";
import { DnsFormatError } from "./format-error.ts";
import { MAX_LABEL_BYTES, MAX_NAME_BYTES, MAX_POINTERS } from "./limits.ts";

/*
 * A name is held as its text in presentation form (RFC 1035 section 5.1): escaped in one way only,
 * with the final dot. So two texts are equal exactly when the names are equal on the wire, and
 * `toLowerCase` of the text is the form in which names compare (RFC 4343).
 */

const DOT = 0x2e;
const BACKSLASH = 0x5c;
/** Both high bits set: not a label, but where the rest of the name stands. */
const POINTER = 0xc0;

/** How each byte inside a label is written. */
const BYTE_TEXT: readonly string[] = Array.from({ length: 256 }, (_, byte) => {
  if (byte < 0x21 || byte > 0x7e) return escapedByte(byte);
  const character = String.fromCharCode(byte);
  return '".;\\()@$'.includes(character) ? `\\${character}` : character;
});

/** `\DDD`: a byte as three decimal digits; RFC 1035 section 5.1. */
export function escapedByte(byte: number): string {
  return `\\${String(byte).padStart(3, "0")}`;
}

/** A name, or its end from some label on. */
interface NameEnd {
  /** Empty for the root. */
  readonly text: string;
  /** Bytes on the wire without compression. */
  readonly bytes: number;
  /** Pointers on the way. */
  readonly pointers: number;
  /** Offset that the first of these pointers leads to, -1 without one. */
  readonly target: number;
}

const ROOT: NameEnd = { text: "", bytes: 1, pointers: 0, target: -1 };

/**
 * Reads the names of one message. What pointers lead to is read once and remembered, so that the work
 * is bounded by the size of the message, however its names point at each other.
 */
export class NameReader {
  readonly #known = new Map<number, NameEnd>();

  /**
   * The name at the reader's offset; RFC 1035 section 4.1.4. Throws DnsFormatError for a name that is
   * cut short or longer than 255 bytes, for a label type that is not in use, and for a pointer that
   * does not lead backwards: to before the first of the labels that it follows.
   */
  read(reader: ByteReader): string {
    const { bytes, offset, end } = reader;
    reader.offset = behindName(bytes, offset, end);
    return this.#endAt(bytes, offset, offset, 0, 0).text || ".";
  }

  /**
   * The end of a name from a label or pointer on.
   *
   * @param start offset of the first label of the row that `at` belongs to
   * @param before bytes of the name before `at`
   * @param pointers how many pointers have led here
   */
  #endAt(bytes: Uint8Array, at: number, start: number, before: number, pointers: number): NameEnd {
    checkLength(before, pointers);
    const end = this.#known.get(at) ?? this.#readEnd(bytes, at, start, before, pointers);
    checkLength(before + end.bytes, pointers + end.pointers);
    if (end.target >= start) throw notBackwards();
    // What stands in its place is read once anyway; what pointers lead to may be led to again.
    if (pointers > 0) this.#known.set(at, end);
    return end;
  }

  #readEnd(
    bytes: Uint8Array,
    at: number,
    start: number,
    before: number,
    pointers: number,
  ): NameEnd {
    const length = byteAt(bytes, at, bytes.length);
    if (length === 0) return ROOT;
    if (length >= POINTER) {
      const target = ((length - POINTER) << 8) | byteAt(bytes, at + 1, bytes.length);
      if (target >= start) throw notBackwards();
      const end = this.#endAt(bytes, target, target, before, pointers + 1);
      return { text: end.text, bytes: end.bytes, pointers: end.pointers + 1, target };
    }
    const next = behindLabel(bytes, at, bytes.length);
    const rest = this.#endAt(bytes, next, start, before + next - at, pointers);
    return {
      text: `${labelText(bytes, at + 1, next)}.${rest.text}`,
      bytes: rest.bytes + next - at,
      pointers: rest.pointers,
      target: rest.target,
    };
  }
}

/** The offset behind a name, its pointer included. */
function behindName(bytes: Uint8Array, start: number, end: number): number {
  let at = start;
  for (;;) {
    const length = byteAt(bytes, at, end);
    if (length === 0) return at + 1;
    if (length >= POINTER) {
      byteAt(bytes, at + 1, end);
      return at + 2;
    }
    at = behindLabel(bytes, at, end);
  }
}

/** The offset behind a label. */
function behindLabel(bytes: Uint8Array, at: number, end: number): number {
  const length = byteAt(bytes, at, end);
  if (length > MAX_LABEL_BYTES) {
    throw new DnsFormatError(`label type 0x${(length & POINTER).toString(16)} is not in use`);
  }
  return at + 1 + length;
}

function labelText(bytes: Uint8Array, start: number, end: number): string {
  let text = "";
  for (let at = start; at < end; at++) text += BYTE_TEXT[bytes[at] as number];
  return text;
}

function byteAt(bytes: Uint8Array, at: number, end: number): number {
  if (at >= end) throw new DnsFormatError("a name is cut short");
  return bytes[at] as number;
}

/**
 * Writes a name, without compression, from its presentation form with or without the final dot.
 * Throws DnsFormatError for text that is no name: an empty label inside, a label of more than 63
 * bytes, a name of more than 255, an unfinished escape, a character that is not printable ASCII.
 */
export function writeName(writer: ByteWriter, text: string): void {
  let total = 1;
  let label: number[] = [];
  const finishLabel = () => {
    if (label.length === 0) throw new DnsFormatError("a name has an empty label");
    if (label.length > MAX_LABEL_BYTES) {
      throw new DnsFormatError(`a label has more than ${MAX_LABEL_BYTES} bytes`);
    }
    total += 1 + label.length;
    checkLength(total, 0);
    writer.uint8(label.length).put(Uint8Array.from(label));
    label = [];
  };
  let at = text === "." ? 1 : 0;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code === DOT) {
      finishLabel();
      at += 1;
    } else if (code === BACKSLASH) {
      const escaped = readEscape(text, at);
      label.push(escaped.byte);
      at += escaped.length;
    } else {
      label.push(printable(code));
      at += 1;
    }
  }
  if (!text.endsWith(".") || label.length > 0) finishLabel();
  writer.uint8(0);
}

/** `\DDD` or a backslash and the character it stands for; RFC 1035 section 5.1. */
function readEscape(text: string, at: number): { byte: number; length: number } {
  const digits = /^[0-9]{3}/.exec(text.slice(at + 1, at + 4))?.[0];
  if (digits === undefined) {
    const code = text.charCodeAt(at + 1);
    if (code >= 0x30 && code <= 0x39) throw badEscape();
    return { byte: printable(code), length: 2 };
  }
  if (Number(digits) > 255) throw badEscape();
  return { byte: Number(digits), length: 4 };
}

/** The code of a character that may stand in a name's text; throws for any other, and for NaN. */
function printable(code: number): number {
  if (code >= 0x20 && code <= 0x7e) return code;
  throw new DnsFormatError("a name has a character that is not printable ASCII");
}

/** The one text of a name that `text` is a spelling of: escapes normalised, with the final dot. Throws as `writeName`. */
export function canonicalName(text: string): string {
  return decodeName(encodeName(text));
}

/** The name that stands in a message at an offset. Throws as `NameReader.read`. */
export function decodeName(bytes: Uint8Array, offset = 0): string {
  return new NameReader().read(new ByteReader(bytes, offset));
}

/** The name on the wire. Throws as `writeName`. */
export function encodeName(text: string): Uint8Array {
  const writer = new ByteWriter(MAX_NAME_BYTES);
  writeName(writer, text);
  return writer.finish();
}

/** The name without its final dot, as host names are written; the root stays a dot. */
export function withoutFinalDot(name: string): string {
  return name === "." ? name : name.slice(0, -1);
}

function notBackwards(): DnsFormatError {
  return new DnsFormatError("a compression pointer does not lead backwards");
}

/** Throws for a name that is longer than any can be, or that takes longer to read. */
function checkLength(bytes: number, pointers: number): void {
  if (bytes > MAX_NAME_BYTES) {
    throw new DnsFormatError(`a name has more than ${MAX_NAME_BYTES} bytes`);
  }
  if (pointers > MAX_POINTERS) {
    throw new DnsFormatError(`a name has more than ${MAX_POINTERS} compression pointers`);
  }
}

function badEscape(): DnsFormatError {
  return new DnsFormatError("a name has an escape that is not \\ and three digits up to 255");
}
