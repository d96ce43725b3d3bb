/** A read goes beyond the end of the bytes, or a write beyond the limit. */
export class OutOfBoundsError extends Error {
  override readonly name = "OutOfBoundsError";
}

/** Reads big-endian (network order) integers; a read beyond the end throws OutOfBoundsError. */
export class ByteReader {
  readonly bytes: Uint8Array;
  /** Offset of the next byte. */
  offset: number;
  /** Offset after the last byte. */
  readonly end: number;

  constructor(bytes: Uint8Array, offset = 0, end = bytes.length) {
    if (offset < 0 || end > bytes.length || offset > end) {
      throw new OutOfBoundsError(`range ${offset}..${end} of ${bytes.length} bytes`);
    }
    this.bytes = bytes;
    this.offset = offset;
    this.end = end;
  }

  /** Bytes left to read. */
  get remaining(): number {
    return this.end - this.offset;
  }

  uint8(): number {
    return this.bytes[this.#advance(1)] as number;
  }

  uint16(): number {
    const at = this.#advance(2);
    return ((this.bytes[at] as number) << 8) | (this.bytes[at + 1] as number);
  }

  uint32(): number {
    return this.uint16() * 0x10000 + this.uint16();
  }

  /** A view of the next `count` bytes; it shares memory with the source. */
  take(count: number): Uint8Array {
    const at = this.#advance(count);
    return this.bytes.subarray(at, at + count);
  }

  #advance(count: number): number {
    const at = this.offset;
    if (count < 0 || count > this.end - at) {
      throw new OutOfBoundsError(`${count} bytes at offset ${at}, of ${this.end}`);
    }
    this.offset = at + count;
    return at;
  }
}

/** Writes big-endian (network order) integers into a buffer of fixed size. */
export class ByteWriter {
  readonly #buffer: Uint8Array;
  #length = 0;

  /** @param limitBytes how much can be written; one more byte throws OutOfBoundsError */
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
      throw new OutOfBoundsError(`${count} bytes at offset ${at}, limit ${this.#buffer.length}`);
    }
    this.#length = at + count;
    return at;
  }
}
