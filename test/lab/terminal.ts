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
    else if (command === "K") lines[row] = current.slice(0, column);
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
