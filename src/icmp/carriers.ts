/** Sockets whose packets travel as UDP or TCP, and whose answers come back as those to echo requests. */
import { equalIpv6, type Ipv6Address, ipv6FromBytes } from "../addr/ipv6.ts";
import { inheritedRawSocket } from "../platform/capabilities.ts";
import { lastError, libc } from "../platform/libc.ts";
import {
  AF_INET6,
  bpfOption,
  IPPROTO_TCP,
  IPPROTO_UDP,
  OPTION,
  SOCK,
  SOCKADDR,
} from "../platform/linux.ts";
import { encodePortProgram } from "./filter.ts";
import { COOKIE_BYTES, TYPE } from "./packet.ts";
import {
  ErrorQueueSocket,
  int,
  type OutgoingPacket,
  openSocket,
  type ReceivedPacket,
} from "./socket.ts";

/** Where the cookie is in an echo request, and the least of it that is needed to know the probe again. */
const COOKIE_AT = 8;
const REQUEST_BYTES = COOKIE_AT + COOKIE_BYTES;

/** Where the invoking packet's data begins in an ICMPv6 error: behind its header and the IPv6 header. */
const INVOKED_AT = 48;

/** The code of Port Unreachable; RFC 4443 section 3.1. */
const PORT_UNREACHABLE = 4;

/** An echo request as the data of a UDP packet. A closed port of the target answers it with Port Unreachable. */
export class UdpSocket extends ErrorQueueSocket {
  /** @throws SystemError */
  constructor() {
    super(openSocket(SOCK.dgram, IPPROTO_UDP));
  }

  override receive(): ReceivedPacket | null {
    const packet = super.receive();
    if (packet === null) return null;
    const { message, source } = packet;
    const isClosed = message[0] === TYPE.destinationUnreachable && message[1] === PORT_UNREACHABLE;
    const isQuoted = message.length >= INVOKED_AT + REQUEST_BYTES;
    if (!isClosed || !isQuoted || !equalIpv6(source, destinationIn(message))) return packet;
    return { ...packet, message: replyTo(message.subarray(INVOKED_AT)), state: "closed" };
  }

  protected override portOf({ carrier }: OutgoingPacket): number {
    return carrier?.port ?? 0;
  }
}

const destinationIn = (error: Uint8Array) => ipv6FromBytes(error.subarray(32, 48));

/** The echo reply to an echo request. */
function replyTo(request: Uint8Array): Uint8Array {
  const reply = request.slice();
  reply[0] = TYPE.echoReply;
  return reply;
}

/** A SYN that may still be answered. */
interface Sent {
  /** The echo request for which it was sent, as far as it is needed. */
  readonly request: Uint8Array;
  readonly target: Ipv6Address;
  readonly port: number;
}

/** How long a SYN is remembered at least, in milliseconds: longer than the quarantine of its probe. */
const REMEMBER_MS = 30_000;

/** Bits of a TCP header; RFC 9293 section 3.1. */
const [SYN, RST, ACK] = [0x02, 0x04, 0x10];

/** Where a TCP header has what, and its length without options. */
const [PORT_AT, SEQUENCE_AT, ACKNOWLEDGED_AT, LENGTH_AT, FLAGS_AT] = [2, 4, 8, 12, 13];
const [WINDOW_AT, CHECKSUM_AT, TCP_BYTES] = [14, 16, 20];

/** Length of a SYN with its one option, and of what an error must quote of it: ports and sequence number. */
const SYN_BYTES = 24;
const QUOTED_BYTES = 8;

/** No data is ever taken, but a window of 0 is a rare sight. */
const WINDOW_BYTES = 1220;

const NOTHING = new Uint8Array();

/** The maximum segment size that a SYN offers: what every link of IPv6 carries. */
const SEGMENT_BYTES = 1220;

let reservedPort: number | undefined;

/** A port that is nobody else's: its socket is bound and never listens, so the kernel resets what a SYN opens. */
function reserved(): number {
  reservedPort ??= reservePort();
  return reservedPort;
}

