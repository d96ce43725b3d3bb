import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { C, loadLibc } from "../../src/platform/libc.ts";
import { AF_UNIX, encodeUnixAddress, SOCK } from "../../src/platform/linux.ts";
import type { App } from "../../src/server/app.ts";
import { listen } from "../../src/server/server.ts";
import { createLog } from "../../src/util/log.ts";

function log() {
  const lines: string[] = [];
  const write = (line: string) => void lines.push(line);
  return { lines, log: createLog({ level: "info", format: "text", priorities: false, write }) };
}

const LISTEN = [{ kind: "tcp", hostname: "127.0.0.1", port: 0 }] as const;

/** A listening app whose requests wait until the test answers them. */
async function startOpenEnded() {
  const arrived = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<Response>();
  const app: App = {
    fetch: () => {
      arrived.resolve();
      return answer.promise;
    },
  };
  const listening = await listen(app, LISTEN, null, log().log);
  const running = fetch(listening.urls[0] ?? "").then(
    (response) => response.text(),
    () => "closed",
  );
  await arrived.promise;
  return { listening, running, answer: () => answer.resolve(new Response("answered")) };
}

describe("stop", () => {
  test("waits for the answer to a running request, and refuses new ones", async () => {
    const { listening, running, answer } = await startOpenEnded();
    let isStopped = false;
    const stopped = listening.stop(60_000).then(() => {
      isStopped = true;
    });
    await Bun.sleep(100);
    expect(isStopped).toBe(false);
    await expect(fetch(listening.urls[0] ?? "")).rejects.toThrow();
    answer();
    expect(await running).toBe("answered");
    await stopped;
  });

  test("does not wait for the rest of a request that a client has begun", async () => {
    const app: App = { fetch: () => new Response("answered") };
    const listening = await listen(app, LISTEN, null, log().log);
    const { port } = new URL(listening.urls[0] ?? "");
    const closed = Promise.withResolvers<void>();
    const socket = { data() {}, close: () => closed.resolve() };
    const client = await Bun.connect({ hostname: "127.0.0.1", port: Number(port), socket });
    client.write("GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ");
    expect(await (await fetch(listening.urls[0] ?? "")).text()).toBe("answered");
    // Bun itself would wait for 12 s.
    const late = Bun.sleep(10_000).then(() => "late");
    expect(await Promise.race([listening.stop(60_000), late])).toBeUndefined();
    await closed.promise;
  });

  test("closes open connections after its grace", async () => {
    const { listening, running } = await startOpenEnded();
    await listening.stop(100);
    expect(await running).toBe("closed");
  });
});

describe("an address that cannot be listened on", () => {
  const app: App = { fetch: () => new Response() };

  test("a name that does not resolve is said to be one", async () => {
    const unknown = [{ kind: "tcp", hostname: "nowhere.invalid", port: 0 }] as const;
    const opened = listen(app, unknown, null, log().log);
    await expect(opened).rejects.toThrow(/nowhere\.invalid:0: the name does not resolve/);
  });

  test("one that another address of the settings includes is not only another process's", async () => {
    const { urls, stop } = await listen(app, LISTEN, null, log().log);
    const taken = [{ ...LISTEN[0], port: Number(new URL(urls[0] ?? "").port) }];
    const opened = listen(app, taken, null, log().log);
    await expect(opened).rejects.toThrow("or another address of the settings;");
    await stop(0);
  });
});

describe("an app that throws", () => {
  // biome-ignore format: a table
  test.each<[string, App["fetch"]]>([
    ["an Error", () => { throw new Error("secret"); }],
    ["a text", () => { throw "secret"; }],
    ["nothing", () => { throw undefined; }],
    ["a rejected promise", () => Promise.reject(new Error("secret"))],
  ])("%s: the response is the error of the contract, and the log has it", async (_, fetchOfApp) => {
    const { lines, log: ownLog } = log();
    const app: App = { fetch: fetchOfApp };
    const listening = await listen(app, LISTEN, null, ownLog);
    const response = await fetch(listening.urls[0] ?? "");
    await listening.stop(0);
    const requestId = response.headers.get("x-request-id");
    expect(response.status).toBe(500);
    expect(response.headers.get("access-control-allow-origin")).toBe("*");
    expect(await response.json()).toEqual({
      error: { code: "INTERNAL_ERROR", message: expect.any(String), details: { requestId } },
    });
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain(`requestId=${requestId}`);
  });
});

describe("an existing socket file", () => {
  const app: App = { fetch: () => new Response("ours") };

  /** Calls `check` with a path in a new folder and a function that listens there. */
  async function withPath(
    check: (path: string, open: () => ReturnType<typeof listen>) => Promise<void>,
  ) {
    const folder = mkdtempSync(join(tmpdir(), "sixscope-socket-"));
    const path = join(folder, "socket");
    try {
      await check(path, () => listen(app, [{ kind: "unix", path }], null, log().log));
    } finally {
      rmSync(folder, { recursive: true });
    }
  }

  test("is replaced if a killed process left it behind", async () => {
    await withPath(async (path, open) => {
      const child = Bun.spawnSync([
        process.execPath,
        "-e",
        `Bun.serve({ unix: ${JSON.stringify(path)}, fetch: () => new Response() }); process.kill(process.pid, "SIGKILL")`,
      ]);
      expect([child.signalCode, statSync(path).isSocket()]).toEqual(["SIGKILL", true]);
      const listening = await open();
      expect(await (await fetch("http://localhost/", { unix: path })).text()).toBe("ours");
      await listening.stop(0);
    });
  });

  test("is kept if connecting to it is not refused: another program uses it", async () => {
    await withPath(async (path, open) => {
      using _socket = datagramSocket(path);
      const { ino } = statSync(path);
      await expect(open()).rejects.toThrow("cannot listen");
      expect(statSync(path).ino).toBe(ino);
    });
  });
});

/** A socket that does not accept connections, but with another error than an abandoned one. */
function datagramSocket(path: string): Disposable {
  const libc = loadLibc({
    socket: { args: [C.int, C.int, C.int], returns: C.int },
    bind: { args: [C.int, C.pointer, C.uint], returns: C.int },
    close: { args: [C.int], returns: C.int },
  });
  const socket = libc.socket(AF_UNIX, SOCK.dgram, 0);
  const address = encodeUnixAddress(path);
  if (libc.bind(socket, address, address.length) !== 0) throw new Error(`cannot bind ${path}`);
  return { [Symbol.dispose]: () => void libc.close(socket) };
}
