import { printable } from "../util/text.ts";

/** How a part of a line looks, as numbers of ECMA-48 section 8.3.117. */
const STYLES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33 } as const;

/** A part of a line and its style. */
export type Part = string | readonly [style: keyof typeof STYLES, text: string];

/** A line of parts. */
export type Line = readonly Part[];

/** The size of a terminal that does not say it, as a serial console. */
const DEFAULT_COLUMNS = 80;
const DEFAULT_ROWS = 24;

/** Standard output: a terminal, where shown lines can change, or a file or pipe without control characters. */
export class Screen {
  readonly isTerminal: boolean;
  readonly #hasColours: boolean;
  readonly #isMuted: boolean;
  readonly #onGone: () => void;
  #shown: string[] = [];
  #written: Promise<unknown> = Promise.resolve();

  /**
   * @param isMuted whether it only writes, and neither prints nor shows lines
   * @param onGone called when the reader has gone, such as head
   */
  constructor({ NO_COLOR, TERM }: NodeJS.ProcessEnv, isMuted: boolean, onGone: () => void) {
    this.#isMuted = isMuted;
    this.#onGone = onGone;
    this.isTerminal = process.stdout.isTTY === true && TERM !== "dumb";
    this.#hasColours = this.isTerminal && !NO_COLOR;
  }

  /** Prints lines below all others. */
  print(...lines: Line[]): void {
    if (this.#isMuted) return;
    this.#shown = [];
    this.write(lines.map((line) => `${this.#text(line, Number.POSITIVE_INFINITY)}\n`).join(""));
  }

  /** Shows the lines of a table in place of those that were shown before; only in a terminal. */
  show(table: readonly Line[]): void {
    if (!this.isTerminal || this.#isMuted) return;
    const columns = process.stdout.columns || DEFAULT_COLUMNS;
    const rows = process.stdout.rows || DEFAULT_ROWS;
    // A line that wraps could not be found again.
    const lines = table.map((line) => this.#text(line, columns - 1));
    const texts = lines.map((line, at) => {
      const up = this.#shown.length - at;
      if (up <= 0) return `${line}\n`;
      // What has left the screen at its top cannot change.
      if (line === this.#shown[at] || up >= rows) return "";
      return `\x1b[${up}A\r\x1b[K${line}\x1b[${up}B\r`;
    });
    this.#shown = lines;
    this.write(texts.join(""));
  }

  /** Writes a text as it is. */
  write(text: string): void {
    if (text === "") return;
    this.#written = this.#written.then(() => Bun.write(Bun.stdout, text)).catch(this.#onGone);
  }

  /** Writes what went wrong to standard error, behind all that was written before. */
  complain(message: string): void {
    this.#written = this.#written.then(() => Bun.write(Bun.stderr, `sixscope: ${message}\n`));
  }

  /** Waits until all is written. */
  async flush(): Promise<void> {
    await this.#written;
  }

  /** The line as it is written, cut after so many characters. */
  #text(line: Line, columns: number): string {
    let left = columns;
    const parts = line.map((part) => {
      const [style, text] = typeof part === "string" ? [null, part] : part;
      const shown = printable(text).slice(0, left);
      left -= shown.length;
      return style === null || !this.#hasColours || shown === ""
        ? shown
        : `\x1b[${STYLES[style]}m${shown}\x1b[0m`;
    });
    return parts.join("").trimEnd();
  }
}
