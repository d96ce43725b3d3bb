/** The whole terminal, as its cells show it. */
import { expect } from "bun:test";
import { join } from "node:path";
import { labMissing, testWith } from "../lab/lab.ts";
import { Terminal } from "../lab/terminal.ts";

const FILLED = join(import.meta.dir, "../lab/full-screen-text.ts");
const ROWS = 6;

testWith(labMissing)("lines as wide as the screen keep their last character", async () => {
  using terminal = new Terminal([process.execPath, FILLED], {}, 40, ROWS);
  for (let columns = 40; columns <= 140; columns++) {
    const text = Array.from({ length: ROWS * columns }, (_, at) => (at % 36).toString(36)).join("");
    if (columns > 40) terminal.resize(columns, ROWS);
    const seen = await terminal.until((lines) => lines.at(-1)?.length === columns);
    expect(seen.replaceAll("\n", "")).toBe(text);
  }
});
