import { classifyIpv6 } from "../addr/classify.ts";
import { type Ipv6Address, ipv6FromBytes, ipv6ToBytes } from "../addr/ipv6.ts";
import { addressOf, C, errnoName, loadLibc, SystemError } from "../platform/libc.ts";
import {
  AF_INET6,
  alignControl,
  bpfOption,
  CMSGHDR,
  CONTROL,
  IOVEC,
  IPPROTO_ICMPV6,
  MSG_DONTWAIT,
  MSGHDR,
  OPTION,
  SOCK,
  SOCKADDR,
} from "../platform/linux.ts";
import { SystemClock } from "./clock.ts";
import { encodeTagProgram, encodeTypeFilter } from "./filter.ts";
import { Receiver } from "./receiver.ts";
import type {
  IcmpSocket,
  OutgoingPacket,
  SendResult,
  SocketListener,
  SourceChoice,
} from "./socket.ts";

/** The most that one message may have in bytes, so that it fits the least MTU of IPv6; a probe has 64. */
const MAX_MESSAGE_BYTES = 1232;
/**
 * Room for answers that come while the receiver does not run, and for probes to neighbours that the
 * kernel is still looking for, in bytes; the kernel may grant less.
 */
const BUFFER_BYTES = 4 * 1024 * 1024;
const UNSPECIFIED = new Uint8Array(16);
/** The routing table wants a port; nothing is ever sent to it. */
const UNUSED_PORT = 33434;

const SYMBOLS = {
  socket: { args: [C.int, C.int, C.int], returns: C.int },
  getsockopt: { args: [C.int, C.int, C.int, C.pointer, C.pointer], returns: C.int },
  setsockopt: { args: [C.int, C.int, C.int, C.pointer, C.uint], returns: C.int },
  connect: { args: [C.int, C.pointer, C.uint], returns: C.int },
  getsockname: { args: [C.int, C.pointer, C.pointer], returns: C.int },
  sendmsg: { args: [C.int, C.pointer, C.int], returns: C.long },
  recv: { args: [C.int, C.pointer, C.size, C.int], returns: C.long },
  close: { args: [C.int], returns: C.int },
} as const;

/**
 * Where the parts of an outgoing packet lie in the one buffer that holds them all: they point at each
 * other, and in one buffer none can be collected or moved while the kernel follows a pointer to it.
 */
const IOV = MSGHDR.bytes;
const NAME = IOV + IOVEC.bytes;
const HOP_LIMIT = alignControl(NAME + SOCKADDR.bytes);
const PACKET_INFO = HOP_LIMIT + alignControl(CMSGHDR.bytes + 4);
const MESSAGE = PACKET_INFO + alignControl(CMSGHDR.bytes + 20);
const OUT_BYTES = MESSAGE + MAX_MESSAGE_BYTES;

/**
 * Opens the raw socket and starts its receiver; see `OpenSocket`.
 *
 * @param fd the file descriptor of a raw ICMPv6 socket that is open already, or null
 */
export function openRawSocket(
  tag: number,
  listener: SocketListener,
  fd: number | null = null,
): IcmpSocket {
  return new RawSocket(tag, listener, fd);
}

class RawSocket implements IcmpSocket {
  readonly #libc = loadLibc(SYMBOLS);
  readonly #clock = new SystemClock();
  readonly #out = new Uint8Array(new ArrayBuffer(OUT_BYTES));
  readonly #view = new DataView(this.#out.buffer);
  readonly #address = addressOf(this.#out);
  readonly #fd: number;
  readonly #receiver: Receiver;
  #closing: Promise<void> | null = null;

  constructor(tag: number, listener: SocketListener, fd: number | null) {
    this.#layOut();
    this.#fd = fd ?? this.#open(SOCK.raw, IPPROTO_ICMPV6);
    try {
      this.#configure(tag);
      this.#receiver = new Receiver(this.#fd, listener);
    } catch (error) {
      this.#libc.close(this.#fd);
      throw error;
    }
  }

  sourceFor(destination: Ipv6Address, scopeId: number): SourceChoice {
    if (!isUnicast(destination)) return { kind: "failed", code: "EINVAL" };
    const fd = this.#open(SOCK.dgram, 0);
    try {
      const name = new Uint8Array(new ArrayBuffer(SOCKADDR.bytes));
      const nameBytes = new Uint32Array(new ArrayBuffer(4)).fill(SOCKADDR.bytes);
      writeName(name, destination, scopeId, 0, UNUSED_PORT);
      const code =
        this.#failure(this.#libc.connect(fd, name, SOCKADDR.bytes)) ??
        this.#failure(this.#libc.getsockname(fd, name, nameBytes));
      if (code !== null) return { kind: "failed", code };
      const address = ipv6FromBytes(name.subarray(SOCKADDR.address, SOCKADDR.address + 16));
      return { kind: "source", address };
    } finally {
      this.#libc.close(fd);
    }
  }

