/** The rate limit over real sockets: exact to the request, also if many come at once. */
import { describe, expect } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sixscopeHere } from "../lab/in-process.ts";
import { labMissing, testWith } from "../lab/lab.ts";
import { type Service, startService } from "../lab/service.ts";

const labTest = testWith(labMissing);

/** A trusted proxy lets a test speak for many clients. */
const BEHIND_PROXY = { SIXSCOPE_TRUSTED_PROXIES: "127.0.0.0/8,::1" };

/** The service from its source, with a clock that a file sets ahead. */
const AHEAD = [
  process.execPath,
  "--preload",
  join(import.meta.dir, "../lab/clock-ahead.ts"),
  join(import.meta.dir, "../../src/main.ts"),
];

async function get(service: Service, headers: Record<string, string> = {}) {
  const response = await fetch(`${service.url}/myip`, { headers });
  const body = (await response.json()) as {
    error?: { code: string; message: string; details: object };
  };
  const header = (name: string) => Number(response.headers.get(name));
  return {
    status: response.status,
    limit: header("x-ratelimit-limit"),
    remaining: header("x-ratelimit-remaining"),
    reset: header("x-ratelimit-reset"),
    retryAfter: header("retry-after"),
    error: body.error,
  };
}

const as = (address: string) => ({
  "X-Forwarded-For": address,
  "X-Forwarded-Proto": "https",
});

describe("a burst of 101 requests", () => {
  labTest("gets 200 a hundred times and then 429, with exact headers", async () => {
    await using service = await startService();
    const before = Math.floor(Date.now() / 1000);
    const answers = [];
    for (let request = 0; request < 101; request++) answers.push(await get(service));
    const after = Math.floor(Date.now() / 1000);
    const [first] = answers;
    const refused = answers.pop();
    expect(answers.map(({ status }) => status)).toEqual(Array(100).fill(200));
    expect(answers.map(({ remaining }) => remaining)).toEqual(
      Array.from({ length: 100 }, (_, index) => 99 - index),
    );
    expect(new Set(answers.map(({ limit, reset }) => `${limit} ${reset}`)).size).toBe(1);
    expect(first?.limit).toBe(100);
    expect(first?.reset).toBeGreaterThanOrEqual(before + 60);
    expect(first?.reset).toBeLessThanOrEqual(after + 60);
    const retryAfterSeconds = refused?.retryAfter ?? 0;
    expect(refused).toEqual({
      status: 429,
      limit: 100,
      remaining: 0,
      reset: first?.reset ?? 0,
      retryAfter: expect.any(Number),
      error: {
        code: "RATE_LIMITED",
        message: expect.any(String),
        details: { limit: 100, windowSeconds: 60, retryAfterSeconds },
      },
    });
    expect(retryAfterSeconds).toBeGreaterThan(60 - (after - before) - 2);
    expect(retryAfterSeconds).toBeLessThanOrEqual(60);
  });

  labTest("with a key is charged to the key, which has its own limit", async () => {
    await using service = await startService({ SIXSCOPE_RATE_KEY: "20" });
    const withKey = { "X-API-Key": service.key };
    const statuses = [];
    for (let request = 0; request < 21; request++) {
      statuses.push((await get(service, withKey)).status);
    }
    expect(statuses).toEqual([...Array(20).fill(200), 429]);
    expect(await get(service)).toMatchObject({ status: 200, limit: 100, remaining: 99 });
  });
});

describe("64 connections at once", () => {
  labTest("get exactly the limit, never one more", async () => {
    await using service = await startService();
    const statuses = await Promise.all(
      Array.from({ length: 64 }, async () => {
        const own = [];
        for (let request = 0; request < 5; request++) own.push((await get(service)).status);
        return own;
      }),
    );
    const count = (status: number) => statuses.flat().filter((own) => own === status).length;
    expect({ answered: count(200), refused: count(429) }).toEqual({ answered: 100, refused: 220 });
  });
});

describe("a request is charged to", () => {
  labTest("each address separately, also behind a trusted proxy", async () => {
    await using service = await startService({ ...BEHIND_PROXY, SIXSCOPE_RATE_ANONYMOUS: "2" });
    for (const address of ["192.0.2.1", "192.0.2.2", "2001:db8::1"]) {
      expect((await get(service, as(address))).remaining).toBe(1);
    }
  });

  labTest(
    "the /64 of an IPv6 address, so that a host gains nothing from its other addresses",
    async () => {
      await using service = await startService({ ...BEHIND_PROXY, SIXSCOPE_RATE_PREFIX: "5" });
      const statuses = [];
      for (let host = 1; host <= 6; host++) {
        statuses.push((await get(service, as(`2001:db8::${host}`))).status);
      }
      expect(statuses).toEqual([200, 200, 200, 200, 200, 429]);
      expect((await get(service, as("2001:db8:0:1::1"))).status).toBe(200);
    },
  );

  labTest("the address if the key is missing or wrong, also if the answer is 401", async () => {
    await using service = await startService({ SIXSCOPE_RATE_ANONYMOUS: "3" });
    const ping = async (headers: Record<string, string>) =>
      (await fetch(`${service.url}/ping/::1?count=1`, { headers })).status;
    expect(await ping({})).toBe(401);
    expect(await ping({ "X-API-Key": "sx_wrong" })).toBe(401);
    expect((await get(service)).remaining).toBe(0);
    expect(await ping({})).toBe(429);
    expect(await ping({ "X-API-Key": service.key })).toBe(200);
  });

  labTest("the address if the key is revoked", async () => {
    await using service = await startService();
    await sixscopeHere(["keys", "revoke", "test"], { SIXSCOPE_KEYS_FILE: service.keysFile });
    while ((await get(service, { "X-API-Key": service.key })).limit !== 100) await Bun.sleep(50);
  });
});

labTest("the bucket is full again in the second that X-RateLimit-Reset names", async () => {
  const folder = mkdtempSync(join(tmpdir(), "sixscope-clock-"));
  const clock = join(folder, "clock");
  writeFileSync(clock, "0");
  const settings = { SIXSCOPE_RATE_ANONYMOUS: "1", TEST_CLOCK_FILE: clock };
  await using service = await startService(settings, [], AHEAD);
  const { reset } = await get(service);
  expect((await get(service)).status).toBe(429);
  const aheadMs = reset * 1000 - Date.now() - 500;
  writeFileSync(clock, `${aheadMs}`);
  const now = () => Date.now() + aheadMs;
  let begunMs: number;
  let answer: Awaited<ReturnType<typeof get>>;
  do {
    begunMs = now();
    answer = await get(service);
    if (answer.status === 200) expect(now()).toBeGreaterThanOrEqual(reset * 1000);
  } while (answer.status === 429 && begunMs < reset * 1000);
  expect(answer).toMatchObject({ status: 200, remaining: 0 });
  rmSync(folder, { recursive: true });
});
