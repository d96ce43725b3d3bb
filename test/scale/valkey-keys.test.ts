/** API keys that several instances share, through outages too. */
import { describe, expect } from "bun:test";
import {
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sixscopeHere } from "../lab/in-process.ts";
import { labMissing, testWith } from "../lab/lab.ts";
import { until, value } from "../lab/metrics.ts";
import { type Service, sixscope, startService } from "../lab/service.ts";
import { ValkeyServer, valkeyMissing } from "../lab/valkey.ts";
import { startInstances } from "./instances.ts";

const scaleTest = testWith(labMissing ?? valkeyMissing);

const DAY_SECONDS = 86_400;

/** Runs `sixscope keys …` with the keys in the server. */
function keysIn(
  { url }: ValkeyServer,
  settings: Readonly<Record<string, string>> = {},
  program = sixscopeHere,
) {
  return (...args: string[]) =>
    program(["keys", ...args], { SIXSCOPE_VALKEY_URL: url, ...settings });
}

async function pingStatus({ url }: Service, key: string): Promise<string> {
  const response = await fetch(`${url}/ping/::1?count=1`, { headers: { "X-API-Key": key } });
  const body = (await response.json()) as { error?: { code: string } };
  return body.error?.code ?? "OK";
}

/** Waits until every service answers a ping with the key like this. */
async function all(services: readonly Service[], key: string, wanted: string): Promise<void> {
  for (const service of services) {
    await until(async () => (await pingStatus(service, key)) === wanted);
  }
}

describe("a key", () => {
  scaleTest(
    "that is added works at all instances, and stops at all when it is revoked",
    async () => {
      await using server = await ValkeyServer.start();
      await using instances = await startInstances(server);
      const keys = keysIn(server);
      const added = await keys("add", "one", "--limit", "7");
      const key = added.stdout.split("\n")[0] ?? "";
      expect(added.stdout).toContain(
        `It is stored in ${server.url}; services that read it accept the key within a second.`,
      );
      await all(instances.services, key, "OK");
      expect((await keys("list")).stdout).toMatch(/^one +active +7\/min /m);
      expect((await keys("revoke", "one")).status).toBe(0);
      await all(instances.services, key, "UNAUTHORIZED");
      expect(await server.cli("HVALS", "sixscope:keys")).not.toContain(key);
    },
  );

  scaleTest(
    "stays as it was through an outage, also for an instance that starts then",
    async () => {
      await using server = await ValkeyServer.start(
        "--appendonly",
        "yes",
        "--appendfsync",
        "always",
      );
      await using instances = await startInstances(server);
      const keys = keysIn(server);
      const [good = "", bad = ""] = await Promise.all(
        ["good", "bad"].map(async (name) => (await keys("add", name)).stdout.split("\n")[0]),
      );
      expect([good, bad]).not.toContain("");
      await all(instances.services, bad, "OK");
      expect((await keys("revoke", "bad")).status).toBe(0);
      await all(instances.services, bad, "UNAUTHORIZED");
      await server.kill();
      await instances.areUp(false);
      await all(instances.services, good, "OK");
      await all(instances.services, bad, "UNAUTHORIZED");
      const failed = await keys("revoke", "good");
      expect([failed.status, failed.stdout]).toEqual([1, ""]);
      expect(failed.stderr).toContain("cannot use the keys in valkey://[::1]:");

      const [first] = instances.services as [Service];
      const copied = { SIXSCOPE_KEYS_FILE: first.keysFile, SIXSCOPE_VALKEY_URL: server.url };
      await using late = await startService(copied);
      await all([late], good, "OK");
      await all([late], bad, "UNAUTHORIZED");

      await server.restart();
      await instances.areUp(true);
      expect((await keys("revoke", "good")).status).toBe(0);
      await all([...instances.services, late], good, "UNAUTHORIZED");
    },
  );

  scaleTest("survives a Valkey that has lost everything", async () => {
    await using server = await ValkeyServer.start();
    await using instances = await startInstances(server);
    const [first] = instances.services as [Service];
    await server.kill();
    await instances.areUp(false);
    await server.restart();
    await instances.areUp(true);
    const keys = keysIn(server);
    await until(async () => (await keys("list")).stdout.includes("test  active"));
    await all(instances.services, first.key, "OK");
  });

  scaleTest("is lost by none of many operators who add keys at once", async () => {
    await using server = await ValkeyServer.start();
    const keys = keysIn(server, {}, sixscope);
    const names = Array.from({ length: 12 }, (_, index) => `key-${index}`);
    const ends = await Promise.all(names.map((name) => keys("add", name)));
    expect(ends.map(({ stderr }) => stderr)).toEqual(names.map(() => ""));
    const records = (await server.cli("HVALS", "sixscope:keys")).split("\n");
    const stored = records.map((text): string => JSON.parse(text).name);
    expect(stored.toSorted()).toEqual(names.toSorted());
  });
});

