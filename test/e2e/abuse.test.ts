/** Other clients are served whatever scanners, floods and broken clients send. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { residentMiB } from "../../scripts/measure.ts";
import { generateApiKey } from "../../src/keys/api-key.ts";
import { sixscopeHere } from "../lab/in-process.ts";
import { type KernelChain, startKernelChain } from "../lab/kernel-chain.ts";
import { labMissing, testWith } from "../lab/lab.ts";
import { run, runIp } from "../lab/run.ts";
import { type Service, startService } from "../lab/service.ts";

const labTest = testWith(labMissing);

/** Connections that do nothing. */
const IDLE = 10_000;

/** Each connection takes a descriptor in this process and one in the service; both need some more. */
const crowdTest = testWith(labMissing, descriptorsMissing(IDLE + 500));

/** Why a process cannot open `needed` descriptors; null if it can. */
function descriptorsMissing(needed: number): string | null {
  const limits = readFileSync("/proc/self/limits", "utf8");
  const allowed = Number(/^Max open files +(\d+)/m.exec(limits)?.[1]);
  return allowed < needed ? `a process may have ${allowed} descriptors only` : null;
}

/** The first router on the path silently drops everything. */
const SILENT_TARGET = "2001:db8:dead::1";

let chain: KernelChain;
let service: Service;

beforeAll(async () => {
  if (labMissing !== null) return;
  chain = await startKernelChain({ routers: 1 });
  await chain.exec(1, ["ip", "-6", "route", "add", "blackhole", SILENT_TARGET]);
  await runIp([`route add ${SILENT_TARGET} via ${chain.hops[0]}`]);
  service = await startService({
    SIXSCOPE_RATE_ANONYMOUS: "10000000",
    SIXSCOPE_RATE_KEY: "10000000",
    SIXSCOPE_MAX_PROBES: "4",
    SIXSCOPE_PROBE_TIMEOUT_MS: "10000",
  });
});

afterAll(async () => {
  if (labMissing !== null) return;
  await service[Symbol.asyncDispose]();
  await chain.stop();
});

const { hostname, port } = { hostname: "127.0.0.1", port: () => Number(new URL(service.url).port) };

async function open(): Promise<Socket> {
  const socket = connect(port(), hostname);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  socket.once("connect", resolve).once("error", reject);
  await promise;
  return socket.on("error", () => {});
}

/** Sends bytes and returns what comes back until the server closes the connection or `isDone` returns true. */
async function send(text: string, isDone: (answer: string) => boolean): Promise<string> {
  const socket = await open();
  socket.write(text);
  let answer = "";
  try {
    for await (const chunk of socket) {
      answer += chunk;
      if (isDone(answer)) break;
    }
  } catch {
    // Who sends on and reads late finds the connection reset, and no answer.
  }
  socket.destroy();
  return answer;
}

/** Checks that other clients are served. */
async function expectHealthy(): Promise<void> {
  const response = await fetch(`${service.url}/validate?address=::1`);
  expect(response.status).toBe(200);
  expect(await response.json()).toMatchObject({ type: "Loopback" });
}

describe("clients that take their time", () => {
  labTest(
    "never finish a header: the connection is closed, and other clients do not wait",
    async () => {
      const socket = await open();
      socket.resume();
      const closed = new Promise((resolve) => socket.once("close", resolve));
      socket.write("GET /api/v1/myip HTTP/1.1\r\nHost: x\r\n");
      const drip = setInterval(() => socket.write("X-Slow: 1\r\n"), 1_000);
      await expectHealthy();
      await closed;
      clearInterval(drip);
      await expectHealthy();
    },
  );

  labTest("never finish a body: they are answered or closed", async () => {
    const answer = await send(
      "GET /api/v1/myip HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nbegun",
      (text) => text.includes("\r\n\r\n"),
    );
    expect(answer).toMatch(/^(HTTP\/1\.1 200 |$)/);
    await expectHealthy();
  });

  crowdTest(
    "keep ten thousand idle connections: others are served, and the memory is freed",
    async () => {
      await expectHealthy();
      const before = residentMiB(service.pid);
      const idle: Socket[] = [];
      while (idle.length < IDLE) {
        idle.push(...(await Promise.all(Array.from({ length: 500 }, open))));
      }
      await expectHealthy();
      const closed = Promise.all(
        idle.map((socket) => socket.closed || new Promise((done) => socket.once("close", done))),
      );
      for (const socket of idle) socket.resume().end();
      await closed;
      await expectHealthy();
      expect(residentMiB(service.pid) - before).toBeLessThan(60);
    },
  );
});

describe("a client that does not read its answers", () => {
  labTest("holds little memory of the kernel, and is given up", async () => {
    const socket = await open();
    socket.pause();
    const closed = new Promise((resolve) => socket.once("close", resolve));
    const request = "GET /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n";
    socket.write(request.repeat(1_000));
    const sendBuffer = async () =>
      /tb(\d+)/.exec(
        await run(["ss", "-tmnH", `sport = :${port()}`, `dport = :${socket.localPort}`]),
      );
    const buffer = await sendBuffer();
    // The kernel doubles what is asked for.
    expect(Number(buffer?.[1])).toBe(2 * 64 * 1024);
    while ((await sendBuffer()) !== null) await Bun.sleep(500);
    socket.resume();
    await closed;
    await expectHealthy();
  });
});

