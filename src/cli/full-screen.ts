import { writeSync } from "node:fs";
import { emitKeypressEvents, type Key } from "node:readline";

/** The alternate screen of xterm, without a cursor and without wrapping; and back. */
const ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const LEAVE = "\x1b[?7h\x1b[?25h\x1b[?1049l";

/** Begin and end of a frame, which is shown at once if the terminal knows synchronized updates. */
const BEGIN = "\x1b[?2026h\x1b[H";
const END = "\x1b[?2026l";

/** Erase a line, or all from it on. Sent before a line is written, because behind a full line the cursor is on its last character. */
const [LINE, REST] = ["\x1b[K", "\x1b[J"];

/** Signals that end the program, although it handles them. */
const ENDS = ["SIGTERM", "SIGHUP", "SIGQUIT"] as const;

const STANDARD_OUTPUT = 1;

/**
 * Takes the whole terminal until it is closed. The terminal is as before when the program has ended, except by
 * SIGKILL, and while it is stopped (Ctrl-Z).
 *
 * @param onKey called with the name of each key, such as `q`, `up` or `ctrl-c`
 * @param redraw called when the size has changed, or the program goes on after a stop
 * @param onGone called when the terminal has gone
 */
export function openFullScreen(
  onKey: (key: string) => void,
  redraw: () => void,
  onGone: () => void,
) {
  let isShown = false;
  let newest: string | null = null;
  let isWriting = false;

  const mode = (sequence: string, becomesShown: boolean) => {
    isShown = becomesShown;
    try {
      if (process.stdin.isTTY) process.stdin.setRawMode(isShown);
      writeSync(STANDARD_OUTPUT, sequence);
    } catch {
      onGone();
    }
  };
  const enter = () => {
    // After SIGSTOP, only the mode of the keys has changed.
    mode(isShown ? "" : ENTER, true);
    redraw();
  };
  const leave = () => {
    if (isShown) mode(LEAVE, false);
  };
  const stop = () => {
    leave();
    process.off("SIGTSTP", stop);
    process.kill(process.pid, "SIGTSTP");
    // The program goes on here, also if nothing could stop it.
    process.on("SIGTSTP", stop);
    enter();
  };
  const onKeypress = (_: unknown, { ctrl, name }: Key) => {
    const key = `${ctrl ? "ctrl-" : ""}${name}`;
    // Stops all processes of the job, such as sudo, as the terminal itself does.
    if (key === "ctrl-z") process.kill(0, "SIGTSTP");
    else onKey(key);
  };
  /** Writes the newest frame; a slow terminal misses earlier ones. */
  const write = async () => {
    isWriting = true;
    while (newest !== null && isShown) {
      const frame = newest;
      newest = null;
      await Bun.write(Bun.stdout, frame).catch(onGone);
    }
    isWriting = false;
  };
  const close = () => {
    leave();
    for (const [name, listener] of listeners) process.off(name, listener);
    process.stdout.off("resize", redraw);
    process.stdin.off("keypress", onKeypress);
    if (process.stdin.isTTY) process.stdin.pause();
  };
  const end = (signal: NodeJS.Signals) => {
    close();
    process.kill(process.pid, signal);
  };
  const listeners: readonly (readonly [NodeJS.Signals | "exit", () => void])[] = [
    ["exit", leave],
    ["SIGTSTP", stop],
    ["SIGCONT", enter],
    ["SIGINT", () => onKey("ctrl-c")],
    ...ENDS.map((signal) => [signal, () => end(signal)] as const),
  ];
  for (const [name, listener] of listeners) process.on(name, listener);
  process.stdout.on("resize", redraw);
  if (process.stdin.isTTY) {
    emitKeypressEvents(process.stdin);
    process.stdin.on("keypress", onKeypress);
  }
  mode(ENTER, true);
  return {
    /** Shows lines in place of all before; each must fit. */
    draw(lines: readonly string[]): void {
      const last = lines.length - 1;
      const rows = lines.map((line, at) => `${at === last ? REST : LINE}${line}`);
      newest = `${BEGIN}${rows.join("\r\n")}${END}`;
      if (!isWriting) void write();
    },
    /** Gives the terminal back. */
    close,
  };
}
