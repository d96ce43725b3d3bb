/** Milliseconds that a client below its fair share waits for a slot: longer than runs take with the default settings. */
export const MAX_WAIT_MS = 5_000;

/** Clients' requests that wait for a slot at the same time; further ones are refused. */
const MAX_WAITERS = 1_024;

/** Gives a slot back, once. */
type Release = () => void;

interface Waiter {
  readonly client: string;
  /** Ends the wait, with null if the waiter has no slot. */
  readonly settle: (release: Release | null) => void;
}

/**
 * Bounds how many pings and traces, DNS queries, or questions to an agent run at once, with a fair share
 * for each client.
 *
 * Anyone may take a free slot; where room is kept, only a client that holds fewer slots than are free. So
 * one client gets at most half of them, eight a ninth each, and the next one finds a slot at once. Without a
 * slot, a client that holds less than its share (the slots divided by the clients that want some) waits for
 * the next one; the others are refused. So one client cannot keep the others out.
 */
export class ProbeSlots {
  readonly limit: number;
  readonly #keepsRoom: boolean;
  /** The clients of the slots in use. */
  readonly #clients: string[] = [];
  /** In order of arrival, and only while there is no slot for their clients. */
  readonly #waiters = new Set<Waiter>();

  /** @param keepsRoom true if some slots stay free for clients that have none */
  constructor(limit: number, keepsRoom = false) {
    this.limit = limit;
    this.#keepsRoom = keepsRoom;
  }

  /** Slots in use. */
  get running(): number {
    return this.#clients.length;
  }

  /** Takes a slot if there is one now, and returns the function that gives it back; else null. */
  tryTake(client: string): Release | null {
    const free = this.limit - this.#clients.length;
    if (free <= (this.#keepsRoom ? countOf(client, this.#clients) : 0)) return null;
    this.#clients.push(client);
    let isHeld = true;
    return () => {
      if (isHeld) this.#release(client);
      isHeld = false;
    };
  }

  /**
   * Takes a slot, and returns the function that gives it back; null if the client gets none, or if the
   * signal aborts first.
   */
  async take(client: string, signal: AbortSignal): Promise<Release | null> {
    if (signal.aborted) return null;
    return this.tryTake(client) ?? (await this.#wait(client, signal));
  }

  #release(client: string): void {
    this.#clients.splice(this.#clients.indexOf(client), 1);
    // Before anyone else can take it.
    for (const waiter of this.#waiters) {
      const release = this.tryTake(waiter.client);
      if (release !== null) waiter.settle(release);
    }
  }

  /** Waits for a slot; null at once for a client that has its share, and later on timeout or abort. */
  async #wait(client: string, signal: AbortSignal): Promise<Release | null> {
    const wanted = [...this.#clients, ...[...this.#waiters].map((waiter) => waiter.client)];
    const share = Math.floor(this.limit / new Set([...wanted, client]).size);
    if (countOf(client, wanted) >= Math.max(1, share)) return null;
    if (this.#waiters.size >= MAX_WAITERS) return null;
    const { promise, resolve } = Promise.withResolvers<Release | null>();
    const settle: Waiter["settle"] = (release) => {
      this.#waiters.delete(waiter);
      resolve(release);
    };
    const waiter: Waiter = { client, settle };
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

const countOf = (client: string, clients: readonly string[]) =>
  clients.filter((other) => other === client).length;
