/** Bytes break their format: they end too early, or break a rule. */
export class FormatError extends Error {
  override readonly name: string = "FormatError";
}

/** Reads big-endian (network order) integers; a read beyond the end throws FormatError. */
export class ByteReader {
  readonly bytes: Uint8Array;
  /** Offset of the next byte. */
  offset: number;
  /** Offset after the last byte. */
  readonly end: number;

  constructor(bytes: Uint8Array, offset = 0, end = bytes.length) {
    if (offset < 0 || end > bytes.length || offset > end) {
      throw new FormatError(`range ${offset}..${end} of ${bytes.length} bytes`);
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

  /** A view of all bytes that are left. */
  rest(): Uint8Array {
    return this.take(this.remaining);
  }

  #advance(count: number): number {
    const at = this.offset;
    if (count < 0 || count > this.end - at) {
      throw new FormatError(`${count} bytes at offset ${at}, of ${this.end}`);
    }
    this.offset = at + count;
    return at;
  }
}
