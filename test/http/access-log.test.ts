import { describe, expect, test } from "bun:test";
import { tryParseIp } from "../../src/addr/ip.ts";
import { createAccessLog } from "../../src/http/access-log.ts";
import type { KeyRecord } from "../../src/keys/key-file.ts";
import { createLog, type LogFormat, type LogLevel } from "../../src/util/log.ts";

const KEY = { name: "me", sha256: "0".repeat(64), created: "2026-01-01T00:00:00.000Z" };

interface Options {
  readonly format?: LogFormat;
  readonly clients?: boolean;
  readonly priorities?: boolean;
  readonly key?: KeyRecord;
  readonly level?: LogLevel;
  readonly isFree?: boolean;
}

function setUp(options: Options = {}) {
  const lines: string[] = [];
  const { format = "json", clients = true, priorities = false, key = null } = options;
  const { level = "info", isFree = false } = options;
  const log = createLog({ level, format, priorities, write: (line) => lines.push(line) });
  const accessLog = createAccessLog(log, clients);
  /** Logs a request with a status; `route` is null if no route has matched. */
  const answered = (status: number, route: string | null, init: RequestInit = {}, path = "/") => {
    const info = {
      request: new Request(`http://localhost${path}`, init),
      id: "id-1",
      key,
      caller: {
        address: tryParseIp("192.0.2.1"),
        secure: true,
        viaTrustedProxy: false,
        needsKey: true,
        untrustedForwarding: false,
      },
      headers: {},
      startMs: 0,
      allowSeconds: () => {},
      route,
      isFree,
      isPage: false,
    };
    accessLog.answered(info, new Response(null, { status }));
  };
  const get = () => answered(200, "/dns/:hostname");
  const getNothing = () => answered(404, null, {}, "/nothing");
  return { answered, get, getNothing, lines, log };
}

const parsed = (line: string | undefined) => JSON.parse(line ?? "null");

describe("a request", () => {
  test("is one line with id, client, method, route, status and milliseconds", () => {
    const { get, lines } = setUp();
    get();
    expect(lines).toHaveLength(1);
    expect(parsed(lines[0])).toMatchObject({
      level: "INFO",
      message: "request",
      id: "id-1",
      client: "192.0.2.1",
      method: "GET",
      route: "/dns/:hostname",
      status: 200,
      ms: expect.any(Number),
    });
  });

  test("to an unknown path shows the path", () => {
    const { getNothing, lines } = setUp();
    getNothing();
    expect(parsed(lines[0])).toMatchObject({ route: "/nothing", status: 404 });
  });

  test("with a key has the key's name, and no other request has one", () => {
    const withKey = setUp({ key: KEY });
    withKey.get();
    expect(parsed(withKey.lines[0])).toMatchObject({ key: "me" });
    expect(withKey.lines[0]).not.toContain(KEY.sha256);
    const without = setUp();
    without.get();
    expect(parsed(without.lines[0])).not.toHaveProperty("key");
  });

  test("says if the client did not wait for its answer", () => {
    const { answered, get, lines } = setUp();
    get();
    answered(500, "/dns/:hostname", { signal: AbortSignal.abort() });
    expect(parsed(lines[0])).toMatchObject({ status: 200 });
    expect(parsed(lines[1])).toMatchObject({ status: 499 });
  });

  test("can leave out the client", () => {
    const { get, lines } = setUp({ clients: false });
    get();
    expect(lines[0]).not.toContain("192.0.2.1");
  });

  test("is logfmt as text, with journald's priority on request", () => {
    const { get, lines } = setUp({ format: "text", priorities: true });
    get();
    expect(lines[0]).toMatch(/^<6>time=\S+ level=info .*msg=request .*status=200 ms=[\d.]+\n$/);
  });
});

test("a request without cost for its sender is logged at the level debug alone", () => {
  const usual = setUp({ isFree: true });
  usual.answered(429, "/dns/:hostname");
  expect(usual.lines).toEqual([]);
  const { answered, lines } = setUp({ isFree: true, level: "debug" });
  const path = `/${"x".repeat(10_000)}`;
  answered(204, null, { method: "OPTIONS" }, path);
  expect(parsed(lines[0])).toMatchObject({
    level: "DEBUG",
    status: 204,
    route: path.slice(0, 100),
  });
});

describe("a line", () => {
  test("cannot be broken or forged by the text that it quotes", () => {
    const { lines, log } = setUp({ format: "text" });
    log.warn('odd\nlevel=error msg="forged" {braces}', { path: 'a\r\n"b" \u001b[31m' });
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/^[\x20-\x7e]*\n$/);
    expect(lines[0]).toContain("{braces}");
  });

  test.each(["text", "json"] as const)(
    "does not reverse the text of a terminal, as %s",
    (format) => {
      const { lines, log } = setUp({ format });
      log.warn("odd \u202eword", { path: "é\u2028b" });
      expect(lines).toHaveLength(1);
      expect(lines[0]).toContain("odd \ufffdword");
      expect(lines[0]).toContain("é\ufffdb");
    },
  );
});
