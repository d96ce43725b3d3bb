import { expect, test } from "bun:test";
import { Coalescer } from "../../src/util/coalesce.ts";
import { settle } from "../dns/fake-clock.ts";

/** Work that is done when the test says so. */
function newWork() {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const work = {
    started: 0,
    signal: undefined as AbortSignal | undefined,
    resolve,
    reject,
    start(signal: AbortSignal) {
      work.started += 1;
      work.signal = signal;
      return promise;
    },
  };
  return work;
}

test("who asks for the same at the same time shares one piece of work", async () => {
  const coalescer = new Coalescer<string>();
  const work = newWork();
  const all = Promise.all(["k", "k", "k"].map((key) => coalescer.join(key, undefined, work.start)));
  work.resolve("done");
  expect(await all).toEqual(["done", "done", "done"]);
  expect(work.started).toBe(1);
});

test("other keys, and later times, have work of their own", async () => {
  const coalescer = new Coalescer<string>();
  const work = newWork();
  work.resolve("done");
  await Promise.all(["k", "l"].map((key) => coalescer.join(key, undefined, work.start)));
  expect(work.started).toBe(2);
  await coalescer.join("k", undefined, work.start);
  expect(work.started).toBe(3);
});

test("one who leaves does not end it for the others; the last who leaves ends it", async () => {
  const coalescer = new Coalescer<string>();
  const work = newWork();
  const [first, second] = [new AbortController(), new AbortController()];
  const results = Promise.all([
    coalescer.join("k", first.signal, work.start),
    coalescer.join("k", second.signal, work.start),
  ]);
  first.abort();
  await settle();
  expect(work.signal?.aborted).toBe(false);
  second.abort();
  await settle();
  expect(work.signal?.aborted).toBe(true);
  expect(await results).toEqual([null, null]);
});

test("who comes after the last has left begins anew", async () => {
  const coalescer = new Coalescer<string>();
  const [old, fresh] = [newWork(), newWork()];
  const leaving = new AbortController();
  const left = coalescer.join("k", leaving.signal, old.start);
  leaving.abort();
  await left;
  const joined = coalescer.join("k", undefined, fresh.start);
  old.resolve("old");
  fresh.resolve("fresh");
  expect(await joined).toBe("fresh");
});

test("who had left before starts nothing", async () => {
  const work = newWork();
  const coalescer = new Coalescer<string>();
  expect(await coalescer.join("k", AbortSignal.abort(), work.start)).toBeNull();
  expect(work.started).toBe(0);
});

test("a bug in the work reaches everybody, and not the next", async () => {
  const coalescer = new Coalescer<string>();
  const work = newWork();
  const both = Promise.allSettled(
    ["k", "k"].map((key) => coalescer.join(key, undefined, work.start)),
  );
  work.reject(new TypeError("a bug"));
  expect((await both).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  const next = newWork();
  next.resolve("done");
  expect(await coalescer.join("k", undefined, next.start)).toBe("done");
});

test("news reaches everybody, also those who join later, and nobody who has left", async () => {
  const coalescer = new Coalescer<void, string>();
  const { promise, resolve } = Promise.withResolvers<void>();
  const teller = { tell: (_: string) => {} };
  const heard: Record<string, string[]> = {};
  const leaving = new AbortController();
  const join = (who: string, signal?: AbortSignal) => {
    const news: string[] = [];
    heard[who] = news;
    const start = (_: AbortSignal, tell: (news: string) => void) => {
      teller.tell = tell;
      return promise;
    };
    return coalescer.join("k", signal, start, (one) => news.push(one));
  };
  const early = join("early");
  const gone = join("gone", leaving.signal);
  teller.tell("first");
  leaving.abort();
  await gone;
  const late = join("late");
  teller.tell("second");
  resolve();
  await Promise.all([early, late]);
  expect(heard).toEqual({
    early: ["first", "second"],
    gone: ["first"],
    late: ["first", "second"],
  });
});
