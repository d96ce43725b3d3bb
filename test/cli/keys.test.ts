import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  closeSync,
  constants,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hashApiKey } from "../../src/keys/api-key.ts";
import { isActive, readKeyFile, writeKeyFile } from "../../src/keys/key-file.ts";
import { C, loadLibc } from "../../src/platform/libc.ts";
import { sixscopeHere } from "../lab/in-process.ts";
import { labMissing, testWith } from "../lab/lab.ts";
import { sixscopeProgram } from "../lab/program.ts";
import { run } from "../lab/run.ts";
import { sixscope, startService } from "../lab/service.ts";

let folder: string;
let file: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "sixscope-keys-"));
  file = join(folder, "keys.json");
});

afterEach(() => rmSync(folder, { recursive: true }));

const keys = (...args: string[]) => sixscopeHere(["keys", ...args], { SIXSCOPE_KEYS_FILE: file });

/** As `keys`, in a process of its own. */
const keysAlone = (...args: string[]) => sixscope(["keys", ...args], { SIXSCOPE_KEYS_FILE: file });

describe("keys add", () => {
  test("prints the key once and stores only its SHA-256, mode 0600", async () => {
    const { status, stdout } = await keys("add", "me");
    const key = stdout.split("\n")[0] ?? "";
    expect(status).toBe(0);
    expect(key).toMatch(/^sx_[0-9A-Za-z]{49}$/);
    const stored = readFileSync(file, "utf8");
    expect(stored).not.toContain(key);
    expect(JSON.parse(stored).keys[0].sha256).toBe(hashApiKey(key));
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  test("keeps limit and expiry; a date means the end of that day", async () => {
    await keys("add", "me", "--limit", "5000", "--expires", "2099-01-31");
    expect(JSON.parse(readFileSync(file, "utf8")).keys[0]).toMatchObject({
      name: "me",
      limit: 5000,
      expires: "2099-01-31T23:59:59.999Z",
    });
  });

  const times: [string, string][] = [
    ["2099-01-31T12:00:00.5+02:00", "2099-01-31T10:00:00.500Z"],
    ["2099-01-31T12:00Z", "2099-01-31T12:00:00.000Z"],
  ];
  test.each(times)("an expiry of %s is %s", async (given, kept) => {
    await keys("add", "me", "--expires", given);
    expect(JSON.parse(readFileSync(file, "utf8")).keys[0]).toMatchObject({ expires: kept });
  });

  test("keeps the mode of the file", async () => {
    writeFileSync(file, '{"version":1,"keys":[]}', { mode: 0o640 });
    await keys("add", "me");
    expect(statSync(file).mode & 0o777).toBe(0o640);
  });

  test("loses no key when many commands run at once", async () => {
    const names = Array.from({ length: 12 }, (_, index) => `key-${index}`);
    const ends = await Promise.all(names.map((name) => keysAlone("add", name)));
    expect(ends.map(({ stderr }) => stderr)).toEqual(names.map(() => ""));
    const stored: { name: string }[] = JSON.parse(readFileSync(file, "utf8")).keys;
    expect(stored.map(({ name }) => name).toSorted()).toEqual(names.toSorted());
  });

  test("names with odd spaces in an existing file stay, and can be revoked", async () => {
    const old = { name: "ab  cd ", sha256: "0".repeat(64), created: "2026-01-01T00:00:00Z" };
    writeFileSync(file, JSON.stringify({ version: 1, keys: [old] }));
    expect((await keys("add", "ab cd")).status).toBe(0);
    expect((await keys("revoke", "ab  cd ")).status).toBe(0);
  });

  test("an expired name can be used again, and is listed once", async () => {
    const created = "2020-01-01T00:00:00.000Z";
    const expired = { name: "me", sha256: "0".repeat(64), created, expires: created };
    await writeKeyFile(file, [expired]);
    expect((await keys("add", "me")).status).toBe(0);
    expect((await keys("list")).stdout.match(/^me +\w+/gm)).toEqual([
      expect.stringMatching(/^me +active$/),
    ]);
  });

  test("a revoked name can be used again", async () => {
    await keys("add", "me");
    await keys("revoke", "me");
    expect((await keys("add", "me")).status).toBe(0);
    expect((await keys("list")).stdout).toMatch(/^me +active/m);
  });
});

describe("keys list", () => {
  test("shows names, states and limits, and no secret", async () => {
    const { stdout: secret } = await keys("add", "first", "--limit", "7");
    await keys("add", "second");
    await keys("revoke", "second");
    const { stdout } = await keys("list");
    expect(stdout).toMatch(/^first +active +7\/min +\d{4}-\d\d-\d\d +never$/m);
    expect(stdout).toMatch(/^second +revoked +default/m);
    expect(stdout).not.toContain(secret.split("\n")[0] ?? "?");
    expect(stdout).not.toContain(hashApiKey(secret.split("\n")[0] ?? ""));
  });

  test("says how to create a key if there are none", async () => {
    expect((await keys("list")).stdout).toContain("sixscope keys add NAME");
  });
});

describe("wrong usage ends with status 2 and shows the usage", () => {
  const rows: [string, string[], string][] = [
    ["no action", [], "Usage: sixscope keys [options] [command]"],
    ["unknown action", ["remove"], "unknown command 'remove'"],
    ["no name", ["add"], "missing required argument 'name'"],
    ["two names", ["add", "a", "b"], "too many arguments for 'add'"],
    ["a name with a line break", ["add", "a\nb"], "cannot be a name"],
    ["a name with a space behind it", ["add", "a "], "cannot be a name"],
    ["a name with two spaces", ["add", "ab  cd"], "cannot be a name"],
    ["a limit of zero", ["add", "a", "--limit", "0"], "--limit: a number"],
    ["a limit that is not a number", ["add", "a", "--limit", "1e3"], "--limit: a number"],
    [
      "a day that does not exist",
      ["add", "a", "--expires", "2099-02-30"],
      "--expires: a date such as 2027-01-31",
    ],
    [
      "a time on such a day",
      ["add", "a", "--expires", "2099-02-30T12:00:00Z"],
      "--expires: a date such as 2027-01-31",
    ],
    [
      "a time without a zone",
      ["add", "a", "--expires", "2099-01-30T12:00:00"],
      "--expires: a date such as 2027-01-31",
    ],
    [
      "a date in the past",
      ["add", "a", "--expires", "2020-01-01"],
      "--expires: a time in the future",
    ],
    [
      "a year with five digits",
      ["add", "a", "--expires", "9999-12-31T23:00:00-05:00"],
      "--expires: a date such as 2027-01-31",
    ],
    ["unknown option", ["add", "a", "--days", "3"], "unknown option '--days'"],
  ];
  test.each(rows)("%s", async (_, args, said) => {
    const { status, stderr } = await keys(...args);
    expect(status).toBe(2);
    expect(stderr).toContain(said);
    expect(stderr).toMatch(/^[Uu]sage: sixscope keys /m);
  });
});

test("a file that does not parse is never overwritten: status 1, and it says why", async () => {
  writeFileSync(file, "{ not json");
  const { status, stderr } = await keys("add", "me");
  expect(status).toBe(1);
  expect(stderr).toContain(`the keys file ${file} does not parse`);
  expect(readFileSync(file, "utf8")).toBe("{ not json");
});

test("a missing folder is named: status 1", async () => {
  const { status, stderr } = await sixscopeHere(["keys", "add", "me"], {
    SIXSCOPE_KEYS_FILE: join(folder, "no/keys.json"),
  });
  expect(status).toBe(1);
  expect(stderr).toContain(join(folder, "no"));
});

describe("other failures end with status 1 and without the usage", () => {
  test("a name that is taken", async () => {
    await keys("add", "me");
    const { status, stderr } = await keys("add", "me");
    expect(status).toBe(1);
    expect(stderr).toStartWith('sixscope: a key named "me" exists already');
  });

  test("an unknown name to revoke", async () => {
    const { status, stderr } = await keys("revoke", "other");
    expect(status).toBe(1);
    expect(stderr).toContain('no key named "other" can be revoked');
  });
});

test("a symbolic link stays, and its target is replaced", async () => {
  const link = join(folder, "link.json");
  await keys("add", "first");
  symlinkSync(file, link);
  await sixscopeHere(["keys", "add", "second"], { SIXSCOPE_KEYS_FILE: link });
  expect(lstatSync(link).isSymbolicLink()).toBe(true);
  expect((await keys("list")).stdout).toMatch(/^second +active/m);
});

test("a relative link starts at its real folder", async () => {
  const [other, away] = [join(folder, "other"), join(folder, "away")];
  mkdirSync(join(other, "deep"), { recursive: true });
  symlinkSync(join(other, "deep"), away);
  symlinkSync("../keys.json", join(other, "deep", "link.json"));
  await sixscopeHere(["keys", "add", "me"], { SIXSCOPE_KEYS_FILE: join(away, "link.json") });
  expect(readdirSync(other).toSorted()).toEqual(["deep", "keys.json"]);
});

const notFiles: [string, () => string, string][] = [
  ["a FIFO", () => file, "it is not a regular file"],
  ["a device", () => "/dev/zero", "it is not a regular file"],
  ["a file in a FIFO", () => join(file, "keys.json"), "ENOTDIR"],
];
test.each(notFiles)(
  "%s cannot be the keys file, and nothing waits for it",
  async (_, path, said) => {
    await run(["mkfifo", file]);
    const { status, stderr } = await sixscope(["keys", "add", "me"], {
      SIXSCOPE_KEYS_FILE: path(),
    });
    expect(stderr).toContain(said);
    expect(status).toBe(1);
    if (labMissing !== null) return;
    await using service = await startService({ SIXSCOPE_KEYS_FILE: path() });
    await service.says(said);
    expect((await fetch(`${service.url}/myip`)).status).toBe(200);
  },
);

test("a circle of links is reported", async () => {
  symlinkSync("second", join(folder, "first"));
  symlinkSync("first", join(folder, "second"));
  const circle = { SIXSCOPE_KEYS_FILE: join(folder, "first") };
  expect((await sixscopeHere(["keys", "list"], circle)).stderr).toContain("ELOOP");
});

test("a file can be read while another process replaces it", async () => {
  await keys("add", "me");
  const replaceOnAndOn = `
    const [, file] = process.argv;
    const { copyFileSync, renameSync } = require("node:fs");
    while (true) {
      copyFileSync(file, file + ".copy");
      renameSync(file + ".copy", file);
    }`;
  await using _replacing = Bun.spawn([process.execPath, "-e", replaceOnAndOn, file]);
  for (let times = 0; times < 500; times++) {
    expect(readKeyFile(file)).toMatchObject([{ name: "me" }]);
  }
});

test("a link at the path of the temporary file is not followed", async () => {
  const victim = join(folder, "victim");
  writeFileSync(victim, "untouched");
  const { pid } = process;
  symlinkSync(victim, `${file}.${pid}.tmp`);
  await writeKeyFile(file, []);
  expect(readFileSync(victim, "utf8")).toBe("untouched");
  expect(lstatSync(file).isFile()).toBe(true);
});

test("--help after a command prints the help", async () => {
  for (const args of [["add", "--help"], ["--help"]]) {
    const { status, stdout } = await keysAlone(...args);
    expect({ status, helps: stdout.startsWith("Usage: sixscope keys ") }).toEqual({
      status: 0,
      helps: true,
    });
  }
});

testWith(labMissing)("a read-only file system is reported in one sentence", async () => {
  await run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", folder]);
  try {
    const { status, stderr } = await keys("add", "me");
    expect(stderr).toMatch(/^sixscope: cannot write the keys file .*: EROFS: .*\n$/);
    expect(status).toBe(1);
  } finally {
    await run(["umount", folder]);
  }
});

testWith(labMissing)(
  "a full disk destroys no keys: status 1, and the file is as it was",
  async () => {
    // One page for the file and one for its successor, until that takes two.
    await run(["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", folder]);
    try {
      let last = "";
      for (let count = 0; ; count++) {
        const { status, stderr } = await keys("add", `a-rather-long-name-for-key-${count}`);
        if (status === 0) {
          last = readFileSync(file, "utf8");
          continue;
        }
        expect(status).toBe(1);
        expect(stderr).toContain("cannot write the keys file");
        break;
      }
      expect(readFileSync(file, "utf8")).toBe(last);
      expect(readdirSync(folder)).toEqual(["keys.json"]);
    } finally {
      await run(["umount", folder]);
    }
  },
);

describe("without a working standard output", () => {
  const shell = async (script: string) => {
    const environment = { SIXSCOPE_KEYS_FILE: file, PATH: process.env["PATH"] };
    const command = ["bash", "-c", script, ...(await sixscopeProgram())];
    const child = Bun.spawn(command, { env: environment, stdout: "pipe", stderr: "pipe" });
    const [stdout, stderr, status] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    return { stdout, stderr, status };
  };

  const ends: [string, string][] = [
    ["a full disk", '"$0" keys add me > /dev/full'],
    ["a reader that has gone", 'exec 3> >(true); wait $!; "$0" keys add me >&3'],
  ];
  test.each(ends)("%s: keys add fails, and says how to revoke the key", async (_, script) => {
    const { stderr, status } = await shell(script);
    expect(stderr).toMatch(
      /^sixscope: cannot write to standard output: .*; the new key was not shown, revoke it: .* keys revoke me\n$/,
    );
    expect(status).toBe(1);
  });

  test("a reader that has gone: keys list needs none", async () => {
    await keys("add", "me");
    const listed = await shell('exec 3> >(true); wait $!; "$0" keys list >&3');
    expect(listed).toEqual({ stdout: "", stderr: "", status: 0 });
  });

  test("a full disk: keys list says so in one sentence", async () => {
    const { stderr } = await shell('"$0" keys list > /dev/full');
    expect(stderr).toMatch(/^sixscope: cannot write to standard output: ENOSPC.*\n$/);
  });

  test("a slow pipe gets all of a long list", async () => {
    const created = "2026-01-01T00:00:00Z";
    const many = Array.from({ length: 20_000 }, (_, index) => {
      const sha256 = index.toString(16).padStart(64, "0");
      return { name: `key-${index}`, sha256, created };
    });
    writeFileSync(file, JSON.stringify({ version: 1, keys: many }));
    const path = join(folder, "pipe");
    await run(["mkfifo", path]);
    const pipe = openSync(path, constants.O_RDWR);
    const counter = Bun.spawn(["sh", "-c", 'exec < "$0"; sleep 0.6; wc -l', path]);
    const [program] = await sixscopeProgram();
    const late = ["sh", "-c", 'sleep 0.2; exec "$0" "$@"', program, "keys", "list"];
    const lister = Bun.spawn(late, {
      env: { PATH: process.env["PATH"], SIXSCOPE_KEYS_FILE: file },
      stdout: pipe,
    });
    // Not earlier, because starting a process makes its output blocking.
    const F_SETFL = 4;
    const libc = loadLibc({ fcntl: { args: [C.int, C.int, C.int], returns: C.int } });
    expect(libc.fcntl(pipe, F_SETFL, constants.O_RDWR | constants.O_NONBLOCK)).toBe(0);
    closeSync(pipe);
    expect(await lister.exited).toBe(0);
    expect((await new Response(counter.stdout).text()).trim()).toBe("20001");
  });
});

describe("while a service runs", () => {
  test("only its user may ask for its state", async () => {
    await using _service = await startService({ SIXSCOPE_KEYS_FILE: file });
    expect(statSync(`${file}.status`).mode & 0o777).toBe(0o600);
  });

  test("a file with fewer keys is used, and the log says how many are valid", async () => {
    await keys("add", "other");
    await using service = await startService({ SIXSCOPE_KEYS_FILE: file });
    const others = readKeyFile(file).filter(({ name }) => name !== "other");
    writeKeyFile(file, others);
    const active = others.filter((key) => isActive(key, Date.now())).length;
    await service.says('msg="keys file read again"');
    expect(service.stderr()).toMatch(new RegExp(`keys file read again.* active=${active}$`, "m"));
  });
});
