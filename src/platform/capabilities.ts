import { readFileSync } from "node:fs";
import { addressOf, cString, libc, socketOption } from "./libc.ts";
import { AF_INET6, bpfConstant, IPPROTO_ICMPV6, IPPROTO_TCP, OPTION, SOCK } from "./linux.ts";

/** Numbers from linux/capability.h. */
const CAPABILITY = { netBindService: 10, netRaw: 13 } as const;

/** prctl(2) operations on the ambient set, which a service manager fills and execve keeps. */
const AMBIENT = { option: 47, isSet: 1, lower: 3 } as const;

/** The descriptors that carry raw sockets across execve, by protocol: standard input, as with inetd, and a free one. */
const CARRIED = { [IPPROTO_ICMPV6]: 0, [IPPROTO_TCP]: 100 } as const;

/**
 * Drops CAP_NET_RAW if a service manager granted it: opens the raw sockets, then replaces the process
 * with itself, with the sockets and without the capability. Capabilities belong
 * to threads and the runtime has started some already; only execve drops them from all threads.
 *
 * @param keepsLowPorts true to keep CAP_NET_BIND_SERVICE
 * @returns only if there is nothing to drop or a socket cannot be opened
 */
export function dropCapabilities(keepsLowPorts: boolean): void {
  const ambient = (operation: number, capability: number) =>
    libc().prctl(AMBIENT.option, operation, capability, 0, 0);
  if (ambient(AMBIENT.isSet, CAPABILITY.netRaw) !== 1) return;
  for (const [protocol, descriptor] of Object.entries(CARRIED)) {
    const type = SOCK.raw | SOCK.nonblock | SOCK.cloexec;
    const socket = libc().socket(AF_INET6, type, Number(protocol));
    // Until it is used, it must not collect every packet of this machine.
    const none = bpfConstant(0);
    libc().setsockopt(socket, ...OPTION.attachFilter, none, none.byteLength);
    if (socket < 0 || libc().dup2(socket, descriptor) < 0) return;
  }
  ambient(AMBIENT.lower, CAPABILITY.netRaw);
  if (!keepsLowPorts) ambient(AMBIENT.lower, CAPABILITY.netBindService);
  // The runtime's own call closes all descriptors but the first three.
  const argv = readFileSync("/proc/self/cmdline", "utf8").split("\0").slice(0, -1).map(cString);
  const pointers = [...argv.map((argument) => BigInt(addressOf(argument))), 0n];
  libc().execv(cString(process.execPath), BigUint64Array.from(pointers));
}

/** The file descriptor of the raw socket of a protocol that this process was started with, or null. */
export function inheritedRawSocket(protocol: keyof typeof CARRIED): number | null {
  const descriptor = CARRIED[protocol];
  const options = [OPTION.domain, OPTION.type, OPTION.protocol];
  const found = options.map((option) => socketOption(descriptor, option));
  return `${found}` === `${[AF_INET6, SOCK.raw, protocol]}` ? descriptor : null;
}
