/** Where lines go under systemd, and where they cannot go anywhere. */
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

/** Runs the service until it is ready or fails, and returns what it wrote into one file as its journal. */
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
  test("reads why the service does not start as errors, each line of it", async () => {
    const wrong = { SIXSCOPE_MAX_PROBES: "many", SIXSCOPE_LISTEN: "nowhere" };
    expect(await journalOf(wrong)).toMatch(
      /^<3>sixscope: SIXSCOPE_\w+=.*\n<3>sixscope: SIXSCOPE_.*\n$/,
    );
  });

  test("reads as a warning that ping and traceroute do not work, and nothing else", async () => {
    const withoutRights = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"];
    const lines = (await journalOf({}, withoutRights)).split("\n");
    expect(lines.filter((line) => line.startsWith("<"))).toEqual([
      expect.stringMatching(/^<4>raw sockets: none/),
    ]);
  });

  test("is not taken for any other file, as where a desktop hands its variable down", async () => {
    const other = await journalOf({ SIXSCOPE_MAX_PROBES: "many" }, [], () => "1:1");
    expect(other).toStartWith("sixscope: SIXSCOPE_MAX_PROBES");
  });
});

test("a start whose lines cannot be written is a start", async () => {
  const socket = join(folder, "socket");
  const full = openSync("/dev/full", "w");
  await using child = Bun.spawn([process.execPath, MAIN], {
    env: { SIXSCOPE_LISTEN: `unix:${socket}`, SIXSCOPE_KEYS_FILE: join(folder, "keys.json") },
    stdin: "ignore",
    stdout: full,
    stderr: "pipe",
  });
  closeSync(full);
  const deadlineMs = Date.now() + 5000;
  const answer = async () =>
    fetch("http://localhost/api/v1/openapi.json", {
      unix: socket,
      headers: { "X-Forwarded-Proto": "https" },
    }).then(
      ({ status }) => status,
      () => null,
    );
  let status: number | null = null;
  while (status === null && Date.now() < deadlineMs) status = await answer();
  await Bun.sleep(100);
  expect({ status, exit: child.exitCode }).toEqual({ status: 200, exit: null });
  child.kill("SIGKILL");
});
