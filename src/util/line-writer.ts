/** Lines wait this long for others, so that many go out in one write. */
const GATHER_MS = 10;

/** What waits for a reader that has stopped reading; beyond it lines are dropped, and counted. */
const MAX_WAITING_CHARACTERS = 1024 * 1024;

/** Where lines go in the end; standard error as `Bun.stderr.writer()` gives it. */
export interface LineSink {
  write(text: string): unknown;
  flush(): unknown;
}

/** Writes lines without ever holding up the service or growing without bound. */
export class LineWriter {
  readonly #sink: LineSink;
  #waiting: string[] = [];
  #waitingCharacters = 0;
  #dropped = 0;
  #flushing: Promise<void> | null = null;

  constructor(sink: LineSink) {
    this.#sink = sink;
  }

  /** @param line with its newline */
  write(line: string): void {
    if (this.#waitingCharacters + line.length > MAX_WAITING_CHARACTERS) {
      this.#dropped += 1;
      return;
    }
    this.#waiting.push(line);
    this.#waitingCharacters += line.length;
    this.#flushing ??= this.#flushLater();
  }

  /** Resolves when everything has been handed over. */
  async flush(): Promise<void> {
    while (this.#flushing !== null) await this.#flushing;
  }

  async #flushLater(): Promise<void> {
    await Bun.sleep(GATHER_MS);
    const lines = this.#waiting.join("");
    const dropped = this.#dropped;
    this.#waiting = [];
    this.#waitingCharacters = 0;
    this.#dropped = 0;
    try {
      if (dropped > 0) {
        this.#sink.write(`${dropped} lines were dropped: nobody read them in time\n`);
      }
      this.#sink.write(lines);
      await this.#sink.flush();
    } catch {
      // A reader that is gone for good cannot be told so.
    }
    this.#flushing = this.#waiting.length > 0 ? this.#flushLater() : null;
  }
}
