/** Several instances, one limit: counted by a real server. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compile, hostTarget } from "../../scripts/build/compile.ts";
import { readSource } from "../../scripts/build/source.ts";
import { labMissing, testWith } from "../lab/lab.ts";
import { value } from "../lab/metrics.ts";
import { freePort } from "../lab/port.ts";
import { sixscope, startService } from "../lab/service.ts";
import { ValkeyServer, valkeyMissing } from "../lab/valkey.ts";
import { type Charged, flood, type Instances, send, startInstances } from "./instances.ts";

const missing = labMissing ?? valkeyMissing;
const scaleTest = testWith(missing);

const CONNECTIONS = 64;
const LIMITS = { anonymous: 300, prefix: 400, key: 500 };
const SETTINGS = {
  SIXSCOPE_RATE_ANONYMOUS: `${LIMITS.anonymous}`,
  SIXSCOPE_RATE_PREFIX: `${LIMITS.prefix}`,
  SIXSCOPE_RATE_KEY: `${LIMITS.key}`,
};

let server: ValkeyServer;
let instances: Instances;

beforeAll(async () => {
  if (missing !== null) return;
  server = await ValkeyServer.start();
  instances = await startInstances(server, SETTINGS);
});

afterAll(async () => {
  if (missing !== null) return;
  await instances[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

/**
 * No window grants more than its limit, and far more was sent than the first one allows. If this machine
 * was too busy for 50 ms, an instance may have decided alone.
 */
async function expectExact(responses: readonly Charged[], limit: number): Promise<void> {
  const windows = Map.groupBy(
    responses.filter(({ status }) => status === 200),
    ({ resetSeconds }) => resetSeconds,
  );
  expect(new Set(responses.map((response) => response.limit))).toEqual(new Set([limit]));
  const most = (await haveWaitedInVain()) ? 1.5 * limit : limit;
  for (const tokens of windows.values()) expect(tokens.length).toBeLessThanOrEqual(most);
  const [first = []] = windows.values();
  expect(first.length).toBeGreaterThanOrEqual(limit / 2);
}

/** True if an instance has ever had no answer in time. */
async function haveWaitedInVain(): Promise<boolean> {
  const name = "sixscope_valkey_call_duration_seconds_count";
  const counts = instances.services.map(async (service) => {
    const [late, failed] = ["given_up", "failed"].map((outcome) =>
      value(service, name, { outcome }),
    );
    return Number(await late) + Number(await failed);
  });
  return (await Promise.all(counts)).some((count) => count > 0);
}

describe("three instances under 64 connections each never grant one request more", () => {
  scaleTest("to an address", async () => {
    const responses = await flood(instances.services, CONNECTIONS, 8, (service) =>
      send(service, "192.0.2.1"),
    );
    await expectExact(responses, LIMITS.anonymous);
  });

  scaleTest("to a /64", async () => {
    const responses = await flood(instances.services, CONNECTIONS, 8, (service, connection) =>
      send(service, `2001:db8::${connection.toString(16)}`),
    );
    // Each address has more than enough, so all are refused by their /64.
    const tokens = responses.filter(({ status }) => status === 200);
    const ofPrefix = responses.filter(({ limit }) => limit === LIMITS.prefix);
    const windows = new Set(ofPrefix.map(({ resetSeconds }) => resetSeconds)).size;
    const most = (await haveWaitedInVain()) ? 1.5 * LIMITS.prefix : LIMITS.prefix;
    expect(tokens.length).toBeLessThanOrEqual(most * windows);
    expect(tokens.length).toBeGreaterThanOrEqual(LIMITS.prefix / 2);
  });

  scaleTest("to a key", async () => {
    const key = instances.services[0]?.key ?? "";
    const responses = await flood(instances.services, CONNECTIONS, 8, (service, connection) =>
      send(service, `198.51.100.${connection}`, key),
    );
    await expectExact(responses, LIMITS.key);
  });

  scaleTest("when they are the compiled executable", async () => {
    const folder = mkdtempSync(join(tmpdir(), "sixscope-scale-"));
    const executable = join(folder, "sixscope");
    await compile(hostTarget(), await readSource(), executable);
    const own = { ...SETTINGS, SIXSCOPE_VALKEY_PREFIX: "compiled:" };
    await using compiled = await startInstances(server, own, [executable]);
    const responses = await flood(compiled.services, CONNECTIONS, 4, (service) =>
      send(service, "192.0.2.1"),
    );
    await expectExact(responses, LIMITS.anonymous);
    rmSync(folder, { recursive: true });
  });
});

scaleTest("headers are those of one instance, whichever is asked", async () => {
  let responses: Charged[];
  let client = 0;
  do {
    // Again as another client, if this machine was too busy and one of them may have decided alone.
    client += 1;
    responses = [];
    for (const service of [...instances.services, ...instances.services]) {
      responses.push(await send(service, `198.51.100.${client}`));
    }
  } while ((await haveWaitedInVain()) && client < 3);
  expect(responses.map(({ remaining }) => remaining)).toEqual([299, 298, 297, 296, 295, 294]);
  expect(new Set(responses.map(({ resetSeconds }) => resetSeconds)).size).toBe(1);
});

scaleTest("all names have the prefix, and all but the keys expire", async () => {
  const names = (await server.cli("--raw", "KEYS", "*")).split("\n");
  const own = names.filter((name) => name.startsWith("sixscope:"));
  expect(names.filter((name) => !/^(sixscope|compiled):/.test(name))).toEqual([]);
  expect(own).toContain("sixscope:limit:address:0:0:ffff:c0000201");
  for (const name of own) {
    const seconds = Number(await server.cli("TTL", name));
    expect(seconds).toBeLessThanOrEqual(60);
    expect(seconds === -1).toBe(name.startsWith("sixscope:keys"));
  }
});

scaleTest("without the setting, nothing connects to any Valkey", async () => {
  let connections = 0;
  const listener = Bun.listen({
    hostname: "127.0.0.1",
    port: 6379,
    socket: { open: () => void connections++, data() {} },
  });
  const environment = {
    VALKEY_URL: "valkey://127.0.0.1:6379",
    SIXSCOPE_LISTEN: `127.0.0.1:${await freePort()}`,
  };
  await sixscope(["doctor"], environment);
  await using alone = await startService(environment);
  await send(alone, "192.0.2.1");
  listener.stop(true);
  expect(connections).toBe(0);
});
