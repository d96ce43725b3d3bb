/** What the edge believes of a request, where a running service would need a proxy or a clock. */
import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Hono } from "hono";
import { parsePrefix } from "../../src/addr/prefix.ts";
import { prefixList } from "../../src/addr/prefix-table.ts";
import { generateApiKey, hashApiKey } from "../../src/http/api-key.ts";
import { edge } from "../../src/http/edge.ts";
import type { AppEnv, Bindings } from "../../src/http/environment.ts";
import { writeKeyFile } from "../../src/http/key-file.ts";
import { Keyring } from "../../src/http/keyring.ts";
import { RateLimiter } from "../../src/http/rate-limit.ts";
import { createLog } from "../../src/log.ts";

const log = createLog({ level: "error", format: "text", priorities: false, write: () => {} });

async function idOf(peer: string, sent: string): Promise<string | undefined> {
  const app = new Hono<AppEnv>();
  app.use(
    edge({
      trustedProxies: { unix: true, prefixes: prefixList([parsePrefix("10.0.0.0/8")]) },
      keyring: { find: () => null },
      rateLimiter: new RateLimiter({ anonymous: 100, prefix: 0 }),
      defaultKeyLimit: 100,
      log,
    }),
  );
  app.get("/", (context) => context.text(context.get("facts").requestId));
  const bindings: Bindings = {
    connection: { kind: "tcp", peer, encrypted: true },
    draining: false,
    allowSeconds: () => {},
  };
  const response = await app.request("/", { headers: { "X-Request-Id": sent } }, bindings);
  return await response.text();
}

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
    expect(await idOf(peer, sent)).toMatch(expected);
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
