/** Numbers and layouts of the Linux socket interface, alike on x86_64 and arm64. */

import { addressOf } from "./libc.ts";

/** Address families; bits/socket.h. */
export const AF_UNIX = 1;
export const AF_INET = 2;
export const AF_INET6 = 10;
export const AF_NETLINK = 16;
export const AF_PACKET = 17;
/** Kinds of socket, and flags beside them; bits/socket_type.h. */
export const SOCK = { stream: 1, dgram: 2, raw: 3, nonblock: 0x800, cloexec: 0x80000 } as const;
/** Protocols; netinet/in.h. */
export const IPPROTO_TCP = 6;
export const IPPROTO_UDP = 17;
export const IPPROTO_ICMPV6 = 58;
/** Fails with EAGAIN instead of waiting; bits/socket.h. */
export const MSG_DONTWAIT = 0x40;
/** Receives from the queue of errors; bits/socket.h. */
export const MSG_ERRQUEUE = 0x2000;
/** Raises no SIGPIPE if the peer has closed; bits/socket.h. */
export const MSG_NOSIGNAL = 0x4000;

/** Operations of fcntl(2), and the status flag of sockets that send a signal when packets arrive. */
export const FCNTL = { setStatus: 4, setOwner: 8, setSignal: 10, async: 0x2000 } as const;
/** A signal that does nothing without a handler; SIGIO would end the process; signal(7). */
export const SIGURG = 23;

/** Ends both directions of a connection; sys/socket.h. */
export const SHUT_RDWR = 2;

/** Socket options, as level and name. */
export const OPTION = {
  type: [1, 3],
  sendBuffer: [1, 7],
  receiveBuffer: [1, 8],
  attachFilter: [1, 26],
  sendBufferForce: [1, 32],
  receiveBufferForce: [1, 33],
  timestampNs: [1, 35],
  acceptsConnections: [1, 30],
  protocol: [1, 38],
  domain: [1, 39],
  attachReusePortFilter: [1, 51],
  memory: [1, 55],
  userTimeout: [6, 18],
  checksum: [41, 7],
  mtuDiscover: [41, 23],
  mtu: [41, 24],
  receiveErrors: [41, 25],
  flowInfoSend: [41, 33],
  multicastInterface: [41, 17],
  multicastHops: [41, 18],
  unicastHops: [41, 16],
  receiveHopLimit: [41, 51],
  autoFlowLabel: [41, 70],
  icmp6Filter: [58, 1],
} as const;

/** The value of the option `memory`: words of 32 bits; linux/sock_diag.h, SK_MEMINFO_DROPS. */
export const MEMORY = { words: 9, dropped: 8 } as const;

/** Control messages, as level and type. */
export const CONTROL = {
  timestampNs: [1, 35],
  error: [41, 25],
  packetInfo: [41, 50],
  hopLimit: [41, 52],
} as const;

/** The length of the longest path of a unix socket. */
const MAX_PATH_BYTES = 107;

/**
 * `struct sockaddr_un`: the family in 16 bits, then the path, or the abstract name after an `@`; cut if
 * it is too long.
 */
export function encodeUnixAddress(path: string): Uint8Array<ArrayBuffer> {
  const name = new TextEncoder().encode(path.replace(/^@/, "\0"));
  return Uint8Array.of(AF_UNIX, 0, ...name.subarray(0, MAX_PATH_BYTES));
}

/** `struct sockaddr_in6`, and the offset of the address in a `struct sockaddr_in`. */
export const SOCKADDR = {
  bytes: 28,
  family: 0,
  port: 2,
  flowInfo: 4,
  address4: 4,
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
} as const;

/** `struct cmsghdr`, with its data behind it. */
export const CMSGHDR = { bytes: 16, length: 0, level: 8, type: 12 } as const;

/** `struct sock_extended_err`, with the `sockaddr_in6` of the error's sender behind it; linux/errqueue.h. */
export const EXTENDED_ERROR = {
  bytes: 16,
  origin: 4,
  type: 5,
  code: 6,
  info: 8,
  icmp6: 3,
} as const;

/** `struct sockaddr_ll`, and the packet type of this machine's own packets; linux/if_packet.h. */
export const SOCKADDR_LL = {
  bytes: 20,
  protocol: 2,
  index: 4,
  packetType: 10,
  outgoing: 4,
} as const;

/** Every protocol, in network order; linux/if_ether.h, ETH_P_ALL. */
export const ALL_PROTOCOLS = 0x0300;

/** The offset of the next control message: a multiple of 8 bytes. */
export function alignControl(bytes: number): number {
  return (bytes + 7) & ~7;
}

/** Classic BPF operations; linux/bpf_common.h. */
export const BPF = {
  loadByte: 0x30,
  loadHalf: 0x28,
  jumpIfEqual: 0x15,
  returnConstant: 0x06,
} as const;
/** Operations with the index register, which starts at 0: `setIndex` copies the accumulator there. */
export const BPF_INDEX = { loadByte: 0x50, add: 0x04, shiftLeft: 0x64, setIndex: 0x07 } as const;

/** One `struct sock_filter`; a jump is relative to the next instruction. */
export type BpfInstruction = readonly [
  operation: number,
  operand: number,
  jumpIfTrue?: number,
  jumpIfFalse?: number,
];

/** `struct sock_fprog`: the number of instructions, and a pointer to them. */
const SOCK_FPROG = { bytes: 16, length: 0, filter: 8 } as const;
const SOCK_FILTER_BYTES = 8;

/** Instructions as the kernel reads them. */
export function encodeBpf(program: readonly BpfInstruction[]): Uint8Array<ArrayBuffer> {
  const view = new DataView(new ArrayBuffer(program.length * SOCK_FILTER_BYTES));
  for (const [index, [operation, operand, jumpIfTrue = 0, jumpIfFalse = 0]] of program.entries()) {
    const at = index * SOCK_FILTER_BYTES;
    view.setUint16(at, operation, true);
    view.setUint8(at + 2, jumpIfTrue);
    view.setUint8(at + 3, jumpIfFalse);
    view.setUint32(at + 4, operand, true);
  }
  return new Uint8Array(view.buffer);
}

/**
 * The value of a socket option that attaches a program: a `struct sock_fprog`. It points to the
 * instructions, which follow it in the same buffer.
 */
export function bpfOption(instructions: Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(new ArrayBuffer(SOCK_FPROG.bytes + instructions.length));
  bytes.set(instructions, SOCK_FPROG.bytes);
  const view = new DataView(bytes.buffer);
  view.setUint16(SOCK_FPROG.length, instructions.length / SOCK_FILTER_BYTES, true);
  view.setBigUint64(SOCK_FPROG.filter, BigInt(addressOf(bytes) + SOCK_FPROG.bytes), true);
  return bytes.subarray(0, SOCK_FPROG.bytes);
}

/** The value of the option for a program that only returns a number. */
export const bpfConstant = (value: number) => bpfOption(encodeBpf([[BPF.returnConstant, value]]));
