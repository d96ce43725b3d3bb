/** This machine's own IPv6 as its kernel has it. */
import { existsSync } from "node:fs";
import { type Ipv6Address, ipv6At, ipv6ToBytes, isLinkLocal, writeIpv6 } from "../addr/ipv6.ts";
import { openSocket } from "../icmp/socket/socket.ts";
import { errnoName, libc, socketOption } from "../platform/libc.ts";
import { AF_INET6, OPTION, SOCK, SOCKADDR } from "../platform/linux.ts";
import { tryRead } from "../platform/regular-file.ts";
import {
  type Link,
  type OwnAddress,
  parseAddress,
  parseLink,
  parseRoute,
  parseSettings,
  type Route,
  type Settings,
} from "./kernel.ts";
import { askRoute, dumpTable } from "./rtnetlink.ts";

/** What is read of each table. */
const MAX = { links: 64, addresses: 1024, routes: 4096 } as const;
/** Is there if and only if the kernel has IPv6, also where /proc has nothing but processes. */
const ADDRESSES = "/proc/self/net/if_inet6";
/** A switch for all interfaces together; not where /proc has nothing but processes. */
const ALL_OFF = "/proc/sys/net/ipv6/conf/all/disable_ipv6";
/** The table of this machine's own addresses and of multicast, which lead nowhere. */
const LOCAL_TABLE = 255;
/** Nothing is ever sent to it. */
const UNUSED_PORT = 9;

/** An interface with the kernel's settings for it. */
export interface Interface extends Link {
  readonly settings: Settings;
}

/** This machine's IPv6 at one moment. */
export interface Machine {
  /** False if the kernel has no IPv6; then all else is empty. */
  readonly hasIpv6: boolean;
  /** The settings of all interfaces together. */
  readonly all: Settings;
  readonly interfaces: readonly Interface[];
  readonly addresses: readonly OwnAddress[];
  readonly routes: readonly Route[];
  /** Milliseconds of the monotonic clock. */
  readonly readMs: number;
}

/** Reads the kernel's tables. Throws SystemError if it may not be asked. */
export function readMachine(): Machine {
  const readMs = performance.now();
  if (!existsSync(ADDRESSES)) {
    return { hasIpv6: false, all: {}, interfaces: [], addresses: [], routes: [], readMs };
  }
  return {
    hasIpv6: true,
    all: { disable_ipv6: Number(tryRead(ALL_OFF)) },
    interfaces: dumpTable("link")
      .flatMap((row) => {
        const link = parseLink(row);
        return link ? { ...link, settings: parseSettings(row) } : [];
      })
      .slice(0, MAX.links),
    addresses: dumpTable("address")
      .flatMap((row) => parseAddress(row) ?? [])
      .slice(0, MAX.addresses),
    routes: dumpTable("route")
      .flatMap((row) => parseRoute(row) ?? [])
      .filter(({ table }) => table !== LOCAL_TABLE)
      // The kernel shows default routes last.
      .sort((a, b) => a.prefix.length - b.prefix.length)
      .slice(0, MAX.routes),
    readMs,
  };
}

/** The way of the kernel to a destination: the interface, the gateway, the source, and the greatest packet in bytes. */
export interface Way {
  readonly index: number;
  readonly via: Ipv6Address | null;
  readonly source: Ipv6Address | null;
  readonly mtu: number | null;
}

/**
 * Asks the kernel for its way to a destination, which follows all rules and tables.
 *
 * @param scopeId the interface of a link-local destination, else 0
 * @returns an errno name if there is none: `ENETUNREACH`, or that of the kind of route
 */
export function wayTo(destination: Ipv6Address, scopeId = 0): Way | string {
  const connected = connectTo(destination, scopeId);
  const isRefused = typeof connected === "string";
  if (isLinkLocal(destination)) {
    return isRefused ? connected : { index: scopeId, via: null, ...connected };
  }
  const answer = askRoute(ipv6ToBytes(destination));
  if (typeof answer === "number") return errnoName(answer);
  const route = parseRoute(answer);
  if (route?.kind !== "unicast") return isRefused ? connected : "ENETUNREACH";
  const [hop = { index: 0, via: null }] = route.hops;
  return { ...hop, ...(isRefused ? { source: null, mtu: null } : connected) };
}

/** The source and the MTU of a UDP socket that is connected to a destination, or the errno name of the refusal. */
function connectTo(destination: Ipv6Address, scopeId: number) {
  const system = libc();
  const fd = openSocket(SOCK.dgram, 0);
  try {
    const name = socketName(destination, scopeId, UNUSED_PORT);
    const isConnected =
      system.connect(fd, name, name.length) >= 0 &&
      system.getsockname(fd, name, Uint32Array.of(name.length)) >= 0;
    if (!isConnected) return errnoName(system.errno());
    const source = ipv6At(new DataView(name.buffer), SOCKADDR.address);
    return { source, mtu: socketOption(fd, OPTION.mtu) ?? null };
  } finally {
    system.close(fd);
  }
}

/** A `struct sockaddr_in6`. */
export function socketName(ip: Ipv6Address, scopeId: number, port = 0): Uint8Array<ArrayBuffer> {
  const view = new DataView(new ArrayBuffer(SOCKADDR.bytes));
  view.setUint16(SOCKADDR.family, AF_INET6, true);
  view.setUint16(SOCKADDR.port, port);
  writeIpv6(ip, view, SOCKADDR.address);
  view.setUint32(SOCKADDR.scopeId, scopeId, true);
  return new Uint8Array(view.buffer);
}
