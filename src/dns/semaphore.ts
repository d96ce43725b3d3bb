/** Bounds how much runs at the same time; the others wait in order. */
export class Semaphore {
  #free: number;
  readonly #waiting = new Set<(admitted: boolean) => void>();

  /** @param limit the number of permits */
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
    const leave = () => {
      this.#waiting.delete(resolve);
      resolve(false);
    };
    this.#waiting.add(resolve);
    signal.addEventListener("abort", leave);
    return promise.finally(() => signal.removeEventListener("abort", leave));
  }

  /** Passes a permit on to the first that waits, if any. */
  release(): void {
    const [admit] = this.#waiting;
    if (admit === undefined) {
      this.#free += 1;
    } else {
      this.#waiting.delete(admit);
      admit(true);
    }
  }
}
