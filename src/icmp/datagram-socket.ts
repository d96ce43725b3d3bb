import { lastError, libc } from "../platform/libc.ts";
import {
  AF_INET6,
  CONTROL,
  EXTENDED_ERROR,
  IPPROTO_ICMPV6,
  MSG_DONTWAIT,
  MSG_ERRQUEUE,
  OPTION,
  SOCK,
  SOCKADDR,
} from "../platform/linux.ts";
import { IPV6_HEADER_BYTES, NEXT_HEADER_ICMPV6 } from "./packet.ts";
import {
  addressIn,
  EchoSocket,
  int,
  type OutgoingPacket,
  openSocket,
  type ReceivedPacket,
} from "./socket.ts";

/** Where the invoking packet begins in an ICMPv6 error; RFC 4443 section 2.1. */
const INVOKING_AT = 8;

/**
 * Linux' ICMPv6 datagram socket, which needs no privileges where `net.ipv4.ping_group_range` includes
 * a group of the process; icmp(7). The kernel chooses its identifier and passes only what answers it:
 * replies, and errors in a queue of their own.
 *
 * Kernels before 5.18 ignore the hop limit and the source address of a probe, so only pings use it.
 */
export class DatagramSocket extends EchoSocket {
  readonly identifier: number;

  /** @throws SystemError `EACCES` outside of `ping_group_range`, and those of `RawSocket` */
  constructor() {
    super(openSocket(SOCK.dgram, IPPROTO_ICMPV6), [[OPTION.receiveErrors, int(1)]]);
    const name = new Uint8Array(new ArrayBuffer(SOCKADDR.bytes));
    const view = new DataView(name.buffer);
    view.setUint16(SOCKADDR.family, AF_INET6, true);
    const { bind, getsockname } = libc();
    if (bind(this.fd, name, SOCKADDR.bytes) < 0) {
      const error = lastError("bind");
      this.close();
      throw error;
    }
    getsockname(this.fd, name, int(SOCKADDR.bytes));
    this.identifier = view.getUint16(SOCKADDR.port);
  }

  override send(packet: OutgoingPacket): number | string {
    // An error about an earlier probe would be returned in place of sending this one.
    libc().getsockopt(this.fd, ...OPTION.error, int(0), int(4));
    return super.send(packet);
  }

  override receive(): ReceivedPacket | null {
    return super.receive() ?? this.#receiveError();
  }

  pass(): boolean {
    return true;
  }

  /** The next ICMPv6 error, as the raw socket would receive it. */
  #receiveError(): ReceivedPacket | null {
    for (;;) {
      const packet = this.read(MSG_DONTWAIT | MSG_ERRQUEUE);
      if (packet === null) return null;
      const { view, bytes, name } = this.received;
      const error = this.findControl(CONTROL.error);
      if (error === null || view.getUint8(error + EXTENDED_ERROR.origin) !== EXTENDED_ERROR.icmp6) {
        continue;
      }
      const sender = error + EXTENDED_ERROR.bytes;
      // The kernel returns the probe without its IPv6 header, and its destination and label as a name.
      const message = new Uint8Array(INVOKING_AT + IPV6_HEADER_BYTES + packet.message.length);
      const written = new DataView(message.buffer);
      message[0] = view.getUint8(error + EXTENDED_ERROR.type);
      message[1] = view.getUint8(error + EXTENDED_ERROR.code);
      written.setUint32(4, view.getUint32(error + EXTENDED_ERROR.info, true));
      const flowInfo = view.getUint32(name.byteOffset + SOCKADDR.flowInfo);
      written.setUint32(INVOKING_AT, 0x6000_0000 + flowInfo);
      message[INVOKING_AT + 6] = NEXT_HEADER_ICMPV6;
      message.set(name.subarray(SOCKADDR.address, SOCKADDR.address + 16), INVOKING_AT + 24);
      message.set(packet.message, INVOKING_AT + IPV6_HEADER_BYTES);
      return {
        ...packet,
        source: addressIn(bytes.subarray(sender, sender + SOCKADDR.bytes)),
        scopeId: view.getUint32(sender + SOCKADDR.scopeId, true),
        message,
      };
    }
  }
}
