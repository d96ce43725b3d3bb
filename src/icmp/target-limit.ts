import type { Ipv6Address } from "../addr/ipv6.ts";

/** Probes to one /64, over all callers: a second, and at once. */
export const PROBES_PER_SECOND = 1000;
export const PROBE_BURST = 1000;

/** How long Linux keeps packets for a neighbour that it is looking for, in milliseconds; RFC 4861 section 10. */
export const NEIGHBOUR_MS = 3000;

/**
 * Probes that may wait in the kernel for neighbours that may not exist. All probes share one send
 * buffer: by default it has room for 554, and a full one would stop every ping.
 */
export const MAX_WAITING = 256;

const COST_MS = 1000 / PROBES_PER_SECOND;

/** How often the tables are swept, in milliseconds. */
const SWEEP_MS = 100;

/** A host on this machine's own link. */
interface Neighbour {
  /** When each probe that may still wait for it was sent, the oldest first. */
  readonly sentMs: number[];
  /** When it last answered. */
  answeredMs: number;
}

/**
 * Bounds the probes to each /64 a second, since callers together must not make a flood, and the probes
 * that wait in the kernel for neighbours.
 */
export class TargetLimit {
  /** When each prefix has its whole burst again. */
  readonly #wholeMs = new Map<string, number>();
  readonly #neighbours = new Map<string, Neighbour>();
  #waiting = 0;
  #sweptMs = -Infinity;

  /** Counts one more probe unless a bound is reached; returns whether it was counted. */
  take(target: Ipv6Address, source: Ipv6Address, nowMs: number): boolean {
    this.#sweep(nowMs);
    const prefix = prefixKey(target);
    const wholeMs = Math.max(this.#wholeMs.get(prefix) ?? nowMs, nowMs) + COST_MS;
    if (wholeMs - nowMs > COST_MS * PROBE_BURST) return false;
    if (prefix === prefixKey(source) && !this.#takeNeighbour(target, nowMs)) return false;
    this.#wholeMs.set(prefix, wholeMs);
    return true;
  }

  /** Notes that a target has answered, so that no probe waits for it. */
  answered(target: Ipv6Address, nowMs: number): void {
    const neighbour = this.#neighbours.get(addressKey(target));
    if (neighbour === undefined) return;
    neighbour.answeredMs = nowMs;
    this.#waiting -= neighbour.sentMs.splice(0).length;
  }

  #takeNeighbour(target: Ipv6Address, nowMs: number): boolean {
    const key = addressKey(target);
    const neighbour = this.#neighbours.get(key) ?? { sentMs: [], answeredMs: -Infinity };
    if (nowMs - neighbour.answeredMs < NEIGHBOUR_MS) return true;
    if (this.#waiting >= MAX_WAITING) return false;
    neighbour.sentMs.push(nowMs);
    this.#waiting++;
    this.#neighbours.set(key, neighbour);
    return true;
  }

  #sweep(nowMs: number): void {
    if (nowMs - this.#sweptMs < SWEEP_MS) return;
    this.#sweptMs = nowMs;
    for (const [prefix, wholeMs] of this.#wholeMs) {
      if (wholeMs <= nowMs) this.#wholeMs.delete(prefix);
    }
    for (const [key, { sentMs, answeredMs }] of this.#neighbours) {
      while (nowMs - (sentMs[0] ?? nowMs) >= NEIGHBOUR_MS) {
        sentMs.shift();
        this.#waiting--;
      }
      if (sentMs.length === 0 && nowMs - answeredMs >= NEIGHBOUR_MS) this.#neighbours.delete(key);
    }
  }
}

function prefixKey({ word0, word1 }: Ipv6Address): string {
  return `${word0}:${word1}`;
}

function addressKey(address: Ipv6Address): string {
  return `${prefixKey(address)}:${address.word2}:${address.word3}`;
}
