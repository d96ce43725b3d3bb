/** How the app handles its own faults, and what it logs of requests, without a server. */
import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import { parseConfig } from "../../src/config/settings.ts";
import type { DnsClient } from "../../src/dns/client.ts";
import type { Bindings } from "../../src/http/middleware.ts";
import { ProbeSlots } from "../../src/limits/probe-slots.ts";
import { PAGES } from "../../src/page/respond.ts";
import { type App, type AppDependencies, createApp } from "../../src/server/app.ts";
import { createLog, type LogLevel } from "../../src/util/log.ts";

const BINDINGS: Bindings = {
  connection: { kind: "tcp", peer: "127.0.0.1", encrypted: false },
  route: null,
  draining: false,
  allowSeconds: () => {},
};

/** An app whose resolvers fail unexpectedly, and its log. */
function startFaulty(level: LogLevel = "warn"): { readonly app: App; readonly lines: string[] } {
  const lines: string[] = [];
  const write = (line: string) => void lines.push(line);
  const log = createLog({ level, format: "json", priorities: false, write });
  const config = parseConfig({ SIXSCOPE_RATE_ANONYMOUS: "10000" });
  const faulty = {
    query: () => Promise.reject(new Error("unforeseen")),
  } as unknown as DnsClient;
  const dependencies: AppDependencies = {
    config,
    log,
    keyring: { find: () => null, hold: () => () => {} },
    resolvers: { resolver_a: faulty, resolver_b: faulty, resolver_c: faulty },
    icmp: { unavailable: "no socket" },
    probeSlots: new ProbeSlots(1),
    pages: PAGES,
  };
  return { app: createApp(dependencies), lines };
}

const ask = async (app: App, init: RequestInit = {}, path = "/api/v1/dns/example.test") =>
  await app.fetch(new Request(`http://localhost${path}`, init), {
    ...BINDINGS,
    route:
      app.routes.find((route) => route !== "/" && path.startsWith(route.split(":")[0] ?? "")) ??
      null,
  });

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

  test("whose client has disconnected is not logged", async () => {
    const { app, lines } = startFaulty();
    await ask(app, { signal: AbortSignal.abort() });
    expect(lines).toEqual([]);
  });

  test("that floods takes a hundred lines, and one that counts the rest", async () => {
    const { app, lines } = startFaulty();
    for (let request = 0; request < 250; request++) await ask(app);
    expect(lines).toHaveLength(100);
    jest.advanceTimersByTime(60_000);
    expect(lines).toHaveLength(101);
    expect(JSON.parse(lines[100] ?? "")).toMatchObject({ kind: "INTERNAL_ERROR", count: 150 });
  });
});

describe("the line of a request", () => {
  // biome-ignore format: a table
  test.each<[string, string, RequestInit, object]>([
    ["names the pattern of its path", "/api/v1/validate?address=::1", {}, { route: "/api/v1/validate", status: 200 }],
    ["names the parameters of its path", "/api/v1/ping/::1", {}, { route: "/api/v1/ping/:target", status: 401 }],
    ["names the pattern for an unknown method", "/api/v1/myip", { method: "POST" }, { route: "/api/v1/myip", method: "POST", status: 404 }],
    ["names an unknown path", "/wp-login.php?x=1", {}, { route: "/wp-login.php", status: 404 }],
    ["names the path of a refused request", "/api/v1/myip", { headers: { "X-Real-IP": "::1" } }, { route: "/api/v1/myip", status: 400 }],
    ["names the path of a preflight", "/api/v1/myip", { method: "OPTIONS", headers: { "Access-Control-Request-Method": "GET" } }, { route: "/api/v1/myip", status: 204 }],
  ])("%s", async (_, path, init, expected) => {
    const { app, lines } = startFaulty("info");
    const response = await ask(app, init, path);
    expect(JSON.parse(lines.at(-1) ?? "")).toMatchObject({
      message: "request",
      id: response.headers.get("x-request-id"),
      client: "127.0.0.1",
      ...expected,
    });
  });
});
