import { run } from "./run.ts";

const ESCAPE = "\x1b";

/** Text, and the control characters that our programs send to a terminal; ECMA-48. */
const TOKEN = new RegExp(`${ESCAPE}\\[(\\d*)([A-Za-z])|\r|\n|[^${ESCAPE}\r\n]+`, "g");

/** A change of colour or weight. */
export const COLOUR = new RegExp(`${ESCAPE}\\[\\d+m`);

/** The lines that a terminal shows at the end. */
export function screenOf(output: string): string[] {
  const lines: string[] = [""];
  let row = 0;
  let column = 0;
  for (const [token, count, command] of output.matchAll(TOKEN)) {
    const current = lines[row] ?? "";
    if (command === "A") row -= Number(count || 1);
    else if (command === "B") row += Number(count || 1);
    else if (command === "J") lines.splice(row, lines.length, current.slice(0, column));
    else if (command !== undefined && command !== "m") throw new Error(`unknown: ${command}`);
    else if (token === "\r") column = 0;
    else if (token === "\n") lines[++row] ??= "";
    else if (command === undefined) {
      const end = column + token.length;
      lines[row] = current.padEnd(column).slice(0, column) + token + current.slice(end);
      column = end;
    }
    if (row < 0) throw new Error("the cursor left the screen");
  }
  return lines;
}

/** Runs a shell command in a pseudo-terminal, and returns what it wrote there. */
export async function inTerminal(command: string, columns = 100, rows = 40): Promise<string> {
  const size = `stty cols ${columns} rows ${rows}`;
  return await run(["script", "-qec", `${size}; ${command}`, "/dev/null"]);
}

/** A control sequence, or a character. */
const SEQUENCE = new RegExp(`${ESCAPE}\\[(\\??)(\\d*)([A-Za-z])|[\\s\\S]`, "gu");

/** A program in a pseudo-terminal that keeps the cells of its two screens. */
export class Terminal {
  readonly child: Bun.Subprocess;
  readonly pty: Bun.Terminal;
  /** All that the program wrote. */
  output = "";
  /** Modes that are set, such as `1049`. */
  readonly modes = new Set(["25", "7"]);
  columns: number;
  readonly #screens = { main: [[]] as string[][], alternate: [[]] as string[][] };
  #at = { row: 0, column: 0 };
  #left = "";

  constructor(command: readonly string[], env: Record<string, string>, columns = 80, rows = 24) {
    const decoder = new TextDecoder();
    this.columns = columns;
    this.pty = new Bun.Terminal({
      cols: columns,
      rows,
      data: (_, data) => this.#take(decoder.decode(data, { stream: true })),
    });
    const path = process.env["PATH"] ?? "";
    // Signals of keys, and jobs of a shell, need a controlling terminal, which `terminal` alone does not make.
    this.child = Bun.spawn(["setsid", "--ctty", ...command], {
      env: { PATH: path, TERM: "xterm", ...env },
      terminal: this.pty,
    });
  }

  /** Changes the size, and loses what does not fit. */
  resize(columns: number, rows: number): void {
    this.columns = columns;
    for (const row of this.#cells) row.length = Math.min(row.length, columns);
    this.pty.resize(columns, rows);
  }

  /** The lines that are seen now. */
  get lines(): string[] {
    return this.#cells.map((row) => row.join("").trimEnd());
  }

  /** Waits until what is seen, when no frame is half drawn, contains a text or is as is wanted, and returns it. */
  async until(text: string | RegExp | ((lines: readonly string[]) => boolean)): Promise<string> {
    for (;;) {
      const seen = this.modes.has("2026") ? "" : this.lines.join("\n");
      const isWanted =
        typeof text === "function"
          ? text(seen.split("\n"))
          : typeof text === "string"
            ? seen.includes(text)
            : text.test(seen);
      if (isWanted) return seen;
      await Bun.sleep(5);
    }
  }

  /** Echo and lines (ECHO and ICANON of termios(3)) as a shell needs them. */
  get isCooked(): boolean {
    return (this.pty.localFlags & 0o12) === 0o12;
  }

  [Symbol.dispose](): void {
    this.child.kill("SIGKILL");
    this.pty.close();
  }

  get #cells(): string[][] {
    return this.modes.has("1049") ? this.#screens.alternate : this.#screens.main;
  }

  #take(text: string): void {
    this.output += text;
    const all = this.#left + text;
    // A sequence that has not come whole.
    const cut = new RegExp(`${ESCAPE}(?:\\[\\??\\d*)?$`).exec(all)?.index ?? all.length;
    this.#left = all.slice(cut);
    for (const [token, mark, count = "", command] of all.slice(0, cut).matchAll(SEQUENCE)) {
      const at = this.#at;
      const row = this.#cells[at.row] ?? [];
      this.#cells[at.row] = row;
      if (mark) this.#setMode(count, command === "h");
      else if (command === "H") this.#at = { row: 0, column: 0 };
      else if (command === "K" || command === "J") {
        row.length = Math.min(row.length, at.column);
        if (command === "J") this.#cells.length = at.row + 1;
      } else if (command === "A" || command === "B")
        at.row += Number(count) * (command === "A" ? -1 : 1);
      else if (command !== undefined && command !== "m") throw new Error(`unknown: ${command}`);
      else if (token === "\r") at.column = 0;
      else if (token === "\n") at.row++;
      else if (command === undefined) {
        while (row.length < at.column) row.push(" ");
        row[at.column] = token;
        // Without wrapping, the cursor stays in the last column, which takes all that follows.
        if (this.modes.has("7") || at.column < this.columns - 1) at.column++;
      }
    }
  }

  #setMode(mode: string, isSet: boolean): void {
    if (isSet) this.modes.add(mode);
    else this.modes.delete(mode);
    if (mode === "1049") this.#at = { row: isSet ? 0 : this.#screens.main.length - 1, column: 0 };
  }
}
