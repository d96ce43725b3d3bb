import { describe, expect, test } from "bun:test";
import { type IpAddress, tryParseIp } from "../../src/addr/ip.ts";
import { createRateLimiter } from "../../src/limits/token-bucket.ts";

const START_MS = 1_700_000_000_400;
const START_SECONDS = 1_700_000_000;

function setUp(limits: Partial<{ anonymous: number; prefix: number }> = {}, size?: number) {
  const clock = { ms: START_MS };
  const limiter = createRateLimiter({ anonymous: 3, prefix: 5, ...limits }, () => clock.ms, size);
  const take = (text: string) => limiter.take({ address: address(text) }, 1);
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
      retryAfterSeconds: 60,
    });
  });

  test("ends when the clock is set back, so that no one waits for an hour", () => {
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
  test("has a bucket of its own, so that 2^64 addresses do not avoid the limit", () => {
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

  test("of two empty buckets, the headers show the one that stays empty longer", () => {
    const { take, clock } = setUp({ anonymous: 2, prefix: 3 });
    take("2001:db8::1");
    clock.ms += 30_000;
    take("2001:db8::2");
    take("2001:db8::2");
    // The /64's window has ended and starts again; the second address is still in its first window.
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

  test("has no bucket if the limit is 0", () => {
    const { take } = setUp({ prefix: 0 });
    for (let host = 1; host < 100; host++) expect(take(`2001:db8::${host}`).allowed).toBe(true);
  });
});

describe("a /64 that has used up its tokens", () => {
  test("takes no tokens of newcomers, however many addresses it uses", () => {
    const { take } = setUp({ anonymous: 100, prefix: 1000 }, 8_192);
    for (let host = 0; host < 12_500; host++) take(`2001:db8::${host.toString(16)}`);
    for (let host = 0; host < 400; host++) {
      expect(take(`198.51.${100 + (host >> 8)}.${host & 255}`)).toMatchObject({ remaining: 99 });
    }
  });
});

describe("a key", () => {
  test("has its own bucket with its own limit", () => {
    const { limiter, take } = setUp();
    const key = { sha256: "0123456789abcdef".repeat(4), limit: 4 } as const;
    expect([1, 2, 3, 4, 5].map(() => limiter.take(key, 1).allowed)).toEqual([
      true,
      true,
      true,
      true,
      false,
    ]);
    expect(take("192.0.2.1").remaining).toBe(2);
  });

  test("whose limit is lowered during its window has 0 tokens left, not fewer", () => {
    const { limiter } = setUp();
    const key = (limit: number) => ({ sha256: "0123456789abcdef".repeat(4), limit }) as const;
    for (let used = 0; used < 5; used++) limiter.take(key(5), 1);
    expect(limiter.take(key(2), 1)).toMatchObject({ allowed: false, limit: 2, remaining: 0 });
    expect(limiter.take(key(2), 0)).toMatchObject({ allowed: false, limit: 2, remaining: 0 });
  });
});

describe("taking no token", () => {
  test("starts no window", () => {
    const { clock, limiter, take } = setUp();
    const subject = { address: address("192.0.2.1") } as const;
    expect(limiter.take(subject, 0)).toMatchObject({ remaining: 3, allowed: true });
    clock.ms += 10_000;
    expect(take("192.0.2.1").resetSeconds).toBe(START_SECONDS + 70);
    expect(limiter.take(subject, 0).remaining).toBe(2);
  });
});

describe("a request that counts as several", () => {
  test.each([
    ["as many as are left", [2, 1], [true, true], [1, 0]],
    ["more than are left, and takes none", [2, 2, 1], [true, false, true], [1, 1, 0]],
    ["more than the limit, and takes none", [4, 3], [false, true], [3, 0]],
  ])("%s", (_, prices, allowed, remaining) => {
    const { limiter } = setUp({ anonymous: 3, prefix: 0 });
    const subject = { address: address("192.0.2.1") } as const;
    const states = prices.map((tokens) => limiter.take(subject, tokens));
    expect(states.map((state) => state.allowed)).toEqual(allowed);
    expect(remainingOf(states)).toEqual(remaining);
  });

  test("20,000 random requests of four addresses: what is granted fits each limit, and would not fit otherwise", () => {
    const { clock, limiter } = setUp({ anonymous: 12, prefix: 20 });
    const hosts = ["2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8:0:1::1"].map(address);
    const used = new Map<string, { tokens: number; start: number }>();
    let state = 3;
    const random = (bound: number) => {
      state = (state * 48271) % 0x7fffffff;
      return state % bound;
    };
    const left = (name: string, limit: number) => {
      const now = Math.floor(clock.ms / 1000);
      const bucket = used.get(name);
      return bucket && now < bucket.start + 60 ? limit - bucket.tokens : limit;
    };
    const charge = (name: string, limit: number, tokens: number) => {
      const now = Math.floor(clock.ms / 1000);
      const before = limit - left(name, limit);
      const start = before > 0 ? (used.get(name)?.start ?? now) : now;
      used.set(name, { tokens: before + tokens, start });
    };
    for (let request = 0; request < 20_000; request++) {
      clock.ms += random(9_000);
      const at = random(4);
      const tokens = 1 + random(6);
      const network = at === 3 ? "other" : "shared";
      const wanted = left(`${at}`, 12) >= tokens && left(network, 20) >= tokens;
      const subject = { address: hosts[at] as IpAddress } as const;
      const { allowed, remaining } = limiter.take(subject, tokens);
      expect(allowed).toBe(wanted);
      if (wanted) {
        charge(`${at}`, 12, tokens);
        charge(network, 20, tokens);
        expect(remaining).toBe(Math.min(left(`${at}`, 12), left(network, 20)));
      }
    }
  });
});

const remainingOf = (states: readonly { readonly remaining: number }[]) =>
  states.map(({ remaining }) => remaining);

/** A limiter with room for 124 buckets of single addresses; a token was taken from each. */
function fullLimiter() {
  const clock = { ms: START_MS };
  const limiter = createRateLimiter({ anonymous: 20, prefix: 0 }, () => clock.ms, 248);
  const take = (text: string, price = 1) => limiter.take({ address: address(text) }, price);
  const clients = Array.from({ length: 124 }, (_, index) => `${index + 1}.0.0.1`);
  const states = clients.map((client) => take(client));
  return { clock, limiter, take, clients, states };
}

describe("a full table", () => {
  test("has a bucket for each client until then", () => {
    const { states } = fullLimiter();
    expect(remainingOf(states)).toEqual(Array(124).fill(19));
  });

  test("keeps every bucket in use, and lets chance decide which newcomers share one", () => {
    const { take, clients, clock } = fullLimiter();
    clock.ms += 1_000;
    const newcomers = Array.from({ length: 62 }, (_, index) => `200.1.0.${index + 1}`);
    const states = newcomers.map((client) => take(client));
    // 62 clients in 62 shared buckets: that a bucket of 20 tokens gets more than 19 has a chance of 1e-17.
    expect(states.every(({ allowed }) => allowed)).toBe(true);
    const first = newcomers[0] as string;
    const { remaining } = take(first, 0);
    expect(remaining).toBeLessThan(20);
    expect(take(first)).toMatchObject({
      remaining: remaining - 1,
      resetSeconds: START_SECONDS + 61,
    });
    clock.ms += 58_000;
    expect(remainingOf(clients.map((client) => take(client)))).toEqual(Array(124).fill(18));
  });

  test("gives a key its own bucket all the same", () => {
    const { limiter } = fullLimiter();
    for (const digit of ["1", "2"]) {
      const key = { sha256: digit.repeat(64), limit: 5 } as const;
      expect(limiter.take(key, 1).remaining).toBe(4);
    }
  });

  test("gives new clients their own buckets again once windows have ended", () => {
    const { take, clients, clock } = fullLimiter();
    clock.ms += 60_000;
    for (const client of ["200.1.0.1", "200.1.0.2"]) {
      expect(take(client)).toMatchObject({ remaining: 19, resetSeconds: START_SECONDS + 120 });
    }
    expect(remainingOf(clients.map((client) => take(client, 0)))).toEqual(Array(124).fill(20));
  });
});

describe("a flood locks out nobody:", () => {
  // biome-ignore format: a table
  test.each<[string, (index: number) => [number, number]]>([
    ["the 32 /64s of a /59", (index) => [0x20010db8, 0x0001_0000 | (index & 0x1f)]],
    ["the /48s of a /32", (index) => [0x20010db8, index << 16]],
    ["everywhere", (index) => [Math.imul(index, 0x9e3779b1) >>> 0, 0]],
  ])("%s", (_, prefix) => {
    // As 5,000 a second for a minute and the usual table, by an eighth of both; each is from another address.
    const { limiter, take } = setUp({ anonymous: 100, prefix: 1000 }, 8_192);
    for (let index = 0; index < 37_500; index++) {
      const [word0, word1] = prefix(index);
      const flood = { version: 6, word0, word1: word1 >>> 0, word2: index, word3: 1 } as const;
      limiter.take({ address: flood }, 1);
    }
    const left = Array.from({ length: 300 }, (_, host) => [
      take(`2001:db9:${host.toString(16)}::1`).remaining,
      take(`198.51.${100 + (host >> 8)}.${host & 255}`).remaining,
    ]);
    // A shared bucket loses some 17 of its 100 tokens; that one loses 69 has a chance of 1e-18.
    expect(Math.min(...left.flat())).toBeGreaterThan(30);
  });
});

test("a flood of 150,000 addresses: no growth, and an honest client keeps its bucket", () => {
  const { limiter, take } = setUp({ anonymous: 100, prefix: 1000 });
  expect(take("2001:db8:1::1").remaining).toBe(99);
  Bun.gc(true);
  const before = process.memoryUsage.rss();
  for (let index = 0; index < 150_000; index++) {
    const word0 = Math.imul(index, 0x9e3779b1) >>> 0;
    limiter.take({ address: { version: 6, word0, word1: 0, word2: 0, word3: index } }, 1);
  }
  Bun.gc(true);
  expect((process.memoryUsage.rss() - before) / 1024 / 1024).toBeLessThan(64);
  expect(take("2001:db8:1::1").remaining).toBe(98);
});
