import { SystemError } from "../platform/libc.ts";
import { DatagramSocket } from "./datagram-socket.ts";
import { type MtrOptions, type MtrOutcome, type MtrRequest, mtr } from "./mtr.ts";
import { type MtuOptions, type MtuOutcome, measureMtu } from "./mtu.ts";
import { type PathsOptions, type PathsOutcome, type PathsRequest, tracePaths } from "./paths.ts";
import { type PingOptions, type PingOutcome, type PingRequest, ping } from "./ping.ts";
import { Prober, type ProberOptions } from "./prober.ts";
import { RawSocket } from "./socket.ts";
import type { TargetShare } from "./target-limit.ts";
import { createTraceroute, type TraceRequest, type Traceroute } from "./traceroute.ts";

/** The tools over one prober. */
export interface IcmpEngine {
  ping(request: PingRequest, options?: PingOptions): Promise<PingOutcome>;
  readonly traceroute: Traceroute;
  paths(request: PathsRequest, options?: PathsOptions): Promise<PathsOutcome>;
  mtr(request: MtrRequest, options?: MtrOptions): Promise<MtrOutcome>;
  mtu(request: TraceRequest, options?: MtuOptions): Promise<MtuOutcome>;
  /** Why it has no raw socket and can only ping; null if it has one. */
  readonly withoutRaw: NoIcmp | null;
  readonly counters: Readonly<Prober["counters"]>;
  /** Probes without an answer so far. */
  readonly outstanding: number;
  /** Aborts all runs and closes the socket. */
  close(): void;
}

/** Takes the place of the engine without a raw socket. */
export interface NoIcmp {
  /** The system call that failed and its errno name, such as `socket(AF_INET6, 3, 58): EPERM`. */
  readonly unavailable: string;
}

const REMEDIES: Readonly<Record<string, string>> = {
  EAFNOSUPPORT: "enable IPv6 in the kernel",
  ENOSYS: "allow executable memory",
};

/** What gives this process a raw socket, by the system call that failed. */
export function remedyFor({ unavailable }: NoIcmp): string {
  return REMEDIES[unavailable.split(": ").at(-1) ?? ""] ?? "grant CAP_NET_RAW";
}

/**
 * Opens the engine with the raw socket, or without privileges with the datagram socket where the kernel
 * lets this process have one, or tells why there is neither.
 *
 * @param fd a raw ICMPv6 socket that is open already, or null to open one
 * @param share what it may send to each /64; without others, all that one may get
 */
export function openIcmpIfAllowed(
  fd: number | null = null,
  share?: TargetShare,
): IcmpEngine | NoIcmp {
  try {
    return openIcmp({ openSocket: (tag) => new RawSocket(tag, fd), share });
  } catch (error) {
    if (!(error instanceof SystemError)) throw error;
    const withoutRaw = { unavailable: error.message };
    try {
      return openIcmp({ openSocket: () => new DatagramSocket(), share }, withoutRaw);
    } catch {
      return withoutRaw;
    }
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
export function openIcmp(
  options: ProberOptions = {},
  withoutRaw: NoIcmp | null = null,
): IcmpEngine {
  const prober = new Prober(options);
  const traceroute = createTraceroute(prober);
  return {
    ping: (request, options) => ping(prober, request, options),
    traceroute,
    paths: (request, own) => tracePaths(prober, traceroute, request, own),
    mtr: (request, own) => mtr(prober, traceroute, request, own),
    mtu: (request, own) => measureMtu(prober, traceroute, request, own),
    withoutRaw,
    counters: prober.counters,
    get outstanding() {
      return prober.outstanding;
    },
    close: () => prober.close(),
  };
}
