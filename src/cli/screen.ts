import { styleText } from "node:util";
import { type Line, wrapped } from "../tools/report-text.ts";
import { errorCode } from "../util/errors.ts";
import { printable, printableJson } from "../util/text.ts";
import { cannotWrite } from "./terminal.ts";

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
 * @param onGone called when the reader has gone, such as head, or the disk is full
 */
export function createScreen(
  { NO_COLOR, TERM }: NodeJS.ProcessEnv,
  isMuted: boolean,
  onGone: () => void,
) {
  const canChange = isTerminal(TERM);
  /** The number of lines that can be replaced. */
  let shown = 0;
  let written: Promise<unknown> = Promise.resolve();
  let failure: Error | undefined;
  const write = (text: string) => {
    if (text === "") return;
    const fail = (error: unknown) => {
      if (errorCode(error) !== "EPIPE") failure ??= cannotWrite(error);
      onGone();
    };
    written = written.then(() => Bun.write(Bun.stdout, text)).catch(fail);
  };
  const replace = (table: readonly Line[]) => {
    if (isMuted) return;
    // Lines are cut, because a wrapped line cannot be replaced.
    const lines = table.map((line) => `${screen.text(line, screen.columns - 1)}\n`);
    write(`${shown > 0 ? `\x1b[${shown}A\x1b[J` : ""}${lines.join("")}`);
    shown = lines.length;
  };
  const screen = {
    isTerminal: canChange,
    /** The characters of a line; no bound in a file or pipe. */
    get columns(): number {
      return canChange ? process.stdout.columns || DEFAULT_COLUMNS : Number.POSITIVE_INFINITY;
    },
    /** The lines of a terminal. */
    get rows(): number {
      return process.stdout.rows || DEFAULT_ROWS;
    },
    /** Prints lines below all others. */
    print(...lines: Line[]): void {
      if (isMuted) return;
      shown = 0;
      write(lines.map((line) => `${screen.text(line, Number.POSITIVE_INFINITY)}\n`).join(""));
    },
    /** Shows a table in place of the one before, in a terminal only; its end if the terminal has fewer rows. */
    show(table: readonly Line[]): void {
      if (canChange) replace(table.slice(1 - screen.rows));
    },
    /** Prints the whole table for the last time, with nothing cut. */
    finish(table: readonly Line[]): void {
      if (canChange) replace([]);
      screen.print(...table);
    },
    /** Writes a document as a line; its texts cannot rearrange a terminal. */
    writeJson(json: string): void {
      write(`${printableJson(json)}\n`);
    },
    /** Writes an error to standard error, behind all earlier output. */
    complain(message: string): void {
      // A file or pipe has no columns.
      const lines = wrapped(`sixscope: ${printable(message)}`, process.stderr.columns);
      const text = lines.map((line) => `${line}\n`).join("");
      written = written.then(() => Bun.write(Bun.stderr, text));
    },
    /**
     * Waits until all is written.
     *
     * @throws Error if something could not be written though there is a reader
     */
    async flush(): Promise<void> {
      await written;
      if (failure) throw failure;
    },
    /** The text of a line, cut to `columns` characters, the last of them `…`. */
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
