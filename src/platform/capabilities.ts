import { readFileSync } from "node:fs";
import { addressOf, cString, libc, socketOption } from "./libc.ts";
import {
  AF_INET6,
  AF_PACKET,
  bpfConstant,
  IPPROTO_ICMPV6,
  IPPROTO_TCP,
  OPTION,
  SOCK,
} from "./linux.ts";

/** Numbers from linux/capability.h. */
const CAPABILITY = { netBindService: 10, netRaw: 13 } as const;

/** prctl(2) operations on the ambient set, which a service manager fills and execve keeps. */
const AMBIENT = { option: 47, isSet: 1, lower: 3 } as const;

/**
 * The sockets that need CAP_NET_RAW: family, type and protocol of each, and the descriptor that carries it across
 * execve (standard input, as with inetd, and free ones). Probes need the first two, a look at the links the others.
 */
export const CARRIED = {
  echo: { socket: [AF_INET6, SOCK.raw, IPPROTO_ICMPV6], descriptor: 0 },
  tcp: { socket: [AF_INET6, SOCK.raw, IPPROTO_TCP], descriptor: 100 },
  discovery: { socket: [AF_INET6, SOCK.raw, IPPROTO_ICMPV6], descriptor: 101 },
  packets: { socket: [AF_PACKET, SOCK.dgram, 0], descriptor: 102 },
} as const;

/**
 * Drops CAP_NET_RAW if a service manager granted it: opens the raw sockets, then replaces the process
 * with itself, with the sockets and without the capability. Capabilities belong to threads, and the
 * runtime has already started some; only execve drops them from all threads.
 *
 * @param keepsLowPorts true to keep CAP_NET_BIND_SERVICE
 * @returns only if there is nothing to drop or a socket cannot be opened
 */
export function dropCapabilities(keepsLowPorts: boolean): void {
  const ambient = (operation: number, capability: number) =>
    libc().prctl(AMBIENT.option, operation, capability, 0, 0);
  if (ambient(AMBIENT.isSet, CAPABILITY.netRaw) !== 1) return;
  for (const { socket: carried, descriptor } of Object.values(CARRIED)) {
    const [family, type, protocol] = carried;
    const socket = libc().socket(family, type | SOCK.nonblock | SOCK.cloexec, protocol);
    // The unit of an earlier version does not allow packet sockets.
    if (socket < 0 && family === AF_PACKET) continue;
    // Until the socket is used, it must not collect every packet of this machine.
    const dropAll = bpfConstant(0);
    libc().setsockopt(socket, ...OPTION.attachFilter, dropAll, dropAll.byteLength);
    if (socket < 0 || libc().dup2(socket, descriptor) < 0) return;
  }
  ambient(AMBIENT.lower, CAPABILITY.netRaw);
  if (!keepsLowPorts) ambient(AMBIENT.lower, CAPABILITY.netBindService);
  // The runtime's own exec would close all descriptors but the first three.
  const argv = readFileSync("/proc/self/cmdline", "utf8").split("\0").slice(0, -1).map(cString);
  const pointers = [...argv.map((argument) => BigInt(addressOf(argument))), 0n];
  libc().execv(cString(process.execPath), BigUint64Array.from(pointers));
}

/** The file descriptor of a socket that this process was started with, or null. */
export function inheritedSocket(kind: keyof typeof CARRIED): number | null {
  const { socket, descriptor } = CARRIED[kind];
  const options = [OPTION.domain, OPTION.type, OPTION.protocol];
  const actual = options.map((option) => socketOption(descriptor, option));
  return `${actual}` === `${socket}` ? descriptor : null;
}
