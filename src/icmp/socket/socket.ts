import { type AddressType, classifyIpv6 } from "../../addr/classify.ts";
import {
  type Ipv6Address,
  ipv6At,
  ipv6FromBytes,
  isLinkLocal,
  writeIpv6,
} from "../../addr/ipv6.ts";
import { addressOf, errnoName, lastError, libc, SystemError } from "../../platform/libc.ts";
import {
  AF_INET6,
  alignControl,
  CMSGHDR,
  CONTROL,
  EXTENDED_ERROR,
  FCNTL,
  MEMORY,
  MSG_DONTWAIT,
  MSG_ERRQUEUE,
  MSGHDR,
  OPTION,
  SIGURG,
  SOCK,
  SOCKADDR,
} from "../../platform/linux.ts";
import { IPV6_HEADER_BYTES, NEXT_HEADER_ICMPV6 } from "../wire/packet.ts";
import { MAX_CONTROL_BYTES, MessageBuffer } from "./message-buffer.ts";

/**
 * The port that a probe goes to. The echo request travels as the data of a UDP packet, or as a TCP SYN that has its
 * identifier and sequence and no data. The socket turns each response into a response to the echo request.
 */
export interface ProbedPort {
  readonly protocol: "udp" | "tcp";
  readonly port: number;
}

/** The answer of a port: a closed one refuses. */
export type PortState = "open" | "closed";

/** An echo request to send. */
export interface OutgoingPacket extends Route {
  readonly target: Ipv6Address;
  /** Index of the interface of a link-local target, 0 for none. */
  readonly scopeId: number;
  readonly hopLimit: number;
  /** The target's port; absent for ICMPv6, which has none. */
  readonly probedPort?: ProbedPort | undefined;
  /** The number of the try in its run; see `PORTS` of the TCP socket. */
  readonly turn?: number;
  /** The ICMPv6 message from its type byte on. */
  readonly message: Uint8Array;
}

/** A received ICMPv6 message. */
export interface ReceivedPacket {
  readonly source: Ipv6Address;
  /** Index of the interface of a link-local sender, 0 otherwise. */
  readonly scopeId: number;
  readonly hopLimit: number;
  /** The time at which the kernel received it, in milliseconds of the monotonic clock. */
  readonly receivedMs: number;
  /** The time at which it was read: an upper bound of `receivedMs` that a clock step cannot move. */
  readonly readMs: number;
  /** The ICMPv6 message from its type byte on; valid until the next `receive`. */
  readonly message: Uint8Array;
  /** The port of the probe that it is about. */
  readonly probedPort?: ProbedPort | undefined;
  /** The state of that port, if the packet tells it. */
  readonly state?: PortState;
}

/** An echo request that an error is about, as far as it is quoted. */
export type Invoking = Pick<ReceivedPacket, "message" | "probedPort">;

/** The source address that the kernel uses for a target, and the flow label that it accepts. */
export interface Route {
  readonly source: Ipv6Address;
  /** 20 bits, 0 for none; routers send all packets with one label the same way. */
  readonly flowLabel: number;
}

/** The operating system as the prober uses it. Nothing blocks. */
export interface IcmpSocket {
  /** The identifier that the kernel gives all probes, 16 bits; absent if the prober chooses it. */
  readonly identifier?: number;
  /** Asks the routing table without sending anything; an errno name if there is no route. */
  route(target: Ipv6Address, scopeId: number, flowLabel: number): Route | string;
  /** Sends a packet. Returns the time just before, in milliseconds of the monotonic clock, or an errno name. */
  send(packet: OutgoingPacket): number | string;
  /** Receives packets with one of two tags from now on; false if the kernel refuses. Absent with an `identifier`. */
  pass?(tag: number, other: number): boolean;
  /** The number of packets, or of answers of ports, that the kernel dropped: its buffer was full or a checksum wrong. */
  dropped(probedPort?: ProbedPort): number;
  /** Sets the action to call when packets have arrived: once or more for all of them, and perhaps without any. */
  onArrival(action: () => void): void;
  /** The next packet in the order in which the kernel received them; null if there is none. */
  receive(): ReceivedPacket | null;
  close(): void;
}

