import { NS_PER_MS } from "./clock.ts";
import { LIMITS } from "./limits.ts";

interface Distance {
  /** When a router there would have all of its burst again, if all traces asked the same one. */
  fullNs: number;
  /** When one last answered. */
  answeredNs: number;
  /** Repeats that had waited for their turn, since one was answered or the last crowd was over. */
  vainRepeats: number;
}

/**
 * What traces that run at the same time know of each other, so that they do not drown in the rate
 * limit of the routers that they share. A router that limits itself answers one address a few times at
 * once and then slowly, and so near hops would be silent for all but the first few traces.
 *
 * Nothing is guessed: each trace asks each of its hops itself. But where routers at a distance do
 * answer, a trace that was not answered asks again when its turn has come; and as soon as turns turn
 * out to be in vain there, because it is not a limit that keeps hops silent, at once.
 */
export class HopPacer {
  readonly #distances = new Map<number, Distance>();

  /** Notes that a hop was asked for the first time. */
  asked(hop: number, nowNs: number): void {
    const distance = this.#at(hop);
    if (this.#waitNs(distance, nowNs) === 0) this.#take(distance, nowNs);
  }

  /** Notes that a router at this distance has answered, the first request of its trace or a repeated one. */
  answered(hop: number, isRepeat: boolean, nowNs: number): void {
    const distance = this.#at(hop);
    distance.answeredNs = nowNs;
    if (isRepeat) distance.vainRepeats = 0;
  }

  /** Notes that a silent hop is asked again which has waited for its turn. */
  repeated(hop: number): void {
    this.#at(hop).vainRepeats++;
  }

  /** Whether hops at this distance have an answer to expect from waiting for their turn. */
  isWorthWaiting(hop: number, nowNs: number): boolean {
    const { answeredNs, vainRepeats } = this.#at(hop);
    const isAnswering = nowNs - answeredNs <= LIMITS.knownMs * NS_PER_MS;
    return isAnswering && vainRepeats < LIMITS.maxVainRepeats;
  }

  /** When a silent hop may be asked again: at once, unless so many ask at this distance that it must wait for its turn, which is taken thereby. */
  reserve(hop: number, nowNs: number): number {
    const distance = this.#at(hop);
    const crowdNs = this.#waitNs(distance, nowNs);
    if (crowdNs === 0) distance.vainRepeats = 0;
    const waitNs = this.isWorthWaiting(hop, nowNs) ? crowdNs : 0;
    if (waitNs > LIMITS.maxTurnMs * NS_PER_MS) return nowNs;
    this.#take(distance, nowNs);
    return nowNs + waitNs;
  }

  #at(hop: number): Distance {
    let distance = this.#distances.get(hop);
    if (distance === undefined) {
      distance = { fullNs: -Infinity, answeredNs: -Infinity, vainRepeats: 0 };
      this.#distances.set(hop, distance);
    }
    return distance;
  }

  /** Nanoseconds until the router may send one more error. */
  #waitNs({ fullNs }: Distance, nowNs: number): number {
    return Math.max(
      0,
      fullNs - (LIMITS.routerBurst - 1) * LIMITS.routerPauseMs * NS_PER_MS - nowNs,
    );
  }

  #take(distance: Distance, nowNs: number): void {
    distance.fullNs = Math.max(distance.fullNs, nowNs) + LIMITS.routerPauseMs * NS_PER_MS;
  }
}
