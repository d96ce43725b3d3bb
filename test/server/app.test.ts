/** How the app handles its own faults, and what it logs of requests, without a server. */
import { afterEach, beforeEach, describe, expect, jest, spyOn, test } from "bun:test";
import { ApiError } from "../../src/api/errors.ts";
import { parseConfig } from "../../src/config/settings.ts";
import type { DnsClient } from "../../src/dns/client.ts";
import { FairSlots } from "../../src/gate/fair-slots.ts";
import { Gate } from "../../src/gate/gate.ts";
import type { Bindings } from "../../src/http/middleware.ts";
import { respondPage } from "../../src/page/respond.ts";
import { type App, type AppDependencies, createApp } from "../../src/server/app.ts";
import { createLog, type LogLevel } from "../../src/util/log.ts";

const BINDINGS: Bindings = {
  connection: { peer: "127.0.0.1", encrypted: false },
  draining: false,
  allowSeconds: () => {},
};

/** An app whose resolvers fail unexpectedly, and its log. */
function startFaulty(
  level: LogLevel = "warn",
  rate = "10000",
  settings: Record<string, string> = {},
) {
  const lines: string[] = [];
  const write = (line: string) => void lines.push(line);
  const log = createLog({ level, format: "json", priorities: false, write });
  const config = parseConfig({ SIXSCOPE_RATE_ANONYMOUS: rate, ...settings });
  const faulty = {
    query: () => Promise.reject(new Error("unforeseen")),
  } as unknown as DnsClient;
  const querySlots = new FairSlots(1);
  const dependencies: AppDependencies = {
    config,
    log,
    keyring: { find: () => null, whileValid: () => Promise.reject() },
    resolvers: { resolver_a: faulty, resolver_b: faulty, resolver_c: faulty },
    icmp: { unavailable: "no socket" },
    gate: new Gate(),
    probeSlots: new FairSlots(1),
    querySlots,
    pages: respondPage,
  };
  return { app: createApp(dependencies), lines, querySlots };
}

const ask = async (app: App, init: RequestInit = {}, path = "/api/v1/dns/example.test") =>
  await app.fetch(new Request(`http://localhost${path}`, init), BINDINGS);

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

test("an error of the API makes no stack trace, which would cost as much as the rest of a refusal", () => {
  expect(new ApiError("UNAUTHORIZED", {})).not.toHaveProperty("stack");
});

describe("a path is that of the normalised URL:", () => {
  // biome-ignore format: a table
  test.each([
    ["/api/v1/dns/..", 404, null],
    ["/api/v1/dns/a\\b", 404, null],
    ["/api/v1/./validate?address=::1", 200, null],
    ["/api/v1/dns/../myip", 200, null],
    ["/api/v1/%2e%2e/v1/myip", 200, null],
    ["/api/v1/my%69p", 200, null],
    ["/api/v1/none", 404, null],
    ["/api//v1/myip", 404, null],
  ])("%s", async (path, status, allow) => {
    const { app } = startFaulty();
    const response = await ask(app, {}, path);
    expect([response.status, response.headers.get("allow")]).toEqual([status, allow]);
  });
});

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
});

