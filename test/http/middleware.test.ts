/** The middleware in cases for which a running service would need a proxy, a certificate or a stop. */
import { describe, expect, test } from "bun:test";
import { Hono } from "hono";
import type { ApiError } from "../../src/api/errors.ts";
import { parseConfig } from "../../src/config/settings.ts";
import type { Connection } from "../../src/http/client-address.ts";
import { createMiddleware, type Env } from "../../src/http/middleware.ts";
import { respond, respondError } from "../../src/http/respond.ts";
import { createLog } from "../../src/util/log.ts";

const log = createLog({ level: "error", format: "text", priorities: false, write: () => {} });

function middleware(rate = "100") {
  const config = parseConfig({
    SIXSCOPE_TRUSTED_PROXIES: "unix,10.0.0.0/8",
    SIXSCOPE_RATE_ANONYMOUS: rate,
  });
  return createMiddleware({ config, keyring: { find: () => null }, log });
}

/** The response to a request; the body of one that is admitted is its id. */
async function pass(
  connection: Connection,
  sent: Readonly<Record<string, string>> = {},
  draining = false,
  admit = middleware(),
): Promise<Response> {
  const app = new Hono<Env>();
  app.onError((error, context) => respondError(context.get("info"), error as ApiError));
  app.all("*", async (context) => {
    const preflight = await admit({ patterns: [] }, context);
    const info = context.get("info");
    return preflight ?? respond(info, info.id);
  });
  const method = "Access-Control-Request-Method" in sent ? "OPTIONS" : "GET";
  const request = new Request("http://localhost/", { method, headers: sent });
  return await app.fetch(request, { connection, draining, allowSeconds: () => {} });
}

const tcp = (peer: string, encrypted: boolean) => ({ peer, encrypted });
const UNIX = { peer: null, encrypted: false };
const claim = (scheme: string) => ({
  "X-Forwarded-For": "198.51.100.1",
  "X-Forwarded-Proto": scheme,
});

describe("an answer", () => {
  // biome-ignore format: a table
  const rows: [string, Connection, Record<string, string>, boolean, number, string | null, string | null][] = [
    ["over HTTPS asks for HTTPS from now on", tcp("192.0.2.1", true), {}, false, 200, null, "max-age=31536000"],
    ["over plain HTTP from loopback does not", tcp("127.0.0.1", false), {}, false, 200, null, null],
    ["over plain HTTP behind a trusted proxy does not: that is the proxy's", tcp("10.0.0.1", false), claim("https"), false, 200, null, null],
    ["over a unix socket does not", UNIX, claim("https"), false, 200, null, null],
    ["of a server that stops ends the connection", tcp("192.0.2.1", true), {}, true, 200, "close", "max-age=31536000"],
  ];
  test.each(rows)("%s", async (_, connection, sent, draining, status, closes, security) => {
    const answer = await pass(connection, sent, draining);
    const { headers } = answer;
    expect([
      answer.status,
      headers.get("connection"),
      headers.get("strict-transport-security"),
    ]).toEqual([status, closes, security]);
  });
});

describe("a few answers that cost no quota end their connection, most leave it open:", () => {
  const preflight = { "Access-Control-Request-Method": "GET" };
  // biome-ignore format: a table
  test.each<[string, Connection, Record<string, string>, number]>([
    ["preflights", tcp("192.0.2.1", true), preflight, 204],
    ["plain HTTP from elsewhere", tcp("192.0.2.1", false), {}, 400],
    ["a proxy's client without HTTPS", tcp("10.0.0.1", false), claim("http"), 400],
    ["clients over their limit", tcp("192.0.2.1", true), {}, 429],
  ])("%s", async (_, connection, sent, status) => {
  const admit = middleware("1");
  await pass(tcp("192.0.2.1", true), {}, false, admit);
  const asked = Array.from({ length: 1_000 }, () => pass(connection, sent, false, admit));
  const answers = await Promise.all(asked);
  expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([status]));
  const closed = answers.filter(({ headers }) => headers.get("connection") === "close").length;
  expect(closed).toBeGreaterThan(0);
  expect(closed).toBeLessThan(500);
  });
});

describe("a request id", () => {
  const OWN = /^[0-9a-f-]{36}$/;
  // biome-ignore format: a table
  test.each<[string, string, string, RegExp]>([
    ["of a trusted proxy is accepted", "10.0.0.1", "trace-1/span.2", /^trace-1\/span\.2$/],
    ["of any other peer is not", "192.0.2.1", "trace-1", OWN],
    ["that is long is not", "10.0.0.1", "x".repeat(129), OWN],
    ["with odd characters is not", "10.0.0.1", "a b\"c", OWN],
    ["that is empty is not", "10.0.0.1", "", OWN],
  ])("%s", async (_, peer, sent, expected) => {
    const response = await pass(tcp(peer, true), { "X-Request-Id": sent });
    expect(await response.text()).toMatch(expected);
  });
});