describe("one network", () => {
  labTest(
    "that opens thousands of connections loses the surplus, and another one is served",
    async () => {
      const [attacker, other] = ["2001:db8:66::1", "2001:db8:67::1"];
      for (const address of [attacker, other])
        await runIp([`addr add ${address}/128 dev lo nodad`]);
      await using crowded = await startService({
        SIXSCOPE_LISTEN: "[::]:0",
        SIXSCOPE_PLAIN_HTTP_FROM: "2001:db8::/32",
      });
      const crowdedPort = Number(new URL(crowded.url).port);
      const sockets: Socket[] = [];
      let lost = 0;
      for (let count = 0; count < 1_500; count++) {
        const socket = connect({ host: attacker, port: crowdedPort, localAddress: attacker });
        socket.on("error", () => {}).once("close", () => (lost += 1));
        socket.once("connect", () => socket.write("GET / HTTP/1.1\r\nX-Slow: "));
        socket.resume();
        sockets.push(socket);
      }
      const SURPLUS = 1_500 - 1_024;
      while (lost < SURPLUS) await Bun.sleep(50);
      const answer = await fetch(`http://[${other}]:${crowdedPort}/api/v1/myip`);
      expect(await answer.json()).toMatchObject({ ip: other });
      expect(lost).toBe(SURPLUS);
      expect(crowded.stderr()).toContain("closed connections over the bounds");
      for (const socket of sockets) socket.destroy();
    },
  );
});

describe("requests that are too large or malformed", () => {
  // biome-ignore format: a table
  labTest.each<[string, string, RegExp]>([
    ["a path of 20 KB", `GET /${"a".repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`, /^HTTP\/1\.1 (414|431) /],
    ["headers of 5 KB", `GET /api/v1/myip HTTP/1.1\r\nHost: x\r\nX-A: ${"a".repeat(2_500)}\r\nX-B: ${"b".repeat(2_500)}\r\n\r\n`, /^HTTP\/1\.1 431 /],
    ["a header of 20 KB", `GET /api/v1/myip HTTP/1.1\r\nHost: x\r\nX-A: ${"a".repeat(20_000)}\r\n\r\n`, /^HTTP\/1\.1 431 /],
    ["a thousand headers", `GET /api/v1/myip HTTP/1.1\r\nHost: x\r\n${"X-A: 1\r\n".repeat(1_000)}\r\n`, /^HTTP\/1\.1 (200|400|431) /],
    ["a body of a megabyte", `POST /api/v1/myip HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n${"a".repeat(1_000_000)}`, /^(HTTP\/1\.1 (404|413) |$)/],
    ["a body of 17 KB", `POST /api/v1/myip HTTP/1.1\r\nHost: x\r\nContent-Length: 17000\r\n\r\n${"a".repeat(17_000)}`, /^HTTP\/1\.1 413 /],
    ["a body with an announced length of a terabyte", "POST /api/v1/myip HTTP/1.1\r\nHost: x\r\nContent-Length: 1099511627776\r\n\r\n", /^HTTP\/1\.1 (400|404|413) /],
    ["two lengths", "GET /api/v1/myip HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", /^HTTP\/1\.1 400 /],
    ["a length and chunks", "GET /api/v1/myip HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", /^HTTP\/1\.1 400 /],
    ["no HTTP at all", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", /^(HTTP\/1\.1 400 |$)/],
    ["an address of 3 KB", `GET /api/v1/validate?address=${"1:".repeat(1_500)} HTTP/1.1\r\nHost: x\r\n\r\n`, /^HTTP\/1\.1 400 /],
    ["a name of 3 KB", `GET /api/v1/dns/${"a.".repeat(1_500)} HTTP/1.1\r\nHost: x\r\n\r\n`, /^HTTP\/1\.1 400 /],
  ])("%s", async (_, request, expected) => {
    const answer = await send(request, (text) => text.includes("\r\n\r\n"));
    expect(answer).toMatch(expected);
    expect(answer).not.toMatch(/node_modules|\/src\/|at .*\.ts|Bun v/);
    await expectHealthy();
  });

  labTest("fifty in one write are all answered in order", async () => {
    const count = 50;
    const requests = Array.from(
      { length: count },
      (_, index) => `GET /api/v1/validate?address=::${index + 1} HTTP/1.1\r\nHost: x\r\n\r\n`,
    );
    const bodies = (text: string) => [...text.matchAll(/"compressed":"::([0-9a-f.]+)"/g)];
    const answer = await send(requests.join(""), (text) => bodies(text).length === count);
    const expanded = [...answer.matchAll(/"expanded":"[0-9a-f:]+:([0-9a-f]{4})"/g)];
    expect(expanded.map(([, last]) => last)).toEqual(
      Array.from({ length: count }, (_, index) => (index + 1).toString().padStart(4, "0")),
    );
  });
});

describe("a client that resets its connection", () => {
  labTest("is not mistaken for a proxy: it cannot name another client", async () => {
    const loggedBefore = service.stderr().length;
    const request =
      "GET /api/v1/myip HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 203.0.113.7\r\nX-Forwarded-Proto: https\r\nX-Request-Id: spoofed\r\n\r\n";
    for (let round = 0; round < 10; round++) {
      const sockets = await Promise.all(Array.from({ length: 50 }, open));
      // The service sees the request and the reset at once.
      process.kill(service.pid, "SIGSTOP");
      for (const socket of sockets) {
        await new Promise((sent) => socket.write(request, sent));
        socket.resetAndDestroy();
      }
      process.kill(service.pid, "SIGCONT");
      await expectHealthy();
    }
    expect(service.stderr().slice(loggedBefore)).not.toMatch(/203\.0\.113\.7|spoofed/);
  });
});

describe("a client that keeps sending requests and reads nothing", () => {
  // biome-ignore format: a table
  labTest.each([
    ["preflights", "OPTIONS /api/v1/myip HTTP/1.1\r\nHost: x\r\nAccess-Control-Request-Method: GET\r\n\r\n"],
    ["requests that are refused", "GET /api/v1/myip HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n"],
  ])("%s: memory does not grow", async (_, request) => {
    await expectHealthy();
    const before = residentMiB(service.pid);
    const socket = await open();
    const batch = request.repeat(1_000);
    for (let sent = 0; sent < 300 && !socket.destroyed; sent++) {
      await new Promise((done) => socket.write(batch, done));
    }
    expect(residentMiB(service.pid) - before).toBeLessThan(60);
    socket.destroy();
    await expectHealthy();
  });
});

describe("twenty thousand wrong keys", () => {
  labTest("are refused without growth of memory", async () => {
    await expectHealthy();
    const before = residentMiB(service.pid);
    const statuses = (text: string) =>
      [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, code]) => code);
    for (let batch = 0; batch < 400; batch++) {
      const requests = Array.from({ length: 50 }, (_, at) => {
        const wrong = at % 2 === 0 ? generateApiKey() : "sx_wrong";
        return `GET /api/v1/ping/::1 HTTP/1.1\r\nHost: x\r\nX-API-Key: ${wrong}\r\n\r\n`;
      });
      const answer = await send(requests.join(""), (text) => statuses(text).length === 50);
      expect(statuses(answer)).toEqual(Array(50).fill("401"));
    }
    await expectHealthy();
    expect(residentMiB(service.pid) - before).toBeLessThan(40);
  });
});

