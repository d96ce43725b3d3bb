/** The scripts that Valkey runs, beside what an instance alone does. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { z } from "zod";
import { tryParseIp } from "../../src/addr/ip.ts";
import type { Ipv6Address } from "../../src/addr/ipv6.ts";
import { namesBelow } from "../../src/config/valkey-address.ts";
import { TargetLimit } from "../../src/icmp/prober/target-limit.ts";
import { createRateLimiter, type RateLimitSubject } from "../../src/limits/token-bucket.ts";
import { createLog } from "../../src/util/log.ts";
import { type Client, createConnection, script } from "../../src/valkey/connection.ts";
import { createSharedLimiter, TAKE } from "../../src/valkey/limiter.ts";
import { createTargetLeases } from "../../src/valkey/target-leases.ts";
import { createValkey } from "../../src/valkey/valkey.ts";
import { VirtualClock } from "../icmp/fake.ts";
import { labMissing, testWith } from "../lab/lab.ts";
import { ValkeyServer, valkeyMissing } from "../lab/valkey.ts";
import { takeFrom } from "./simulation.ts";

const missing = labMissing ?? valkeyMissing;
const scaleTest = testWith(missing);
const LOG = createLog({ level: "error", format: "text", priorities: false, write: () => {} });

let server: ValkeyServer;

beforeAll(async () => {
  if (missing === null) server = await ValkeyServer.start();
});

afterAll(async () => {
  if (missing === null) await server[Symbol.asyncDispose]();
});

const SUBJECTS: readonly RateLimitSubject[] = [
  ...["2001:db8::1", "2001:db8::2", "2001:db8:0:1::1", "192.0.2.1"].map(
    (text) => ({ kind: "address", address: tryParseIp(text) }) as const,
  ),
  { kind: "address", address: null },
  { kind: "key", sha256: "0123456789abcdef".repeat(4), limit: 4 },
];

/** Time as the script is told it, and a life that does not end during the test. */
const TIMED = script(
  TAKE.source
    .replace("redis.call('TIME')[1]", "ARGV[#ARGV]")
    .replace("from + window - now", "1000"),
  () => z.array(z.int()),
);

scaleTest("Valkey leases what its model does, whatever it is told", async () => {
  const connection = createConnection(server.url);
  let run = 0;
  const nowSeconds = 1_800_000_000;
  const count = fc.nat(40);
  const call = fc.record({
    seconds: fc.oneof({ weight: 8, arbitrary: fc.nat(3) }, fc.nat(70)),
    name: fc.constantFrom("a", "b", "c"),
    told: fc.tuple(count, count, count, count),
    startedAgo: fc.nat(90),
    wanted: fc.tuple(fc.nat(6), fc.nat(10)),
    parts: fc.constantFrom(2, 6),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(call, { minLength: 1, maxLength: 30 }), async (calls) => {
      const keys = [`model-${run++}`, `model-${run++}`];
      const model: Parameters<typeof takeFrom>[0] = new Map();
      let now = nowSeconds;
      for (const { seconds, name, told, startedAgo, wanted, parts } of calls) {
        now += seconds;
        const each = [name, ...told, now - startedAgo, ...wanted];
        const args = [60, parts, ...each, ...each, now];
        const times = [60, parts, now] as const;
        const expected = keys.flatMap((key) => takeFrom(model, key, each, times));
        expect(await connection.run(TIMED, keys, args, 60_000)).toEqual([now, ...expected]);
      }
    }),
    { numRuns: 100 },
  );
  connection.close();
});

scaleTest("an instance that stops gives back what it has not used", async () => {
  const address = { url: server.url, prefix: "leaving:" };
  const opened = async () => {
    const valkey = createValkey(address, LOG);
    await valkey.start(async () => {});
    const limiter = createSharedLimiter(
      createRateLimiter({ anonymous: 100, prefix: 1000 }, valkey.nowMs),
      valkey,
    );
    const take = async () => (await limiter.take(SUBJECTS[0] as RateLimitSubject, 1)).remaining;
    return { valkey, limiter, take };
  };
  const [one, two] = [await opened(), await opened()];
  for (let count = 0; count < 30; count++) await one.take();
  const unused = [...one.limiter.unused()];
  expect(unused.length).toBe(2);
  for (const [, , held, used] of unused) expect([used, held > used]).toEqual([30, true]);
  const bucket = "leaving:limit:address:20010db8:0:0:1";
  expect(Number(await server.cli("HGET", bucket, "taken"))).toBeGreaterThan(30);
  await one.valkey.leave(unused);
  expect(await server.cli("HGET", bucket, "taken")).toBe("30");
  expect(await server.cli("ZCARD", "leaving:instances")).toBe("1");
  expect(await two.take()).toBe(69);
  // Again, from someone who does not know it yet: nothing is given back twice.
  await one.valkey.start(async () => {});
  await one.valkey.leave(unused);
  expect(await server.cli("HGET", bucket, "taken")).toBe("31");
  await two.valkey.leave(two.limiter.unused());
});

