import type { Clock } from "../../src/util/clock.ts";

interface Timer {
  readonly isEvent: boolean;
  readonly atMs: number;
  readonly order: number;
  readonly action: () => void;
}

/** A clock that only `run` and `advance` move, from timer to timer. */
export class FakeClock implements Clock {
  #nowMs = 0;
  #timers = new Set<Timer>();
  #count = 0;

  nowMs(): number {
    return this.#nowMs;
  }

  /** Timers of the program that have neither fired nor been cancelled. */
  get pending(): number {
    return [...this.#timers].filter(({ isEvent }) => !isEvent).length;
  }

  after(delayMs: number, action: () => void): () => void {
    if (Number.isNaN(delayMs)) throw new RangeError("a timer without a time");
    // A delay of less than this would be lost in rounding.
    const leastMs = delayMs === 0 ? 0 : 1e-6;
    return this.#add(this.#nowMs + Math.max(leastMs, delayMs), action, false);
  }

  /** Something happens without the program, such as the arrival of a packet. */
  event(atMs: number, action: () => void): void {
    this.#add(atMs, action, true);
  }

  #add(atMs: number, action: () => void, isEvent: boolean): () => void {
    const timer = { atMs, order: this.#count++, action, isEvent };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** The event loop does nothing for so long; timers that were due fire afterwards. */
  block(ms: number): void {
    this.#nowMs += ms;
  }

  /** Fires the next timer. */
  fire(): void {
    const next = this.#next();
    if (next === undefined) throw new Error("nothing will ever happen");
    this.#timers.delete(next);
    this.#nowMs = Math.max(this.#nowMs, next.atMs);
    next.action();
  }

  #next(): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of this.#timers) {
      const isEarlier = next === undefined || timer.atMs < next.atMs;
      if (isEarlier || (timer.atMs === next?.atMs && timer.order < next.order)) next = timer;
    }
    return next;
  }

  /** Lets time pass until the promise is settled. */
  async run<T>(promise: Promise<T>): Promise<T> {
    let settled = false;
    const settle = () => {
      settled = true;
    };
    promise.then(settle, settle);
    for (;;) {
      await turns();
      if (settled) return promise;
      this.fire();
    }
  }

  /** Lets this time pass, with all that happens in it. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms;
    for (;;) {
      await turns();
      const next = this.#next();
      if (next === undefined || next.atMs > untilMs) break;
      this.fire();
    }
    this.#nowMs = Math.max(this.#nowMs, untilMs);
  }
}

/** Lets promises that wait only for other promises settle. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 40; turn++) await null;
}

/** Waits for a turn of the event loop, after all promises that wait only for others. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
