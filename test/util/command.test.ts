/** Commands that are printed do the same when they are pasted into a shell. */
import { expect, test } from "bun:test";
import { formatCommand } from "../../src/util/command.ts";
import { run } from "../lab/run.ts";

const WORDS = [
  "plain",
  "",
  "two words",
  "it's",
  "$(touch owned)",
  "`touch owned`",
  "a;touch owned",
  "a\ntouch owned",
  "\\'; touch owned; '",
  "*",
  "~root",
  "#no comment",
  "-rf",
  '"$HOME"',
  "é\t\u0007",
];

test("a shell reads each word as it is, whatever characters a folder's name has", async () => {
  const line = formatCommand(["printf", "%s\\0", ...WORDS]);
  const stdout = await run(["sh", "-c", line]);
  expect(stdout.split("\0").slice(0, -1)).toEqual(WORDS);
});
