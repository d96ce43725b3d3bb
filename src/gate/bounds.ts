import { formatIp, type IpAddress, networkOf } from "../addr/ip.ts";
import type { Ipv6Address } from "../addr/ipv6.ts";

/** Packets and connections to one network (a /64, or an IPv4 address) in any second, over all clients. */
export const PACKETS_PER_SECOND = 1000;

/** The shortest time between two SYNs or connections to one port, over all clients, in milliseconds: ten a second are no flood. */
export const SYN_PAUSE_MS = 100;

/** The time that Linux keeps packets for an unresolved neighbour, in milliseconds; RFC 4861 section 10. */
export const NEIGHBOUR_MS = 3000;

/**
 * Probes in `NEIGHBOUR_MS` to neighbours that may not exist: the kernel keeps these probes. All probes share one send
 * buffer: by default it has room for 554, and a full one would stop every ping.
 */
export const MAX_WAITING = 256;

/** The time that the distance of an answering port is remembered, in milliseconds: paths change. */
export const DISTANCE_MS = 10_000;

/** The wait before a packet is tried again if the kernel has no room for it, in milliseconds: a slow link drains meanwhile. */
export const RETRY_MS = 20;

/** The hop limit of the kernel's own packets. */
const HOP_LIMIT = 64;

/** The time between sweeps of the tables, in milliseconds. */
const SWEEP_MS = 100;

/** A packet or a connection that is about to leave. */
export interface Departure {
  readonly target: IpAddress;
  /** The port that it goes to; a packet to a TCP port is a SYN or opens a connection. */
  readonly probedPort?: { readonly protocol: "tcp" | "udp"; readonly port: number } | undefined;
  /** The address that a probe comes from; absent for a connection. */
  readonly source?: Ipv6Address;
  /** The hop limit of a probe, which may end at a router; absent for a connection. */
  readonly hopLimit?: number;
}

/** Counts departures by key. At most `most` of one key may leave in any period. */
function createBound(most: number, periodMs: number) {
  /** The times of the last departures, the oldest first. */
  const leftMs = new Map<string, number[]>();
  /** Milliseconds until one more may leave; at most 0 if one may leave now. */
  const waitMs = (key: string, nowMs: number) => {
    const times = leftMs.get(key);
    if (times === undefined) return 0;
    while ((times[0] ?? Infinity) <= nowMs - periodMs) times.shift();
    return (times.at(-most) ?? -Infinity) + periodMs - nowMs;
  };
  return {
    waitMs,
    /** Counts a departure at a time. */
    count: (key: string, atMs: number) => leftMs.getOrInsertComputed(key, () => []).push(atMs),
    sweep: (nowMs: number) => forget(leftMs, (times) => (times.at(-1) ?? 0) <= nowMs - periodMs),
  };
}

/**
 * Bounds the departures for each network and each TCP port in a second, because all clients together must not make a
 * flood. Also bounds the probes that wait in the kernel for neighbours.
 */
export class Bounds {
  readonly #networks = createBound(PACKETS_PER_SECOND, 1000);
  /** SYNs by port and hop limit, because those with a smaller hop limit end at a router. */
  readonly #syns = createBound(1, SYN_PAUSE_MS);
  /** Probes to neighbours that have not answered before. */
  readonly #neighbours = createBound(MAX_WAITING, NEIGHBOUR_MS);
  /** The least hop limit with which a SYN reached each port, and the last time that one did. */
  readonly #distances = new Map<string, { readonly hops: number; readonly atMs: number }>();
  /** The time of each target's last answer. */
  readonly #answeredMs = new Map<string, number>();
  #sweptMs = -Infinity;

  /** The bounds that a departure can meet, in the order in which it waits for them, each with its key. */
  of(departure: Departure) {
    const syn = this.#synKey(departure);
    const bounds = [{ bound: this.#networks, key: networkOf(departure.target) }];
    if (this.#isUnknownNeighbour(departure))
      bounds.unshift({ bound: this.#neighbours, key: "neighbours" });
    if (syn !== undefined) bounds.unshift({ bound: this.#syns, key: syn });
    return bounds;
  }

  /** Counts one more departure and returns true, unless it meets a bound. */
  take(departure: Departure, nowMs: number): boolean {
    if (nowMs - this.#sweptMs >= SWEEP_MS) this.#sweep(nowMs);
    const bounds = this.of(departure);
    if (bounds.some(({ bound, key }) => bound.waitMs(key, nowMs) > 0)) return false;
    for (const { bound, key } of bounds) bound.count(key, nowMs);
    return true;
  }

  /** Counts a SYN that leaves regardless of the bounds; the next one waits longer. */
  note(departure: Departure, nowMs: number): void {
    const syn = this.#synKey(departure);
    if (syn === undefined) return;
    this.#syns.count(syn, nowMs + Math.max(0, this.#syns.waitMs(syn, nowMs)));
  }

  /** Notes that a target has answered, so that no probe waits for it. */
  answered(target: IpAddress, nowMs: number): void {
    this.#answeredMs.set(formatIp(target), nowMs);
  }

  /** Notes that a SYN has reached its port, so that all SYNs with at least its hop limit share the bound. */
  reached(departure: Departure, nowMs: number): void {
    const port = portKey(departure);
    const { hopLimit: hops = HOP_LIMIT } = departure;
    if (port && hops <= (this.#distances.get(port)?.hops ?? Infinity))
      this.#distances.set(port, { hops, atMs: nowMs });
  }

  /** True for a neighbour on the /64 of the source that has not answered lately. */
  #isUnknownNeighbour({ target, source }: Departure): boolean {
    if (target.version === 4 || source === undefined) return false;
    const isNear = target.word0 === source.word0 && target.word1 === source.word1;
    return isNear && !this.#answeredMs.has(formatIp(target));
  }

  #synKey(departure: Departure): string | undefined {
    const port = portKey(departure);
    if (port === undefined) return undefined;
    const { hopLimit = HOP_LIMIT } = departure;
    return `${port} ${Math.min(hopLimit, this.#distances.get(port)?.hops ?? hopLimit)}`;
  }

  #sweep(nowMs: number): void {
    this.#sweptMs = nowMs;
    for (const bound of [this.#networks, this.#syns, this.#neighbours]) bound.sweep(nowMs);
    forget(this.#answeredMs, (answeredMs) => nowMs - answeredMs >= NEIGHBOUR_MS);
    forget(this.#distances, ({ atMs }) => nowMs - atMs >= DISTANCE_MS);
  }
}

function forget<T>(map: Map<string, T>, isOver: (value: T) => boolean): void {
  for (const [key, value] of map) if (isOver(value)) map.delete(key);
}

/** The key of the port that a SYN or a connection goes to; undefined for anything else. */
export function portKey({ target, probedPort }: Departure): string | undefined {
  return probedPort?.protocol === "tcp" ? `${formatIp(target)} ${probedPort.port}` : undefined;
}
