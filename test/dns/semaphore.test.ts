import { expect, test } from "bun:test";
import { createSemaphore, type Semaphore } from "../../src/dns/semaphore.ts";

/** Returns a function that acquires a permit and logs the entry under a name. */
function acquirer(semaphore: Semaphore, log: string[]) {
  return (name: string) => semaphore.acquire(() => log.push(name));
}

test("permits are given in the order of the requests", () => {
  const log: string[] = [];
  const acquire = acquirer(createSemaphore(2), log);
  const leave = ["a", "b", "c", "d", "e"].map(acquire);
  expect(log).toEqual(["a", "b"]);
  leave[0]?.();
  expect(log).toEqual(["a", "b", "c"]);
  leave[2]?.();
  leave[1]?.();
  expect(log).toEqual(["a", "b", "c", "d", "e"]);
});

test("a permit that was given back is free again", () => {
  const log: string[] = [];
  const acquire = acquirer(createSemaphore(1), log);
  for (let round = 0; round < 3; round++) acquire(`${round}`)();
  expect(log).toEqual(["0", "1", "2"]);
});

test("one that stops waiting leaves the line, and uses no permit up", () => {
  const log: string[] = [];
  const acquire = acquirer(createSemaphore(1), log);
  const leave = ["a", "b", "c"].map(acquire);
  leave[1]?.();
  leave[0]?.();
  leave[2]?.();
  acquire("d");
  expect(log).toEqual(["a", "c", "d"]);
});
