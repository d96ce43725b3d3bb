import { describe, expect, test } from "bun:test";
import { type IpAddress, tryParseIp } from "../../src/addr/ip.ts";
import { type BucketKey, BucketTable } from "../../src/limits/bucket-table.ts";
import { RateLimiter } from "../../src/limits/rate-limit.ts";

const START_MS = 1_700_000_000_400;
const START_SECONDS = 1_700_000_000;

function setUp(limits: Partial<{ anonymous: number; prefix: number }> = {}) {
  const clock = { ms: START_MS };
  const limiter = new RateLimiter({ anonymous: 3, prefix: 5, ...limits }, () => clock.ms);
  const take = (text: string) => limiter.take({ kind: "address", address: address(text) });
  return { clock, limiter, take };
}

function address(text: string): IpAddress {
  const parsed = tryParseIp(text);
  if (parsed === null) throw new Error(text);
  return parsed;
}

describe("a client's window", () => {
  test("gives as many requests as the limit, and none more", () => {
    const { take } = setUp();
    const states = [1, 2, 3, 4].map(() => take("192.0.2.1"));
    expect(states.map(({ allowed }) => allowed)).toEqual([true, true, true, false]);
    expect(states.map(({ remaining }) => remaining)).toEqual([2, 1, 0, 0]);
  });

  test("begins with its first request and ends 60 seconds later, to the second", () => {
    const { clock, take } = setUp();
    expect(take("192.0.2.1").resetSeconds).toBe(START_SECONDS + 60);
    clock.ms += 30_000;
    for (let used = 1; used < 4; used++) take("192.0.2.1");
    expect(take("192.0.2.1")).toMatchObject({ allowed: false, resetSeconds: START_SECONDS + 60 });
    clock.ms = (START_SECONDS + 60) * 1000 - 1;
    expect(take("192.0.2.1").allowed).toBe(false);
    clock.ms += 1;
    expect(take("192.0.2.1")).toEqual({
      allowed: true,
      limit: 3,
      remaining: 2,
      resetSeconds: START_SECONDS + 120,
    });
  });

  test("ends where the clock is set back, so that nobody waits for an hour", () => {
    const { clock, take } = setUp();
    for (let used = 0; used < 3; used++) take("192.0.2.1");
    clock.ms -= 3_600_000;
    expect(take("192.0.2.1").allowed).toBe(true);
  });

  test("is that of the address alone: another one has its own", () => {
    const { take } = setUp();
    for (let used = 0; used < 4; used++) take("192.0.2.1");
    expect(take("192.0.2.2").allowed).toBe(true);
  });
});

describe("an IPv6 /64", () => {
  test("has a bucket of its own, so that 2^64 addresses do not get round the limit", () => {
    const { take } = setUp();
    const states = [1, 2, 3, 4, 5, 6].map((host) => take(`2001:db8::${host}`));
    expect(states.map(({ allowed }) => allowed)).toEqual([true, true, true, true, true, false]);
    expect(states[5]).toMatchObject({ limit: 5, remaining: 0 });
    expect(take("2001:db8:0:1::1").allowed).toBe(true);
  });

  test("shows in the headers as soon as it is the tighter of the two", () => {
    const { take } = setUp({ anonymous: 3, prefix: 4 });
    expect(take("2001:db8::1")).toMatchObject({ limit: 3, remaining: 2 });
    expect(take("2001:db8::2")).toMatchObject({ limit: 3, remaining: 2 });
    expect(take("2001:db8::3")).toMatchObject({ limit: 4, remaining: 1 });
  });

  test("of two empty buckets, the one that stays empty for longer is told", () => {
    const { take, clock } = setUp({ anonymous: 2, prefix: 3 });
    take("2001:db8::1");
    clock.ms += 30_000;
    take("2001:db8::2");
    take("2001:db8::2");
    // The /64's window is over and begins anew; the second address is still in its first one.
    clock.ms += 31_000;
    for (const host of [1, 1, 3]) take(`2001:db8::${host}`);
    const { allowed, resetSeconds } = take("2001:db8::2");
    expect(allowed).toBe(false);
    clock.ms = resetSeconds * 1000;
    expect(take("2001:db8::2").allowed).toBe(true);
  });

  test("loses no token to a request that the address's bucket refuses", () => {
    const { take } = setUp();
    for (let used = 0; used < 10; used++) take("2001:db8::1");
    expect(take("2001:db8::2").allowed).toBe(true);
    expect(take("2001:db8::3").allowed).toBe(true);
    expect(take("2001:db8::4").allowed).toBe(false);
  });

  test("counts for nothing where the limit is 0", () => {
    const { take } = setUp({ prefix: 0 });
    for (let host = 1; host < 100; host++) expect(take(`2001:db8::${host}`).allowed).toBe(true);
  });
});

describe("a /64 that has used up its tokens", () => {
  test("takes no places from newcomers, however many addresses it shows", () => {
    const { take } = setUp({ anonymous: 100, prefix: 1000 });
    for (let host = 0; host < 400_000; host++) {
      take(`2001:db8::${(host >>> 16).toString(16)}:${(host & 0xffff).toString(16)}`);
    }
    for (let host = 0; host < 400; host++) {
      expect(take(`198.51.${100 + (host >> 8)}.${host & 255}`)).toMatchObject({ remaining: 99 });
    }
  });
});