describe("probes to a /64", () => {
  const TARGET = tryParseIp("2001:db8:ffff::1") as Ipv6Address;
  const SOURCE = tryParseIp("2001:db8::1") as Ipv6Address;
  const PROBE = { target: TARGET, source: SOURCE, hopLimit: 64 };

  scaleTest(
    "of three instances are at most 1,000 in any second, and one may send more than its third",
    async () => {
      const valkeys = [1, 2, 3].map(() =>
        createValkey({ url: server.url, prefix: "targets:" }, LOG),
      );
      for (const valkey of valkeys) await valkey.start(async () => {});
      // The first ones count the last one at their next beat.
      while (valkeys.some(({ instances }) => instances < 3)) await Bun.sleep(20);
      const limits = valkeys.map((valkey) => new TargetLimit(createTargetLeases(valkey)));
      const send = async (senders: readonly TargetLimit[], ms: number) => {
        const sentMs: number[] = [];
        const startMs = performance.now();
        while (performance.now() < startMs + ms) {
          for (const limit of senders) {
            for (let tries = 0; tries < 40; tries++) {
              const nowMs = performance.now();
              if (limit.take(PROBE, nowMs) === 0) sentMs.push(nowMs);
            }
          }
          await Bun.sleep(2);
        }
        return mostInASecond(sentMs);
      };
      expect(await send(limits, 2500)).toBeLessThanOrEqual(1000);
      // The leases of the others have expired.
      await Bun.sleep(1500);
      const alone = await send(limits.slice(0, 1), 2500);
      expect(alone).toBeGreaterThan(333);
      expect(alone).toBeLessThanOrEqual(1000);
      for (const valkey of valkeys) await valkey.leave([]);
    },
  );

  test.each([
    [4, 125],
    [1000, 1],
  ])(
    "are no more than the part of each of %i instances while Valkey is away",
    (instances, part) => {
      const ask = () => Promise.resolve(null);
      const valkey = { instances, names: namesBelow(""), ask };
      const limit = new TargetLimit(createTargetLeases(valkey));
      const taken = Array.from({ length: 2000 }, () => limit.take(PROBE, 0));
      expect(taken.filter((waitMs) => waitMs === 0).length).toBe(part);
    },
  );
});

