/** A program that fills the whole terminal with one text, without a space, until a key is pressed. */
import { openFullScreen } from "../../src/cli/full-screen.ts";

const full = openFullScreen(
  () => {
    full.close();
    process.exit();
  },
  draw,
  () => process.exit(1),
);

function draw() {
  const { columns = 0, rows = 0 } = process.stdout;
  const lines = Array.from({ length: rows }, (_, at) => textFrom(at * columns, columns));
  full.draw(lines);
}

function textFrom(start: number, count: number): string {
  return Array.from({ length: count }, (_, at) => ((start + at) % 36).toString(36)).join("");
}

draw();
