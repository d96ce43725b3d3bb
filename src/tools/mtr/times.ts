/** Round-trip times in milliseconds, not rounded. */
export type Times = NonNullable<ReturnType<TimeStatistics["get"]>>;

/** The number of last times that percentiles are from, so that a run of a day needs no more memory. */
export const MAX_TIMES = 1000;

/** The statistics of times that are added one by one. */
export class TimeStatistics {
  #count = 0;
  #first = 0;
  /** Sums of the differences from the first time, which are small, so that rounding loses little. */
  #sum = 0;
  #squares = 0;
  #jitter = 0;
  #ends = { last: 0, min: Infinity, max: -Infinity };
  readonly #recent: number[] = [];

  /** Adds a time in milliseconds. */
  add(ms: number): void {
    const { last, min, max } = this.#ends;
    if (this.#count++ === 0) this.#first = ms;
    else this.#jitter += Math.abs(ms - last);
    this.#ends = { last: ms, min: Math.min(min, ms), max: Math.max(max, ms) };
    this.#sum += ms - this.#first;
    this.#squares += (ms - this.#first) ** 2;
    if (this.#recent.push(ms) > MAX_TIMES) this.#recent.shift();
  }

  /** The statistics; null without a time. */
  get() {
    const count = this.#count;
    if (count === 0) return null;
    const mean = this.#sum / count;
    const sorted = Float64Array.from(this.#recent).sort();
    /** The nearest rank. */
    const percentile = (percent: number) =>
      sorted[Math.ceil((percent / 100) * sorted.length) - 1] as number;
    return {
      ...this.#ends,
      avg: this.#first + mean,
      // Of the population.
      stdDev: Math.sqrt(Math.max(0, this.#squares / count - mean ** 2)),
      // The mean difference between successive times.
      jitter: this.#jitter / Math.max(1, count - 1),
      p50: percentile(50),
      p95: percentile(95),
    };
  }
}
