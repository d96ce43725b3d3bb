import { type MtrOptions, type MtrOutcome, type MtrRequest, mtr } from "./mtr.ts";
import { type MtuOptions, type MtuOutcome, measureMtu } from "./mtu.ts";
import { type PingOptions, type PingOutcome, type PingRequest, ping } from "./ping.ts";
import { Prober, type ProberOptions } from "./prober.ts";
import { createTraceroute, type TraceRequest, type Traceroute } from "./traceroute.ts";

/** The tools over one prober. */
export interface IcmpEngine {
  ping(request: PingRequest, options?: PingOptions): Promise<PingOutcome>;
  readonly traceroute: Traceroute;
  mtr(request: MtrRequest, options?: MtrOptions): Promise<MtrOutcome>;
  mtu(request: TraceRequest, options?: MtuOptions): Promise<MtuOutcome>;
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
 * Opens the raw socket for pings and traces.
 *
 * @throws SystemError `EPERM` without CAP_NET_RAW, `EAFNOSUPPORT` without IPv6, `ENOSYS` without FFI
 */
export function openIcmp(options: ProberOptions = {}): IcmpEngine {
  const prober = new Prober(options);
  const traceroute = createTraceroute(prober);
  return {
    ping: (request, options) => ping(prober, request, options),
    traceroute,
    mtr: (request, own) => mtr(prober, traceroute, request, own),
    mtu: (request, own) => measureMtu(prober, traceroute, request, own),
    counters: prober.counters,
    get outstanding() {
      return prober.outstanding;
    },
    close: () => prober.close(),
  };
}
