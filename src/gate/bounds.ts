import { type IpAddress, networkOf } from "../addr/ip.ts";
import type { Ipv6Address } from "../addr/ipv6.ts";

/** Packets and connections to one network (a /64, or an IPv4 address) in any second, over all clients. */
export const PACKETS_PER_SECOND = 1000;

/** The shortest time between two SYNs or connections to one port, over all clients, in milliseconds: ten a second are no flood. */
export const SYN_PAUSE_MS = 100;

/** How long Linux keeps packets for a neighbour that it is looking for, in milliseconds; RFC 4861 section 10. */
export const NEIGHBOUR_MS = 3000;

/**
 * Probes that may wait in the kernel for neighbours that may not exist. All probes share one send
 * buffer: by default it has room for 554, and a full one would stop every ping.
 */
export const MAX_WAITING = 256;

/** How long the distance of a port that answered is remembered, in milliseconds: paths change. */
export const DISTANCE_MS = 10_000;

/** The wait before something is tried again for which the kernel has no room, in milliseconds: a slow link drains in this time. */
export const RETRY_MS = 20;

/** The hop limit of what the kernel sends. */
const HOP_LIMIT = 64;

/** How often the tables are swept, in milliseconds. */
const SWEEP_MS = 100;

/** A packet or a connection that is about to leave. */
export interface Departure {
  readonly target: IpAddress;
  /** The port that it goes to; a TCP port is one that it opens, or asks to open. */
  readonly probedPort?: { readonly protocol: "tcp" | "udp"; readonly port: number } | undefined;
  /** The address that a probe comes from; absent for a connection. */
  readonly source?: Ipv6Address;
  /** That of a probe, which may end at a router; absent for a connection. */
  readonly hopLimit?: number;
}

/** A bound that a departure can meet. */
interface Bound {
  readonly key: string;
  /** Milliseconds until it lets the next one pass; not above 0 if that is now. */
  waitMs(nowMs: number): number;
}

/**
 * Bounds what leaves for each network and each TCP port in a second, since clients together must not make a flood, and
 * the probes that wait in the kernel for neighbours.
 */
export class Bounds {
  /** When packets of the last second left for each network, the oldest first. */
  readonly #leftMs = new Map<string, number[]>();
  /** Probes to neighbours that have not answered since, the oldest first. */
  #waiting: { readonly neighbour: string; readonly sentMs: number }[] = [];
  /** When the last SYN left for each port, by how far it goes: others end at a router. */
  readonly #synMs = new Map<string, number>();
  /** The least hop limit with which a SYN reached each port, and when it last did. */
  readonly #distances = new Map<string, { readonly hops: number; readonly atMs: number }>();
  /** When each target last answered. */
  readonly #answeredMs = new Map<string, number>();
  #sweptMs = -Infinity;

