/** The start without a working standard output. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { closeSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sixscopeProgram } from "../lab/program.ts";

const [PROGRAM] = await sixscopeProgram();

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "sixscope-output-"));
});

afterEach(() => rmSync(folder, { recursive: true }));

test("the service starts even if its start lines cannot be written", async () => {
  const socket = join(folder, "socket");
  const full = openSync("/dev/full", "w");
  await using child = Bun.spawn([PROGRAM], {
    env: { SIXSCOPE_LISTEN: `unix:${socket}`, SIXSCOPE_KEYS_FILE: join(folder, "keys.json") },
    stdin: "ignore",
    stdout: full,
    stderr: "pipe",
  });
  closeSync(full);
  const answer = async () =>
    fetch("http://localhost/api/v1/openapi.json", {
      unix: socket,
      headers: { "X-Forwarded-Proto": "https" },
    }).then(
      ({ status }) => status,
      () => null,
    );
  let status: number | null = null;
  while (status === null && child.exitCode === null) status = await answer();
  expect([status, await answer()]).toEqual([200, 200]);
  child.kill("SIGKILL");
});
