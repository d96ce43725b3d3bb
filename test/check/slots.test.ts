/** The cost of a check: its slot, its price, the time until its first event, and what stays behind. */

import { heapStats } from "bun:jsc";
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Call, Services } from "../../src/api/endpoint.ts";
import { readParameters, sentTexts } from "../../src/api/parameters.ts";
import { parseConfig } from "../../src/config/settings.ts";
import type { DnsClient } from "../../src/dns/client.ts";
import { ProbeSlots } from "../../src/limits/probe-slots.ts";
import { type CheckResult, check } from "../../src/tools/check/endpoint.ts";
import { readEvents } from "../lab/events.ts";
import { labMissing, testWith } from "../lab/lab.ts";
import { type Service, startService } from "../lab/service.ts";
import { type CountingResolver, startResolver } from "./resolver.ts";

const labTest = testWith(labMissing);

let resolver: CountingResolver;
let service: Service;

beforeAll(async () => {
  if (labMissing !== null) return;
  resolver = await startResolver({}, true);
  service = await startService({
    SIXSCOPE_RESOLVER_A: resolver.server,
    SIXSCOPE_RESOLVER_B: resolver.server,
    SIXSCOPE_RESOLVER_C: resolver.server,
    SIXSCOPE_MAX_PROBES: "1",
  });
});

afterAll(async () => {
  if (labMissing !== null) return;
  await service[Symbol.asyncDispose]();
  resolver[Symbol.dispose]();
});

const ask = (path: string, init: RequestInit = {}) =>
  fetch(service.url + path, { ...init, headers: { ...init.headers, "X-API-Key": service.key } });

const stream = (path: string, signal: AbortSignal) =>
  ask(path, { signal, headers: { Accept: "text/event-stream" } });

labTest("a check tells its first event before a resolver answers", async () => {
  const client = new AbortController();
  const response = await stream("/check/www.example.com", client.signal);
  const { value } = await readEvents(response).next();
  expect(value).toEqual({ event: "begin", data: { name: "names" } });
  client.abort();
});

labTest("a check counts as twelve requests", async () => {
  const left = async (path: string) => {
    const response = await ask(path);
    await response.text();
    return Number(response.headers.get("X-RateLimit-Remaining"));
  };
  const before = await left("/validate?address=::1");
  // Refused by the policy, so that it ends at once.
  expect(before - (await left("/check/::1"))).toBe(12);
});

labTest("a check holds one slot, and gives it back when its client goes away", async () => {
  const client = new AbortController();
  const events = readEvents(await stream("/check/held.example.com", client.signal));
  await events.next();
  const ping = async () => (await ask("/ping/::1?count=1")).status;
  // Its own steps run within its slot; another run finds none.
  expect(await ping()).toBe(429);
  client.abort();
  while ((await ping()) !== 200);
});

/** A resolver that answers nothing until the question is given up. */
const deaf = {
  query: (name: string, type: string, { signal }: { signal?: AbortSignal } = {}) =>
    new Promise((resolve) => {
      const aborted = { kind: "aborted", question: { name, type }, attempts: [], queryTimeMs: 0 };
      signal?.addEventListener("abort", () => resolve(aborted), { once: true });
    }),
} as unknown as DnsClient;

function setUp() {
  const services: Services = {
    config: parseConfig({ SIXSCOPE_TARGETS_ALLOW: "::1" }),
    resolvers: { resolver_a: deaf, resolver_b: deaf, resolver_c: deaf },
    icmp: { unavailable: "socket: EPERM" },
    probeSlots: new ProbeSlots(1),
    querySlots: new ProbeSlots(9),
  };
  const run = (name: string, signal: AbortSignal, onEvent?: Call["onEvent"]) =>
    check.handle(
      readParameters(check.parameters, sentTexts({ name })),
      { signal, address: null, owner: "", allowSeconds() {}, ...(onEvent && { onEvent }) },
      services,
    ) as Promise<CheckResult>;
  return { services, run };
}

labTest("checks that have ended, or were given up, leave no signals and timers", async () => {
  const { services, run } = setUp();
  const kept = async (most: number) => {
    for (let count = 0; count < 100; count++) {
      const client = new AbortController();
      const given = run("www.example.com", client.signal);
      await Bun.sleep(0);
      client.abort();
      await expect(given).rejects.toMatchObject({ name: "AbortError" });
      const { details } = await run("::1", new AbortController().signal);
      expect(details.verdict.code).toBe("port-closed");
      expect(services.probeSlots.running).toBe(0);
    }
    let left = Infinity;
    // Some are collected after a while only; one for each check would be 200.
    for (let turn = 0; turn < 10 && left > most; turn++) {
      await Bun.sleep(5);
      Bun.gc(true);
      const { AbortSignal: signals = 0, Timeout: timers = 0 } = heapStats().objectTypeCounts;
      left = signals + timers;
    }
    return left;
  };
  const most = (await kept(100)) + 100;
  expect(await kept(most)).toBeLessThanOrEqual(most);
});

test("the first event comes within the turn in which a check gets its slot", async () => {
  const { run } = setUp();
  const client = new AbortController();
  const events: object[] = [];
  const given = run("www.example.com", client.signal, (name, data) => events.push({ name, data }));
  for (let turn = 0; turn < 3; turn++) await Promise.resolve();
  expect(events).toEqual([{ name: "begin", data: { name: "names" } }]);
  client.abort();
  await expect(given).rejects.toMatchObject({ name: "AbortError" });
});
