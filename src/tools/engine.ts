import { Prober, type ProberOptions } from "../icmp/prober/prober.ts";
import { DatagramSocket } from "../icmp/socket/datagram-socket.ts";
import { RawSocket } from "../icmp/socket/raw-socket.ts";
import { SystemError } from "../platform/libc.ts";
import { attempt } from "../util/errors.ts";
import { mtr } from "./mtr/engine.ts";
import { measureMtu } from "./mtu/engine.ts";
import { ping } from "./ping/engine.ts";
import { coalesceTraces } from "./trace/coalesced.ts";
import { createTraceroute } from "./trace/engine.ts";
import { tracePaths } from "./trace/path-search.ts";

/** The tools over one prober. */
export type IcmpEngine = ReturnType<typeof openIcmp>;

/** Takes the place of the engine without a raw socket. */
export interface NoIcmp {
  /** The system call that failed and its errno name, such as `socket(AF_INET6, 3, 58): EPERM`. */
  readonly unavailable: string;
}

const REMEDIES: Readonly<Record<string, string>> = {
  EAFNOSUPPORT: "enable IPv6 in the kernel",
  ENOSYS: "allow executable memory",
};

/** The remedy that gives this process a raw socket, by the system call that failed. */
export function remedyFor({ unavailable }: NoIcmp): string {
  return REMEDIES[unavailable.split(": ").at(-1) ?? ""] ?? "grant CAP_NET_RAW";
}

/**
 * Opens the engine with the raw socket, or without privileges with the datagram socket where the kernel
 * lets this process have one, or tells why there is neither.
 *
 * @param fd a raw ICMPv6 socket that is open already, or null to open one
 */
export function openIcmpIfAllowed(fd: number | null = null) {
  try {
    return openIcmp({ openSocket: (tag) => new RawSocket(tag, fd) });
  } catch (error) {
    if (!(error instanceof SystemError)) throw error;
    const withoutRaw = { unavailable: error.message };
    const options = { openSocket: () => new DatagramSocket() };
    return attempt(() => openIcmp(options, withoutRaw)) ?? withoutRaw;
  }
}

/** The engine for traces, which need the raw socket. */
export function engineForTraces(icmp: IcmpEngine | NoIcmp): IcmpEngine | NoIcmp {
  return ("withoutRaw" in icmp && icmp.withoutRaw) || icmp;
}

/**
 * Opens a socket, by default the raw one, for pings and traces.
 *
 * @throws SystemError `EPERM` without CAP_NET_RAW, `EAFNOSUPPORT` without IPv6, `ENOSYS` without FFI
 */
export function openIcmp(options: ProberOptions = {}, withoutRaw: NoIcmp | null = null) {
  const prober = new Prober(options);
  const traceroute = coalesceTraces(createTraceroute(prober));
  return {
    /** See `Prober`. */
    route: prober.route.bind(prober),
    ping: ping.bind(null, prober),
    traceroute,
    paths: tracePaths.bind(null, prober, traceroute),
    mtr: mtr.bind(null, prober, traceroute),
    mtu: measureMtu.bind(null, prober, traceroute),
    /** Why it has no raw socket and can only ping; null if it has one. */
    withoutRaw,
    counters: prober.counters as Readonly<Prober["counters"]>,
    /** Probes without an answer so far. */
    outstanding: () => prober.outstanding,
    /** Aborts all runs and closes the socket. */
    close: () => prober.close(),
  };
}
