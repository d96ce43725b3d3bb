/** `sixscope mtr` on a terminal: what its cells show, and that the terminal is given back. */
import { describe, expect } from "bun:test";
import { labMissing, testWith } from "../lab/lab.ts";
import { sixscopeProgram } from "../lab/program.ts";
import { COLOUR, Terminal } from "../lab/terminal.ts";

const [PROGRAM] = await sixscopeProgram();
const labTest = testWith(labMissing);
const KEYS = "q quit p pause r reset d view n names";

const mtr = (args: readonly string[] = [], columns = 80, rows = 24, wrapper: string[] = []) =>
  new Terminal(
    [...wrapper, PROGRAM, "mtr", "-n", "-i", "0.1", ...args, "::1"],
    { SIXSCOPE_RESOLVER_A: "[::1]:9", PS1: "$ " },
    columns,
    rows,
  );

/** Waits until the program has ended and the terminal has taken all that it wrote. */
async function ended(terminal: Terminal, text: string | RegExp = "") {
  await terminal.child.exited;
  await terminal.until(text);
  while (terminal.modes.has("1049")) await Bun.sleep(5);
  const { modes, isCooked, lines } = terminal;
  const { exitCode, signalCode } = terminal.child;
  return { modes: [...modes].toSorted(), isCooked, lines, status: signalCode ?? exitCode };
}

/** A terminal as a shell needs it: with a cursor, wrapping, and one screen. */
const RESTORED = { modes: ["25", "7"], isCooked: true };

labTest.each([
  ["q", 80],
  ["\x03", 80],
  ["q", 40],
])("shows rounds until %j, and leaves the result, in %d columns", async (key, columns) => {
  using terminal = mtr([], columns);
  await terminal.until(/^mtr ::1 {2}[1-9]\d+ rounds$/m);
  expect([...terminal.modes]).toContain("1049");
  expect(terminal.isCooked).toBeFalse();
  const seen = terminal.lines;
  expect(seen.at(-1)).toBe(KEYS);
  expect(seen.join("\n")).toMatch(/^ {2}1 +0% +\d.\d\d {2}[▁▂▃▄▅▆▇█]{10}/m);
  expect(seen.join(" ")).toMatch(/The target replied to all [1-9]\d+ probes\./);
  expect(Math.max(...seen.map((line) => line.length))).toBeLessThanOrEqual(columns);
  terminal.pty.write(key);
  const { lines, ...end } = await ended(terminal, "Probed");
  expect(end).toEqual({ ...RESTORED, status: 0 });
  expect(lines.join("\n")).toMatch(/^hop loss .*\n {2}1 +0% .*::1\n\n::1\nThe target replied/);
});

labTest.each(["SIGTERM", "SIGHUP", "SIGQUIT"] as const)(
  "%s gives the terminal back",
  async (signal) => {
    using terminal = mtr();
    await terminal.until("1 round");
    terminal.child.kill(signal);
    expect(await ended(terminal)).toMatchObject({ ...RESTORED, status: signal });
  },
);

labTest("p pauses the rounds until the next p", async () => {
  using terminal = mtr();
  await terminal.until("3 rounds");
  terminal.pty.write("p");
  await terminal.until(/ rounds, paused$/m);
  terminal.pty.write("p");
  await terminal.until(/[1-9]\d rounds$/m);
  terminal.pty.write("q");
  expect(await ended(terminal, "Probed")).toMatchObject({ ...RESTORED, status: 0 });
});

labTest("SIGINT ends it as Ctrl-C does", async () => {
  using terminal = mtr();
  await terminal.until("3 rounds");
  terminal.child.kill("SIGINT");
  expect(await ended(terminal, "Probed")).toMatchObject({ ...RESTORED, status: 0 });
});

labTest("Ctrl-Z gives the terminal back until the program goes on", async () => {
  // A shell that has jobs says when it has the terminal again, and gives it back.
  using shell = mtr([], 80, 24, ["bash", "--norc", "--noediting", "-is"]);
  const { pty } = shell;
  await shell.until(/\$$/);
  pty.write('"$@"\n');
  await shell.until("2 rounds");
  pty.write("\x1a");
  expect(await shell.until("Stopped")).not.toContain(KEYS);
  expect(shell).toMatchObject({ isCooked: true });
  expect([...shell.modes].toSorted()).toEqual(RESTORED.modes);
  pty.write("fg\n");
  await shell.until(/^mtr ::1 {2}\d+ rounds$/m);
  expect(shell.isCooked).toBeFalse();
  pty.write("q");
  await shell.until(/Probed[\s\S]*\$$/);
  pty.write("exit $?\n");
  expect(await ended(shell)).toMatchObject({ ...RESTORED, status: 0 });
});

labTest("another size is filled at once", async () => {
  using terminal = mtr([], 100);
  await terminal.until("1 round");
  terminal.resize(40, 10);
  const seen = await terminal.until(/history\n/);
  expect(Math.max(...seen.split("\n").map((line) => line.length))).toBeLessThanOrEqual(40);
});

labTest("an error ends it, and is all that is left", async () => {
  using terminal = mtr(["2001:db8::g"]);
  const { lines, ...end } = await ended(terminal, "sixscope");
  expect(end).toEqual({ ...RESTORED, status: 2 });
});

describe("no screen", () => {
  labTest.each([[["-c", "2"]], [["--report", "-c", "1"]], [["--report"]]])(
    "with %p",
    async (args) => {
      using terminal = mtr(args);
      await ended(terminal, "Probed");
      expect(terminal.output).not.toContain("\x1b[?1049h");
    },
  );
});

labTest("NO_COLOR has no colours", async () => {
  using terminal = new Terminal([PROGRAM, "mtr", "-n", "::1"], { NO_COLOR: "1" });
  await terminal.until("2 rounds");
  expect(terminal.output).not.toMatch(COLOUR);
});
