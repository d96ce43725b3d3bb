/** Bounds how many sockets are open: who opens one takes a place before, and gives it back afterwards. */
export class SocketPlaces {
  readonly #limit: number;
  #taken = 0;
  /** Who waits for a place, in order; those who have begun before those who have not. */
  readonly #begun = new Set<() => void>();
  readonly #new = new Set<() => void>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Places in use. */
  get taken(): number {
    return this.#taken;
  }

  /** Whether anybody waits. */
  get areContended(): boolean {
    return this.#begun.size + this.#new.size > 0;
  }

  /**
   * Waits for a place. False, without one, when the signal aborts before.
   *
   * @param hasBegun whether the query has had a socket before; such a one comes first, so that what
   * was begun ends
   */
  async take(hasBegun: boolean, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return false;
    if (this.#taken < this.#limit) {
      this.#taken += 1;
      return true;
    }
    const line = hasBegun ? this.#begun : this.#new;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const admit = () => resolve(true);
    const leave = () => {
      line.delete(admit);
      resolve(false);
    };
    line.add(admit);
    signal.addEventListener("abort", leave);
    const admitted = await promise;
    signal.removeEventListener("abort", leave);
    return admitted;
  }

  /** Gives a place back: to the first who waits for one, if anybody does. */
  give(): void {
    const line = this.#begun.size > 0 ? this.#begun : this.#new;
    const [admit] = line;
    if (admit === undefined) {
      this.#taken -= 1;
    } else {
      line.delete(admit);
      admit();
    }
  }
}
