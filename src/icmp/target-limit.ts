import type { Ipv6Address } from "../addr/ipv6.ts";
import type { OutgoingPacket } from "./socket.ts";

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

/** How often the tables are swept, in milliseconds. */
const SWEEP_MS = 100;

type Probe = Pick<OutgoingPacket, "target" | "source" | "carrier" | "hopLimit">;

/** The share of an instance in the probes to each /64, if others probe it too. */
export interface TargetShare {
  /** Probes in any second that it may send without a lease. */
  perSecond(): number;
  /** True if it may send one more, of a lease for that /64; if not, a later try may get one. */
  lease(prefix: string, nowMs: number): boolean;
}

const ALONE: TargetShare = { perSecond: () => PROBES_PER_SECOND, lease: () => false };

/**
 * Bounds the probes to each /64 a second, since callers together must not make a flood, and the probes
 * that wait in the kernel for neighbours.
 */
export class TargetLimit {
  readonly #share: TargetShare;
  /** When probes of the last second were sent to each prefix, the oldest first. */
  readonly #sentMs = new Map<string, number[]>();
  /** Probes to neighbours that have not answered since, the oldest first. */
  #waiting: { readonly neighbour: string; readonly sentMs: number }[] = [];
  /** When the last SYN was sent to each port of a target, by hop limit: others end at a router. */
  readonly #synMs = new Map<string, number>();
  /** When each target last answered. */
  readonly #answeredMs = new Map<string, number>();
  #sweptMs = -Infinity;

  constructor(share: TargetShare = ALONE) {
    this.#share = share;
  }

  /** Counts one more probe unless a bound is reached; returns whether it was counted. */
  take({ target, source, carrier, hopLimit }: Probe, nowMs: number): boolean {
    if (nowMs - this.#sweptMs >= SWEEP_MS) this.#sweep(nowMs);
    const port = carrier?.protocol === "tcp" && `${addressKey(target)} ${carrier.port} ${hopLimit}`;
    if (port && nowMs - (this.#synMs.get(port) ?? -Infinity) < SYN_PAUSE_MS) return false;
    const prefix = prefixKey(target);
    const sentMs = this.#sentMs.get(prefix) ?? [];
    while ((sentMs[0] ?? Infinity) <= nowMs - 1000) sentMs.shift();
    const isNear = target.word0 === source.word0 && target.word1 === source.word1;
    const neighbour = isNear ? addressKey(target) : "";
    const isWaiting = isNear && !this.#answeredMs.has(neighbour);
    if (isWaiting && this.#waiting.length >= MAX_WAITING) return false;
    const isShort = sentMs.length >= this.#share.perSecond();
    if (isShort && !this.#share.lease(prefix, nowMs)) return false;
    if (isWaiting) this.#waiting.push({ neighbour, sentMs: nowMs });
    if (port) this.#synMs.set(port, nowMs);
    sentMs.push(nowMs);
    this.#sentMs.set(prefix, sentMs);
    return true;
  }

  /** Notes that a target has answered, so that no probe waits for it. */
  answered(target: Ipv6Address, nowMs: number): void {
    const key = addressKey(target);
    this.#answeredMs.set(key, nowMs);
    if (this.#waiting.length === 0) return;
    this.#waiting = this.#waiting.filter(({ neighbour }) => neighbour !== key);
  }

  #sweep(nowMs: number): void {
    this.#sweptMs = nowMs;
    for (const [port, sentMs] of this.#synMs) {
      if (nowMs - sentMs >= SYN_PAUSE_MS) this.#synMs.delete(port);
    }
    for (const [prefix, sentMs] of this.#sentMs) {
      if ((sentMs.at(-1) ?? 0) <= nowMs - 1000) this.#sentMs.delete(prefix);
    }
    for (const [key, answeredMs] of this.#answeredMs) {
      if (nowMs - answeredMs >= NEIGHBOUR_MS) this.#answeredMs.delete(key);
    }
    this.#waiting = this.#waiting.filter(({ sentMs }) => nowMs - sentMs < NEIGHBOUR_MS);
  }
}

function prefixKey({ word0, word1 }: Ipv6Address): string {
  return `${word0}:${word1}`;
}

function addressKey(address: Ipv6Address): string {
  return `${prefixKey(address)}:${address.word2}:${address.word3}`;
}
