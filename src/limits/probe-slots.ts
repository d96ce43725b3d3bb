/** Milliseconds that an owner below its fair share waits for a slot: longer than runs take with the default settings. */
export const MAX_WAIT_MS = 5_000;

interface Waiter {
  readonly owner: string;
  /** Ends the wait: with true when the waiter now holds a slot. */
  readonly settle: (hasSlot: boolean) => void;
}

/**
 * Bounds how many pings and traces run at once, with a fair share for each owner.
 *
 * Anyone may take a free slot. When all are in use, an owner that holds less than its share (the slots
 * divided by the owners that want some) waits for the next one; the others are refused. So one owner
 * cannot keep the others out.
 */
export class ProbeSlots {
  readonly limit: number;
  /** The owners of the slots in use. */
  readonly #owners: string[] = [];
  /** In order of arrival, and only while all slots are in use. */
  readonly #waiters: Waiter[] = [];

  constructor(limit: number) {
    this.limit = limit;
  }

  /** Slots in use. */
  get running(): number {
    return this.#owners.length;
  }

  /**
   * Takes a slot, and returns the function that gives it back; null if the owner gets none, or if the
   * signal aborts first.
   */
  async take(owner: string, signal: AbortSignal): Promise<(() => void) | null> {
    if (signal.aborted) return null;
    if (this.#owners.length < this.limit) this.#owners.push(owner);
    else if (!(await this.#wait(owner, signal))) return null;
    let isHeld = true;
    return () => {
      if (isHeld) this.#release(owner);
      isHeld = false;
    };
  }

  #release(owner: string): void {
    this.#owners.splice(this.#owners.indexOf(owner), 1);
    const next = this.#waiters.shift();
    if (next === undefined) return;
    // Before anyone else can take it.
    this.#owners.push(next.owner);
    next.settle(true);
  }

  /** Waits for a slot; false at once for an owner that has its share, and later on timeout or abort. */
  async #wait(owner: string, signal: AbortSignal): Promise<boolean> {
    const wanted = [...this.#owners, ...this.#waiters.map((waiter) => waiter.owner)];
    const share = Math.floor(this.limit / new Set([...wanted, owner]).size);
    const own = wanted.filter((other) => other === owner).length;
    if (own >= Math.max(1, share)) return false;
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
