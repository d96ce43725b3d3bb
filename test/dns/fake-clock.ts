import type { Clock } from "../../src/dns/clock.ts";

interface Timer {
  readonly atMs: number;
  readonly action: () => void;
}

/** A clock that stands still until it is told to go on. */
export class FakeClock implements Clock {
  #nowMs = 0;
  readonly #timers = new Set<Timer>();

  nowMs(): number {
    return this.#nowMs;
  }

  /** Timers that are set and have not run. */
  get pending(): number {
    return this.#timers.size;
  }

  after(delayMs: number, action: () => void): () => void {
    const timer = { atMs: this.#nowMs + delayMs, action };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Lets the time pass, stopping at every timer that is due, until all that follows has happened. */
  async advance(byMs: number): Promise<void> {
    const untilMs = this.#nowMs + byMs;
    await settle();
    for (;;) {
      const due = [...this.#timers].filter(({ atMs }) => atMs <= untilMs);
      const next = due.sort((a, b) => a.atMs - b.atMs)[0];
      if (next === undefined) break;
      this.#timers.delete(next);
      this.#nowMs = next.atMs;
      next.action();
      await settle();
    }
    this.#nowMs = untilMs;
  }
}

/** Waits until everything that waits for nothing but other promises has happened. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
