import { expect, test } from "bun:test";
import { Semaphore } from "../../src/dns/semaphore.ts";
import { settle } from "./fake-clock.ts";

/** Returns a function that acquires a permit and logs the result under a name. */
function acquirer(semaphore: Semaphore, log: string[]) {
  return (name: string) => {
    const controller = new AbortController();
    semaphore.acquire(controller.signal).then((acquired) => {
      log.push(acquired ? name : `${name} left`);
    });
    return controller;
  };
}

test("permits are given in the order of the requests", async () => {
  const semaphore = new Semaphore(2);
  const log: string[] = [];
  for (const name of ["a", "b", "c", "d", "e"]) acquirer(semaphore, log)(name);
  await settle();
  expect(log).toEqual(["a", "b"]);
  semaphore.release();
  await settle();
  expect(log).toEqual(["a", "b", "c"]);
  semaphore.release();
  semaphore.release();
  await settle();
  expect(log).toEqual(["a", "b", "c", "d", "e"]);
});

test("a released permit is free again", async () => {
  const semaphore = new Semaphore(1);
  for (let round = 0; round < 3; round++) {
    expect(await semaphore.acquire(new AbortController().signal)).toBe(true);
    semaphore.release();
  }
});

test("an aborted request leaves the line", async () => {
  const semaphore = new Semaphore(1);
  const log: string[] = [];
  const acquire = acquirer(semaphore, log);
  acquire("a");
  const b = acquire("b");
  acquire("c");
  b.abort();
  semaphore.release();
  await settle();
  expect(log).toEqual(["a", "b left", "c"]);
});

test("a request that was aborted before gets no permit, and uses none up", async () => {
  const semaphore = new Semaphore(1);
  expect(await semaphore.acquire(AbortSignal.abort())).toBe(false);
  expect(await semaphore.acquire(new AbortController().signal)).toBe(true);
});

test("a request that is admitted and aborted in the same moment has the permit", async () => {
  const semaphore = new Semaphore(1);
  const log: string[] = [];
  const acquire = acquirer(semaphore, log);
  acquire("a");
  const b = acquire("b");
  semaphore.release();
  b.abort();
  await settle();
  expect(log).toEqual(["a", "b"]);
});
