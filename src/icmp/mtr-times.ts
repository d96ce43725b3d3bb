/** Round-trip times in milliseconds, not rounded. */
export interface Times {
  readonly last: number;
  readonly min: number;
  readonly avg: number;
  readonly max: number;
  /** The standard deviation of the population. */
  readonly stdDev: number;
  /** The mean difference between successive times. */
  readonly jitter: number;
  readonly p50: number;
  readonly p95: number;
}

/** Percentiles are those of the last times, so that a run of a day needs no more memory. */
export const MAX_TIMES = 1000;

/** Times that come one after the other, and their statistics. */
export class TimeStatistics {
  #count = 0;
  #first = 0;
  /** Of the differences from the first time, which are small, so that little is lost in rounding. */
  #sum = 0;
  #squares = 0;
  #jitter = 0;
  #ends = { last: 0, min: Infinity, max: -Infinity };
  readonly #recent: number[] = [];
  readonly #sorted: number[] = [];

  /** Adds a time in milliseconds. */
  add(ms: number): void {
    const { last, min, max } = this.#ends;
    if (this.#count++ === 0) this.#first = ms;
    else this.#jitter += Math.abs(ms - last);
    this.#ends = { last: ms, min: Math.min(min, ms), max: Math.max(max, ms) };
    this.#sum += ms - this.#first;
    this.#squares += (ms - this.#first) ** 2;
    if (this.#recent.push(ms) > MAX_TIMES) {
      this.#sorted.splice(this.#sorted.indexOf(this.#recent.shift() as number), 1);
    }
    this.#sorted.splice(this.#sorted.findLastIndex((each) => each < ms) + 1, 0, ms);
  }

  /** The statistics; null without a time. */
  get(): Times | null {
    const count = this.#count;
    if (count === 0) return null;
    const mean = this.#sum / count;
    /** The nearest rank. */
    const percentile = (percent: number) =>
      this.#sorted[Math.ceil((percent / 100) * this.#sorted.length) - 1] as number;
    return {
      ...this.#ends,
      avg: this.#first + mean,
      stdDev: Math.sqrt(Math.max(0, this.#squares / count - mean ** 2)),
      jitter: this.#jitter / Math.max(1, count - 1),
      p50: percentile(50),
      p95: percentile(95),
    };
  }
}