/** The socket buffer in each direction, in bytes; without CAP_NET_ADMIN the kernel grants less. */
const BUFFER_BYTES = 4 * 1024 * 1024;
/** The largest payload of an IPv6 packet. */
const MAX_SENT_BYTES = 65_535;
/** An error fits into the least MTU of IPv6; only the beginning of a larger reply matters. */
const MAX_RECEIVED_BYTES = 1280;
/** Packets leave whole, whatever path MTU the kernel has cached; linux/in6.h, IPV6_PMTUDISC_PROBE. */
const PROBE_MTU = 3;
/** If the readings of two clocks are further apart, in milliseconds, another thread ran between: they are read again. */
const MAX_APART_MS = 0.01;
const MAX_CLOCK_READINGS = 5;
const REALTIME = 0;
/** The kernel needs a port to find a route; nothing is ever sent to it. */
const UNUSED_PORT = 33434;
/** The family AF_UNSPEC removes the peer and the address of a socket; connect(2). */
const DISCONNECT = new Uint8Array(new ArrayBuffer(SOCKADDR.bytes));
/** `struct in6_pktinfo`: an address and the index of an interface. */
const INFO_BYTES = 20;
const UNNAMED = ipv6FromBytes(new Uint8Array(16));
/**
 * Addresses to which no probe is sent: the kernel would send to an IPv4-mapped one over IPv4 and to the unspecified
 * one over loopback, and a multicast address never answers itself.
 */
const UNSENDABLE: readonly AddressType[] = ["IPv4Mapped", "Unspecified", "Multicast"];
/** The offset of the invoking packet in an ICMPv6 error; RFC 4443 section 2.1. */
const INVOKING_AT = 8;

/** A socket option, its value, and the descriptor if it is not the socket's own. */
export type OptionValue = readonly [
  option: readonly [number, number],
  value: Uint8Array,
  fd?: number,
];

/** The common part of the raw socket and the datagram socket. */
export abstract class EchoSocket implements IcmpSocket {
  readonly #libc = libc();
  readonly #out = new MessageBuffer(MAX_SENT_BYTES);
  /** The offsets of the values of its control messages. */
  readonly #hopLimitAt = this.#addControl(CONTROL.hopLimit, this.#out.control, 4);
  readonly #sourceAt = this.#addControl(CONTROL.packetInfo, this.#hopLimitAt + 4, INFO_BYTES);
  /** The last packet that was read. */
  protected readonly received = new MessageBuffer(MAX_RECEIVED_BYTES);
  readonly #timespec = new DataView(new ArrayBuffer(16));
  readonly #timespecAddress = addressOf(this.#timespec);
  protected readonly fd: number;
  /** A socket that asks the routing table. It stays open, because a process can run out of descriptors. */
  readonly #router: number = -1;
  #isOpen = true;
  #onArrival = () => {};

  /**
   * @param fd an ICMPv6 socket, which this one closes
   * @param options options beside those that all sockets have
   * @throws SystemError if an option is refused
   */
  constructor(fd: number, options: readonly OptionValue[]) {
    this.fd = fd;
    try {
      this.#router = openSocket(SOCK.dgram, 0);
      this.#configure(options);
    } catch (error) {
      this.#close();
      throw error;
    }
  }

