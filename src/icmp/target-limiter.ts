import type { Ipv6Address } from "../addr/ipv6.ts";
import { LIMITS } from "./limits.ts";

/** Nanoseconds in which one probe is earned. */
const COST_NS = 1e9 / LIMITS.targetProbesPerSecond;
const BURST_NS = COST_NS * LIMITS.targetBurst;

/**
 * Bounds how many probes a second go to one /64, whoever asks for them: a host has a whole /64 to be
 * pinged at, and callers who agree on one must not make a flood together.
 */
export class TargetLimiter {
  /** By /64, when its burst is whole again; in the order of the last probe. */
  readonly #wholeNs = new Map<string, number>();

  /** Whether one more probe may go to this target now; it is counted if so. */
  take(target: Ipv6Address, nowNs: number): boolean {
    this.#forget(nowNs);
    const prefix = `${target.word0}:${target.word1}`;
    const wholeNs = Math.max(this.#wholeNs.get(prefix) ?? nowNs, nowNs) + COST_NS;
    if (wholeNs - nowNs > BURST_NS) return false;
    this.#wholeNs.delete(prefix);
    this.#wholeNs.set(prefix, wholeNs);
    return true;
  }

  /** Drops what is whole again; one that is not holds up those behind it for a burst's time at most. */
  #forget(nowNs: number): void {
    for (const [prefix, wholeNs] of this.#wholeNs) {
      if (wholeNs > nowNs) return;
      this.#wholeNs.delete(prefix);
    }
  }
}
