import { tooMany } from "./errors.ts";

/** Most runs end within seconds, so a client that waits this long finds a free place. */
const RETRY_AFTER_SECONDS = 2;

/** Bounds how many pings and traces run at once. */
export class ProbeSlots {
  readonly #limit: number;
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
   * @throws ApiError TOO_MANY_PROBES where none is free
   */
  async hold<T>(run: () => Promise<T>): Promise<T> {
    if (this.#running >= this.#limit) {
      throw tooMany(
        "TOO_MANY_PROBES",
        `All ${this.#limit} places for pings and traces are taken; try again in ${RETRY_AFTER_SECONDS} seconds.`,
        { limit: this.#limit, retryAfterSeconds: RETRY_AFTER_SECONDS },
      );
    }
    this.#running += 1;
    try {
      return await run();
    } finally {
      this.#running -= 1;
    }
  }
}
