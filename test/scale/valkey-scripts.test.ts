/** The limits that instances share through Valkey, beside those of an instance alone. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { tryParseIp } from "../../src/addr/ip.ts";
import { namesBelow } from "../../src/config/valkey-address.ts";
import { createRateLimiter, type RateLimitSubject } from "../../src/limits/token-bucket.ts";
import { createLog } from "../../src/util/log.ts";
import { type Client, createConnection } from "../../src/valkey/connection.ts";
import { createSharedLimiter } from "../../src/valkey/limiter.ts";
import { createValkey } from "../../src/valkey/valkey.ts";
import { labMissing, testWith } from "../lab/lab.ts";
import { ValkeyServer, valkeyMissing } from "../lab/valkey.ts";
import { FakeClock } from "../util/fake-clock.ts";

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
    (text) => ({ address: tryParseIp(text) }) as const,
  ),
  { address: null },
  { sha256: "0123456789abcdef".repeat(4), limit: 4 },
];

const LIMITS = { anonymous: 12, prefix: 20 };

/** A connection over which an answer is waited for, however busy this machine is. */
const patient = () => {
  const { run, ...connection } = createConnection(server.url);
  const runPatiently: typeof run = (wanted, keys, args) => run(wanted, keys, args, 60_000);
  return { ...connection, run: runPatiently };
};

