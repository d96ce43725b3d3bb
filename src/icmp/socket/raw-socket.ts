import { SystemError } from "../../platform/libc.ts";
import { bpfOption, IPPROTO_ICMPV6, OPTION, SOCK } from "../../platform/linux.ts";
import { encodeTagProgram, encodeTypeFilter } from "../wire/filter.ts";
import { TcpSocket, UdpSocket } from "./port-sockets.ts";
import {
  type Carrier,
  EchoSocket,
  type OutgoingPacket,
  openSocket,
  type ReceivedPacket,
} from "./socket.ts";

const CARRIERS = { tcp: TcpSocket, udp: UdpSocket } as const;

/**
 * The raw socket, which receives only echo replies and errors about probes with its tag. Requests with a carrier
 * have sockets beside it.
 */
export class RawSocket extends EchoSocket {
  /** The socket of each carrier, opened for its first packet. */
  readonly #beside = new Map<Carrier["protocol"], EchoSocket>();

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
    if (packet.carrier === undefined) return super.send(packet);
    const { protocol } = packet.carrier;
    try {
      return this.#beside
        .getOrInsertComputed(protocol, () => new CARRIERS[protocol]())
        .send(packet);
    } catch (error) {
      if (error instanceof SystemError) return error.code;
      throw error;
    }
  }

  override receive(): ReceivedPacket | null {
    let packet = super.receive();
    for (const beside of this.#beside.values()) packet ??= beside.receive();
    return packet;
  }

  override dropped(carrier?: Carrier): number {
    return carrier ? (this.#beside.get(carrier.protocol)?.dropped() ?? 0) : super.dropped();
  }

  override close(): void {
    super.close();
    for (const beside of this.#beside.values()) beside.close();
  }

  pass(tag: number, other: number): boolean {
    const program = bpfOption(encodeTagProgram(tag, other));
    return this.setOption(OPTION.attachFilter, program) === null;
  }
}