describe("what answers otherwise than Valkey", () => {
  const NUMBERS = [1, 2, 3];
  const ODD = [
    1,
    "OK",
    [],
    null,
    ["1", "2", "3", "4"],
    [[], "x", {}, null],
    {},
    true,
    [Number.NaN, 1, null],
    [1e300, 1, null],
    [-1, 1, null],
    [1, -1, null],
    [1, 0, null],
    [1, 1e9, null],
    [1, 1.5, null],
    [1, 1, 7],
    [1, 1, "x".repeat(65)],
    [[1, 1, null]],
  ];
  /** Buckets that would make a client unlimited, or lock it out beyond its window. */
  const BUCKETS = [
    [100, 101, 1, 0],
    [100, 40, 1, 0],
    [100, 100, -1, 0],
    [100, 100, 2 ** 32, 0],
    [100, 100, 1, -1],
    [100, Number.NaN, 1, 0],
    [1e300, 1e300, 1, 0],
    [100, "100", 1, 0],
    [100, null, 1, 0],
    [100, [100], 1, 0],
    [100, 100, 1],
    [100, 100, 1, 0, 100],
  ];
  const rows = (...replies: unknown[]) => replies.map((reply) => ({ reply }));
  const [SUBJECT] = SUBJECTS as [RateLimitSubject];

  /** A connection to a Valkey that counts two instances and then replies so. */
  const opened = async (reply: unknown, isFirst: boolean) => {
    const replies: unknown[] = isFirst
      ? []
      : [
          [0, 2, null],
          [0, 2, null],
        ];
    const send = (async () => (replies.length > 0 ? replies.shift() : reply)) as Client["send"];
    const clock = new VirtualClock();
    const connect = () => createConnection("", clock, { send, close() {} });
    const valkey = createValkey({ url: "valkey://[::1]", prefix: "" }, LOG, clock, connect);
    await valkey.start(async () => {});
    return valkey;
  };

  test.each(rows(...ODD, ...BUCKETS, NUMBERS))(
    "has no part in a limit: $reply",
    async ({ reply }) => {
      const valkey = await opened(reply, false);
      expect([valkey.isUp, valkey.instances]).toEqual([true, 2]);
      const local = createRateLimiter({ anonymous: 4, prefix: 0 }, () => 100_000);
      const limiter = createSharedLimiter(local, valkey);
      const states = [];
      for (let count = 0; count < 3; count++) states.push(await limiter.take(SUBJECT, 1));
      expect(states.map(({ allowed, limit }) => [allowed, limit])).toEqual([
        [true, 4],
        [true, 4],
        [false, 4],
      ]);
      await valkey.leave([]);
    },
  );

  test.each(rows(...ODD))("is down: $reply", async ({ reply }) => {
    const valkey = await opened(reply, true);
    expect(valkey.isUp).toBe(false);
    expect(valkey.nowMs()).toBeGreaterThan(0);
    await valkey.leave([]);
  });

  test.each(rows(...ODD, ...BUCKETS, 2, -1))("grants no lease: $reply", async ({ reply }) => {
    const valkey = await opened(reply === 1 ? 2 : reply, false);
    const limit = new TargetLimit(createTargetLeases(valkey));
    const target = tryParseIp("2001:db8:ffff::1") as Ipv6Address;
    const source = tryParseIp("2001:db8::1") as Ipv6Address;
    const taken = Array.from({ length: 2000 }, () =>
      limit.take({ target, source, hopLimit: 64 }, 0),
    );
    for (let turn = 0; turn < 50; turn++) await Promise.resolve();
    taken.push(
      ...Array.from({ length: 2000 }, () => limit.take({ target, source, hopLimit: 64 }, 1)),
    );
    expect(taken.filter((waitMs) => waitMs === 0).length).toBe(250);
    expect(valkey.isUp).toBe(false);
    await valkey.leave([]);
  });
});

describe("values in Valkey that sixscope did not write", () => {
  scaleTest.each([
    ["more digits than a number has", "9".repeat(400)],
    ["a negative count", "-5"],
    ["text", "x"],
  ])("%s in a bucket makes no client unlimited", async (_, used) => {
    const valkey = createValkey({ url: server.url, prefix: `odd-${used.length}:` }, LOG);
    await valkey.start(async () => {});
    const nowMs = valkey.nowMs;
    const limiter = createSharedLimiter(
      createRateLimiter({ anonymous: 3, prefix: 0 }, nowMs),
      valkey,
    );
    const [subject] = SUBJECTS as [RateLimitSubject];
    await limiter.take(subject, 1);
    const [key = ""] = (await server.cli("KEYS", `odd-${used.length}:limit:*`)).split("\n");
    const [name = ""] = [...limiter.unused()].map(([, own]) => own);
    const start = `${Math.floor(nowMs() / 1000)}`;
    const odd = ["taken", used, "unnamed", used, "start", start, ...(name ? [name, used] : [])];
    await server.cli("HSET", key, ...odd);
    const states = [];
    for (let count = 0; count < 6; count++) states.push(await limiter.take(subject, 1));
    expect(states.filter(({ allowed }) => allowed).length).toBeLessThanOrEqual(3);
    expect(states.at(-1)?.allowed).toBe(false);
    // Nor does one client's bucket make all others count alone.
    expect(valkey.isUp).toBe(true);
    await valkey.leave([]);
  });
});

