/** Several instances, one limit: counted by a real server. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { labMissing, testWith } from "../lab/lab.ts";
import { until, value } from "../lab/metrics.ts";
import { freePort } from "../lab/port.ts";
import { sixscopeProgram } from "../lab/program.ts";
import { type Service, sixscope, startService } from "../lab/service.ts";
import { ValkeyServer, valkeyMissing } from "../lab/valkey.ts";
import { type Charged, flood, type Instances, send, startInstances } from "./instances.ts";

const missing = labMissing ?? valkeyMissing;
const scaleTest = testWith(missing);

const CONNECTIONS = 64;
const LIMITS = { anonymous: 150, prefix: 200, key: 250 };
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
 * Floods instances with requests over many connections each.
 *
 * @returns the responses, and how many times the limit may be granted: if this machine was too busy for 50 ms, each
 *   compiled instance may have granted its third alone
 */
async function floodAll(
  { services, areUp }: Instances,
  requests: number,
  sendOne: (service: Service, connection: number) => Promise<Charged>,
) {
  const before = await timesAlone(services);
  // One that took Valkey to be away before would grant its share without another sign.
  await areUp(true);
  const responses = await flood(services, CONNECTIONS, requests, sendOne);
  return { responses, part: (await timesAlone(services)) > before ? 2 : 1 };
}

/** No window grants more than its limit, and far more was sent than the first one allows. */
function expectExact(
  { responses, part }: Awaited<ReturnType<typeof floodAll>>,
  limit: number,
): void {
  const windows = Map.groupBy(
    responses.filter(({ status }) => status === 200),
    ({ resetSeconds }) => resetSeconds,
  );
  expect(new Set(responses.map((response) => response.limit))).toEqual(new Set([limit]));
  for (const tokens of windows.values()) expect(tokens.length).toBeLessThanOrEqual(part * limit);
  // An instance that decides alone shows the window that it knows of.
  const most = Math.max(...[...windows.values()].map((tokens) => tokens.length));
  expect(most).toBeGreaterThanOrEqual(limit / 2);
}

/** How often one of the instances may have decided alone: it had no answer in time, or took Valkey to be away. */
async function timesAlone(services: readonly Service[]): Promise<number> {
  const name = "sixscope_valkey_call_duration_seconds_count";
  const counts = services.map(async (service) => {
    const [late, failed] = ["given_up", "failed"].map((outcome) =>
      value(service, name, { outcome }),
    );
    const outages = service.stderr().split("Valkey does not answer").length - 1;
    return Number(await late) + Number(await failed) + outages;
  });
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
}

describe("three instances under 64 connections each never grant one request more", () => {
  scaleTest("to an address", async () => {
    const flooded = await floodAll(instances, 4, (service) => send(service, "192.0.2.1"));
    expectExact(flooded, LIMITS.anonymous);
  });

  scaleTest("to a /64", async () => {
    const { responses, part } = await floodAll(instances, 4, (service, connection) =>
      send(service, `2001:db8::${connection.toString(16)}`),
    );
    // Each address has more than enough, so all are refused by their /64.
    const tokens = responses.filter(({ status }) => status === 200);
    const ofPrefix = responses.filter(({ limit }) => limit === LIMITS.prefix);
    const windows = new Set(ofPrefix.map(({ resetSeconds }) => resetSeconds)).size;
    expect(tokens.length).toBeLessThanOrEqual(part * LIMITS.prefix * windows);
    expect(tokens.length).toBeGreaterThanOrEqual(LIMITS.prefix / 2);
  });

  scaleTest("to a key", async () => {
    const key = instances.services[0]?.key ?? "";
    const flooded = await floodAll(instances, 4, (service, connection) =>
      send(service, `198.51.100.${connection}`, key),
    );
    expectExact(flooded, LIMITS.key);
  });

  scaleTest("when they are the compiled executable", async () => {
    const own = { ...SETTINGS, SIXSCOPE_VALKEY_PREFIX: "compiled:" };
    await using compiled = await startInstances(server, own, await sixscopeProgram());
    const flooded = await floodAll(compiled, 2, (service) => send(service, "192.0.2.1"));
    expectExact(flooded, LIMITS.anonymous);
  });
});

scaleTest("headers are those of one instance, whichever is asked", async () => {
  const responses: Charged[] = [];
  for (const service of [...instances.services, ...instances.services]) {
    responses.push(await send(service, "203.0.113.1"));
  }
  expect(responses.map(({ remaining }) => remaining)).toEqual([149, 148, 147, 146, 145, 144]);
  expect(new Set(responses.map(({ resetSeconds }) => resetSeconds)).size).toBe(1);
});

scaleTest("all names have the prefix, and all but the keys expire", async () => {
  let names: readonly string[] = [];
  await until(async () => {
    // The buckets of the tests before may have expired, and this machine may be too busy for one request.
    await send(instances.services[0] as Service, "192.0.2.9");
    names = (await server.cli("--raw", "KEYS", "*")).split("\n");
    return names.includes("sixscope:used:address:192.0.2.9");
  });
  const own = names.filter((name) => name.startsWith("sixscope:"));
  expect(names.filter((name) => !/^(sixscope|compiled):/.test(name))).toEqual([]);
  expect(own.filter((name) => name.startsWith("sixscope:keys")).length).toBeGreaterThan(0);
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
