import { SystemError } from "../../platform/libc.ts";
import { bpfOption, IPPROTO_ICMPV6, OPTION, SOCK } from "../../platform/linux.ts";
import { encodeTagProgram, encodeTypeFilter } from "../wire/filter.ts";
import { TcpSocket, UdpSocket } from "./port-sockets.ts";
import {
  EchoSocket,
  type OutgoingPacket,
  openSocket,
  type ProbedPort,
  type ReceivedPacket,
} from "./socket.ts";

/** Source ports for UDP: at five pings a second, the answers to those of the last 3 s can be told apart. */
const UDP_PORTS = 16;

/**
 * The raw socket, which receives only echo replies and errors about probes with its tag. Probes of a
 * port use port sockets.
 */
export class RawSocket extends EchoSocket {
  /** The socket for TCP, and those for UDP by turn, each opened for its first packet. */
  readonly #portSockets = new Map<"tcp" | number, EchoSocket>();

  /**
   * @param tag the high byte of the identifiers, 8 bits
   * @param fd a raw ICMPv6 socket that is open already, or null to open one
   * @throws SystemError `EPERM` without CAP_NET_RAW, `EAFNOSUPPORT` without IPv6, `ENOSYS` without FFI
   */
  constructor(tag: number, fd: number | null = null) {
    super(fd ?? openSocket(SOCK.raw, IPPROTO_ICMPV6), [
      [OPTION.icmp6Filter, encodeTypeFilter()],
      [OPTION.attachFilter, bpfOption(encodeTagProgram(tag))],
    ]);
  }

  override send(packet: OutgoingPacket): number | string {
    if (packet.probedPort === undefined) return super.send(packet);
    const { probedPort, turn = 0 } = packet;
    const key = probedPort.protocol === "tcp" ? "tcp" : turn % UDP_PORTS;
    const open = () => (key === "tcp" ? new TcpSocket() : new UdpSocket());
    try {
      return this.#portSockets.getOrInsertComputed(key, open).send(packet);
    } catch (error) {
      if (error instanceof SystemError) return error.code;
      throw error;
    }
  }

  override receive(): ReceivedPacket | null {
    let packet = super.receive();
    for (const socket of this.#portSockets.values()) packet ??= socket.receive();
    return packet;
  }

  override dropped(probedPort?: ProbedPort): number {
    if (probedPort === undefined) return super.dropped();
    return this.#portSockets.values().reduce((sum, socket) => sum + socket.dropped(), 0);
  }

  override close(): void {
    super.close();
    for (const socket of this.#portSockets.values()) socket.close();
  }

  pass(tag: number, other: number): boolean {
    const program = bpfOption(encodeTagProgram(tag, other));
    return this.setOption(OPTION.attachFilter, program) === null;
  }
}
