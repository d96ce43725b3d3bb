/** Plain `bun test`, of which files must not meet each other's leftovers. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { LAB_VARIABLE, labEnvironment } from "./run.ts";

test("bun test with a folder runs each of its files by itself, as bun run test does", async () => {
  const { [LAB_VARIABLE]: _, ...env } = labEnvironment;
  const child = Bun.spawn([process.execPath, "test", "test/config"], {
    cwd: join(import.meta.dir, "../.."),
    env,
    stdout: "pipe",
    stderr: "pipe",
  });
  const output = await new Response(child.stdout).text();
  expect(output).toMatch(/\n \d+ pass\n 0 fail\n 0 skip\n$/);
  expect(await child.exited).toBe(0);
});
