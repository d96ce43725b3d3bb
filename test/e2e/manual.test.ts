/** The manual page that the packages install. */
import { expect } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { manualPage } from "../../scripts/build/manual.ts";
import { describeCommands } from "../../src/cli/command-line.ts";
import { programMissing, testWith } from "../lab/lab.ts";
import { run } from "../lab/run.ts";

const groffTest = testWith(programMissing("groff"));

groffTest("has every command and option, and groff finds nothing wrong with it", async () => {
  const program = describeCommands({});
  const folder = mkdtempSync(join(tmpdir(), "sixscope-manual-"));
  const file = join(folder, "sixscope.1");
  await Bun.write(file, manualPage(program, { version: "1.2.3", commit: null, epochSeconds: 0 }));
  const format = `groff -ww -man -Tascii -P-cbou '${file}' 2>&1`;
  const text = await run(["sh", "-c", format]);
  rmSync(folder, { recursive: true });

  expect(text).not.toContain("warning");
  expect(text).toContain("sixscope 1.2.3");
  const help = program.createHelp();
  for (const command of help.visibleCommands(program)) {
    if (command.name() === "help") continue;
    expect(text).toContain(`sixscope ${command.name()}`);
    for (const { long } of command.options) expect(text).toContain(`${long}`);
  }
});
