import { networkOf } from "../../addr/ip.ts";
import type { Ipv6Address } from "../../addr/ipv6.ts";
import type { OutgoingPacket } from "../socket/socket.ts";

/** Probes to one /64 in any second, over all callers. */
export const PROBES_PER_SECOND = 1000;

/** How long Linux keeps packets for a neighbour that it is looking for, in milliseconds; RFC 4861 section 10. */
export const NEIGHBOUR_MS = 3000;

/**
 * Probes that may wait in the kernel for neighbours that may not exist. All probes share one send
 * buffer: by default it has room for 554, and a full one would stop every ping.
 */
export const MAX_WAITING = 256;

/** The shortest time between two SYNs to one port of a target, over all callers, in milliseconds: ten a second open no flood. */
export const SYN_PAUSE_MS = 100;

/** How long the distance of a port that answered is remembered, in milliseconds: paths change. */
export const DISTANCE_MS = 10_000;

/** The wait before a probe is tried again that could not be sent now, in milliseconds: a slow link drains in this time. */
export const RETRY_MS = 20;

/** How often the tables are swept, in milliseconds. */
const SWEEP_MS = 100;

type Probe = Pick<OutgoingPacket, "target" | "source" | "probedPort" | "hopLimit">;

/**
 * Bounds the probes to each /64 a second, since callers together must not make a flood, and the probes
 * that wait in the kernel for neighbours.
 */
export class TargetLimit {
  /** When probes of the last second were sent to each prefix, the oldest first. */
  readonly #sentMs = new Map<string, number[]>();
  /** Probes to neighbours that have not answered since, the oldest first. */
  #waiting: { readonly neighbour: string; readonly sentMs: number }[] = [];
  /** When the last SYN was sent to each port of a target, by how far it goes: others end at a router. */
  readonly #synMs = new Map<string, number>();
  /** The least hop limit with which a SYN reached each port, and when it last did. */
  readonly #distances = new Map<string, { readonly hops: number; readonly atMs: number }>();
  /** When each target last answered. */
  readonly #answeredMs = new Map<string, number>();
  #sweptMs = -Infinity;

  /** Counts one more probe and returns 0, unless a bound is reached: then it returns the milliseconds after which to try again. */
  take(probe: Probe, nowMs: number): number {
    const { target, source, hopLimit } = probe;
    if (nowMs - this.#sweptMs >= SWEEP_MS) this.#sweep(nowMs);
    const port = portKey(probe);
    const far = Math.min(hopLimit, this.#distances.get(port ?? "")?.hops ?? hopLimit);
    const syn = port && `${port} ${far}`;
    const waitMs = syn ? (this.#synMs.get(syn) ?? -Infinity) + SYN_PAUSE_MS - nowMs : 0;
    if (waitMs > 0) return waitMs;
    const prefix = networkOf(target);
    const sentMs = this.#sentMs.get(prefix) ?? [];
    while ((sentMs[0] ?? Infinity) <= nowMs - 1000) sentMs.shift();
    const isNear = target.word0 === source.word0 && target.word1 === source.word1;
    const neighbour = isNear ? addressKey(target) : "";
    const isWaiting = isNear && !this.#answeredMs.has(neighbour);
    if (isWaiting && this.#waiting.length >= MAX_WAITING) return RETRY_MS;
    if (sentMs.length >= PROBES_PER_SECOND) return RETRY_MS;
    if (isWaiting) this.#waiting.push({ neighbour, sentMs: nowMs });
    if (syn) this.#synMs.set(syn, nowMs);
    sentMs.push(nowMs);
    this.#sentMs.set(prefix, sentMs);
    return 0;
  }

  /** Notes that a target has answered, so that no probe waits for it. */
  answered(target: Ipv6Address, nowMs: number): void {
    const key = addressKey(target);
    this.#answeredMs.set(key, nowMs);
    if (this.#waiting.length === 0) return;
    this.#waiting = this.#waiting.filter(({ neighbour }) => neighbour !== key);
  }

  /** Notes that a SYN with its hop limit has reached its port, so that all that go further share the bound. */
  reached(probe: Probe, nowMs: number): void {
    const port = portKey(probe);
    const { hopLimit: hops } = probe;
    if (port && hops <= (this.#distances.get(port)?.hops ?? Infinity))
      this.#distances.set(port, { hops, atMs: nowMs });
  }

  #sweep(nowMs: number): void {
    this.#sweptMs = nowMs;
    forget(this.#synMs, (sentMs) => nowMs - sentMs >= SYN_PAUSE_MS);
    forget(this.#sentMs, (sentMs) => (sentMs.at(-1) ?? 0) <= nowMs - 1000);
    forget(this.#answeredMs, (answeredMs) => nowMs - answeredMs >= NEIGHBOUR_MS);
    forget(this.#distances, ({ atMs }) => nowMs - atMs >= DISTANCE_MS);
    this.#waiting = this.#waiting.filter(({ sentMs }) => nowMs - sentMs < NEIGHBOUR_MS);
  }
}

function forget<T>(map: Map<string, T>, isOver: (value: T) => boolean): void {
  for (const [key, value] of map) if (isOver(value)) map.delete(key);
}

/** The key of the port that a SYN goes to; undefined for other probes. */
function portKey({ target, probedPort }: Probe): string | undefined {
  return probedPort?.protocol === "tcp" ? `${addressKey(target)} ${probedPort.port}` : undefined;
}

function addressKey(address: Ipv6Address): string {
  return `${networkOf(address)}:${address.word2}:${address.word3}`;
}
