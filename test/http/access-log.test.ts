import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import { tryParseIp } from "../../src/addr/ip.ts";
import { createAccessLog } from "../../src/http/access-log.ts";
import type { KeyRecord } from "../../src/keys/key-file.ts";
import { createLog, type LogFormat } from "../../src/util/log.ts";

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
      isPage: false,
    };
    accessLog.answered(info, new Response(null, { status }));
  };
  const get = () => answered(200, "/dns/:hostname");
  const getNothing = () => answered(404, null, {}, "/nothing");
  return { answered, get, getNothing, lines, log };
}

const parsed = (line: string | undefined) => JSON.parse(line ?? "null");

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

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

describe("a flood of refusals", () => {
  test("takes a hundred lines, and one that counts the rest", () => {
    const { getNothing, lines } = setUp();
    for (let request = 0; request < 250; request++) getNothing();
    expect(lines).toHaveLength(100);
    jest.advanceTimersByTime(60_000);
    expect(lines).toHaveLength(101);
    expect(parsed(lines[100])).toMatchObject({ level: "WARN", kind: "status 404", count: 150 });
    getNothing();
    expect(lines).toHaveLength(102);
  });

  test("of preflights, which cost no quota either, is counted as well, and paths are cut", () => {
    const { answered, lines } = setUp();
    const path = `/${"x".repeat(10_000)}`;
    for (let request = 0; request < 150; request++) {
      answered(204, null, { method: "OPTIONS" }, path);
    }
    expect(lines).toHaveLength(100);
    expect(parsed(lines[0])).toMatchObject({ status: 204, route: path.slice(0, 100) });
  });

  test("does not silence what is answered", () => {
    const { get, getNothing, lines } = setUp();
    for (let request = 0; request < 150; request++) getNothing();
    get();
    expect(parsed(lines.at(-1))).toMatchObject({ status: 200 });
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
