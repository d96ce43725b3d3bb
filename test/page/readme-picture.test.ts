/** The picture in the README shows the page as it is: it says itself which tabs it shows. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { textIn, withText } from "../../scripts/png-text.ts";
import { TOOLS } from "../../src/tools/table.ts";

const FILE = join(import.meta.dir, "../../docs/images/page-check.png");

test("the picture has today's tabs; `bun run screenshots readme` takes it again", async () => {
  const tabs = TOOLS.filter(({ name }) => name !== "my-ip").map(({ label }) => label);
  expect(textIn(await Bun.file(FILE).bytes())).toBe(tabs.join(", "));
});

test("a comment is read as it was written, and a picture without one has none", () => {
  const end = Buffer.from("0000000049454e44ae426082", "hex");
  expect(textIn(end)).toBeNull();
  expect(textIn(withText(end, "Check, DNS"))).toBe("Check, DNS");
});