  route(target: Ipv6Address, scopeId: number, flowLabel: number): Route | string {
    if (UNSENDABLE.includes(classifyIpv6(target))) return "EINVAL";
    const { name, view } = this.#out;
    writeSocketName(view, name.byteOffset, target, scopeId, UNUSED_PORT, flowLabel);
    const code =
      failure(this.#libc.connect(this.#router, name, SOCKADDR.bytes)) ??
      failure(this.#libc.getsockname(this.#router, name, int(SOCKADDR.bytes)));
    this.#libc.connect(this.#router, DISCONNECT, SOCKADDR.bytes);
    // While a program of this machine holds an exclusive label, Linux accepts leased ones only.
    if (code === "EINVAL" && flowLabel !== 0) return this.route(target, scopeId, 0);
    return code ?? { source: ipv6At(view, name.byteOffset + SOCKADDR.address), flowLabel };
  }

  send(packet: OutgoingPacket): number | string {
    const { target, scopeId, source, hopLimit, flowLabel, message, probedPort } = packet;
    if (!this.#isOpen) return "EBADF";
    if (message.length > MAX_SENT_BYTES) return "EMSGSIZE";
    const out = this.#out;
    // Only UDP has a port here: raw sockets have none, and TCP is sent through a raw socket.
    const port = probedPort?.protocol === "udp" ? probedPort.port : 0;
    writeSocketName(out.view, out.name.byteOffset, target, scopeId, port, flowLabel);
    // The kernel refuses a link-local source without an interface. Without a source, it chooses the same one.
    const isNamed = scopeId !== 0 || !isLinkLocal(source);
    writeIpv6(isNamed ? source : UNNAMED, out.view, this.#sourceAt);
    out.view.setInt32(this.#hopLimitAt, hopLimit, true);
    out.message.set(message);
    out.prepare(this.#sourceAt + INFO_BYTES - out.control, message.length);
    const sentMs = performance.now();
    return failure(this.#libc.sendmsg(this.fd, out.address, MSG_DONTWAIT)) ?? sentMs;
  }

  /** The signal belongs to the process: the action of each socket is called when any socket has received something. */
  onArrival(action: () => void): void {
    process.off("SIGURG", this.#onArrival).on("SIGURG", action);
    this.#onArrival = action;
  }

  receive(): ReceivedPacket | null {
    return this.read(MSG_DONTWAIT);
  }

  /** Receives with flags of recvmsg(2). */
  protected read(flags: number): ReceivedPacket | null {
    if (!this.#isOpen) return null;
    const { view, name, message, address } = this.received;
    this.received.prepare(MAX_CONTROL_BYTES, MAX_RECEIVED_BYTES);
    const length = Number(this.#libc.recvmsg(this.fd, address, flags));
    // Reading a pending error of the socket clears it, and returns no packet.
    if (length < 0) return null;
    const readMs = this.#readClocks();
    const stamp = this.findControl(CONTROL.timestampNs);
    const ageMs = stamp === null ? 0 : millisecondsBetween(view, stamp, this.#timespec, 0);
    const hopLimit = this.findControl(CONTROL.hopLimit);
    return {
      source: ipv6At(view, name.byteOffset + SOCKADDR.address),
      scopeId: view.getUint32(name.byteOffset + SOCKADDR.scopeId, true),
      hopLimit: hopLimit === null ? 0 : view.getInt32(hopLimit, true),
      // A step of the wall clock can make the stamp later than now.
      receivedMs: readMs - Math.max(0, ageMs),
      readMs,
      message: message.subarray(0, length),
    };
  }

  dropped(): number {
    return droppedBy(this.fd);
  }

  close(): void {
    this.#close();
  }

  /** Closes this socket alone, also one whose subclass is not constructed yet. */
  #close(): void {
    if (this.#isOpen) for (const fd of [this.fd, this.#router]) this.#libc.close(fd);
    this.#isOpen = false;
    process.off("SIGURG", this.#onArrival);
  }

  /**
   * Reads the wall clock into `#timespec`, and returns the monotonic time. Both are read as close together as the
   * scheduler allows, so a step of the wall clock while a packet is on its way changes nothing.
   */
  #readClocks(): number {
    for (let reading = 1; ; reading++) {
      const beforeMs = performance.now();
      this.#libc.clock_gettime(REALTIME, this.#timespecAddress);
      const readMs = performance.now();
      if (readMs - beforeMs <= MAX_APART_MS || reading === MAX_CLOCK_READINGS) return readMs;
    }
  }

  /** The offset in `received` of the data of a control message; null if there is none of this kind. */
  protected findControl(wanted: readonly [number, number]): number | null {
    const { view, control } = this.received;
    const end = control + view.getUint32(MSGHDR.controlLength, true);
    for (let at = control; at + CMSGHDR.bytes <= end; ) {
      const length = view.getUint32(at + CMSGHDR.length, true);
      if (length < CMSGHDR.bytes || at + length > end) break;
      const level = view.getInt32(at + CMSGHDR.level, true);
      const type = view.getInt32(at + CMSGHDR.type, true);
      if (level === wanted[0] && type === wanted[1]) return at + CMSGHDR.bytes;
      at += alignControl(length);
    }
    return null;
  }

  /** Adds a control message behind the offset `endAt`, and returns the offset of its value. */
  #addControl([level, type]: readonly [number, number], endAt: number, dataBytes: number): number {
    const { view } = this.#out;
    const at = alignControl(endAt);
    view.setUint32(at + CMSGHDR.length, CMSGHDR.bytes + dataBytes, true);
    view.setInt32(at + CMSGHDR.level, level, true);
    view.setInt32(at + CMSGHDR.type, type, true);
    return at + CMSGHDR.bytes;
  }

  #configure(options: readonly OptionValue[]): void {
    const size = int(BUFFER_BYTES);
    const required = [
      ...options,
      [OPTION.timestampNs, int(1)],
      [OPTION.receiveHopLimit, int(1)],
      [OPTION.flowInfoSend, int(1)],
      [OPTION.flowInfoSend, int(1), this.#router],
      // A label of 0 must stay 0.
      [OPTION.autoFlowLabel, int(0)],
      [OPTION.mtuDiscover, int(PROBE_MTU)],
      [OPTION.receiveBuffer, size],
      [OPTION.sendBuffer, size],
    ] satisfies OptionValue[];
    for (const [option, value, fd] of required) {
      const code = this.setOption(option, value, fd);
      if (code !== null) throw new SystemError(`setsockopt(${option.join(", ")})`, code);
    }
    // Exceeds the system's limit, if the process may do that.
    this.setOption(OPTION.receiveBufferForce, size);
    this.setOption(OPTION.sendBufferForce, size);
    // If the kernel refuses the signal, answers are only read later.
    this.#libc.fcntl(this.fd, FCNTL.setSignal, SIGURG);
    this.#libc.fcntl(this.fd, FCNTL.setOwner, process.pid);
    this.#libc.fcntl(this.fd, FCNTL.setStatus, SOCK.nonblock | FCNTL.async);
    // Discard packets that arrived before the filters were set.
    while (this.read(MSG_DONTWAIT) !== null);
  }

  /** Returns the errno name if the option is refused, else null. */
  protected setOption([level, name]: readonly [number, number], value: Uint8Array, fd = this.fd) {
    return failure(this.#libc.setsockopt(fd, level, name, value, value.byteLength));
  }
}

/** Tries to send a packet: each error about an earlier packet that has just come makes one try fail. */
const MAX_SENDS = 8;

/** A socket whose ICMPv6 errors come in a queue of their own; ipv6(7), IPV6_RECVERR. */
export class ErrorQueueSocket extends EchoSocket {
  /** @throws SystemError if an option is refused */
  constructor(fd: number, options: readonly OptionValue[] = []) {
    super(fd, [[OPTION.receiveErrors, int(1)], ...options]);
  }

  override send(packet: OutgoingPacket): number | string {
    let result = super.send(packet);
    for (let tries = 1; typeof result === "string" && tries < MAX_SENDS; tries++)
      result = super.send(packet);
    return result;
  }

  override receive(): ReceivedPacket | null {
    // Errors come first, because they can rule out what a packet answers.
    const error = this.#receiveError();
    if (error !== null) return error;
    const packet = super.receive();
    return packet && this.replyIn(packet, this.#port());
  }

  /** The port in the address of the packet that was read. */
  #port(): number {
    const { view, name } = this.received;
    return view.getUint16(name.byteOffset + SOCKADDR.port);
  }

  /** A packet as an echo reply; without a message if it answers nothing. */
  protected replyIn(packet: ReceivedPacket, _port: number): ReceivedPacket {
    return packet;
  }

  /** The subject of an error, from the data of the invoking packet and the port to which it went. */
  protected requestIn(message: Uint8Array, _port: number): Invoking {
    return { message };
  }

  /** The next ICMPv6 error, as the raw socket would receive it. */
  #receiveError(): ReceivedPacket | null {
    const packet = this.read(MSG_DONTWAIT | MSG_ERRQUEUE);
    if (packet === null) return null;
    const { view, name } = this.received;
    const error = this.findControl(CONTROL.error);
    if (error === null || view.getUint8(error + EXTENDED_ERROR.origin) !== EXTENDED_ERROR.icmp6) {
      return this.#receiveError();
    }
    const sender = error + EXTENDED_ERROR.bytes;
    // The kernel returns the probe without its IPv6 header, and its destination and label as a name.
    const { message: request, probedPort } = this.requestIn(packet.message, this.#port());
    const message = new Uint8Array(INVOKING_AT + IPV6_HEADER_BYTES + request.length);
    const written = new DataView(message.buffer);
    message[0] = view.getUint8(error + EXTENDED_ERROR.type);
    message[1] = view.getUint8(error + EXTENDED_ERROR.code);
    written.setUint32(4, view.getUint32(error + EXTENDED_ERROR.info, true));
    const flowInfo = view.getUint32(name.byteOffset + SOCKADDR.flowInfo);
    written.setUint32(INVOKING_AT, 0x6000_0000 + flowInfo);
    message[INVOKING_AT + 6] = NEXT_HEADER_ICMPV6;
    message.set(name.subarray(SOCKADDR.address, SOCKADDR.address + 16), INVOKING_AT + 24);
    message.set(request, INVOKING_AT + IPV6_HEADER_BYTES);
    return {
      ...packet,
      source: ipv6At(view, sender + SOCKADDR.address),
      scopeId: view.getUint32(sender + SOCKADDR.scopeId, true),
      message,
      probedPort,
    };
  }
}

/** Opens a socket that does not block, of IPv6 unless another family is given. @throws SystemError */
export function openSocket(type: number, protocol: number, family: number = AF_INET6): number {
  const fd = libc().socket(family, type | SOCK.nonblock | SOCK.cloexec, protocol);
  const name = family === AF_INET6 ? "AF_INET6" : family;
  if (fd < 0) throw lastError(`socket(${name}, ${type}, ${protocol})`);
  return fd;
}

/**
 * Binds a socket to a port, or an identifier, that the kernel chooses, and returns it.
 *
 * @throws SystemError after it has closed the socket
 */
export function bindAny(fd: number): number {
  const name = socketName(UNNAMED, 0);
  if (libc().bind(fd, name, SOCKADDR.bytes) < 0) {
    const error = lastError("bind");
    libc().close(fd);
    throw error;
  }
  libc().getsockname(fd, name, int(SOCKADDR.bytes));
  return new DataView(name.buffer).getUint16(SOCKADDR.port);
}

/** A `struct sockaddr_in6`. */
export function socketName(ip: Ipv6Address, scopeId: number, port = 0) {
  const view = new DataView(new ArrayBuffer(SOCKADDR.bytes));
  writeSocketName(view, 0, ip, scopeId, port, 0);
  return new Uint8Array(view.buffer);
}

/** Writes a `struct sockaddr_in6` at an offset, for senders of many packets. */
function writeSocketName(
  view: DataView,
  at: number,
  ip: Ipv6Address,
  scopeId: number,
  port: number,
  flowLabel: number,
): void {
  view.setUint16(at + SOCKADDR.family, AF_INET6, true);
  view.setUint16(at + SOCKADDR.port, port);
  view.setUint32(at + SOCKADDR.flowInfo, flowLabel);
  writeIpv6(ip, view, at + SOCKADDR.address);
  view.setUint32(at + SOCKADDR.scopeId, scopeId, true);
}

/** The number of packets that the kernel has dropped because the buffer of a socket was full or a checksum wrong. */
export function droppedBy(fd: number): number {
  const memory = new Uint32Array(new ArrayBuffer(MEMORY.words * 4));
  libc().getsockopt(fd, ...OPTION.memory, memory, int(MEMORY.words * 4));
  return memory[MEMORY.dropped] ?? 0;
}

/** The errno name if this is the result of a call that has just failed, else null. */
export function failure(result: number | bigint): string | null {
  return result < 0 ? errnoName(libc().errno()) : null;
}

/** The time from one `struct timespec` to another; each has 64 bits of seconds and of nanoseconds. */
function millisecondsBetween(from: DataView, fromAt: number, to: DataView, toAt: number) {
  // The difference of the low halves: no packet waits for 68 years.
  const seconds = (to.getUint32(toAt, true) - from.getUint32(fromAt, true)) | 0;
  const nanoseconds = to.getUint32(toAt + 8, true) - from.getUint32(fromAt + 8, true);
  return seconds * 1e3 + nanoseconds / 1e6;
}

/** A C int in memory. */
export function int(value: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(new Int32Array(new ArrayBuffer(4)).fill(value).buffer);
}