test("instances that Valkey has forgotten count until they had the time to say that they are there", async () => {
  const clock = new VirtualClock();
  const replies: (readonly [number, number, null] | null)[] = [];
  const counts = (...instances: number[]) =>
    replies.push(...instances.map((count) => [0, count, null] as const));
  const client: Client = {
    send: (async () => {
      const reply = replies.shift();
      if (reply) return reply;
      throw new Error("Connection closed");
    }) as Client["send"],
    close() {},
  };
  const connect = () => createConnection("", clock, client);
  const valkey = createValkey({ url: "valkey://[::1]", prefix: "" }, LOG, clock, connect);
  const beats = async (count: number) => {
    for (let beat = 0; beat < count; beat++) {
      clock.fire();
      for (let turn = 0; turn < 50; turn++) await Promise.resolve();
    }
    return valkey.instances;
  };
  counts(3, 3);
  await valkey.start(async () => {});
  expect(valkey.instances).toBe(3);

  // It fails, comes back without its data, and fails again before the others have said a word.
  expect(await beats(1)).toBe(3);
  counts(1, 1);
  expect(await beats(1)).toBe(3);
  expect(valkey.isUp).toBe(true);
  expect(await beats(1)).toBe(3);
  expect(valkey.isUp).toBe(false);

  // More are believed at once, and fewer if the count stays so.
  counts(1, 1, 4);
  expect(await beats(2)).toBe(4);
  counts(...Array(10).fill(2));
  expect(await beats(10)).toBe(4);
  counts(2);
  expect(await beats(1)).toBe(2);
  await valkey.leave([]);
});

/** The greatest number of times within one second. */
function mostInASecond(times: readonly number[]): number {
  let first = 0;
  return times.reduce((most, time, index) => {
    while ((times[first] as number) <= time - 1000) first++;
    return Math.max(most, index - first + 1);
  }, 0);
}

describe("a call that has no answer", () => {
  test("is given up after 50 ms by the clock; after three in a row, the next ones do not wait", async () => {
    const timers: { delayMs: number; action: () => void }[] = [];
    let nowMs = 0;
    const clock = {
      nowMs: () => nowMs,
      after(delayMs: number, action: () => void) {
        const timer = { delayMs, action };
        timers.push(timer);
        return () => void timers.splice(timers.indexOf(timer), 1);
      },
    };
    const replies: unknown[] = [
      [0, 3, null],
      [0, 3, null],
      [1, 0, 1, 0],
    ];
    let closed = 0;
    const client: Client = {
      send: (async () =>
        replies.length > 0 ? replies.shift() : await new Promise(() => {})) as Client["send"],
      close: () => void closed++,
    };
    const connect = () => createConnection("", clock, client);
    const valkey = createValkey({ url: "valkey://[::1]", prefix: "" }, LOG, clock, connect);
    const outcomes: string[] = [];
    valkey.onCall = (_, outcome) => outcomes.push(outcome);
    await valkey.start(async () => {});
    expect(valkey.instances).toBe(3);
    expect(timers.map(({ delayMs }) => delayMs)).toEqual([500]);

    const any = script("return 1", () => z.array(z.int()));
    expect(await valkey.ask(any, [], [])).toEqual([1, 0, 1, 0]);
    const giveUp = async () => {
      const pending = [valkey.ask(any, [], []), valkey.ask(any, [], [])];
      expect(timers.map(({ delayMs }) => delayMs)).toEqual([500, 50, 50]);
      nowMs += 50;
      for (let call = 0; call < 2; call++) {
        timers[1]?.action();
        timers.splice(1, 1);
      }
      // One more turn of the event loop reads what has come meanwhile.
      expect(timers.map(({ delayMs }) => delayMs)).toEqual([500, 1, 1]);
      for (const { action } of timers.splice(1)) action();
      expect(await Promise.all(pending)).toEqual([null, null]);
      return [valkey.isUp, closed];
    };
    // Calls at the same time wait for the same answer, so they count as one.
    expect([await giveUp(), await giveUp()]).toEqual(Array(2).fill([true, 0]));
    replies.push([2]);
    expect(await valkey.ask(any, [], [])).toEqual([2]);
    for (let count = 0; count < 2; count++) expect(await giveUp()).toEqual([true, 0]);
    expect(await giveUp()).toEqual([false, 2]);
    expect(await valkey.ask(any, [], [])).toBeNull();
    outcomes.length = 2;
    expect(outcomes).toEqual(["answered", "given_up"]);
    await valkey.leave([]);
  });
});
