/** Each command that a message has, pasted into shells: they get exactly its words, and nothing else runs. */
import { afterAll, beforeAll, expect, mock, setSystemTime, test } from "bun:test";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as regularFile from "../../src/platform/regular-file.ts";

let isDenied = true;
const { readRegularFile } = regularFile;

/** As if the system denied the user each file; root reads all. Files after this one, which may run in this process, read. */
mock.module("../../src/platform/regular-file.ts", () => ({
  ...regularFile,
  readRegularFile(path: string) {
    if (!isDenied) return readRegularFile(path);
    throw Object.assign(new Error("EACCES: permission denied"), { code: "EACCES" });
  },
}));

// The page reads them when it is loaded.
Object.assign(globalThis, { sessionStorage: {}, localStorage: {} });

const { checkKeysFile } = await import("../../src/cli/doctor/keys.ts");
const { formatFinding } = await import("../../src/cli/doctor/finding.ts");
const { readKeyFile } = await import("../../src/keys/key-file.ts");
const { createSharedKeys, MAX_AGE_MS } = await import("../../src/valkey/keys.ts");
const { ownName } = await import("../../src/platform/users.ts");
const { urlOf } = await import("../../src/page/browser/api.ts");
const { pathOf } = await import("../../src/page/browser/bookmark.ts");

/** Names of folders and subjects of questions. */
const NAMES = [
  "plain",
  "two words",
  "it's",
  'a "b"',
  "$(touch owned)",
  "`touch owned`",
  "a; touch owned",
  "a | touch owned",
  "a & touch owned",
  "a\ntouch owned",
  "'; touch owned; '",
  "-rf",
  "*",
  "~",
  "#a",
  "a\\",
  "$HOME!1",
  "a > owned",
];

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "sixscope-commands-"));
  for (const program of ["chown", "sixscope", "curl", "sudo"]) {
    const file = join(folder, program);
    writeFileSync(file, `#!/bin/sh\nprintf '%s\\0' ${program} "$@" >> "${folder}/words"\n`);
    chmodSync(file, 0o755);
  }
});

afterAll(() => {
  isDenied = false;
  rmSync(folder, { recursive: true });
});

/** The words that programs get if a line is run by a shell in an empty folder. */
function wordsOf(shell: string, line: string): readonly string[] {
  const [words, empty] = [join(folder, "words"), mkdtempSync(join(folder, "empty-"))];
  rmSync(words, { force: true });
  const env = { PATH: `${folder}:/usr/bin:/bin`, SIXSCOPE_KEY: "sx_ key" };
  Bun.spawnSync([shell, "-c", line], { cwd: empty, env });
  expect(existsSync(join(empty, "owned"))).toBe(false);
  return readFileSync(words, "utf8").split("\0").slice(0, -1);
}

const behind = (text: string, mark: string) => text.slice(text.lastIndexOf(mark) + mark.length);

/** The message that keys in Valkey are gone, and the copy in a file is too old. */
async function staleCopy(path: string): Promise<string> {
  let text = "";
  const log = { error: (message: string) => (text = message), warn() {}, info() {} };
  const key = { name: "a", sha256: "0".repeat(64), created: "2026-01-31T12:00:00Z" };
  let answer = ["1", [JSON.stringify(key)]];
  const run = async () => answer;
  const shared = await createSharedKeys(run as never, ["k", "v"], path, log as never);
  await shared.follow("1");
  answer = ["", []];
  setSystemTime(Date.now() + 2 * MAX_AGE_MS);
  await shared.follow("2");
  setSystemTime();
  return text;
}

const [SHELL_PATH, SUBJECT] = ["ping/{target}", { name: "target", in: "path" }];

test.each(["sh", "bash", "dash", "zsh"].filter((shell) => Bun.which(shell) !== null))(
  "a command that is pasted into %s has the words of the message, whatever a name contains",
  async (shell) => {
    for (const name of NAMES) {
      const path = `/nowhere/${name}/keys.json`;
      const chown = ["chown", `${ownName()}:`, path];
      let message = "";
      try {
        readKeyFile(path);
      } catch (error) {
        message = (error as Error).message;
      }
      expect(wordsOf(shell, behind(message, "run: "))).toEqual(chown);
      // The check looks whether the file exists.
      const existing = join(mkdtempSync(join(folder, "keys-")), `${name}.json`);
      writeFileSync(existing, "");
      const line = behind(formatFinding(checkKeysFile(existing)), "run: ");
      expect(wordsOf(shell, line)).toEqual(["chown", `${ownName()}:`, existing]);
      const copy = await staleCopy(path);
      expect(wordsOf(shell, behind(copy, "run: ").replace(/; the old keys.*$/s, ""))).toEqual([
        "sixscope",
        "keys",
        "import",
        path,
      ]);
    }
  },
);

test("a line of the page calls the one URL that it shows, whatever the subject contains", () => {
  for (const subject of [...NAMES, "''", "'x'", "a'&touch owned&'"]) {
    const tool = { path: `/${SHELL_PATH}`, subject: SUBJECT } as never;
    const bookmark = { tool: "ping" as const, subject, options: { from: subject } };
    const url = urlOf(pathOf(tool, bookmark), "https://six.example.com/");
    // As `Shell` writes it.
    const line = `curl -H "X-API-Key: $SIXSCOPE_KEY" '${url}'`;
    expect(wordsOf("sh", line)).toEqual(["curl", "-H", "X-API-Key: sx_ key", url]);
    expect(new URL(url).searchParams.get("from")).toBe(subject);
    expect(decodeURIComponent(new URL(url).pathname)).toBe(`/api/v1/ping/${subject}`);
  }
});