scaleTest("three instances grant together what one alone does, and say the same", async () => {
  let prefix = 0;
  const request = fc.record({
    instance: fc.nat(2),
    client: fc.nat(SUBJECTS.length - 1),
    price: fc.integer({ min: 0, max: 6 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(request, { minLength: 1, maxLength: 60 }), async (requests) => {
      const address = { url: server.url, prefix: `alike-${prefix++}:` };
      const valkeys = [1, 2, 3].map(() => createValkey(address, LOG, undefined, patient));
      for (const valkey of valkeys) await valkey.start(async () => {});
      const limiters = valkeys.map((valkey) => createSharedLimiter(LIMITS, valkey));
      const alone = createRateLimiter(LIMITS);
      for (const { instance, client, price } of requests) {
        const subject = SUBJECTS[client] as RateLimitSubject;
        const { allowed, limit, remaining } = alone.take(subject, price);
        // Taking nothing shows what this instance knows.
        const state = await limiters[instance]?.take(subject, price);
        if (price > 0 && allowed) expect(state).toMatchObject({ allowed, limit, remaining });
        if (price > 0) expect(state?.allowed).toBe(allowed);
      }
      for (const valkey of valkeys) valkey.close();
    }),
    { numRuns: 30 },
  );
});

describe("while Valkey does not answer", () => {
  const [subject] = SUBJECTS as [RateLimitSubject];

  /** An instance of two with a limit of 100, whose calls have no answer as long as `valkey.isAway`. */
  const opened = async (prefix: string) => {
    // Not started, so that no beat closes its connection on a busy machine.
    const valkey = createValkey({ url: server.url, prefix }, LOG);
    const away = { is: false };
    const ask: typeof valkey.ask = async (wanted, keys, args) =>
      away.is ? null : await valkey.run(wanted, keys, args, 60_000);
    const parts = { ask, instances: 2, names: valkey.names, nowMs: valkey.nowMs };
    const limiter = createSharedLimiter({ anonymous: 100, prefix: 0 }, parts);
    const take = async (count: number) => {
      let granted = 0;
      for (let request = 0; request < count; request++)
        granted += Number((await limiter.take(subject, 1)).allowed);
      return granted;
    };
    return { valkey, away, take };
  };

  scaleTest.each(["keeps", "loses"])(
    "each instance grants its share of what was left, and Valkey counts it later, if it %s its data",
    async (outcome) => {
      const prefix = `away-${outcome}:`;
      const [one, two] = [await opened(prefix), await opened(prefix)];
      for (let count = 0; count < 30; count++) {
        expect(await one.take(1)).toBe(1);
        expect(await two.take(1)).toBe(1);
      }
      one.away.is = two.away.is = true;
      // Of 100, each knows that 41 or 40 are left.
      expect(await one.take(50)).toBe(20);
      expect(await two.take(50)).toBe(20);
      if (outcome === "loses") await server.cli("DEL", `${prefix}used:address:2001:db8::1`);
      one.away.is = two.away.is = false;
      expect((await one.take(1)) + (await two.take(1))).toBeLessThanOrEqual(1);
      expect(
        Number(await server.cli("GET", `${prefix}used:address:2001:db8::1`)),
      ).toBeGreaterThanOrEqual(99);
      expect((await one.take(20)) + (await two.take(20))).toBe(0);
      for (const { valkey } of [one, two]) valkey.close();
    },
  );

  scaleTest("a client that nobody knows gets one request at least", async () => {
    const { valkey } = await opened("unknown:");
    const parts = { ...valkey, ask: async () => null, instances: 1000 };
    const limiter = createSharedLimiter({ anonymous: 100, prefix: 0 }, parts);
    const states = [1, 2].map(() => limiter.take(subject, 1));
    expect((await Promise.all(states)).map(({ allowed }) => allowed)).toEqual([true, false]);
    valkey.close();
  });
});

test("each call tells what was granted without an answer, and no two tell the same", async () => {
  const calls: (readonly (string | number)[])[] = [];
  let reply: readonly number[] | null = null;
  const parts = {
    ask: (async (_: unknown, __: unknown, args: (string | number)[]) => {
      calls.push(args);
      return reply;
    }) as never,
    instances: 2,
    names: namesBelow(""),
    nowMs: () => 100_000,
  };
  const limiter = createSharedLimiter({ anonymous: 100, prefix: 0 }, parts);
  const [subject] = SUBJECTS as [RateLimitSubject];
  const take = () => limiter.take(subject, 2);
  for (let count = 0; count < 3; count++) expect((await take()).allowed).toBe(true);
  reply = [1, 100, 12, 160];
  await Promise.all([take(), take()]);
  expect(calls.map((args) => args[4])).toEqual([0, 2, 4, 6, 0]);
  await take();
  expect(calls.at(-1)).toEqual([60, 2, 100, 12, 0, 160]);
});

scaleTest("a window that ends within a second goes on to count until its end", async () => {
  const valkey = createValkey({ url: server.url, prefix: "ends:" }, LOG);
  await valkey.start(async () => {});
  const [subject] = SUBJECTS as [RateLimitSubject];
  const key = "ends:used:address:2001:db8::1";
  const nowMs = async () => {
    const [seconds, microseconds] = (await server.cli("--raw", "TIME")).split("\n").map(Number);
    return (seconds ?? 0) * 1000 + (microseconds ?? 0) / 1000;
  };
  const rates = { anonymous: 3, prefix: 0 };
  const parts = {
    ...{ instances: 1, names: valkey.names, nowMs: valkey.nowMs },
    ask: ((...[wanted, keys, args]: Parameters<typeof valkey.ask>) =>
      valkey.run(wanted, keys, args, 60_000)) as typeof valkey.ask,
  };
  const take = () => createSharedLimiter(rates, parts).take(subject, 1);
  let endSeconds: number;
  let states: Awaited<ReturnType<typeof take>>[];
  do {
    // Early in a second; on a busy machine, the next one may be over too soon.
    await Bun.sleep(1000 - ((await nowMs()) % 1000));
    endSeconds = Math.floor((await nowMs()) / 1000) + 1;
    await server.cli("SET", key, "2", "EXAT", `${endSeconds}`);
    states = [await take(), await take()];
  } while ((await nowMs()) >= endSeconds * 1000);
  expect(states).toMatchObject([
    { allowed: true, remaining: 0, resetSeconds: endSeconds },
    { allowed: false, remaining: 0, resetSeconds: endSeconds },
  ]);
  await Bun.sleep(Math.max(0, endSeconds * 1000 - (await nowMs())) + 5);
  expect(await take()).toMatchObject({ allowed: true, remaining: 2 });
  valkey.close();
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
    [1, 100, 1, 100],
    [1, 100, 1, 161],
    [1, 100, -1, 160],
    [1, 100, 2 ** 32, 160],
    [2, 100, 1, 160],
    [-1, 100, 1, 160],
    [1, Number.NaN, 1, 160],
    [1, 1e300, 1, 1e300],
    [1, "100", 1, 160],
    [1, null, 1, 160],
    [1, [100], 1, 160],
    [1, 100, 1],
    [1, 100, 1, 160, 1],
  ];
  const rows = (...replies: unknown[]) => replies.map((reply) => ({ reply }));
  const [SUBJECT] = SUBJECTS as [RateLimitSubject];

  /** A connection to a Valkey that counts two instances and then replies so. */
  const opened = async (reply: unknown, isFirst: boolean) => {
    const replies: unknown[] = isFirst
      ? []
      : [
          [0, 2, ""],
          [0, 2, ""],
        ];
    const send = (async () => (replies.length > 0 ? replies.shift() : reply)) as Client["send"];
    const clock = new FakeClock();
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
      const limiter = createSharedLimiter({ anonymous: 4, prefix: 0 }, valkey);
      const states = [];
      for (let count = 0; count < 3; count++) states.push(await limiter.take(SUBJECT, 1));
      expect(states.map(({ allowed, limit }) => [allowed, limit])).toEqual([
        [true, 4],
        [true, 4],
        [false, 4],
      ]);
      valkey.close();
    },
  );

  test.each(rows(...ODD))("is down: $reply", async ({ reply }) => {
    const valkey = await opened(reply, true);
    expect(valkey.isUp).toBe(false);
    expect(valkey.nowMs()).toBeGreaterThan(0);
    valkey.close();
  });
});

