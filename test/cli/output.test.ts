/** Output under systemd, and without a working standard output. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { closeSync, fstatSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const MAIN = join(import.meta.dir, "../../src/main.ts");

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "sixscope-output-"));
});

afterEach(() => rmSync(folder, { recursive: true }));

/** Runs the service until it is ready or fails, and returns what it wrote to a file in place of the journal. */
async function journalOf(
  environment: Record<string, string>,
  wrapper: readonly string[] = [],
  stream: (of: { dev: number; ino: number }) => string = ({ dev, ino }) => `${dev}:${ino}`,
): Promise<string> {
  const path = join(folder, "journal");
  const fd = openSync(path, "a");
  const settings = { SIXSCOPE_LISTEN: "[::1]:0", SIXSCOPE_KEYS_FILE: join(folder, "keys.json") };
  const child = Bun.spawn([...wrapper, process.execPath, MAIN], {
    env: {
      PATH: process.env["PATH"],
      ...settings,
      JOURNAL_STREAM: stream(fstatSync(fd)),
      ...environment,
    },
    stdin: "ignore",
    stdout: fd,
    stderr: fd,
  });
  while (child.exitCode === null && !readFileSync(path, "utf8").includes("next"))
    await Bun.sleep(10);
  child.kill("SIGKILL");
  await child.exited;
  closeSync(fd);
  return readFileSync(path, "utf8");
}

describe("the journal", () => {
  test("gets each line about a failed start as an error", async () => {
    const wrong = { SIXSCOPE_MAX_PROBES: "many", SIXSCOPE_LISTEN: "nowhere" };
    expect(await journalOf(wrong)).toMatch(
      /^<3>sixscope: SIXSCOPE_\w+=.*\n<3>sixscope: SIXSCOPE_.*\n$/,
    );
  });

  test("gets the line about missing raw sockets, and no other, as a warning", async () => {
    const withoutRights = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"];
    const lines = (await journalOf({}, withoutRights)).split("\n");
    expect(lines.filter((line) => line.startsWith("<"))).toEqual([
      expect.stringMatching(/^<4>raw sockets: none/),
    ]);
  });

  test("is not assumed for another file, for example if a desktop passes its variable on", async () => {
    const other = await journalOf({ SIXSCOPE_MAX_PROBES: "many" }, [], () => "1:1");
    expect(other).toStartWith("sixscope: SIXSCOPE_MAX_PROBES");
  });
});

test("the service starts even if its start lines cannot be written", async () => {
  const socket = join(folder, "socket");
  const full = openSync("/dev/full", "w");
  await using child = Bun.spawn([process.execPath, MAIN], {
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
