/** Bytes of the length before each message on a connection; RFC 1035 section 4.2.2. */
const LENGTH_BYTES = 2;

/** The message behind its length, to be sent in one write; RFC 7766 section 8. */
export function frameMessage(message: Uint8Array): Uint8Array {
  const framed = new Uint8Array(LENGTH_BYTES + message.length);
  framed[0] = message.length >>> 8;
  framed[1] = message.length;
  framed.set(message, LENGTH_BYTES);
  return framed;
}

/** Puts together the first message of a connection, in whatever pieces it arrives. */
export class MessageStream {
  #bytes = new Uint8Array(2048);
  #length = 0;

  /** Takes the next piece; the message once it is whole, null before. What comes behind it is ignored. */
  add(piece: Uint8Array): Uint8Array | null {
    const start = this.#length;
    this.#length += piece.length;
    if (this.#length > this.#bytes.length) {
      // What has arrived decides, not the length that the peer says.
      const larger = new Uint8Array(2 * this.#length);
      larger.set(this.#bytes.subarray(0, start));
      this.#bytes = larger;
    }
    this.#bytes.set(piece, start);
    if (this.#length < LENGTH_BYTES) return null;
    const end = LENGTH_BYTES + (((this.#bytes[0] as number) << 8) | (this.#bytes[1] as number));
    return this.#length < end ? null : this.#bytes.subarray(LENGTH_BYTES, end);
  }
}
