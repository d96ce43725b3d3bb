import type { Log } from "../util/log.ts";

/** How many lines of one kind are written in a minute; the others are counted. */
const MAX_LINES = 100;

const MINUTE_MS = 60_000;

/**
 * Keeps floods out of the log: of each kind of event the first hundred of a minute are logged, and
 * at the minute's end one line says how many more there were.
 */
export class Repeats {
  readonly #log: Log;
  /** Events by kind since the minute began. There are few kinds: statuses and error codes. */
  readonly #counts = new Map<string, number>();

  constructor(log: Log) {
    this.#log = log;
  }

  /** Whether an event gets a line of its own. */
  mayLog(kind: string): boolean {
    if (this.#counts.size === 0) setTimeout(() => this.#endMinute(), MINUTE_MS).unref();
    const count = (this.#counts.get(kind) ?? 0) + 1;
    this.#counts.set(kind, count);
    return count <= MAX_LINES;
  }

  #endMinute(): void {
    for (const [kind, count] of this.#counts) {
      if (count > MAX_LINES) {
        this.#log.warn("more of the same in the last minute", { kind, count: count - MAX_LINES });
      }
    }
    this.#counts.clear();
  }
}
