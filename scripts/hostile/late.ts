/** A timer that is later than this many milliseconds is late: a bound of a bucket of the metrics. */
export const LATE_MS = 50;
