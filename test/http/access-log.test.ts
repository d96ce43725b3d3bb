import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import { Hono } from "hono";
import { tryParseIp } from "../../src/addr/ip.ts";
import { accessLog } from "../../src/http/access-log.ts";
import type { AppEnv, Bindings } from "../../src/http/context.ts";
import type { KeyRecord } from "../../src/keys/key-file.ts";
import { createLog, type LogFormat } from "../../src/util/log.ts";

const BINDINGS: Bindings = {
  connection: { kind: "tcp", peer: "192.0.2.1", encrypted: false },
  draining: false,
  allowSeconds: () => {},
};

const KEY = { name: "me", sha256: "0".repeat(64), created: "2026-01-01T00:00:00.000Z" };

interface Options {
  readonly format?: LogFormat;
  readonly clients?: boolean;
  readonly priorities?: boolean;
  readonly key?: KeyRecord;
}

function setUp(options: Options = {}) {
  const lines: string[] = [];
  const { format = "json", clients = true, priorities = false, key = null } = options;
  const log = createLog({ level: "info", format, priorities, write: (line) => lines.push(line) });
  let ms = 0;
  const app = new Hono<AppEnv>();
  app.use(accessLog({ log, clients, nowMs: () => (ms += 1.25) }));
  app.use(async (context, next) => {
    context.set("facts", {
      requestId: "id-1",
      key,
      caller: {
        address: tryParseIp("192.0.2.1"),
        secure: true,
        viaTrustedProxy: false,
        untrustedForwarding: false,
      },
      headers: {},
    });
    await next();
  });
  app.get("/dns/:hostname", (context) => context.json({}));
  app.options("*", (context) => context.body(null, 204));
  const get = async (path: string, method = "GET", signal: AbortSignal | null = null) =>
    await app.request(path, { method, signal }, BINDINGS);
  return { get, lines, log };
}

const parsed = (line: string | undefined) => JSON.parse(line ?? "null");

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

describe("a request", () => {
  test("is one line with id, client, method, route, status and milliseconds", async () => {
    const { get, lines } = setUp();
    await get("/dns/example.test?type=A");
    expect(lines).toHaveLength(1);
    expect(parsed(lines[0])).toMatchObject({
      level: "INFO",
      message: "request",
      id: "id-1",
      client: "192.0.2.1",
      method: "GET",
      route: "/dns/:hostname",
      status: 200,
      ms: 1.25,
    });
  });

  test("to an unknown path shows the path", async () => {
    const { get, lines } = setUp();
    await get("/wp-login.php");
    expect(parsed(lines[0])).toMatchObject({ route: "/wp-login.php", status: 404 });
  });

  test("with a key has the key's name, and no other one has", async () => {
    const withKey = setUp({ key: KEY });
    await withKey.get("/dns/a");
    expect(parsed(withKey.lines[0])).toMatchObject({ key: "me" });
    expect(withKey.lines[0]).not.toContain(KEY.sha256);
    const without = setUp();
    await without.get("/dns/a");
    expect(parsed(without.lines[0])).not.toHaveProperty("key");
  });

  test("says where the client has not waited for its answer", async () => {
    const { get, lines } = setUp();
    await get("/dns/a");
    await get("/dns/a", "GET", AbortSignal.abort());
    expect(parsed(lines[0])).not.toHaveProperty("clientGone");
    expect(parsed(lines[1])).toMatchObject({ clientGone: true });
  });

  test("can leave out the client", async () => {
    const { get, lines } = setUp({ clients: false });
    await get("/dns/a");
    expect(lines[0]).not.toContain("192.0.2.1");
  });

  test("is logfmt as text, with journald's priority where that is wanted", async () => {
    const { get, lines } = setUp({ format: "text", priorities: true });
    await get("/dns/a");
    expect(lines[0]).toMatch(/^<6>time=\S+ level=info .*msg=request .*status=200 ms=1\.25\n$/);
  });
});

describe("a flood of refusals", () => {
  test("is a hundred lines, and one that counts the others", async () => {
    const { get, lines } = setUp();
    for (let request = 0; request < 250; request++) await get("/nothing");
    expect(lines).toHaveLength(100);
    jest.advanceTimersByTime(60_000);
    expect(lines).toHaveLength(101);
    expect(parsed(lines[100])).toMatchObject({ level: "WARN", kind: "status 404", count: 150 });
    await get("/nothing");
    expect(lines).toHaveLength(102);
  });

  test("of preflights, which cost nothing either, is counted as well, and paths are cut", async () => {
    const { get, lines } = setUp();
    const path = `/${"x".repeat(10_000)}`;
    for (let request = 0; request < 150; request++) await get(path, "OPTIONS");
    expect(lines).toHaveLength(100);
    expect(parsed(lines[0])).toMatchObject({ status: 204, route: path.slice(0, 100) });
  });

  test("does not silence what is answered", async () => {
    const { get, lines } = setUp();
    for (let request = 0; request < 150; request++) await get("/nothing");
    await get("/dns/a");
    expect(parsed(lines.at(-1))).toMatchObject({ status: 200 });
  });
});

describe("a line", () => {
  test("cannot be broken or forged by what it quotes", () => {
    const { lines, log } = setUp({ format: "text" });
    log.warn('odd\nlevel=error msg="forged" {braces}', { path: 'a\r\n"b" \u001b[31m' });
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/^[\x20-\x7e]*\n$/);
    expect(lines[0]).toContain("{braces}");
  });

  test.each(["text", "json"] as const)("turns no terminal's text around, as %s", (format) => {
    const { lines, log } = setUp({ format });
    log.warn("odd \u202eword", { path: "é\u2028b" });
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain("odd \ufffdword");
    expect(lines[0]).toContain("é\ufffdb");
  });
});
