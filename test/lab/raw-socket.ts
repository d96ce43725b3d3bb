import { addressOf, C, errnoName, loadLibc, SystemError } from "../../src/platform/libc.ts";
import { addressBytes, addressText } from "./address.ts";
import { NEXT_HEADER_ICMPV6 } from "./packet.ts";

/** An ICMPv6 message as a raw socket delivers it. */
export type Received = { readonly from: string; readonly message: Uint8Array };

/** A message to send; the kernel writes the checksum. */
export type Sent = {
  readonly destination: string;
  readonly message: Uint8Array;
  readonly hopLimit?: number;
  readonly flowLabel?: number;
  /** The index of the interface of a link-local or multicast destination. */
  readonly scopeId?: number;
};

/** linux/in6.h, bits/socket.h */
const AF_INET6 = 10;
const SOCK_RAW_NONBLOCK_CLOEXEC = 3 | 0x800 | 0x80000;
const IPPROTO_IPV6 = 41;
const IPV6_UNICAST_HOPS = 16;
const IPV6_MULTICAST_HOPS = 18;
const IPV6_FLOWINFO_SEND = 33;

/** struct sockaddr_in6 */
const SOCKADDR_BYTES = 28;
const FLOWINFO_AT = 4;
const ADDRESS_AT = 8;
const SCOPE_ID_AT = 24;

/** Room for what a test sends at once and reads only then. */
const SOL_SOCKET = 1;
const SO_RCVBUFFORCE = 33;
const RECEIVE_BUFFER_BYTES = 16 * 2 ** 20;

const MAX_MESSAGE_BYTES = 65_535;
const POLL_INTERVAL_MS = 1;

const SYMBOLS = {
  close: { args: [C.int], returns: C.int },
  recvfrom: {
    args: [C.int, C.pointer, C.size, C.int, C.pointer, C.pointer],
    returns: C.long,
  },
  sendto: { args: [C.int, C.pointer, C.size, C.int, C.pointer, C.int], returns: C.long },
  setsockopt: { args: [C.int, C.int, C.int, C.pointer, C.int], returns: C.int },
  socket: { args: [C.int, C.int, C.int], returns: C.int },
} as const;

/** A plain ICMPv6 raw socket: the laboratory's eye on what really arrives. */
export class RawSocket implements Disposable {
  readonly #libc = loadLibc(SYMBOLS);
  readonly #descriptor: number;
  readonly #buffer = new Uint8Array(new ArrayBuffer(MAX_MESSAGE_BYTES));
  readonly #peer = new Uint8Array(new ArrayBuffer(SOCKADDR_BYTES));
  readonly #peerBytes = new Int32Array(1);

  constructor() {
    this.#descriptor = this.#libc.socket(AF_INET6, SOCK_RAW_NONBLOCK_CLOEXEC, NEXT_HEADER_ICMPV6);
    if (this.#descriptor < 0) throw new SystemError("socket", errnoName(this.#libc.errno()));
    this.#setOption(IPPROTO_IPV6, IPV6_FLOWINFO_SEND, 1);
    this.#setOption(SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER_BYTES);
  }

  send({ destination, message, hopLimit = 64, flowLabel = 0, scopeId = 0 }: Sent): void {
    this.#setOption(IPPROTO_IPV6, IPV6_UNICAST_HOPS, hopLimit);
    this.#setOption(IPPROTO_IPV6, IPV6_MULTICAST_HOPS, hopLimit);
    const address = new DataView(new ArrayBuffer(SOCKADDR_BYTES));
    address.setUint16(0, AF_INET6, true);
    address.setUint32(FLOWINFO_AT, flowLabel);
    address.setUint32(SCOPE_ID_AT, scopeId, true);
    new Uint8Array(address.buffer).set(addressBytes(destination), ADDRESS_AT);
    const at = [addressOf(message), addressOf(address)] as const;
    if (this.#libc.sendto(this.#descriptor, at[0], message.length, 0, at[1], SOCKADDR_BYTES) < 0) {
      throw new SystemError("sendto", errnoName(this.#libc.errno()));
    }
  }

  /** Everything of the given types that arrives before the time is up, or until there are `enough`. */
  async receive(
    types: readonly number[],
    withinMs: number,
    enough = Number.POSITIVE_INFINITY,
  ): Promise<Received[]> {
    const received: Received[] = [];
    const end = performance.now() + withinMs;
    while (received.length < enough) {
      // A message that arrived in time counts, however late this process reads it.
      const isOver = performance.now() >= end;
      const next = this.#next();
      if (next !== null) {
        if (types.includes(next.message[0] ?? 0)) received.push(next);
      } else if (isOver) break;
      else await Bun.sleep(POLL_INTERVAL_MS);
    }
    return received;
  }

  [Symbol.dispose](): void {
    this.#libc.close(this.#descriptor);
  }

  #next(): Received | null {
    this.#peerBytes[0] = SOCKADDR_BYTES;
    const length = Number(
      this.#libc.recvfrom(
        this.#descriptor,
        addressOf(this.#buffer),
        MAX_MESSAGE_BYTES,
        0,
        addressOf(this.#peer),
        addressOf(this.#peerBytes),
      ),
    );
    if (length < 0) return null;
    return {
      from: addressText(this.#peer.subarray(ADDRESS_AT, ADDRESS_AT + 16)),
      message: this.#buffer.slice(0, length),
    };
  }

  #setOption(level: number, option: number, value: number): void {
    const argument = new Int32Array([value]);
    this.#libc.setsockopt(
      this.#descriptor,
      level,
      option,
      addressOf(argument),
      argument.byteLength,
    );
  }
}
