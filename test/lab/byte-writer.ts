import { FormatError } from "../../src/util/bytes.ts";

/** Writes big-endian (network order) integers into a buffer of fixed size. */
export class ByteWriter {
  readonly #buffer: Uint8Array;
  #length = 0;

  /** @param limitBytes how much can be written; one more byte throws FormatError */
  constructor(limitBytes: number) {
    this.#buffer = new Uint8Array(limitBytes);
  }

  /** Bytes written so far. */
  get length(): number {
    return this.#length;
  }

  uint8(value: number): this {
    this.#buffer[this.#advance(1)] = value;
    return this;
  }

  uint16(value: number): this {
    const at = this.#advance(2);
    this.#buffer[at] = value >>> 8;
    this.#buffer[at + 1] = value;
    return this;
  }

  uint32(value: number): this {
    return this.uint16(value >>> 16).uint16(value & 0xffff);
  }

  put(bytes: Uint8Array): this {
    this.#buffer.set(bytes, this.#advance(bytes.length));
    return this;
  }

  /** A copy of the bytes so far; a small copy is cheaper than a view. */
  finish(): Uint8Array {
    return this.#buffer.slice(0, this.#length);
  }

  #advance(count: number): number {
    const at = this.#length;
    if (at + count > this.#buffer.length) {
      throw new FormatError(`${count} bytes at offset ${at}, limit ${this.#buffer.length}`);
    }
    this.#length = at + count;
    return at;
  }
}
