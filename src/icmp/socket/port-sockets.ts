/** Sockets that send echo requests as UDP or TCP, and return the answers as answers to echo requests. */
import { equalIpv6, ipv6FromBytes } from "../../addr/ipv6.ts";
import { inheritedSocket } from "../../platform/capabilities.ts";
import { bpfOption, IPPROTO_TCP, IPPROTO_UDP, OPTION, SOCK } from "../../platform/linux.ts";
import { encodePortsProgram } from "../wire/filter.ts";
import { COOKIE_BYTES, HEADER_BYTES, TYPE } from "../wire/packet.ts";
import {
  bindAny,
  ErrorQueueSocket,
  type Invoking,
  int,
  type OutgoingPacket,
  openSocket,
  type ReceivedPacket,
} from "./socket.ts";

/** The offset of the invoking packet's data in an ICMPv6 error: behind its header and the IPv6 header. */
const INVOKED_AT = 48;

/** The code of Port Unreachable; RFC 4443 section 3.1. */
const PORT_UNREACHABLE = 4;

const NOTHING = new Uint8Array();

/** Packets that a UDP answer can belong to: those of the last seconds. */
const MAX_UNANSWERED = 1024;

/** Bytes of an echo request that a reply must have: its header and the cookie. */
const ANSWERED_BYTES = HEADER_BYTES + COOKIE_BYTES;

/**
 * Sends echo requests as the data of UDP packets. A closed port of the target answers with Port Unreachable. An open one
 * answers with a packet that does not name its request: it counts for the packet to the port that had the highest hop
 * limit, and for the last of several.
 */
export class UdpSocket extends ErrorQueueSocket {
  /** Packets without an answer, in the order of sending. */
  #unanswered: OutgoingPacket[] = [];

  /** @throws SystemError */
  constructor() {
    super(openSocket(SOCK.dgram, IPPROTO_UDP));
  }

  override send(packet: OutgoingPacket): number | string {
    this.#unanswered.push({ ...packet, message: packet.message.slice(0, ANSWERED_BYTES) });
    if (this.#unanswered.length > MAX_UNANSWERED) this.#unanswered.shift();
    return super.send(packet);
  }

  override receive(): ReceivedPacket | null {
    const packet = super.receive();
    if (packet === null) return null;
    const { message, source } = packet;
    const isClosed = message[0] === TYPE.destinationUnreachable && message[1] === PORT_UNREACHABLE;
    const isQuoted = message.length >= INVOKED_AT + HEADER_BYTES;
    if (message[0] === TYPE.timeExceeded) this.#endOnTheWay(message.subarray(INVOKED_AT));
    if (!isClosed || !isQuoted || !equalIpv6(source, destinationIn(message))) return packet;
    const reply = message.slice(INVOKED_AT);
    reply[0] = TYPE.echoReply;
    return { ...packet, message: reply, state: "closed" };
  }

  /** Forgets a packet that did not reach its target, and those of its flow with fewer hops: a target can answer twice. */
  #endOnTheWay(request: Uint8Array): void {
    const quoted = request.subarray(0, ANSWERED_BYTES);
    const expired = this.#unanswered.find((each) => Buffer.compare(each.message, quoted) === 0);
    if (expired === undefined) return;
    const { target, flowLabel, hopLimit } = expired;
    const isExpired = (each: OutgoingPacket) =>
      each.hopLimit <= hopLimit && each.flowLabel === flowLabel && equalIpv6(each.target, target);
    this.#unanswered = this.#unanswered.filter((each) => !isExpired(each));
  }

  protected override replyIn(packet: ReceivedPacket, port: number): ReceivedPacket {
    const isToPort = ({ target, probedPort }: OutgoingPacket) =>
      probedPort?.port === port && equalIpv6(target, packet.source);
    const sent = this.#unanswered.filter(isToPort).sort((a, b) => a.hopLimit - b.hopLimit);
    const answered = sent.at(-1);
    if (answered === undefined) return { ...packet, message: NOTHING };
    const { message, probedPort } = answered;
    this.#unanswered.splice(this.#unanswered.indexOf(answered), 1);
    message[0] = TYPE.echoReply;
    return { ...packet, message, probedPort, state: "open" };
  }

  protected override requestIn(message: Uint8Array, port: number): Invoking {
    return { message, probedPort: { protocol: "udp", port } };
  }
}

const destinationIn = (error: Uint8Array) => ipv6FromBytes(error.subarray(32, 48));

/** Bits of a TCP header; RFC 9293 section 3.1. */
const [SYN, RST, ACK] = [0x02, 0x04, 0x10];

