/** Milliseconds that an owner below its fair share waits for a slot: longer than runs take with the default settings. */
export const MAX_WAIT_MS = 5_000;

/** Owners' requests that wait for a slot at the same time; further ones are refused. */
const MAX_WAITERS = 1_024;

/** Gives a slot back, once. */
type Release = () => void;

interface Waiter {
  readonly owner: string;
  /** Ends the wait, with null if the waiter has no slot. */
  readonly settle: (release: Release | null) => void;
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
  /** The owners of the slots in use. */
  readonly #owners: string[] = [];
  /** In order of arrival, and only while there is no slot for their owners. */
  readonly #waiters = new Set<Waiter>();

  /** @param keepsRoom true if some slots stay free for owners that have none */
  constructor(limit: number, keepsRoom = false) {
    this.limit = limit;
    this.#keepsRoom = keepsRoom;
  }

  /** Slots in use. */
  get running(): number {
    return this.#owners.length;
  }

  /** Takes a slot if there is one now, and returns the function that gives it back; else null. */
  tryTake(owner: string): Release | null {
    const free = this.limit - this.#owners.length;
    if (free <= (this.#keepsRoom ? countOf(owner, this.#owners) : 0)) return null;
    this.#owners.push(owner);
    let isHeld = true;
    return () => {
      if (isHeld) this.#release(owner);
      isHeld = false;
    };
  }

  /**
   * Takes a slot, and returns the function that gives it back; null if the owner gets none, or if the
   * signal aborts first.
   */
  async take(owner: string, signal: AbortSignal): Promise<Release | null> {
    if (signal.aborted) return null;
    return this.tryTake(owner) ?? (await this.#wait(owner, signal));
  }

  #release(owner: string): void {
    this.#owners.splice(this.#owners.indexOf(owner), 1);
    // Before anyone else can take it.
    for (const waiter of this.#waiters) {
      const release = this.tryTake(waiter.owner);
      if (release !== null) waiter.settle(release);
    }
  }

  /** Waits for a slot; null at once for an owner that has its share, and later on timeout or abort. */
  async #wait(owner: string, signal: AbortSignal): Promise<Release | null> {
    const wanted = [...this.#owners, ...[...this.#waiters].map((waiter) => waiter.owner)];
    const share = Math.floor(this.limit / new Set([...wanted, owner]).size);
    if (countOf(owner, wanted) >= Math.max(1, share)) return null;
    if (this.#waiters.size >= MAX_WAITERS) return null;
    const { promise, resolve } = Promise.withResolvers<Release | null>();
    const settle: Waiter["settle"] = (release) => {
      this.#waiters.delete(waiter);
      resolve(release);
    };
    const waiter: Waiter = { owner, settle };
    const giveUp = () => settle(null);
    const timer = setTimeout(giveUp, MAX_WAIT_MS);
    signal.addEventListener("abort", giveUp);
    this.#waiters.add(waiter);
    const release = await promise;
    clearTimeout(timer);
    signal.removeEventListener("abort", giveUp);
    return release;
  }
}

const countOf = (owner: string, owners: readonly string[]) =>
  owners.filter((other) => other === owner).length;