describe("values in Valkey that sixscope did not write", () => {
  scaleTest.each([
    ["more digits than a number has", "9".repeat(400)],
    ["a negative count", "-5"],
    ["text", "x"],
  ])("%s in a bucket makes no client unlimited", async (_, used) => {
    const address = { url: server.url, prefix: `odd-${used.length}:` };
    const valkey = createValkey(address, LOG, undefined, patient);
    await valkey.start(async () => {});
    const limiter = createSharedLimiter({ anonymous: 3, prefix: 0 }, valkey);
    const [subject] = SUBJECTS as [RateLimitSubject];
    await limiter.take(subject, 1);
    const [key = ""] = (await server.cli("KEYS", `odd-${used.length}:used:*`)).split("\n");
    await server.cli("SET", key, used, "KEEPTTL");
    const states = [];
    for (let count = 0; count < 6; count++) states.push(await limiter.take(subject, 1));
    expect(states.filter(({ allowed }) => allowed).length).toBeLessThanOrEqual(3);
    expect(states.at(-1)?.allowed).toBe(false);
    // Nor does one client's bucket make all others count alone.
    expect(valkey.isUp).toBe(true);
    valkey.close();
  });
});

/** Waits until what is due without time passing is done. */
const settle = async () => {
  for (let turn = 0; turn < 50; turn++) await Promise.resolve();
};

describe("a Valkey that does not answer in time", () => {
  /** A Valkey of three instances, whose answers come after `delayMs.value` milliseconds. */
  const opened = async () => {
    const clock = new FakeClock();
    const delayMs = { value: 0 };
    const sent: string[] = [];
    let used = 0;
    const send = ((command: string, [, count, ...rest]: string[]) => {
      sent.push(command);
      const [, price = 0, limit = 0, counted = 0, granted = 0] = rest.slice(1).map(Number);
      const take = () => {
        used = Math.max(used, counted) + granted;
        const allowed = Number(used + price <= limit);
        used += allowed * price;
        return [allowed, 1, used, 61];
      };
      const reply = count === "3" ? [clock.nowMs(), 3, ""] : take();
      const { promise, resolve } = Promise.withResolvers<unknown>();
      clock.event(clock.nowMs() + delayMs.value, () => resolve(reply));
      return promise;
    }) as Client["send"];
    let closed = 0;
    const connect = () => createConnection("", clock, { send, close: () => void closed++ });
    const valkey = createValkey({ url: "valkey://[::1]", prefix: "" }, LOG, clock, connect);
    const outcomes: string[] = [];
    valkey.onCall = (_, outcome) => outcomes.push(outcome);
    const pass = async (ms: number) => {
      const endMs = clock.nowMs() + ms;
      clock.event(endMs, () => {});
      while (clock.nowMs() < endMs) {
        clock.fire();
        await settle();
      }
    };
    const started = valkey.start(async () => {});
    await settle();
    await pass(1);
    await started;
    const limiter = createSharedLimiter({ anonymous: 90, prefix: 0 }, valkey);
    const [subject] = SUBJECTS as [RateLimitSubject];
    /** How long each of some requests at once waits, and how many are granted. */
    const ask = async (requests: number) => {
      const startMs = clock.nowMs();
      const waits: number[] = [];
      let granted = 0;
      for (let request = 0; request < requests; request++) {
        void limiter.take(subject, 1).then(({ allowed }) => {
          waits.push(Math.round(clock.nowMs() - startMs));
          granted += Number(allowed);
        });
      }
      await settle();
      while (waits.length < requests) await pass(1);
      return { granted, longestMs: Math.max(...waits) };
    };
    return { valkey, clock, delayMs, outcomes, sent, ask, pass, closed: () => closed };
  };

  test("is waited for 50 ms once, and not again before it has answered", async () => {
    const { valkey, delayMs, outcomes, sent, ask, pass, closed } = await opened();
    expect([valkey.isUp, valkey.instances]).toEqual([true, 3]);
    expect(await ask(50)).toEqual({ granted: 50, longestMs: 0 });
    delayMs.value = 10_000;
    // One more turn of the event loop reads what has come meanwhile.
    expect(await ask(2)).toEqual({ granted: 2, longestMs: 51 });
    expect(outcomes.slice(50)).toEqual(["given_up", "given_up"]);
    sent.length = 0;
    expect((await ask(5)).longestMs).toBe(0);
    expect(sent).toEqual([]);
    // A beat finds that it is more than a pause. The first one of a connection has the time to connect, and the
    // next one shows how fast Valkey is.
    expect([valkey.isUp, closed()]).toEqual([true, 0]);
    await pass(600);
    expect([valkey.isUp, closed()]).toEqual([false, 1]);
    for (const [ms, isUp] of [
      [10_000, false],
      [100, false],
      [1, true],
    ] as const) {
      delayMs.value = ms;
      await pass(3_000);
      expect(valkey.isUp).toBe(isUp);
      expect((await ask(5)).longestMs).toBeLessThan(2);
    }
    valkey.close();
  });

  test("for 120 ms refuses nobody who has some of its share left, and is no outage", async () => {
    const { valkey, delayMs, ask, pass, closed } = await opened();
    await ask(50);
    delayMs.value = 120;
    // A third of the 40 that are left.
    expect((await ask(13)).granted).toBe(13);
    expect((await ask(1)).granted).toBe(0);
    delayMs.value = 0;
    await pass(100);
    expect([valkey.isUp, closed()]).toEqual([true, 0]);
    // 90 without 63, of which 13 are counted twice, because their answers came too late.
    expect((await ask(40)).granted).toBe(14);
    valkey.close();
  });
});
