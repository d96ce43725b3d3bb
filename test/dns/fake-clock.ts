import type { Clock } from "../../src/util/clock.ts";

interface Timer {
  readonly atMs: number;
  readonly action: () => void;
}

/** A clock that moves only when a test advances it. */
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

  /** Advances the time, stops at every timer that is due, and waits until its effects are complete. */
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

/** Waits until all promises that wait only for other promises are settled. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
