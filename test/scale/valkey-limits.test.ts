/** Several instances, one limit: counted by a real server. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compile, hostTarget } from "../../scripts/build/compile.ts";
import { readSource } from "../../scripts/build/source.ts";
import { labMissing, testWith } from "../lab/lab.ts";
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
 * Each token of a window is granted once. A response of an instance that decided alone, because this
 * machine was too busy for 50 ms, says a third of the limit and is not one of them.
 */
function expectExact(responses: readonly Charged[], limit: number): void {
  const windows = Map.groupBy(
    responses.filter((response) => response.status === 200 && response.limit === limit),
    ({ resetSeconds }) => resetSeconds,
  );
  for (const tokens of windows.values()) {
    const left = tokens.map(({ remaining }) => remaining);
    expect(new Set(left).size).toBe(left.length);
    expect(left.length).toBeLessThanOrEqual(limit);
  }
  // Far more was sent than is allowed, so the first window was used up.
  const [first = []] = windows.values();
  const isCountedByAll = responses.every((response) => response.limit === limit);
  if (isCountedByAll) expect(first.length).toBe(limit);
  const alone = responses.filter((response) => response.limit !== limit);
  for (const { limit: part } of alone) expect(part).toBe(Math.floor(limit / 3));
}

describe("three instances under 64 connections each never grant one request more", () => {
  scaleTest("to an address", async () => {
    const responses = await flood(instances.services, CONNECTIONS, 8, (service) =>
      send(service, "192.0.2.1"),
    );
    expectExact(responses, LIMITS.anonymous);
  });

  scaleTest("to a /64", async () => {
    const responses = await flood(instances.services, CONNECTIONS, 8, (service, connection) =>
      send(service, `2001:db8::${connection.toString(16)}`),
    );
    // Each address has more than enough, so all are refused by their /64.
    const tokens = responses.filter(({ status }) => status === 200);
    const alone = tokens.filter(({ limit }) => ![LIMITS.anonymous, LIMITS.prefix].includes(limit));
    const ofPrefix = responses.filter(({ limit }) => limit === LIMITS.prefix);
    const windows = new Set(ofPrefix.map(({ resetSeconds }) => resetSeconds)).size;
    expect(tokens.length - alone.length).toBeLessThanOrEqual(LIMITS.prefix * windows);
    if (alone.length === 0) expect(tokens.length).toBeGreaterThanOrEqual(LIMITS.prefix);
  });

  scaleTest("to a key", async () => {
    const key = instances.services[0]?.key ?? "";
    const responses = await flood(instances.services, CONNECTIONS, 8, (service, connection) =>
      send(service, `198.51.100.${connection}`, key),
    );
    expectExact(responses, LIMITS.key);
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
    expectExact(responses, LIMITS.anonymous);
    rmSync(folder, { recursive: true });
  });
});

scaleTest("headers are those of one instance, whichever is asked", async () => {
  let responses: Charged[];
  let client = 0;
  do {
    // Again as another client, if this machine was too busy and one of them decided alone.
    client += 1;
    responses = [];
    for (const service of [...instances.services, ...instances.services]) {
      responses.push(await send(service, `198.51.100.${client}`));
    }
  } while (responses.some(({ limit }) => limit !== LIMITS.anonymous));
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
    expect(seconds === -1).toBe(name === "sixscope:keys");
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