describe("the copy of the keys", () => {
  scaleTest("is private, and keys that are a day old probe no more", async () => {
    await using server = await ValkeyServer.start();
    const shared = { SIXSCOPE_VALKEY_URL: server.url };
    await using service = await startService(shared);
    await all([service], service.key, "OK");
    const copy = `${service.keysFile}.copy`;
    while (!existsSync(copy)) await Bun.sleep(20);
    expect(statSync(copy).mode & 0o777).toBe(0o600);
    expect(existsSync(service.keysFile)).toBe(false);
    service.signal("SIGTERM");
    await service.exited;
    await server.kill();

    const rows = [
      [DAY_SECONDS - 600, "OK"],
      [DAY_SECONDS + 600, "KEYS_UNAVAILABLE"],
    ] as const;
    for (const [ageSeconds, expected] of rows) {
      const readSeconds = Date.now() / 1000 - ageSeconds;
      utimesSync(copy, readSeconds, readSeconds);
      await using late = await startService({ ...shared, SIXSCOPE_KEYS_FILE: service.keysFile });
      expect(await pingStatus(late, service.key)).toBe(expected);
      const headers = { "X-API-Key": service.key };
      const response = await fetch(`${late.url}/myip`, { headers });
      expect([response.status, response.headers.get("x-ratelimit-limit")]).toEqual([200, "1000"]);
    }

    await server.restart();
    // Only the service itself is told of Valkey, so nothing adds a key there.
    const wrapper = ["env", `SIXSCOPE_VALKEY_URL=${server.url}`];
    await using back = await startService({ SIXSCOPE_KEYS_FILE: service.keysFile }, wrapper);
    await back.says("is too old; to use it, run: sixscope keys import");
    expect((await keysIn(server)("import", copy)).stdout).toContain("Copied 1 of 1 keys");
    await all([back], service.key, "OK");
  });

  scaleTest("is marked as current while Valkey answers", async () => {
    await using server = await ValkeyServer.start();
    const settings = { SIXSCOPE_METRICS_LISTEN: "127.0.0.1:0" };
    await using service = await startService({ ...settings, SIXSCOPE_VALKEY_URL: server.url });
    await all([service], service.key, "OK");
    expect(await value(service, "sixscope_keys_age_seconds")).toBeLessThan(DAY_SECONDS);
    while (!existsSync(`${service.keysFile}.copy`)) await Bun.sleep(20);
    expect(Date.now() - statSync(`${service.keysFile}.copy`).mtimeMs).toBeLessThan(DAY_SECONDS);
  });

  scaleTest("need not be written: the keys are used all the same", async () => {
    await using server = await ValkeyServer.start();
    await keysIn(server)("add", "one");
    await using service = await startService({
      SIXSCOPE_VALKEY_URL: server.url,
      SIXSCOPE_KEYS_FILE: "/nowhere/keys.json",
    });
    await all([service], service.key, "OK");
    await service.says("the keys are in memory only");
  });

  scaleTest("stays in use if the keys in Valkey do not parse", async () => {
    await using server = await ValkeyServer.start();
    await using service = await startService({ SIXSCOPE_VALKEY_URL: server.url });
    await all([service], service.key, "OK");
    await server.cli("HSET", "sixscope:keys", "one", "nonsense");
    await service.says("sixscope:keys in Valkey does not parse");
    expect(await pingStatus(service, service.key)).toBe("OK");
  });
});

describe("keys import", () => {
  scaleTest("moves a file over, can be repeated, and names keys that clash", async () => {
    const folder = mkdtempSync(join(tmpdir(), "sixscope-import-"));
    const file = join(folder, "keys.json");
    const alone = { SIXSCOPE_KEYS_FILE: file };
    for (const name of ["one", "two", "three"]) await sixscopeHere(["keys", "add", name], alone);
    await sixscopeHere(["keys", "revoke", "three"], alone);
    const before = readFileSync(file, "utf8");
    await using server = await ValkeyServer.start();
    const keys = keysIn(server, alone);

    const place = `keys from ${file} to ${server.url}`;
    expect((await keys("import")).stdout).toBe(`Copied 3 of 3 ${place}.\n`);
    expect((await keys("import", file)).stdout).toBe(
      `Copied 0 of 3 ${place}; the others were in it already.\n`,
    );
    const records = (await server.cli("HVALS", "sixscope:keys")).split("\n");
    const stored = records.map((text): { created: string } => JSON.parse(text));
    const inOrder = stored.toSorted((a, b) => (a.created < b.created ? -1 : 1));
    expect(inOrder).toEqual(JSON.parse(before).keys);
    expect(readFileSync(file, "utf8")).toBe(before);

    const other = join(folder, "other.json");
    for (const name of ["two", "four", "three"]) {
      await sixscopeHere(["keys", "add", name], { SIXSCOPE_KEYS_FILE: other });
    }
    const clash = await keys("import", other);
    expect(clash.status).toBe(1);
    expect(clash.stderr).toMatch(/^sixscope: copied no key, .* have the names "two"; revoke/);
    await sixscopeHere(["keys", "revoke", "two"], { SIXSCOPE_KEYS_FILE: other });
    expect((await keys("import", other)).status).toBe(0);
    const list = (await keys("list")).stdout;
    for (const name of ["one", "two", "three", "four"])
      expect(list).toMatch(new RegExp(`^${name} +active`, "m"));
    rmSync(folder, { recursive: true });
  });

  scaleTest("says what is missing", async () => {
    await using server = await ValkeyServer.start();
    const nowhere = await keysIn(server)("import", "/nowhere/keys.json");
    expect([nowhere.status, nowhere.stderr]).toEqual([
      1,
      "sixscope: the keys file /nowhere/keys.json does not exist\n",
    ]);
    const folder = mkdtempSync(join(tmpdir(), "sixscope-import-"));
    writeFileSync(join(folder, "keys.json"), "nonsense");
    expect((await keysIn(server)("import", join(folder, "keys.json"))).stderr).toContain(
      "does not parse",
    );
    const alone = await sixscopeHere(["keys", "import"], {
      SIXSCOPE_KEYS_FILE: join(folder, "keys.json"),
    });
    expect(alone.stderr).toContain("set SIXSCOPE_VALKEY_URL");
    rmSync(folder, { recursive: true });
  });
});