describe("clients that vanish", () => {
  labTest("during a ping release their slot at once", async () => {
    const headers = { "X-API-Key": service.key };
    const status = async () => (await fetch(`${service.url}/ping/::1?count=1`, { headers })).status;
    for (let round = 0; round < 5; round++) {
      const client = new AbortController();
      const { signal } = client;
      const pings = Array.from({ length: 4 }, async () => {
        // Repeat it if the ping below took the slot.
        while (!signal.aborted) {
          const url = `${service.url}/ping/${SILENT_TARGET}?count=10`;
          await fetch(url, { headers, signal }).catch(() => null);
        }
      });
      while ((await status()) !== 429) await Bun.sleep(10);
      client.abort();
      await Promise.all(pings);
      while ((await status()) !== 200) await Bun.sleep(10);
    }
  });
});

describe("a key that takes all slots", () => {
  labTest("does not keep another key out", async () => {
    await using busy = await startService({ SIXSCOPE_MAX_PROBES: "4" });
    const { stdout } = await sixscopeHere(["keys", "add", "hog"], {
      SIXSCOPE_KEYS_FILE: busy.keysFile,
    });
    const hog = { "X-API-Key": stdout.split("\n")[0] ?? "" };
    const ping = async (target: string, headers: Record<string, string>) =>
      (await fetch(`${busy.url}/ping/${target}?count=1`, { headers })).status;
    while ((await ping("::1", hog)) === 401) await Bun.sleep(50);
    let isOver = false;
    const hogging = Array.from({ length: 12 }, async () => {
      while (!isOver) {
        await ping(SILENT_TARGET, hog);
        // One that is refused would ask again at once.
        await Bun.sleep(20);
      }
    });
    const statuses = [];
    for (let request = 0; request < 4; request++) {
      statuses.push(await ping("::1", { "X-API-Key": busy.key }));
    }
    isOver = true;
    await Promise.all(hogging);
    expect(statuses).toEqual([200, 200, 200, 200]);
  });
});

labTest("none of this was logged as an error", () => {
  const errors = service
    .stderr()
    .split("\n")
    .filter((line) => line.includes("level=error"));
  expect(errors).toEqual([]);
});