function reservePort(): number {
  const fd = openSocket(SOCK.stream, IPPROTO_TCP);
  const name = new Uint8Array(new ArrayBuffer(SOCKADDR.bytes));
  const view = new DataView(name.buffer);
  view.setUint16(SOCKADDR.family, AF_INET6, true);
  if (libc().bind(fd, name, SOCKADDR.bytes) < 0) {
    const error = lastError("bind");
    libc().close(fd);
    throw error;
  }
  libc().getsockname(fd, name, int(SOCKADDR.bytes));
  return view.getUint16(SOCKADDR.port);
}

/**
 * A TCP SYN for each echo request; its sequence number is 32 bits of the cookie. A SYN-ACK or RST must acknowledge
 * that number, and come from the port of the target that was asked; an error must quote it.
 */
export class TcpSocket extends ErrorQueueSocket {
  /** SYNs by their sequence number: those of this time, and those before. */
  #sent = new Map<number, Sent>();
  #before = new Map<number, Sent>();
  #renewMs = 0;

  /** @throws SystemError */
  constructor() {
    super(inheritedRawSocket(IPPROTO_TCP) ?? openSocket(SOCK.raw, IPPROTO_TCP), [
      [OPTION.checksum, int(CHECKSUM_AT)],
      [OPTION.attachFilter, bpfOption(encodePortProgram(reserved()))],
    ]);
  }

  override send(packet: OutgoingPacket): number | string {
    const { target, message, carrier: { port } = { port: 0 } } = packet;
    const nowMs = performance.now();
    if (nowMs >= this.#renewMs) {
      this.#renewMs = nowMs + REMEMBER_MS;
      [this.#before, this.#sent] = [this.#sent, new Map()];
    }
    const request = message.slice(0, REQUEST_BYTES);
    const sequence = viewOf(request).getUint32(COOKIE_AT);
    this.#sent.set(sequence, { request, target, port });
    return super.send({ ...packet, message: encodeSyn(reserved(), port, sequence) });
  }

  protected override replyIn(packet: ReceivedPacket): ReceivedPacket {
    const { message, source } = packet;
    const none = { ...packet, message: NOTHING };
    if (message.length < TCP_BYTES) return none;
    const segment = viewOf(message);
    const flags = segment.getUint8(FLAGS_AT);
    const isReset = (flags & RST) !== 0;
    const isAnswer = (flags & ACK) !== 0 && (isReset || (flags & SYN) !== 0);
    const sent = this.#find((segment.getUint32(ACKNOWLEDGED_AT) - 1) >>> 0, segment.getUint16(0));
    if (!isAnswer || sent === undefined || !equalIpv6(sent.target, source)) return none;
    return { ...packet, message: replyTo(sent.request), state: isReset ? "closed" : "open" };
  }

  protected override requestIn(invoking: Uint8Array): Uint8Array {
    if (invoking.length < QUOTED_BYTES) return NOTHING;
    const segment = viewOf(invoking);
    const isOurs = segment.getUint16(0) === reserved();
    const sent = this.#find(segment.getUint32(SEQUENCE_AT), segment.getUint16(PORT_AT));
    return (isOurs && sent?.request) || NOTHING;
  }

  #find(sequence: number, port: number): Sent | undefined {
    const sent = this.#sent.get(sequence) ?? this.#before.get(sequence);
    return sent?.port === port ? sent : undefined;
  }
}

const viewOf = (bytes: Uint8Array) =>
  new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/** A SYN, its checksum left to the kernel. */
function encodeSyn(from: number, to: number, sequence: number): Uint8Array {
  const bytes = new Uint8Array(SYN_BYTES);
  const view = viewOf(bytes);
  view.setUint16(0, from);
  view.setUint16(PORT_AT, to);
  view.setUint32(SEQUENCE_AT, sequence);
  view.setUint8(LENGTH_AT, (SYN_BYTES / 4) << 4);
  view.setUint8(FLAGS_AT, SYN);
  view.setUint16(WINDOW_AT, WINDOW_BYTES);
  bytes.set([2, 4, SEGMENT_BYTES >>> 8, SEGMENT_BYTES & 0xff], TCP_BYTES);
  return bytes;
}