describe("a key", () => {
  test("has its own bucket with its own limit", () => {
    const { limiter, take } = setUp();
    const key = { kind: "key", sha256: "0123456789abcdef".repeat(4), limit: 4 } as const;
    expect([1, 2, 3, 4, 5].map(() => limiter.take(key).allowed)).toEqual([
      true,
      true,
      true,
      true,
      false,
    ]);
    expect(take("192.0.2.1").remaining).toBe(2);
  });

  test("whose limit is lowered meanwhile has no tokens left, and never less than none", () => {
    const { limiter } = setUp();
    const key = (limit: number) =>
      ({ kind: "key", sha256: "0123456789abcdef".repeat(4), limit }) as const;
    for (let used = 0; used < 5; used++) limiter.take(key(5));
    expect(limiter.take(key(2))).toMatchObject({ allowed: false, limit: 2, remaining: 0 });
    expect(limiter.peek(key(2))).toMatchObject({ allowed: false, limit: 2, remaining: 0 });
  });
});

describe("peek", () => {
  test("takes no token and begins no window", () => {
    const { clock, limiter, take } = setUp();
    const subject = { kind: "address", address: address("192.0.2.1") } as const;
    expect(limiter.peek(subject)).toMatchObject({ remaining: 3, allowed: true });
    clock.ms += 10_000;
    expect(take("192.0.2.1").resetSeconds).toBe(START_SECONDS + 70);
    expect(limiter.peek(subject).remaining).toBe(2);
  });
});

/** Slots of one key that fill up: with 16 slots, every key looks at all of them. */
function fullTable(nowSeconds: number) {
  const table = new BucketTable(16, 1);
  const keys = Array.from({ length: 16 }, (_, word): BucketKey => [1, 2, 3, word]);
  const buckets = keys.map((key) => table.begin(key, 1, nowSeconds));
  return { table, keys, buckets };
}

describe("a full table", () => {
  test("has a bucket for each key until then", () => {
    const { buckets } = fullTable(100);
    expect(new Set(buckets).size).toBe(16);
  });

  test("keeps every bucket in use, and lets newcomers of one network share one", () => {
    const { table, keys, buckets } = fullTable(100);
    const shared = table.begin([9, 9, 9, 9], 7, 101);
    table.takeToken(shared);
    expect(buckets).not.toContain(shared);
    expect(table.begin([9, 9, 9, 8], 7, 102)).toBe(shared);
    expect(table.find([9, 9, 9, 7], 7, 102)).toBe(shared);
    expect(table.used(shared)).toBe(1);
    expect(keys.map((key) => table.begin(key, 1, 159))).toEqual(buckets);
  });

  test("takes newcomers again once windows have ended, in place of those", () => {
    const { table, keys, buckets } = fullTable(100);
    table.takeToken(buckets[0] ?? -1);
    const later = table.begin([9, 9, 9, 9], 7, 160);
    expect(buckets).toContain(later);
    expect(table.used(later)).toBe(0);
    expect(table.endSeconds(later)).toBe(220);
    expect(keys.map((key) => table.find(key, 1, 160))).toEqual(Array(16).fill(-1));
  });

  test("finds a key behind a slot whose window has ended", () => {
    const table = new BucketTable(16, 1);
    const keys = Array.from({ length: 8 }, (_, word): BucketKey => [word, 0, 0, 0]);
    for (const [index, key] of keys.entries()) table.begin(key, 1, 100 + index * 10);
    const live = keys.slice(4).map((key) => table.find(key, 1, 195));
    expect(live.every((bucket) => bucket >= 0)).toBe(true);
    expect(keys.slice(4).map((key) => table.begin(key, 1, 195))).toEqual(live);
  });
});

describe("two keys with one home slot", () => {
  const homeOf = (key: BucketKey) => new BucketTable(16, 1).begin(key, 1, 100);
  const keys = Array.from({ length: 100 }, (_, word): BucketKey => [word, 0, 0, 0]);
  const [first, second] = keys.filter((key) => homeOf(key) === 5) as [BucketKey, BucketKey];

  test("the second keeps its bucket when the first's window has ended", () => {
    const table = new BucketTable(16, 1);
    expect(table.begin(first, 1, 100)).toBe(5);
    const bucket = table.begin(second, 1, 130);
    table.takeToken(bucket);
    expect(bucket).toBe(6);
    expect(table.find(second, 1, 165)).toBe(bucket);
    expect(table.begin(second, 1, 165)).toBe(bucket);
    expect(table.used(bucket)).toBe(1);
  });
});

describe("half a million addresses", () => {
  // biome-ignore format: a table
  test.each<[string, (index: number) => number]>([
    ["of one /32", () => 0x20010db8],
    ["of everywhere", (index) => Math.imul(index, 0x9e3779b1) >>> 0],
  ])("%s: no growth, and an honest client keeps its bucket", (_, word0) => {
    const clock = { ms: START_MS };
    const limiter = new RateLimiter({ anonymous: 100, prefix: 1000 }, () => clock.ms);
    const honest = { kind: "address", address: address("2001:db8:1::1") } as const;
    expect(limiter.take(honest).remaining).toBe(99);
    Bun.gc(true);
    const before = process.memoryUsage.rss();
    for (let index = 0; index < 500_000; index++) {
      const word1 = Math.imul(index, 0x85ebca6b) >>> 0;
      const flood = { version: 6, word0: word0(index), word1, word2: 0, word3: index } as const;
      limiter.take({ kind: "address", address: flood });
    }
    Bun.gc(true);
    expect((process.memoryUsage.rss() - before) / 1024 / 1024).toBeLessThan(40);
    expect(limiter.take(honest).remaining).toBe(98);
  }, 60_000);
});
