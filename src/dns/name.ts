import { ByteReader, ByteWriter } from "../bytes.ts";
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
interface Suffix {
  /** Empty for the root. */
  readonly text: string;
  /** Bytes on the wire without compression. */
  readonly bytes: number;
  /** Pointers on the way to the end. */
  readonly pointers: number;
  /** Offset that the first of these pointers leads to, -1 without one. */
  readonly target: number;
}

const ROOT: Suffix = { text: "", bytes: 1, pointers: 0, target: -1 };

/**
 * Reads the names of one message. Every end of a name is read once and remembered, so that the work
 * is bounded by the size of the message, however its names point at each other.
 */
export class NameReader {
  readonly #suffixes = new Map<number, Suffix>();

  /**
   * The name at the reader's offset; RFC 1035 section 4.1.4. Throws DnsFormatError for a name that is
   * cut short or longer than 255 bytes, for a label type that is not in use, and for a pointer that
   * does not lead backwards.
   */
  read(reader: ByteReader): string {
    return this.#readPart(reader, 0).text || ".";
  }

  /** @param pointers how many pointers have led here; 0 where the name itself stands */
  #readPart(reader: ByteReader, pointers: number): Suffix {
    if (pointers > MAX_POINTERS) throw tooManyPointers();
    const { bytes, end, offset: start } = reader;
    const labels: number[] = [];
    let at = start;
    let suffix: Suffix | undefined;
    while (suffix === undefined) {
      // The name itself is always read to its end, for the reader must stand behind it.
      const known = pointers > 0 ? this.#suffixes.get(at) : undefined;
      const length = byteAt(bytes, at, end);
      if (known !== undefined) {
        if (known.target >= start) throw notBackwards();
        suffix = known;
      } else if (length === 0) {
        at += 1;
        suffix = ROOT;
      } else if (length >= POINTER) {
        const target = ((length - POINTER) << 8) | byteAt(bytes, at + 1, end);
        if (target >= start) throw notBackwards();
        at += 2;
        const rest = this.#readPart(new ByteReader(bytes, target), pointers + 1);
        suffix = { text: rest.text, bytes: rest.bytes, pointers: rest.pointers + 1, target };
      } else {
        if (length > MAX_LABEL_BYTES) {
          throw new DnsFormatError(`label type 0x${(length & POINTER).toString(16)} is not in use`);
        }
        labels.push(at);
        at += 1 + length;
        if (at - start >= MAX_NAME_BYTES) throw tooLong();
      }
    }
    reader.offset = at;
    return this.#prepend(bytes, labels, suffix);
  }

  /** Puts the labels that begin at these offsets before the rest of the name. */
  #prepend(bytes: Uint8Array, labels: readonly number[], rest: Suffix): Suffix {
    const { pointers, target } = rest;
    if (pointers > MAX_POINTERS) throw tooManyPointers();
    let suffix = rest;
    for (let index = labels.length - 1; index >= 0; index--) {
      const at = labels[index] as number;
      const length = bytes[at] as number;
      const text = `${labelText(bytes, at + 1, length)}.${suffix.text}`;
      suffix = { text, bytes: suffix.bytes + 1 + length, pointers, target };
      this.#suffixes.set(at, suffix);
    }
    if (suffix.bytes > MAX_NAME_BYTES) throw tooLong();
    return suffix;
  }
}

function labelText(bytes: Uint8Array, start: number, length: number): string {
  let text = "";
  for (let at = start; at < start + length; at++) text += BYTE_TEXT[bytes[at] as number];
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
    if (total > MAX_NAME_BYTES) throw tooLong();
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
  return new NameReader().read(new ByteReader(encodeName(text)));
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

function tooManyPointers(): DnsFormatError {
  return new DnsFormatError(`a name has more than ${MAX_POINTERS} compression pointers`);
}

function tooLong(): DnsFormatError {
  return new DnsFormatError(`a name has more than ${MAX_NAME_BYTES} bytes`);
}

function badEscape(): DnsFormatError {
  return new DnsFormatError("a name has an escape that is not \\ and three digits up to 255");
}
