/** What the edge believes of a request, where a running service would need a proxy or a clock. */
import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Hono } from "hono";
import { parsePrefix } from "../../src/addr/prefix.ts";
import type { Connection } from "../../src/http/client-address.ts";
import type { AppEnv, Bindings } from "../../src/http/context.ts";
import { ApiError } from "../../src/http/errors.ts";
import { edge } from "../../src/http/middleware.ts";
import { answerJson, answerText } from "../../src/http/respond.ts";
import { generateApiKey, hashApiKey } from "../../src/keys/api-key.ts";
import { writeKeyFile } from "../../src/keys/key-file.ts";
import { Keyring } from "../../src/keys/keyring.ts";
import { RateLimiter } from "../../src/limits/rate-limit.ts";
import { createLog } from "../../src/util/log.ts";

const log = createLog({ level: "error", format: "text", priorities: false, write: () => {} });

/** What comes through the edge, or is refused by it; the body of what comes through is the request's id. */
async function pass(
  connection: Connection,
  sent: Readonly<Record<string, string>> = {},
  draining = false,
): Promise<Response> {
  const app = new Hono<AppEnv>();
  app.use(
    edge({
      trustedProxies: { unix: true, prefixes: [parsePrefix("10.0.0.0/8")] },
      keyring: { find: () => null },
      rateLimiter: new RateLimiter({ anonymous: 100, prefix: 0 }),
      defaultKeyLimit: 100,
      log,
    }),
  );
  app.get("/", (context) => answerText(context, context.get("facts").requestId));
  app.onError((error, context) => {
    if (!(error instanceof ApiError)) throw error;
    return answerJson(context, error.body, error.status, error.headers);
  });
  const bindings: Bindings = { connection, draining, allowSeconds: () => {} };
  return await app.request("/", { headers: sent }, bindings);
}

const tcp = (peer: string, encrypted: boolean) => ({ kind: "tcp", peer, encrypted }) as const;
const UNIX = { kind: "unix" } as const;

describe("an answer", () => {
  const claim = (scheme: string) => ({
    "X-Forwarded-For": "198.51.100.1",
    "X-Forwarded-Proto": scheme,
  });
  // biome-ignore format: a table
  const rows: [string, Connection, Record<string, string>, boolean, number, string | null, string | null][] = [
    ["over HTTPS asks for HTTPS from now on", tcp("192.0.2.1", true), {}, false, 200, null, "max-age=31536000"],
    ["over plain HTTP from loopback does not", tcp("127.0.0.1", false), {}, false, 200, null, null],
    ["over plain HTTP behind a trusted proxy does not: that is the proxy's", tcp("10.0.0.1", false), claim("https"), false, 200, null, null],
    ["over a unix socket does not", UNIX, claim("https"), false, 200, null, null],
    ["to plain HTTP from elsewhere ends the connection", tcp("192.0.2.1", false), {}, false, 400, "close", null],
    ["to a proxy's client without HTTPS ends the connection", tcp("10.0.0.1", false), claim("http"), false, 400, "close", null],
    ["of a server that goes ends the connection", tcp("192.0.2.1", true), {}, true, 200, "close", "max-age=31536000"],
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

describe("a request id", () => {
  const ODD = /^[0-9a-f-]{36}$/;
  // biome-ignore format: a table
  test.each<[string, string, string, RegExp]>([
    ["of a trusted proxy is taken over", "10.0.0.1", "trace-1/span.2", /^trace-1\/span\.2$/],
    ["of anybody else is not", "192.0.2.1", "trace-1", ODD],
    ["that is long is not", "10.0.0.1", "x".repeat(129), ODD],
    ["with odd characters is not", "10.0.0.1", "a b\"c", ODD],
    ["that is empty is not", "10.0.0.1", "", ODD],
  ])("%s", async (_, peer, sent, expected) => {
    const response = await pass(tcp(peer, true), { "X-Request-Id": sent });
    expect(await response.text()).toMatch(expected);
  });
});

describe("a key of the file", () => {
  test("is found until the moment in which it expires, and not when it is revoked", () => {
    const folder = mkdtempSync(join(tmpdir(), "sixscope-keyring-"));
    const file = join(folder, "keys.json");
    const created = "2026-01-01T00:00:00.000Z";
    const [plain, expiring, revoked] = [generateApiKey(), generateApiKey(), generateApiKey()];
    writeKeyFile(file, [
      { name: "plain", sha256: hashApiKey(plain), created },
      {
        name: "expiring",
        sha256: hashApiKey(expiring),
        created,
        expires: "2027-01-01T00:00:00.000Z",
      },
      { name: "revoked", sha256: hashApiKey(revoked), created, revoked: created },
    ]);
    const keyring = new Keyring(file, log);
    const end = Date.parse("2027-01-01T00:00:00.000Z");
    const namesAt = (nowMs: number) =>
      [plain, expiring, revoked].map((key) => keyring.find(key, nowMs)?.name ?? null);
    expect(namesAt(end - 1)).toEqual(["plain", "expiring", null]);
    expect(namesAt(end)).toEqual(["plain", null, null]);
    expect([keyring.activeCount(end - 1), keyring.activeCount(end)]).toEqual([2, 1]);
    rmSync(folder, { recursive: true });
  });
});
