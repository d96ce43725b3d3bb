/** Numbers and layouts of the Linux socket interface, alike on x86_64 and arm64. */

/** The address family of IPv6; bits/socket.h. */
export const AF_INET6 = 10;
/** Kinds of socket, and flags beside them; bits/socket_type.h. */
export const SOCK = { dgram: 2, raw: 3, nonblock: 0x800, cloexec: 0x80000 } as const;
/** The protocol of a raw ICMPv6 socket; netinet/in.h. */
export const IPPROTO_ICMPV6 = 58;
/** There is something to read; poll.h. */
export const POLLIN = 1;
/** Fails with EAGAIN instead of waiting; bits/socket.h. */
export const MSG_DONTWAIT = 0x40;
/** Flags of an eventfd; sys/eventfd.h. */
export const EFD_NONBLOCK_CLOEXEC = 0x80800;

/** Socket options, as level and name. */
export const OPTION = {
  receiveBuffer: [1, 8],
  attachFilter: [1, 26],
  receiveBufferForce: [1, 33],
  timestampNs: [1, 35],
  flowInfoSend: [41, 33],
  receiveHopLimit: [41, 51],
  icmp6Filter: [58, 1],
} as const;

/** Control messages, as level and type. */
export const CONTROL = {
  timestampNs: [1, 35],
  packetInfo: [41, 50],
  hopLimit: [41, 52],
} as const;

/** `struct sockaddr_in6`. */
export const SOCKADDR = {
  bytes: 28,
  family: 0,
  port: 2,
  flowInfo: 4,
  address: 8,
  scopeId: 24,
} as const;

/** `struct iovec`. */
export const IOVEC = { bytes: 16, base: 0, length: 8 } as const;

/** `struct msghdr`. */
export const MSGHDR = {
  bytes: 56,
  name: 0,
  nameLength: 8,
  iov: 16,
  iovLength: 24,
  control: 32,
  controlLength: 40,
  flags: 48,
} as const;

/** `struct cmsghdr`, with its data behind it. */
export const CMSGHDR = { bytes: 16, length: 0, level: 8, type: 12 } as const;

/** Where the next control message begins: at a multiple of 8 bytes. */
export function alignControl(bytes: number): number {
  return (bytes + 7) & ~7;
}

/** `struct pollfd`. */
export const POLLFD = { bytes: 8, fd: 0, events: 4, revents: 6 } as const;

/** `struct sock_fprog`: how many instructions there are, and where. */
export const SOCK_FPROG = { bytes: 16, length: 0, filter: 8 } as const;

/** `struct sock_filter`. */
export const SOCK_FILTER_BYTES = 8;
