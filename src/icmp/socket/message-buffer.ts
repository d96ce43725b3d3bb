import { addressOf } from "../../platform/libc.ts";
import { alignControl, IOVEC, MSGHDR, SOCKADDR } from "../../platform/linux.ts";

/** Bytes for control messages: more than twice the size of those that a socket asks for. */
export const MAX_CONTROL_BYTES = 128;

/**
 * A `struct msghdr` with everything that it points to. All parts are in one buffer, so that the garbage collector
 * can neither free nor move one of them while the kernel follows a pointer to it.
 */
export class MessageBuffer {
  static readonly #IOV = MSGHDR.bytes;
  static readonly #NAME = MessageBuffer.#IOV + IOVEC.bytes;
  static readonly #CONTROL = alignControl(MessageBuffer.#NAME + SOCKADDR.bytes);
  static readonly #MESSAGE = MessageBuffer.#CONTROL + MAX_CONTROL_BYTES;

  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly view: DataView;
  /** The address of the `msghdr` in memory. */
  readonly address: ReturnType<typeof addressOf>;
  readonly name: Uint8Array;
  readonly control = MessageBuffer.#CONTROL;
  readonly message: Uint8Array;

  constructor(messageBytes: number) {
    this.bytes = new Uint8Array(new ArrayBuffer(MessageBuffer.#MESSAGE + messageBytes));
    this.view = new DataView(this.bytes.buffer);
    this.address = addressOf(this.bytes);
    this.name = this.bytes.subarray(MessageBuffer.#NAME, MessageBuffer.#NAME + SOCKADDR.bytes);
    this.message = this.bytes.subarray(MessageBuffer.#MESSAGE);
    const pointTo = (at: number, part: number) =>
      this.view.setBigUint64(at, BigInt(this.address + part), true);
    pointTo(MSGHDR.name, MessageBuffer.#NAME);
    pointTo(MSGHDR.iov, MessageBuffer.#IOV);
    pointTo(MSGHDR.control, MessageBuffer.#CONTROL);
    pointTo(MessageBuffer.#IOV + IOVEC.base, MessageBuffer.#MESSAGE);
    this.view.setUint32(MSGHDR.iovLength, 1, true);
    this.prepare(MAX_CONTROL_BYTES, messageBytes);
  }

  /** Sets the lengths, which `recvmsg` overwrites. */
  prepare(controlBytes: number, messageBytes: number): void {
    this.view.setUint32(MSGHDR.nameLength, SOCKADDR.bytes, true);
    this.view.setUint32(MSGHDR.controlLength, controlBytes, true);
    this.view.setUint32(MessageBuffer.#IOV + IOVEC.length, messageBytes, true);
  }
}
