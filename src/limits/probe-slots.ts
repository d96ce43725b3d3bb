/** Milliseconds that an owner below its fair share waits for a slot: longer than runs take with the default settings. */
export const MAX_WAIT_MS = 5_000;

/** Owners' requests that wait for a slot at the same time; further ones are refused. */
const MAX_WAITERS = 1_024;

interface Waiter {
  readonly owner: string;
  /** Ends the wait: with true when the waiter now holds a slot. */
  readonly settle: (hasSlot: boolean) => void;
}

/**
 * Bounds how many pings and traces, DNS queries, or questions to an agent run at once, with a fair share
 * for each owner.
 *
 * Anyone may take a free slot; where room is kept, only an owner that holds fewer slots than are free. So
 * one owner gets at most half of them, eight a ninth each, and the next one finds a slot at once. Without a
 * slot, an owner that holds less than its share (the slots divided by the owners that want some) waits for
 * the next one; the others are refused. So one owner cannot keep the others out.
 */
export class ProbeSlots {
  readonly limit: number;
  readonly #keepsRoom: boolean;
  /** The slots in use, and how many each owner holds. */
  #running = 0;
  readonly #held = new Map<string, number>();
  /** In order of arrival, and only while there is no slot for their owners. */
  readonly #waiters: Waiter[] = [];

  /** @param keepsRoom true if some slots stay free for owners that have none */
  constructor(limit: number, keepsRoom = false) {
    this.limit = limit;
    this.#keepsRoom = keepsRoom;
  }

  /** Slots in use. */
  get running(): number {
    return this.#running;
  }

  /** Takes a slot if there is one now, and returns the function that gives it back; else null. */
  tryTake(owner: string): (() => void) | null {
    if (!this.#isFreeFor(owner)) return null;
    this.#hold(owner);
    return this.#releaseOf(owner);
  }

  /**
   * Takes a slot, and returns the function that gives it back; null if the owner gets none, or if the
   * signal aborts first.
   */
  async take(owner: string, signal: AbortSignal): Promise<(() => void) | null> {
    if (signal.aborted) return null;
    const release = this.tryTake(owner);
    if (release !== null) return release;
    return (await this.#wait(owner, signal)) ? this.#releaseOf(owner) : null;
  }

  #isFreeFor(owner: string): boolean {
    const free = this.limit - this.#running;
    return free > (this.#keepsRoom ? (this.#held.get(owner) ?? 0) : 0);
  }

  #hold(owner: string): void {
    this.#running++;
    this.#held.set(owner, (this.#held.get(owner) ?? 0) + 1);
  }

  /** The function that gives a slot back, once. */
  #releaseOf(owner: string): () => void {
    let isHeld = true;
    return () => {
      if (isHeld) this.#release(owner);
      isHeld = false;
    };
  }

  #release(owner: string): void {
    this.#running--;
    const held = (this.#held.get(owner) ?? 0) - 1;
    if (held > 0) this.#held.set(owner, held);
    else this.#held.delete(owner);
    for (;;) {
      const at = this.#waiters.findIndex((waiter) => this.#isFreeFor(waiter.owner));
      const next = at < 0 ? undefined : this.#waiters.splice(at, 1)[0];
      if (next === undefined) return;
      // Before anyone else can take it.
      this.#hold(next.owner);
      next.settle(true);
    }
  }

  /** Waits for a slot; false at once for an owner that has its share, and later on timeout or abort. */
  async #wait(owner: string, signal: AbortSignal): Promise<boolean> {
    const waiting = this.#waiters.map((waiter) => waiter.owner);
    const owners = new Set([...this.#held.keys(), ...waiting, owner]).size;
    const own = (this.#held.get(owner) ?? 0) + waiting.filter((other) => other === owner).length;
    if (own >= Math.max(1, Math.floor(this.limit / owners))) return false;
    if (waiting.length >= MAX_WAITERS) return false;
    const { promise, resolve: settle } = Promise.withResolvers<boolean>();
    const waiter: Waiter = { owner, settle };
    const giveUp = () => {
      const at = this.#waiters.indexOf(waiter);
      if (at >= 0) this.#waiters.splice(at, 1);
      settle(false);
    };
    const timer = setTimeout(giveUp, MAX_WAIT_MS);
    signal.addEventListener("abort", giveUp);
    this.#waiters.push(waiter);
    const hasSlot = await promise;
    clearTimeout(timer);
    signal.removeEventListener("abort", giveUp);
    return hasSlot;
  }
}
