import { writeSync } from "node:fs";

/** The alternate screen of xterm, without a cursor and without wrapping; and back. */
const ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const LEAVE = "\x1b[?7h\x1b[?25h\x1b[?1049l";

/** A frame is shown at once, where the terminal knows synchronized updates. */
const BEGIN = "\x1b[?2026h\x1b[H";
const END = "\x1b[J\x1b[?2026l";

/** Signals that end the program; a handler must not change that. */
const ENDS = ["SIGTERM", "SIGHUP", "SIGQUIT"] as const;

/** A key, or the bytes of an escape sequence, as a terminal sends them. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: keys are control characters.
const KEY = /\x1b\[[\d;]*[A-Za-z~]|\x1bO[A-Z]|[\s\S]/g;

const STANDARD_OUTPUT = 1;

/**
 * The whole terminal, until it is closed. However the program ends, but for SIGKILL, the terminal is then as it
 * was before; while the program is stopped (Ctrl-Z), too.
 */
export class FullScreen {
  readonly #onKey: (key: string) => void;
  readonly #redraw: () => void;
  readonly #onGone: () => void;
  readonly #listeners: [NodeJS.Signals | "exit", () => void][];
  #isShown = false;
  #frame: string | null = null;
  #isWriting = false;

  /**
   * @param onKey called with each key, such as `q`, or its escape sequence
   * @param redraw called when the size has changed, or the program goes on after a stop
   * @param onGone called when the terminal has gone
   */
  constructor(onKey: (key: string) => void, redraw: () => void, onGone: () => void) {
    this.#onKey = onKey;
    this.#redraw = redraw;
    this.#onGone = onGone;
    this.#listeners = [
      ["exit", () => this.#leave()],
      ["SIGTSTP", () => this.#stop()],
      ["SIGCONT", () => this.#enter()],
      ["SIGINT", () => this.#onKey("\x03")],
      ...ENDS.map((signal): [NodeJS.Signals, () => void] => [
        signal,
        () => {
          this.close();
          process.kill(process.pid, signal);
        },
      ]),
    ];
    for (const [name, listener] of this.#listeners) process.on(name, listener);
    process.stdout.on("resize", this.#redraw);
    if (process.stdin.isTTY) process.stdin.on("data", this.#onData);
    this.#mode(ENTER, true);
  }

  /** Shows lines in place of all before; each must fit. */
  draw(lines: readonly string[]): void {
    this.#frame = `${BEGIN}${lines.map((line) => `${line}\x1b[K`).join("\r\n")}${END}`;
    if (!this.#isWriting) void this.#write();
  }

  /** Gives the terminal back. */
  close(): void {
    this.#leave();
    for (const [name, listener] of this.#listeners) process.off(name, listener);
    process.stdout.off("resize", this.#redraw);
    process.stdin.off("data", this.#onData);
    if (process.stdin.isTTY) process.stdin.pause();
  }

  readonly #onData = (data: Buffer) => {
    for (const [key] of data.toString("latin1").matchAll(KEY)) {
      // As the terminal itself stops a job: all of its processes, such as sudo.
      if (key === "\x1a") process.kill(0, "SIGTSTP");
      else this.#onKey(key);
    }
  };

  /** Writes the newest frame; a slow terminal misses those between. */
  async #write(): Promise<void> {
    this.#isWriting = true;
    while (this.#frame !== null && this.#isShown) {
      const frame = this.#frame;
      this.#frame = null;
      await Bun.write(Bun.stdout, frame).catch(this.#onGone);
    }
    this.#isWriting = false;
  }

  #enter(): void {
    // After SIGSTOP only the mode of the keys is another.
    this.#mode(this.#isShown ? "" : ENTER, true);
    this.#redraw();
  }

  #leave(): void {
    if (this.#isShown) this.#mode(LEAVE, false);
  }

  #mode(sequence: string, isShown: boolean): void {
    this.#isShown = isShown;
    try {
      if (process.stdin.isTTY) process.stdin.setRawMode(isShown);
      writeSync(STANDARD_OUTPUT, sequence);
    } catch {
      this.#onGone();
    }
  }

  #stop(): void {
    this.#leave();
    const [listener] = process.listeners("SIGTSTP").slice(-1);
    process.removeAllListeners("SIGTSTP");
    process.kill(process.pid, "SIGTSTP");
    // The program goes on here, also if nothing could stop it.
    if (listener) process.on("SIGTSTP", listener as () => void);
    this.#enter();
  }
}
