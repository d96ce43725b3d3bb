import { type Clock, SystemClock } from "./clock.ts";
import { shareTraces } from "./coalesced-traces.ts";
import { HopPacer } from "./hop-pacer.ts";
import { type PingOutcome, type PingRequest, ping } from "./ping.ts";
import { type ProbeCounters, Prober, type RandomSource } from "./prober.ts";
import { openRawSocket } from "./raw-socket.ts";
import type { OpenSocket } from "./socket.ts";
import { type TraceOutcome, type TraceRequest, traceroute } from "./traceroute.ts";

/** What an engine stands on; tests hand in their own. */
export interface IcmpOptions {
  readonly openSocket?: OpenSocket;
  readonly clock?: Clock;
  readonly random?: RandomSource;
}

/** All pings and traces of the process, over one raw socket. */
export interface IcmpEngine {
  /** Sends echo requests and answers as soon as the last of them is decided. Rejects with the `failure`. */
  ping(request: PingRequest): Promise<PingOutcome>;
  /** Finds the routers on the way to a target. Rejects with the `failure`. */
  traceroute(request: TraceRequest): Promise<TraceOutcome>;
  /** Why nothing can be received any more, once the receiver has failed: all pings and traces reject with it. Null while it works. */
  readonly failure: Error | null;
  /** Probes of what is running that are not answered; 0 when nothing runs. */
  readonly outstanding: number;
  /** Grows at least twice a second while the receiver lives. */
  readonly beats: number;
  /** How often what happened, since the engine was opened. */
  readonly counters: Readonly<ProbeCounters>;
  /** Aborts all runs; resolves once the receiver has ended and the socket is closed. */
  close(): Promise<void>;
}

/** Stands in for an engine where there is no raw socket, and says why. */
export interface NoIcmp {
  readonly unavailable: string;
}

/**
 * Opens the raw socket and starts its receiver.
 *
 * @throws SystemError where the process may not have a raw socket: code `EPERM` without
 *   CAP_NET_RAW, `EAFNOSUPPORT` without IPv6, `ENOSYS` where FFI is switched off
 */
export function openIcmp(options: IcmpOptions = {}): IcmpEngine {
  const {
    openSocket = openRawSocket,
    clock = new SystemClock(),
    random = (bytes) => crypto.getRandomValues(bytes),
  } = options;
  const prober = new Prober(openSocket, clock, random);
  const pacer = new HopPacer();
  return {
    ping: (request) => ping(prober, request),
    traceroute: shareTraces((request) => traceroute(prober, pacer, request)),
    get failure() {
      return prober.failure;
    },
    get outstanding() {
      return prober.outstanding;
    },
    get beats() {
      return prober.beats;
    },
    get counters() {
      return prober.counters;
    },
    close: () => prober.close(),
  };
}
