import { IPPROTO_ICMPV6, SOCK } from "../../platform/linux.ts";
import { bindAny, ErrorQueueSocket, openSocket } from "./socket.ts";

/**
 * Linux' ICMPv6 datagram socket, which needs no privileges where `net.ipv4.ping_group_range` includes
 * a group of the process; icmp(7). The kernel chooses its identifier and passes only answers to it:
 * replies, and errors in a queue of their own.
 *
 * Kernels before 5.18 ignore the hop limit and the source address of a probe, so only pings use it.
 */
export class DatagramSocket extends ErrorQueueSocket {
  readonly identifier: number;

  /** @throws SystemError `EACCES` outside of `ping_group_range`, and those of `RawSocket` */
  constructor() {
    const fd = openSocket(SOCK.dgram, IPPROTO_ICMPV6);
    const identifier = bindAny(fd);
    super(fd);
    this.identifier = identifier;
  }
}
