import { styleText } from "node:util";
import type { Line } from "../tools/report-text.ts";
import { printable, printableJson } from "../util/text.ts";

/** The size of a terminal that does not tell it, such as a serial console. */
const DEFAULT_COLUMNS = 80;
const DEFAULT_ROWS = 24;

/** True if standard output is a terminal whose lines can change. */
export function isTerminal(term: string | undefined): boolean {
  return process.stdout.isTTY === true && term !== "dumb";
}

/** See `createScreen`. */
export type Screen = ReturnType<typeof createScreen>;

/**
 * Standard output: a terminal, where shown lines can change, or a file or pipe without control characters.
 *
 * @param isMuted true if it only writes, and neither prints nor shows lines
 * @param onGone called when the reader has gone, such as head
 */
export function createScreen(
  { NO_COLOR, TERM }: NodeJS.ProcessEnv,
  isMuted: boolean,
  onGone: () => void,
) {
  const canChange = isTerminal(TERM);
  let shown: readonly string[] = [];
  let written: Promise<unknown> = Promise.resolve();
  const write = (text: string) => {
    if (text === "") return;
    written = written.then(() => Bun.write(Bun.stdout, text)).catch(onGone);
  };
  const screen = {
    isTerminal: canChange,
    /** How many characters a line has; no bound in a file or pipe. */
    get columns(): number {
      return canChange ? process.stdout.columns || DEFAULT_COLUMNS : Number.POSITIVE_INFINITY;
    },
    /** How many lines a terminal has. */
    get rows(): number {
      return process.stdout.rows || DEFAULT_ROWS;
    },
    /** Prints lines below all others. */
    print(...lines: Line[]): void {
      if (isMuted) return;
      shown = [];
      write(lines.map((line) => `${screen.text(line, Number.POSITIVE_INFINITY)}\n`).join(""));
    },
    /** Shows the lines of a table in place of those that were shown before; only in a terminal. */
    show(table: readonly Line[]): void {
      if (!canChange || isMuted) return;
      const { columns, rows } = screen;
      const shorter = Array.from({ length: shown.length - table.length }, (): Line => []);
      // A line that wraps could not be found again.
      const lines = [...table, ...shorter].map((line) => screen.text(line, columns - 1));
      // Lines that have scrolled off the top of the screen cannot change.
      const gone = Math.max(0, shown.length - rows + 1);
      const up = shown.length > 0 ? `\x1b[${shown.length - gone}A` : "";
      const now = lines.slice(gone);
      shown = [...shown.slice(0, gone), ...now];
      write(up + now.map((line) => `\r\x1b[K${line}\n`).join(""));
    },
    /** Shows the table for the last time; all of it below, if lines that have left the screen have changed. */
    finish(table: readonly Line[]): void {
      const { columns, rows } = screen;
      const left = shown.slice(0, Math.max(0, shown.length - rows + 1));
      const isRight = left.every((line, at) => line === screen.text(table[at] ?? [], columns - 1));
      if (canChange && isRight) screen.show(table);
      else screen.print(...table);
    },
    /** Writes a document and ends its line; what is in its texts cannot rearrange a terminal. */
    writeJson(json: string): void {
      write(`${printableJson(json)}\n`);
    },
    /** Writes what went wrong to standard error, behind all that was written before. */
    complain(message: string): void {
      const text = `sixscope: ${printable(message)}\n`;
      written = written.then(() => Bun.write(Bun.stderr, text));
    },
    /** Waits until all is written. */
    async flush(): Promise<void> {
      await written;
    },
    /** The line as it is written; cut to `columns` characters, the last of them `…`. */
    text(line: Line, columns: number): string {
      const texts = line.map((part) => printable(typeof part === "string" ? part : part[1]));
      const isCut = texts.join("").trimEnd().length > columns;
      let left = isCut ? columns - 1 : columns;
      const parts = line.map((part, at) => {
        const style = typeof part === "string" ? null : part[0];
        const shown = (texts[at] as string).slice(0, left);
        left -= shown.length;
        return style === null || !canChange || NO_COLOR || shown === ""
          ? shown
          : styleText(style, shown, { validateStream: false });
      });
      return isCut ? `${parts.join("")}…` : parts.join("").trimEnd();
    },
  };
  return screen;
}