/** Offsets in a TCP header, and its length without options. */
const [PORT_AT, SEQUENCE_AT, ACKNOWLEDGED_AT, LENGTH_AT, FLAGS_AT] = [2, 4, 8, 12, 13];
const [WINDOW_AT, CHECKSUM_AT, TCP_BYTES] = [14, 16, 20];

/** Bytes of a SYN with its one option, and those that an error must quote: ports and sequence number. */
const SYN_BYTES = 24;
const QUOTED_BYTES = 8;

/** The window of a SYN. No data is ever accepted, but a window of 0 would be unusual. */
const WINDOW_BYTES = 1220;

/** The maximum segment size that a SYN offers: one that every IPv6 link carries. */
const SEGMENT_BYTES = 1220;

/**
 * Source ports of SYNs. A target holds the half-open connection of a SYN until our reset arrives, and answers no other
 * SYN from the same port before. At ten SYNs a second to one port, each source port is used again after more than 12 s.
 */
const PORTS = 128;

const reserved: number[] = [];

/** Ports that no other program can use: their sockets are bound and never listen, so the kernel resets each SYN-ACK. */
export function reservedPorts(): readonly number[] {
  while (reserved.length < PORTS) reserved.push(bindAny(openSocket(SOCK.stream, IPPROTO_TCP)));
  return reserved;
}

/**
 * Sends a TCP SYN for each echo request. Identifier and sequence, 32 random bits, are its sequence number: a SYN-ACK
 * or RST must acknowledge it, and an error must quote it.
 */
export class TcpSocket extends ErrorQueueSocket {
  readonly #ports: readonly number[];

  /** @throws SystemError */
  constructor(ports = reservedPorts()) {
    super(inheritedSocket("tcp") ?? openSocket(SOCK.raw, IPPROTO_TCP), [
      [OPTION.checksum, int(CHECKSUM_AT)],
      [OPTION.attachFilter, bpfOption(encodePortsProgram(ports))],
    ]);
    this.#ports = ports;
  }

  override send(packet: OutgoingPacket): number | string {
    const { message, probedPort, flowLabel, turn = 0 } = packet;
    const from = this.#ports[(flowLabel + turn) % PORTS] ?? 0;
    return super.send({ ...packet, message: encodeSyn(from, probedPort?.port ?? 0, message) });
  }

  protected override replyIn(packet: ReceivedPacket): ReceivedPacket {
    const { message } = packet;
    const noReply = { ...packet, message: NOTHING };
    if (message.length < TCP_BYTES) return noReply;
    const segment = viewOf(message);
    const flags = segment.getUint8(FLAGS_AT);
    const isReset = (flags & RST) !== 0;
    if ((flags & ACK) === 0 || !(isReset || (flags & SYN) !== 0)) return noReply;
    return {
      ...packet,
      message: echoOf(TYPE.echoReply, segment.getUint32(ACKNOWLEDGED_AT) - 1),
      probedPort: { protocol: "tcp", port: segment.getUint16(0) },
      state: isReset ? "closed" : "open",
    };
  }

  protected override requestIn(invoking: Uint8Array): Invoking {
    if (invoking.length < QUOTED_BYTES) return { message: NOTHING };
    const segment = viewOf(invoking);
    if (!this.#ports.includes(segment.getUint16(0))) return { message: NOTHING };
    const message = echoOf(TYPE.echoRequest, segment.getUint32(SEQUENCE_AT));
    return { message, probedPort: { protocol: "tcp", port: segment.getUint16(PORT_AT) } };
  }
}

const viewOf = (bytes: Uint8Array) =>
  new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/** An echo message without data; a TCP sequence number is its identifier and sequence. */
function echoOf(type: number, sequence: number): Uint8Array {
  const message = new Uint8Array(HEADER_BYTES);
  message[0] = type;
  viewOf(message).setUint32(HEADER_BYTES - 4, sequence);
  return message;
}

/** A SYN for an echo request. The kernel fills in the checksum. */
function encodeSyn(from: number, to: number, request: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(SYN_BYTES);
  const view = viewOf(bytes);
  view.setUint16(0, from);
  view.setUint16(PORT_AT, to);
  bytes.set(request.subarray(HEADER_BYTES - 4, HEADER_BYTES), SEQUENCE_AT);
  view.setUint8(LENGTH_AT, (SYN_BYTES / 4) << 4);
  view.setUint8(FLAGS_AT, SYN);
  view.setUint16(WINDOW_AT, WINDOW_BYTES);
  bytes.set([2, 4, SEGMENT_BYTES >>> 8, SEGMENT_BYTES & 0xff], TCP_BYTES);
  return bytes;
}