  /** The bounds that a departure can meet, in the order in which it waits for them. */
  of(departure: Departure): readonly Bound[] {
    const syn = this.#synKey(departure);
    const network = networkOf(departure.target);
    const bounds: Bound[] = [];
    if (syn !== undefined)
      bounds.push({ key: syn, waitMs: (nowMs) => this.#synWaitMs(syn, nowMs) });
    if (this.#unansweredNeighbour(departure) !== undefined)
      bounds.push({ key: "neighbours", waitMs: (nowMs) => this.#neighbourWaitMs(nowMs) });
    bounds.push({
      key: network,
      waitMs: (nowMs) => waitMsOf(this.#leftSince(network, nowMs), nowMs),
    });
    return bounds;
  }

  /** Counts one more departure and returns true, unless it meets a bound. */
  take(departure: Departure, nowMs: number): boolean {
    if (nowMs - this.#sweptMs >= SWEEP_MS) this.#sweep(nowMs);
    const syn = this.#synKey(departure);
    if (syn !== undefined && this.#synWaitMs(syn, nowMs) > 0) return false;
    const neighbour = this.#unansweredNeighbour(departure);
    if (neighbour !== undefined && this.#neighbourWaitMs(nowMs) > 0) return false;
    const network = networkOf(departure.target);
    const leftMs = this.#leftSince(network, nowMs);
    if (waitMsOf(leftMs, nowMs) > 0) return false;
    if (syn !== undefined) this.#synMs.set(syn, nowMs);
    if (neighbour !== undefined) this.#waiting.push({ neighbour, sentMs: nowMs });
    leftMs.push(nowMs);
    this.#leftMs.set(network, leftMs);
    return true;
  }

  /** Counts a SYN that leaves whatever the bounds say. */
  note(departure: Departure, nowMs: number): void {
    const syn = this.#synKey(departure);
    // The next one waits for longer.
    if (syn !== undefined)
      this.#synMs.set(syn, Math.max(nowMs, (this.#synMs.get(syn) ?? 0) + SYN_PAUSE_MS));
  }

  /** Notes that a target has answered, so that no probe waits for it. */
  answered(target: IpAddress, nowMs: number): void {
    const key = addressKey(target);
    this.#answeredMs.set(key, nowMs);
    if (this.#waiting.length === 0) return;
    this.#waiting = this.#waiting.filter(({ neighbour }) => neighbour !== key);
  }

  /** Notes that a SYN with its hop limit has reached its port, so that all that go further share the bound. */
  reached(departure: Departure, nowMs: number): void {
    const port = portKey(departure);
    const { hopLimit: hops = HOP_LIMIT } = departure;
    if (port && hops <= (this.#distances.get(port)?.hops ?? Infinity))
      this.#distances.set(port, { hops, atMs: nowMs });
  }

  #synWaitMs(key: string, nowMs: number): number {
    return (this.#synMs.get(key) ?? -Infinity) + SYN_PAUSE_MS - nowMs;
  }

  #neighbourWaitMs(nowMs: number): number {
    if (this.#waiting.length < MAX_WAITING) return 0;
    this.#sweep(nowMs);
    return this.#waiting.length < MAX_WAITING ? 0 : RETRY_MS;
  }

  /** The key of a neighbour that has not answered; undefined for any other target. */
  #unansweredNeighbour({ target, source }: Departure): string | undefined {
    if (!isNear(target, source)) return undefined;
    const key = addressKey(target);
    return this.#answeredMs.has(key) ? undefined : key;
  }

  /** When packets of the last second left for a network. */
  #leftSince(network: string, nowMs: number): number[] {
    const leftMs = this.#leftMs.get(network) ?? [];
    while ((leftMs[0] ?? Infinity) <= nowMs - 1000) leftMs.shift();
    return leftMs;
  }

  #synKey(departure: Departure): string | undefined {
    const port = portKey(departure);
    if (port === undefined) return undefined;
    const { hopLimit = HOP_LIMIT } = departure;
    return `${port} ${Math.min(hopLimit, this.#distances.get(port)?.hops ?? hopLimit)}`;
  }

  #sweep(nowMs: number): void {
    this.#sweptMs = nowMs;
    forget(this.#synMs, (sentMs) => nowMs - sentMs >= SYN_PAUSE_MS);
    forget(this.#leftMs, (leftMs) => (leftMs.at(-1) ?? 0) <= nowMs - 1000);
    forget(this.#answeredMs, (answeredMs) => nowMs - answeredMs >= NEIGHBOUR_MS);
    forget(this.#distances, ({ atMs }) => nowMs - atMs >= DISTANCE_MS);
    this.#waiting = this.#waiting.filter(({ sentMs }) => nowMs - sentMs < NEIGHBOUR_MS);
  }
}

/** Milliseconds until one more may leave for a network. */
function waitMsOf(leftMs: readonly number[], nowMs: number): number {
  return leftMs.length < PACKETS_PER_SECOND ? 0 : (leftMs[0] ?? nowMs) + 1000 - nowMs;
}

function forget<T>(map: Map<string, T>, isOver: (value: T) => boolean): void {
  for (const [key, value] of map) if (isOver(value)) map.delete(key);
}

/** The key of the port that a SYN or a connection goes to; undefined for anything else. */
export function portKey({ target, probedPort }: Departure): string | undefined {
  return probedPort?.protocol === "tcp" ? `${addressKey(target)} ${probedPort.port}` : undefined;
}

/** True for a neighbour on the /64 of the source. */
function isNear(target: IpAddress, source: Ipv6Address | undefined): boolean {
  if (target.version === 4 || source === undefined) return false;
  return target.word0 === source.word0 && target.word1 === source.word1;
}

function addressKey(address: IpAddress): string {
  const network = networkOf(address);
  return address.version === 4 ? network : `${network}:${address.word2}:${address.word3}`;
}
