import { afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test";
import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generateApiKey, hashApiKey, isWellFormedApiKey } from "../../src/keys/api-key.ts";
import { KeyFileError, readKeyFile, writeKeyFile } from "../../src/keys/key-file.ts";
import { createKeyring } from "../../src/keys/keyring.ts";
import { createLog } from "../../src/util/log.ts";

let folder: string;
let file: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "sixscope-keys-"));
  file = join(folder, "keys.json");
});

afterEach(() => rmSync(folder, { recursive: true }));

const created = "2026-01-01T00:00:00.000Z";

describe("an API key", () => {
  test("is sx_, 43 base62 characters and a checksum", () => {
    const key = generateApiKey();
    expect(key).toMatch(/^sx_[0-9A-Za-z]{49}$/);
    expect(isWellFormedApiKey(key)).toBe(true);
    expect(generateApiKey()).not.toBe(key);
  });

  test("uses the whole alphabet", () => {
    const secrets = Array.from({ length: 100 }, () => generateApiKey().slice(3, 46));
    expect(new Set(secrets.join("")).size).toBe(62);
  });

  test.each([
    ["32 bytes of 0", "sx_00000000000000000000000000000000000000000004JAc9B"],
    ["32 bytes of 255", "sx_yhjskwdA6OZ1AL1YmHWZWm8LLG7HjnuCA2j5rOw8Xp11BWcN7"],
    ["multiples of 7", "sx_00P7TMJAMtIAKPK15KMeONVl8lPkp3Q5J7OZtDH3YNd0nw3wP"],
  ])("that version 0.1.0 made is well-formed: %s", (_, key) => {
    expect(isWellFormedApiKey(key)).toBe(true);
  });

  test("is not well-formed with a mistyped character, anywhere", () => {
    const key = generateApiKey();
    for (let index = 0; index < key.length; index++) {
      const other = key[index] === "x" ? "y" : "x";
      expect(isWellFormedApiKey(key.slice(0, index) + other + key.slice(index + 1))).toBe(false);
    }
  });

  const malformed = [
    ["nothing", ""],
    ["the key of another program", "ghp_0123456789012345678901234567890123456"],
    ["a key and a space", `${generateApiKey()} `],
    ["a key and a line break", `${generateApiKey()}\n`],
    ["two keys", `${generateApiKey()}, ${generateApiKey()}`],
    ["a megabyte", "sx_".repeat(350_000)],
  ];
  test.each(malformed)("is not %s", (_, text) => {
    expect(isWellFormedApiKey(text)).toBe(false);
  });
});

describe("the keys file", () => {
  const record = { name: "me", sha256: "0".repeat(64), created };

  test("is created with mode 0600 and keeps the mode that it gets", async () => {
    await writeKeyFile(file, []);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    chmodSync(file, 0o640);
    await writeKeyFile(file, [record]);
    expect(statSync(file).mode & 0o777).toBe(0o640);
    expect(readKeyFile(file)).toEqual([record]);
    expect(readdirSync(folder)).toEqual(["keys.json"]);
  });

  test("is not written through a symbolic link in the way of the temporary file", async () => {
    const victim = join(folder, "victim");
    writeFileSync(victim, "untouched");
    const id = "00000000-0000-4000-8000-000000000000";
    using _ = spyOn(crypto, "randomUUID").mockReturnValue(id);
    symlinkSync(victim, `${file}.${id}.tmp`);
    await expect(writeKeyFile(file, [])).rejects.toThrow(KeyFileError);
    expect(readFileSync(victim, "utf8")).toBe("untouched");
  });
});

describe("a keys file of 1,000 keys", () => {
  const keys = Array.from({ length: 1000 }, (_, at) => ({
    name: `küche ${at}`,
    sha256: hashApiKey(`${at}`),
    created,
  }));
  test("is read as it was written", async () => {
    await writeKeyFile(file, keys);
    expect(readKeyFile(file)).toEqual(keys);
  });

  test.each([
    ["indented", (text: string) => JSON.stringify(JSON.parse(text), null, 2)],
    [
      "in another order",
      (text: string) => JSON.stringify({ keys: JSON.parse(text).keys, version: 1 }),
    ],
  ])("is read alike if it is %s", async (_, change) => {
    await writeKeyFile(file, keys);
    writeFileSync(file, change(readFileSync(file, "utf8")));
    expect(readKeyFile(file)).toEqual(keys);
  });

  test.each([
    ["cut off", (text: string) => text.slice(0, -2000)],
    ["cut off behind a key", (text: string) => text.slice(0, text.lastIndexOf("},") + 1)],
    ["followed by something", (text: string) => `${text}{}`],
    ["spoilt in the middle", (text: string) => text.replace('"küche 500"', '"{},{}"')],
  ])("is refused if it is %s", async (_, change) => {
    await writeKeyFile(file, keys);
    writeFileSync(file, change(readFileSync(file, "utf8")));
    expect(() => readKeyFile(file)).toThrow(KeyFileError);
  });

  test.each([
    [
      "of a newer version",
      (text: string) => text.replaceAll('"created"', '"scope":"","created"'),
      "keys.0",
    ],
    ["no list of keys", () => "[]", "its top"],
  ])(
    "is refused in one line that names the first problem if it is %s",
    async (_, change, where) => {
      await writeKeyFile(file, keys);
      writeFileSync(file, change(readFileSync(file, "utf8")));
      expect(() => readKeyFile(file)).toThrow(
        new RegExp(`^the keys file \\S+ does not parse: [^\\n]{1,60} at ${where}$`),
      );
    },
  );

  test("is not waited for if it is none", () => {
    expect(readKeyFile(file)).toEqual([]);
    Bun.spawnSync(["mkfifo", file]);
    expect(() => readKeyFile(file)).toThrow("it is not a regular file");
  });
});

describe("a keyring", () => {
  test("finds a key until it expires or is revoked", async () => {
    const [plain, expiring, revoked] = [generateApiKey(), generateApiKey(), generateApiKey()];
    await writeKeyFile(file, [
      { name: "plain", sha256: hashApiKey(plain), created },
      {
        name: "expiring",
        sha256: hashApiKey(expiring),
        created,
        expires: "2027-01-01T00:00:00.000Z",
      },
      { name: "revoked", sha256: hashApiKey(revoked), created, revoked: created },
    ]);
    const keyring = await createKeyring(
      file,
      createLog({ level: "info", format: "text", priorities: false, write: () => {} }),
    );
    const end = Date.parse("2027-01-01T00:00:00.000Z");
    const namesAt = (nowMs: number) =>
      [plain, expiring, revoked].map((key) => keyring.find(key, nowMs)?.name ?? null);
    expect(namesAt(end - 1)).toEqual(["plain", "expiring", null]);
    expect(namesAt(end)).toEqual(["plain", null, null]);
    expect([keyring.activeCount(end - 1), keyring.activeCount(end)]).toEqual([2, 1]);
  });
});
