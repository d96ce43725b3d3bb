/** What the app makes of faults of its own, without a server. */
import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import { parseConfig } from "../../src/config/settings.ts";
import type { DnsClient } from "../../src/dns/client.ts";
import { type App, type AppDependencies, createApp } from "../../src/http/app.ts";
import type { Bindings } from "../../src/http/context.ts";
import { ProbeSlots } from "../../src/limits/probe-slots.ts";
import { RateLimiter } from "../../src/limits/rate-limit.ts";
import { createLog } from "../../src/util/log.ts";

const BINDINGS: Bindings = {
  connection: { kind: "tcp", peer: "127.0.0.1", encrypted: false },
  draining: false,
  allowSeconds: () => {},
};

/** An app whose resolvers fail in a way that nobody has foreseen, and its log. */
function startFaulty(): { readonly app: App; readonly lines: string[] } {
  const lines: string[] = [];
  const write = (line: string) => void lines.push(line);
  const log = createLog({ level: "warn", format: "json", priorities: false, write });
  const config = parseConfig({});
  const faulty = {
    query: () => Promise.reject(new Error("unforeseen")),
  } as unknown as DnsClient;
  const dependencies: AppDependencies = {
    config,
    log,
    keyring: { find: () => null },
    trustedProxies: config.trustedProxies,
    rateLimiter: new RateLimiter({ anonymous: 10_000, prefix: 0 }),
    defaultKeyLimit: 1000,
    resolvers: { resolver_a: faulty, resolver_b: faulty, resolver_c: faulty },
    icmp: { unavailable: "no socket" },
    probeSlots: new ProbeSlots(1),
  };
  return { app: createApp(dependencies), lines };
}

const ask = async (app: App, signal: AbortSignal | null = null) =>
  await app.fetch(new Request("http://localhost/api/v1/dns/example.test", { signal }), BINDINGS);

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

describe("a fault", () => {
  test("is logged with what the caller is not told", async () => {
    const { app, lines } = startFaulty();
    const response = await ask(app);
    const requestId = response.headers.get("x-request-id");
    expect(response.status).toBe(500);
    expect(await response.text()).not.toContain("unforeseen");
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain("unforeseen");
    expect(lines[0]).toContain(requestId ?? "?");
  });

  test("that nobody waits for is not", async () => {
    const { app, lines } = startFaulty();
    await ask(app, AbortSignal.abort());
    expect(lines).toEqual([]);
  });

  test("that comes in floods is a hundred lines, and one that counts the others", async () => {
    const { app, lines } = startFaulty();
    for (let request = 0; request < 250; request++) await ask(app);
    expect(lines).toHaveLength(100);
    jest.advanceTimersByTime(60_000);
    expect(lines).toHaveLength(101);
    expect(JSON.parse(lines[100] ?? "")).toMatchObject({ kind: "INTERNAL_ERROR", count: 150 });
  });
});
