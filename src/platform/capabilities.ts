import { readFileSync } from "node:fs";
import { libc } from "./libc.ts";
import { AF_INET6, IPPROTO_ICMPV6, OPTION, SOCK } from "./linux.ts";

/** Numbers of linux/capability.h. */
const CAPABILITY = { netBindService: 10, netRaw: 13 } as const;

/** prctl(2): operations on the ambient set, which a service manager fills and a new program keeps. */
const AMBIENT = { option: 47, isSet: 1, lower: 3 } as const;

/** Standard input carries the socket from one program to the next, as inetd does. */
const STANDARD_INPUT = 0;

/**
 * Where a service manager gave the process CAP_NET_RAW: opens the raw socket and replaces the process
 * by itself, with the socket as its standard input and without the capability. A capability belongs to
 * a thread, and the runtime has threads already; only a new program has it in none.
 *
 * @param keepsLowPorts whether CAP_NET_BIND_SERVICE is needed
 * @returns where there is nothing to drop, or no socket to be had
 */
export function dropCapabilities(keepsLowPorts: boolean): void {
  const ambient = (operation: number, capability: number) =>
    libc().prctl(AMBIENT.option, operation, capability, 0, 0);
  if (ambient(AMBIENT.isSet, CAPABILITY.netRaw) !== 1) return;
  const socket = libc().socket(AF_INET6, SOCK.raw | SOCK.nonblock | SOCK.cloexec, IPPROTO_ICMPV6);
  if (socket < 0 || libc().dup2(socket, STANDARD_INPUT) < 0) return;
  ambient(AMBIENT.lower, CAPABILITY.netRaw);
  if (!keepsLowPorts) ambient(AMBIENT.lower, CAPABILITY.netBindService);
  const argv = readFileSync("/proc/self/cmdline", "utf8").split("\0").slice(0, -1);
  process.execve?.(process.execPath, argv, process.env);
}

/** The file descriptor of the raw ICMPv6 socket that this process was started with, or null. */
export function inheritedRawSocket(): number | null {
  const value = new Int32Array(new ArrayBuffer(4));
  const length = new Uint32Array(new ArrayBuffer(4));
  const is = ([level, name]: readonly [number, number], expected: number) => {
    length[0] = value.byteLength;
    const status = libc().getsockopt(STANDARD_INPUT, level, name, value, length);
    return status === 0 && value[0] === expected;
  };
  return is(OPTION.domain, AF_INET6) &&
    is(OPTION.type, SOCK.raw) &&
    is(OPTION.protocol, IPPROTO_ICMPV6)
    ? STANDARD_INPUT
    : null;
}
