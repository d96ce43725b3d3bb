import type { Ipv6Address } from "../addr/ipv6.ts";
import { NS_PER_MS } from "./clock.ts";
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
    const prefix = prefixOf(target);
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

/** A probe that may still lie in this machine. */
interface Unheard {
  /** The run that sent it, by its identity. */
  readonly run: object;
  readonly untilNs: number;
}

/**
 * Bounds how many probes lie in this machine for neighbours that may not be there: the kernel keeps
 * them while it looks for each, and all of them count on the one socket, from which no run could send
 * any more. Which targets are neighbours, and which of them are there, shows in what is heard.
 */
export class UnheardLimiter {
  readonly #most: number;
  /** By /64, in the order of sending; the /64s in the order of their last probe. */
  readonly #probes = new Map<string, Set<Unheard>>();

  /** @param roomBytes the socket's room for packets that have not left */
  constructor(roomBytes: number) {
    this.#most = Math.floor((roomBytes / LIMITS.queuedProbeBytes) * LIMITS.unheardShare);
  }

  /** Whether a run that has heard nothing may send one more probe to this target now. */
  allows(target: Ipv6Address, nowNs: number): boolean {
    const probes = this.#probes.get(prefixOf(target)) ?? new Set();
    dropGivenUp(probes, nowNs);
    return probes.size < this.#most;
  }

  /** Notes a probe of a run that has heard nothing. */
  sent(run: object, target: Ipv6Address, nowNs: number): void {
    const prefix = prefixOf(target);
    const probes = this.#probes.get(prefix) ?? new Set();
    probes.add({ run, untilNs: nowNs + LIMITS.neighbourMs * NS_PER_MS });
    this.#probes.delete(prefix);
    this.#probes.set(prefix, probes);
    this.#forget(nowNs);
  }

  /** Notes that a run has heard something: its probes have left. */
  heard(run: object, target: Ipv6Address): void {
    const probes = this.#probes.get(prefixOf(target)) ?? new Set();
    for (const probe of probes) if (probe.run === run) probes.delete(probe);
  }

  /** Drops the /64s whose probes have all left or been given up; one that has not holds up those behind it. */
  #forget(nowNs: number): void {
    for (const [prefix, probes] of this.#probes) {
      dropGivenUp(probes, nowNs);
      if (probes.size > 0) return;
      this.#probes.delete(prefix);
    }
  }
}

/** Drops the probes that the kernel has given up by now. */
function dropGivenUp(probes: Set<Unheard>, nowNs: number): void {
  for (const probe of probes) {
    if (probe.untilNs > nowNs) return;
    probes.delete(probe);
  }
}

function prefixOf({ word0, word1 }: Ipv6Address): string {
  return `${word0}:${word1}`;
}
