import { lastError, libc } from "../platform/libc.ts";
import { AF_INET6, IPPROTO_ICMPV6, SOCK, SOCKADDR } from "../platform/linux.ts";
import { ErrorQueueSocket, int, openSocket } from "./socket.ts";

/**
 * Linux' ICMPv6 datagram socket, which needs no privileges where `net.ipv4.ping_group_range` includes
 * a group of the process; icmp(7). The kernel chooses its identifier and passes only what answers it:
 * replies, and errors in a queue of their own.
 *
 * Kernels before 5.18 ignore the hop limit and the source address of a probe, so only pings use it.
 */
export class DatagramSocket extends ErrorQueueSocket {
  readonly identifier: number;

  /** @throws SystemError `EACCES` outside of `ping_group_range`, and those of `RawSocket` */
  constructor() {
    super(openSocket(SOCK.dgram, IPPROTO_ICMPV6));
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
}