describe("what a request counts as", () => {
  const told = async (app: App, path: string, init?: RequestInit) => {
    const { status, headers } = await ask(app, init, path);
    return [status, headers.get("x-ratelimit-limit"), headers.get("x-ratelimit-remaining")];
  };

  // biome-ignore format: a table
  test.each([
    ["a plain request", "/api/v1/dns/a.test", 500, "9"],
    ["all resolvers", "/api/v1/dns/a.test?resolver=all", 500, "7"],
    ["all resolvers, in other letters", "/api/v1/dns/a.test?%72esolver=%61ll", 500, "7"],
    ["all resolvers behind another parameter", "/api/v1/dns/a.test?x=1&type=A&resolver=all", 500, "7"],
    ["all resolvers at three locations", "/api/v1/dns/a.test?resolver=all&from=a,b,c", 200, "1"],
    ["a repeated parameter", "/api/v1/dns/a.test?resolver=all&resolver=all", 400, "7"],
    ["a parameter of another case", "/api/v1/dns/a.test?Resolver=all", 400, "9"],
    ["a value that is not valid", "/api/v1/dns/a.test?resolver=al", 400, "9"],
    ["a path that does not exist", "/api/v1/none?resolver=all", 404, "9"],
    ["paths without a key", "/api/v1/traceroute/a.test?paths=16", 401, "6"],
    ["the text of the address", "/ip?resolver=all", 200, "9"],
  ])("%s", async (_, path, status, remaining) => {
    const { app } = startFaulty("error", "10");
    expect(await told(app, path)).toEqual([status, "10", remaining]);
  });

  test("more than is left is refused and takes nothing, and less is still answered", async () => {
    const { app } = startFaulty("error", "4");
    const all = "/api/v1/dns/a.test?resolver=all";
    expect(await told(app, all)).toEqual([500, "4", "1"]);
    const refused = await ask(app, {}, all);
    expect(await refused.json()).toMatchObject({
      error: {
        code: "RATE_LIMITED",
        message: expect.stringContaining("has 1 left, and this request counts as 3"),
      },
    });
    expect(refused.headers.get("retry-after")).toMatch(/^\d+$/);
    expect(await told(app, all)).toEqual([429, "4", "1"]);
    expect(await told(app, "/api/v1/dns/a.test")).toEqual([500, "4", "0"]);
    const { error } = (await (await ask(app, {}, "/api/v1/dns/a.test")).json()) as { error: Error };
    expect(error.message).toContain("is used up");
  });

  test("more than the limit is an error that says so, because waiting does not help", async () => {
    const { app } = startFaulty("error", "2");
    const response = await ask(app, {}, "/api/v1/dns/a.test?type=A&resolver=all");
    expect([response.status, response.headers.get("retry-after")]).toEqual([400, null]);
    expect(await response.json()).toEqual({
      error: {
        code: "INVALID_PARAMETER",
        message: expect.stringMatching(
          /^The request counts as 3, and the limit is 2 in 60 seconds; ask for less/,
        ),
        details: { parameter: "query", value: "?type=A&resolver=all" },
      },
    });
    expect(await told(app, "/api/v1/dns/a.test")).toEqual([500, "2", "1"]);
  });

  // biome-ignore format: a table
  test.each([
    ["an IPv4 address", "", "192.0.2.1", "192.0.2.2", 2],
    ["a /64", "", "2001:db8:1::1", "2001:db8:1:0:ffff::2", 1],
    ["an address that needs no key", "2001:db8:2::/64", "2001:db8:2::1", "2001:db8:2::2", 2],
  ])("the client of a query slot is %s", async (_, keyless, first, second, count) => {
    const { app, querySlots } = startFaulty("error", "10", {
      SIXSCOPE_TRUSTED_PROXIES: "127.0.0.1",
      ...(keyless && { SIXSCOPE_KEYLESS_FROM: keyless }),
    });
    const taken = spyOn(querySlots, "tryTake");
    for (const client of [first, second]) {
      const headers = { "X-Forwarded-For": client, "X-Forwarded-Proto": "https" };
      await ask(app, { headers });
    }
    expect(taken).toHaveBeenCalledTimes(2);
    expect(new Set(taken.mock.calls.map(([client]) => client)).size).toBe(count);
  });

  test("preflights and plain HTTP from elsewhere cost nothing", async () => {
    const { app } = startFaulty("error", "10");
    const headers = { "Access-Control-Request-Method": "GET" };
    const all = "/api/v1/dns/a.test?resolver=all";
    expect(await told(app, all, { method: "OPTIONS", headers })).toEqual([204, "10", "10"]);
    expect(await told(app, all, { headers: { "X-Forwarded-For": "192.0.2.1" } })).toEqual([
      400,
      "10",
      "10",
    ]);
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
    const { app, lines } = startFaulty("debug");
    const response = await ask(app, init, path);
    expect(JSON.parse(lines.at(-1) ?? "")).toMatchObject({
      message: "request",
      id: response.headers.get("x-request-id"),
      client: "127.0.0.1",
      ...expected,
    });
  });
});
