/** This machine's own IPv6 as its kernel has it. */
import { existsSync } from "node:fs";
import { type Ipv6Address, ipv6At, ipv6FromWords, isLinkLocal } from "../addr/ipv6.ts";
import { int, openSocket, socketName } from "../icmp/socket/socket.ts";
import { libc, socketOption } from "../platform/libc.ts";
import { OPTION, SOCK, SOCKADDR } from "../platform/linux.ts";
import { tryRead } from "../platform/regular-file.ts";
import {
  type KernelMessage,
  parseAddress,
  parseLink,
  parseRoute,
  type Settings,
  type TABLES,
} from "./kernel.ts";
import { askRoute, dumpTable } from "./rtnetlink.ts";

/** The rows that are read of each table. */
const MAX = { links: 64, addresses: 1024, routes: 4096 } as const;
/** Exists exactly if the kernel has IPv6, even if /proc has nothing but processes. */
const ADDRESSES = "/proc/self/net/if_inet6";
/** A switch for all interfaces together; missing if /proc has nothing but processes. */
const ALL_OFF = "/proc/sys/net/ipv6/conf/all/disable_ipv6";
/** The table of routes that need no rule. */
export const MAIN_TABLE = 254;
/** The table of routes to this machine's own addresses and to multicast. */
const LOCAL_TABLE = 255;
/** A route with a shorter prefix leads beyond its link; RFC 4291 section 2.5.4. */
const LINK_PREFIX = 64;
/** The port of a socket that never sends. */
const UNUSED_PORT = 9;
/** Stands for the Internet, 2000::/3: nothing is sent to it. */
export const ANYWHERE = ipv6FromWords(0x2000_0000, 0, 0, 1);

/** This machine's IPv6 at one moment. */
export type Machine = Readonly<ReturnType<typeof readMachine>>;

/** Reads the kernel's tables. Throws SystemError if it may not be asked. */
export function readMachine() {
  /** Milliseconds of the monotonic clock. */
  const readMs = performance.now();
  const hasIpv6 = existsSync(ADDRESSES);
  const rows = <Row>(table: keyof typeof TABLES, parse: (row: KernelMessage) => Row | null) =>
    hasIpv6 ? dumpTable(table).flatMap((row) => parse(row) ?? []) : [];
  /** The settings of all interfaces together. */
  const all: Settings = { disable_ipv6: Number(tryRead(ALL_OFF)) };
  const way = hasIpv6 ? wayTo(ANYWHERE) : null;
  const routes = rows("route", parseRoute)
    .filter(({ table }) => table !== LOCAL_TABLE)
    // The kernel shows default routes last.
    .sort((a, b) => a.prefix.length - b.prefix.length)
    .slice(0, MAX.routes);
  const links = rows("link", parseLink);
  const hops = routes
    .filter(({ prefix }) => prefix.length < LINK_PREFIX)
    .flatMap((route) => route.hops);
  const indexes = [...(way ? [way] : []), ...hops, ...links].map(({ index }) => index);
  const kept = new Set([...new Set(indexes)].slice(0, MAX.links));
  return {
    /** False if the kernel has no IPv6; then all tables are empty. */
    hasIpv6,
    all,
    /** The interfaces; those that lead out are included even if they are the last of many. */
    interfaces: links.filter(({ index }) => kept.has(index)),
    addresses: rows("address", parseAddress).slice(0, MAX.addresses),
    routes,
    /** The way to the Internet. */
    way,
    readMs,
  };
}

/** The way of the kernel to a destination: the interface, the gateway, the table, the source, and the MTU in bytes. */
export type Way = NonNullable<ReturnType<typeof wayTo>>;

/**
 * Asks the kernel for its way to a destination by all rules and tables; null if there is none.
 *
 * @param scopeId the interface of a link-local destination, else 0
 */
export function wayTo(destination: Ipv6Address, scopeId = 0) {
  const sender = senderTo(destination, scopeId);
  if (isLinkLocal(destination))
    return sender && { index: scopeId, via: null, table: MAIN_TABLE, ...sender };
  // As for a socket, rules by source address count if there is no route without one.
  const routeFrom = (source: Ipv6Address | null) =>
    askRoute(destination, source)
      .map(parseRoute)
      .find((each) => each?.kind === "unicast");
  const route = routeFrom(null) ?? (sender?.source && routeFrom(sender.source));
  if (!route) return null;
  const [hop = { index: 0, via: null }] = route.hops;
  const { source = null, mtu = null } = sender ?? {};
  return { ...hop, table: route.table, source, mtu };
}

/** The source and the MTU of a UDP socket that is connected to a destination; null if the kernel refuses. */
function senderTo(destination: Ipv6Address, scopeId: number) {
  const { connect, getsockname, close } = libc();
  const fd = openSocket(SOCK.dgram, 0);
  using _ = { [Symbol.dispose]: () => close(fd) };
  const name = socketName(destination, scopeId, UNUSED_PORT);
  const isConnected =
    connect(fd, name, name.length) >= 0 && getsockname(fd, name, int(name.length)) >= 0;
  if (!isConnected) return null;
  const source = ipv6At(new DataView(name.buffer), SOCKADDR.address);
  return { source, mtu: socketOption(fd, OPTION.mtu) ?? null };
}
