/** The service and the tools without a working standard output. */
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

const ENDS = [
  ["a full disk", "> /dev/full", 1, /^sixscope: cannot write to standard output: ENOSPC.*\n$/],
  ["a reader that has gone", "| true", 0, /^$/],
] as const;

const COMMANDS = ["validate ::1", "validate ::1 --json"];

test.each(COMMANDS.flatMap((command) => ENDS.map((end) => [command, ...end] as const)))(
  "%s, %s",
  async (command, _, redirection, status, said) => {
    const script = `set -o pipefail; "$0" ${command} ${redirection}`;
    const child = Bun.spawn(["bash", "-c", script, PROGRAM], { stderr: "pipe" });
    expect(await new Response(child.stderr).text()).toMatch(said);
    expect(await child.exited).toBe(status);
  },
);