  send(packet: OutgoingPacket): SendResult {
    const { destination, scopeId, flowLabel, source, hopLimit, message } = packet;
    if (this.#closing !== null) return { kind: "failed", code: "EBADF" };
    if (message.length > MAX_MESSAGE_BYTES) return { kind: "failed", code: "EMSGSIZE" };
    writeName(this.#out.subarray(NAME), destination, scopeId, flowLabel, 0);
    this.#view.setInt32(HOP_LIMIT + CMSGHDR.bytes, hopLimit, true);
    // The kernel chooses a link-local source again by itself, and refuses it without an interface.
    const named =
      scopeId === 0 && classifyIpv6(source) === "LinkLocal" ? UNSPECIFIED : ipv6ToBytes(source);
    this.#out.set(named, PACKET_INFO + CMSGHDR.bytes);
    this.#out.set(message, MESSAGE);
    this.#view.setUint32(IOV + IOVEC.length, message.length, true);
    const sentNs = this.#clock.nowNs();
    const code = this.#failure(this.#libc.sendmsg(this.#fd, this.#address, MSG_DONTWAIT));
    if (code === null) return { kind: "sent", sentNs, flowLabel };
    // As long as a program of this machine has a label for itself, Linux takes none but leased ones.
    if (code === "EINVAL" && flowLabel !== 0) return this.send({ ...packet, flowLabel: 0 });
    return { kind: "failed", code };
  }

  get sendBufferBytes(): number {
    const value = new Int32Array(new ArrayBuffer(4));
    const length = new Uint32Array(new ArrayBuffer(4)).fill(value.byteLength);
    const [level, name] = OPTION.sendBuffer;
    const code = this.#failure(this.#libc.getsockopt(this.#fd, level, name, value, length));
    if (code !== null) throw new SystemError("getsockopt(SO_SNDBUF)", code);
    return value[0] as number;
  }

  get beats(): number {
    return this.#receiver.beats;
  }

  close(): Promise<void> {
    this.#closing ??= this.#receiver.stop().finally(() => this.#libc.close(this.#fd));
    return this.#closing;
  }

  /** Writes what is alike for all packets. */
  #layOut(): void {
    const view = this.#view;
    const pointTo = (at: number, part: number) =>
      view.setBigUint64(at, BigInt(this.#address + part), true);
    pointTo(MSGHDR.name, NAME);
    view.setUint32(MSGHDR.nameLength, SOCKADDR.bytes, true);
    pointTo(MSGHDR.iov, IOV);
    view.setUint32(MSGHDR.iovLength, 1, true);
    pointTo(MSGHDR.control, HOP_LIMIT);
    view.setUint32(MSGHDR.controlLength, MESSAGE - HOP_LIMIT, true);
    pointTo(IOV + IOVEC.base, MESSAGE);
    const header = (at: number, [level, type]: readonly [number, number], bytes: number) => {
      view.setUint32(at + CMSGHDR.length, CMSGHDR.bytes + bytes, true);
      view.setInt32(at + CMSGHDR.level, level, true);
      view.setInt32(at + CMSGHDR.type, type, true);
    };
    header(HOP_LIMIT, CONTROL.hopLimit, 4);
    header(PACKET_INFO, CONTROL.packetInfo, 20);
  }

  #configure(tag: number): void {
    this.#setOption(OPTION.icmp6Filter, encodeTypeFilter());
    this.#setOption(OPTION.attachFilter, bpfOption(encodeTagProgram(tag)));
    for (const option of [OPTION.timestampNs, OPTION.receiveHopLimit, OPTION.flowInfoSend]) {
      this.#setOption(option, int(1));
    }
    // A label of 0 is one too, where no other can be had.
    this.#setOption(OPTION.autoFlowLabel, int(0));
    const size = int(BUFFER_BYTES);
    this.#setOption(OPTION.receiveBuffer, size);
    this.#setOption(OPTION.sendBuffer, size);
    // Beyond the system's limit, for who may.
    this.#trySetOption(OPTION.receiveBufferForce, size);
    this.#trySetOption(OPTION.sendBufferForce, size);
    this.#drain();
  }

  /** Throws away what came in before the filters were set. */
  #drain(): void {
    const scrap = new Uint8Array(new ArrayBuffer(1));
    while (this.#libc.recv(this.#fd, scrap, scrap.length, MSG_DONTWAIT) >= 0);
  }

  #setOption(option: readonly [number, number], value: Uint8Array): void {
    const code = this.#trySetOption(option, value);
    if (code !== null) throw new SystemError(`setsockopt(${option.join(", ")})`, code);
  }

  #trySetOption([level, name]: readonly [number, number], value: Uint8Array): string | null {
    return this.#failure(this.#libc.setsockopt(this.#fd, level, name, value, value.byteLength));
  }

  #open(type: number, protocol: number): number {
    const fd = this.#libc.socket(AF_INET6, type | SOCK.nonblock | SOCK.cloexec, protocol);
    const code = this.#failure(fd);
    if (code !== null) throw new SystemError(`socket(AF_INET6, ${type}, ${protocol})`, code);
    return fd;
  }

  /** The errno name where a call has just failed, else null. */
  #failure(result: number | bigint): string | null {
    return result < 0 ? errnoName(this.#libc.errno()) : null;
  }
}

/**
 * The kernel would take an IPv4-mapped address to IPv4, the unspecified one to loopback, and no answer
 * comes from a multicast address itself.
 */
function isUnicast({ word0, word1, word2, word3 }: Ipv6Address): boolean {
  const mapped = word2 === 0xffff;
  const unspecified = word2 === 0 && word3 === 0;
  return word0 >>> 24 !== 0xff && !(word0 === 0 && word1 === 0 && (mapped || unspecified));
}

/** Writes a `struct sockaddr_in6`. */
function writeName(
  into: Uint8Array,
  address: Ipv6Address,
  scopeId: number,
  flowLabel: number,
  port: number,
): void {
  const view = new DataView(into.buffer, into.byteOffset, SOCKADDR.bytes);
  view.setUint16(SOCKADDR.family, AF_INET6, true);
  view.setUint16(SOCKADDR.port, port);
  view.setUint32(SOCKADDR.flowInfo, flowLabel);
  into.set(ipv6ToBytes(address), SOCKADDR.address);
  view.setUint32(SOCKADDR.scopeId, scopeId, true);
}

/** A C int in memory. */
function int(value: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(new Int32Array(new ArrayBuffer(4)).fill(value).buffer);
}
