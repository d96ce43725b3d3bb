/** Bounds how much runs at the same time; the others wait in order. */
export class Semaphore {
  #free: number;
  readonly #waiting = new Set<() => void>();

  /** @param limit the number of permits */
  constructor(limit: number) {
    this.#free = limit;
  }

  /**
   * Calls `enter` as soon as there is a permit, which may be at once. Returns a function, to be called
   * once, that gives the permit back or stops the wait for it.
   */
  acquire(enter: () => void): () => void {
    if (this.#free > 0) {
      this.#free -= 1;
      enter();
    } else {
      this.#waiting.add(enter);
    }
    return () => {
      if (!this.#waiting.delete(enter)) this.#release();
    };
  }

  /** Passes a permit on to the first that waits, if any. */
  #release(): void {
    const [enter] = this.#waiting;
    if (enter === undefined) {
      this.#free += 1;
    } else {
      this.#waiting.delete(enter);
      enter();
    }
  }
}
