/** Bounds that Bun has no settings for: the number of connections, and the bytes that the kernel holds for them. */
import { readdirSync } from "node:fs";
import { type IpAddress, networkOf, unmapIp } from "../addr/ip.ts";
import { ipv4FromWord } from "../addr/ipv4.ts";
import { ipv6At } from "../addr/ipv6.ts";
import { LOOPBACK, type Prefix, prefixContains } from "../addr/prefix.ts";
import { libc, socketOption } from "../platform/libc.ts";
import { AF_INET, AF_INET6, OPTION, SHUT_RDWR, SOCKADDR } from "../platform/linux.ts";
import type { Log } from "../util/log.ts";

/** Connections of all networks, and of one IPv6 /64 or IPv4 address. */
const MAX_CONNECTIONS = { all: 16_384, network: 1_024 } as const;

/** The time between counts of the connections, in milliseconds; 16,384 take some 30 ms. */
const LOOK_INTERVAL_MS = 1_000;

/** Bytes of responses that the kernel holds for a client, and milliseconds until it drops a client that does not read. */
const SEND_BUFFER_BYTES = 64 * 1024;
const UNREAD_TIMEOUT_MS = 15_000;

/** The sockets of this process that listen for connections. */
export function listeningSockets(): number[] {
  return descriptors().filter((fd) => socketOption(fd, OPTION.acceptsConnections) === 1);
}

/** Bounds the bytes that the kernel holds for clients that do not read; accepted sockets inherit the options. */
export function boundUnreadResponses(): void {
  for (const fd of listeningSockets()) {
    setOption(fd, OPTION.sendBuffer, SEND_BUFFER_BYTES);
    // Fails on a unix socket, which does not need it.
    setOption(fd, OPTION.userTimeout, UNREAD_TIMEOUT_MS);
  }
}

/** Closes the connections above the bounds. Clients on this machine and trusted proxies are not bounded. */
export function boundConnections(trusted: readonly Prefix[], log: Log): void {
  const exempt = [...LOOPBACK, ...trusted];
  let isOver = false;
  setInterval(() => {
    const connections = new Map<string, number[]>();
    for (const fd of descriptors()) {
      const peer = peerOf(fd);
      if (peer === null || exempt.some((prefix) => prefixContains(prefix, peer))) continue;
      connections.getOrInsertComputed(networkOf(peer), () => []).push(fd);
    }
    const surplus = surplusOf(connections);
    for (const fd of surplus) libc().shutdown(fd, SHUT_RDWR);
    if (surplus.length > 0 && !isOver) {
      const closed = surplus.length;
      log.warn("closed connections over the bounds", { ...MAX_CONNECTIONS, closed });
    }
    isOver = surplus.length > 0;
  }, LOOK_INTERVAL_MS).unref();
}

/** The number of open connections. */
export function openConnections(): number {
  return descriptors().filter((fd) => peerOf(fd) !== null).length;
}

/** The connections above the bound of their network, which is halved until the bound for all holds; each network keeps one if there is room. */
export function surplusOf(connections: ReadonlyMap<string, readonly number[]>): number[] {
  const networks = [...connections.values()];
  let bound: number = MAX_CONNECTIONS.network;
  const total = () => networks.reduce((sum, { length }) => sum + Math.min(length, bound), 0);
  while (bound > 1 && total() > MAX_CONNECTIONS.all) bound /= 2;
  const kept = networks.flatMap((fds) => fds.slice(0, bound));
  return [...networks.flatMap((fds) => fds.slice(bound)), ...kept.slice(MAX_CONNECTIONS.all)];
}

function descriptors(): number[] {
  return readdirSync("/proc/self/fd").map(Number);
}

/** Shared by all calls, because a buffer for each call costs more than the call. */
const address = new Uint8Array(new ArrayBuffer(SOCKADDR.bytes));
const view = new DataView(address.buffer);
const length = new Uint32Array(1);

/** The other end of a TCP connection; null for any other descriptor. */
function peerOf(fd: number): IpAddress | null {
  length[0] = SOCKADDR.bytes;
  if (libc().getpeername(fd, address, length) !== 0) return null;
  const family = view.getUint16(SOCKADDR.family, true);
  if (family === AF_INET) return ipv4FromWord(view.getUint32(SOCKADDR.address4));
  return family === AF_INET6 ? unmapIp(ipv6At(view, SOCKADDR.address)) : null;
}

function setOption(fd: number, option: readonly [level: number, name: number], value: number) {
  libc().setsockopt(fd, ...option, new Int32Array([value]), Int32Array.BYTES_PER_ELEMENT);
}
