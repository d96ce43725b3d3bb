import { clientGone, tooMany } from "../http/errors.ts";

/** Most runs end within seconds, so a client that waits this long finds a free place. */
const RETRY_AFTER_SECONDS = 2;

/** How long an owner below its fair share waits for the next free place: longer than runs last with the default settings. */
export const MAX_WAIT_MS = 5_000;

/** Somebody who waits for a place. */
interface Waiter {
  readonly owner: string;
  /** Hands over a place, or null where there is none in time. */
  readonly settle: (place: Place | null) => void;
}

/** A place that is held until it is left. */
interface Place {
  leave(): void;
}

/**
 * Bounds how many pings and traces run at once, with a fair share for each key.
 *
 * As long as places are free, anybody may have them. When all are taken, whoever holds less than its
 * share (the places divided by the keys that want some) waits for the next one, and the others are
 * refused until nobody waits any more: one key cannot keep the others out.
 */
export class ProbeSlots {
  readonly #limit: number;
  readonly #held = new Map<string, number>();
  /** In the order of arrival; of each owner no more than its share. */
  readonly #waiting: Waiter[] = [];
  #running = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Runs that hold a place now. */
  get running(): number {
    return this.#running;
  }

  /**
   * Holds a place while `run` runs.
   *
   * @param owner whose share the place counts on
   * @param signal ends the waiting
   * @throws ApiError TOO_MANY_PROBES where none is free
   */
  async hold<T>(owner: string, signal: AbortSignal, run: () => Promise<T>): Promise<T> {
    const place = this.#takeFree(owner) ?? (await this.#wait(owner, signal));
    if (signal.aborted) {
      place?.leave();
      throw clientGone();
    }
    if (place === null) {
      throw tooMany(
        "TOO_MANY_PROBES",
        `The places for pings and traces (${this.#limit}) are all taken; try again in ${RETRY_AFTER_SECONDS} seconds.`,
        { limit: this.#limit, retryAfterSeconds: RETRY_AFTER_SECONDS },
      );
    }
    try {
      return await run();
    } finally {
      place.leave();
    }
  }

  #takeFree(owner: string): Place | null {
    return this.#running < this.#limit && this.#waiting.length === 0 ? this.#take(owner) : null;
  }

  #take(owner: string): Place {
    this.#running += 1;
    this.#held.set(owner, this.#heldBy(owner) + 1);
    return { leave: () => this.#leave(owner) };
  }

  #leave(owner: string): void {
    this.#running -= 1;
    const left = this.#heldBy(owner) - 1;
    if (left === 0) this.#held.delete(owner);
    else this.#held.set(owner, left);
    const next = this.#waiting.shift();
    if (next !== undefined) next.settle(this.#take(next.owner));
  }

  /** Null at once for an owner that has its share, and for anybody else when the wait was too long. */
  async #wait(owner: string, signal: AbortSignal): Promise<Place | null> {
    const waitsAlready = this.#waiting.filter((waiter) => waiter.owner === owner).length;
    if (this.#heldBy(owner) + waitsAlready >= this.#shareWith(owner)) return null;
    return await new Promise((resolve) => {
      const giveUp = () => waiter.settle(null);
      const timer = setTimeout(giveUp, MAX_WAIT_MS);
      const waiter: Waiter = {
        owner,
        settle: (place) => {
          clearTimeout(timer);
          signal.removeEventListener("abort", giveUp);
          const at = this.#waiting.indexOf(waiter);
          if (at >= 0) this.#waiting.splice(at, 1);
          resolve(place);
        },
      };
      signal.addEventListener("abort", giveUp, { once: true });
      this.#waiting.push(waiter);
    });
  }

  /** Places for each of the keys that want some, this one among them; at least one. */
  #shareWith(owner: string): number {
    const owners = new Set([owner, ...this.#held.keys()]);
    for (const waiter of this.#waiting) owners.add(waiter.owner);
    return Math.max(1, Math.floor(this.#limit / owners.size));
  }

  #heldBy(owner: string): number {
    return this.#held.get(owner) ?? 0;
  }
}
