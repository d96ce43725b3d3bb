import { abortedBy } from "../util/abort.ts";
import { hasShare, leavesRoom, sharersOf } from "../util/shares.ts";

/** Gives a slot back; further calls do nothing. */
export type Leave = () => void;

/** Milliseconds that a client below its fair share waits for a slot. */
export const MAX_WAIT_MS = 5_000;

/** Requests that may wait for one kind of slot at the same time; further ones are refused. */
const MAX_WAITING = 1_024;

/**
 * A semaphore with a fair share for each client: for measurements, DNS questions, the questions that an agent works
 * on, and the packets that are next to leave for a target.
 *
 * A client gets a slot only while it holds fewer than are free. So one client gets at most half of them, eight get a
 * ninth each, and the next one finds a slot at once. Clients that wait take turns.
 */
export class FairSlots {
  readonly limit: number;
  /** The number of slots that each client and each service holds. */
  readonly #held = new Map<string, number>();
  /** The waiters of each client; the client at the front is next. */
  readonly #waiting = new Map<string, Set<() => void>>();
  /** The slots in use. */
  readonly #slots = new Set<{ readonly client: string }>();

  constructor(limit: number) {
    this.limit = limit;
  }

  /** Slots in use. */
  get running(): number {
    return this.#slots.size;
  }

  /** True if nobody holds a slot or waits for one. */
  get isIdle(): boolean {
    return this.#slots.size === 0 && this.#waiting.size === 0;
  }

  /** Takes a slot, or returns null if the client gets none now. */
  tryTake(client: string): Leave | null {
    if (!this.#mayTake(client)) return null;
    const slot = { client };
    this.#slots.add(slot);
    this.#count(client, 1);
    return () => {
      if (!this.#slots.delete(slot)) return;
      this.#count(client, -1);
      this.#serve();
    };
  }

  /** Waits for a slot, which may be there at once; null if the signal aborts first. */
  wait(client: string, signal: AbortSignal): Promise<Leave | null> {
    const atOnce = signal.aborted ? null : this.tryTake(client);
    if (atOnce !== null || signal.aborted) return Promise.resolve(atOnce);
    const { promise, resolve } = Promise.withResolvers<Leave | null>();
    const waiters = this.#waiting.getOrInsertComputed(client, () => new Set());
    const end = (leave: Leave | null) => {
      signal.removeEventListener("abort", giveUp);
      waiters.delete(admit);
      if (waiters.size === 0) this.#waiting.delete(client);
      resolve(leave);
    };
    const admit = () => end(this.tryTake(client));
    const giveUp = () => end(null);
    signal.addEventListener("abort", giveUp);
    waiters.add(admit);
    return promise;
  }

  /**
   * Waits for a slot for some milliseconds. Returns null at once for a client that already holds or waits for its share:
   * the number of slots divided by the clients that want some.
   *
   * @param onWait called if it has to wait
   */
  async take(
    client: string,
    signal: AbortSignal,
    longestMs = MAX_WAIT_MS,
    onWait = () => {},
  ): Promise<Leave | null> {
    if (signal.aborted) return null;
    const atOnce = this.tryTake(client);
    if (atOnce !== null) return atOnce;
    const wanted = [...this.#waiting].flatMap(([each, { size }]) => Array<string>(size).fill(each));
    if (wanted.length >= MAX_WAITING) return null;
    for (const slot of this.#slots) wanted.push(slot.client);
    if (hasShare(client, this.limit, wanted)) return null;
    onWait();
    using limit = abortedBy(signal, longestMs);
    return await this.wait(client, limit.signal);
  }

  #mayTake(client: string): boolean {
    const free = this.limit - this.#slots.size;
    return leavesRoom(client, free, (name) => this.#held.get(name) ?? 0);
  }

  #count(client: string, change: 1 | -1): void {
    for (const name of sharersOf(client)) {
      const held = (this.#held.get(name) ?? 0) + change;
      if (held === 0) this.#held.delete(name);
      else this.#held.set(name, held);
    }
  }

  /** Admits waiters that may have a slot now, one of each client in turn. */
  #serve(): void {
    for (const [client, [admit]] of [...this.#waiting]) {
      if (admit === undefined || !this.#mayTake(client)) continue;
      admit();
      this.#toTheEnd(client);
    }
  }

  /** Moves a client, behind the other clients of its service, to the end, so that another service is next. */
  #toTheEnd(client: string): void {
    const [service] = sharersOf(client);
    const ofService = [...this.#waiting.keys()].filter((each) => sharersOf(each)[0] === service);
    const others = ofService.filter((each) => each !== client);
    for (const each of [...others, client]) {
      const waiters = this.#waiting.get(each);
      if (waiters === undefined) continue;
      this.#waiting.delete(each);
      this.#waiting.set(each, waiters);
    }
  }
}
