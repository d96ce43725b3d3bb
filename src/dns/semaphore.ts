/** Bounds how much runs at the same time; the others wait in order. */
export class Semaphore {
  #free: number;
  readonly #waiting = new Set<() => void>();

  /** @param limit how many permits there are */
  constructor(limit: number) {
    this.#free = limit;
  }

  /** Waits for a permit. False, without one, when the signal aborts first. */
  async acquire(signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return false;
    if (this.#free > 0) {
      this.#free -= 1;
      return true;
    }
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const admit = () => resolve(true);
    const leave = () => {
      this.#waiting.delete(admit);
      resolve(false);
    };
    this.#waiting.add(admit);
    signal.addEventListener("abort", leave);
    const admitted = await promise;
    signal.removeEventListener("abort", leave);
    return admitted;
  }

  /** Passes a permit on to the first that waits, if any. */
  release(): void {
    const [admit] = this.#waiting;
    if (admit === undefined) {
      this.#free += 1;
    } else {
      this.#waiting.delete(admit);
      admit();
    }
  }
}
