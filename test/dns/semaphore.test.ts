import { expect, test } from "bun:test";
import { createSemaphore, type Semaphore } from "../../src/dns/semaphore.ts";
import { randomFrom } from "../lab/simulation.ts";

/** Returns a function that acquires a permit and logs the entry under a name. */
function acquirer(semaphore: Semaphore, log: string[]) {
  return (name: string, client = name) => semaphore.acquire(() => log.push(name), client);
}

test("permits are given in the order of the requests", () => {
  const log: string[] = [];
  const acquire = acquirer(createSemaphore(2), log);
  const leave = ["a", "b", "c", "d", "e"].map((name) => acquire(name));
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
  const leave = ["a", "b", "c"].map((name) => acquire(name));
  leave[1]?.();
  leave[0]?.();
  leave[2]?.();
  acquire("d");
  expect(log).toEqual(["a", "c", "d"]);
});

test("one client gets at most half of the permits, and the next one finds one at once", () => {
  const log: string[] = [];
  const acquire = acquirer(createSemaphore(8), log);
  const leave = Array.from({ length: 20 }, (_, at) => acquire(`a${at}`, "a"));
  expect(log).toEqual(["a0", "a1", "a2", "a3"]);
  acquire("b0", "b");
  expect(log.at(-1)).toBe("b0");
  acquire("b1", "b");
  acquire("c0", "c");
  // One is free, and the client has four: it waits until it has fewer than are free.
  for (const done of leave.slice(0, 2)) done();
  expect(log.slice(5)).toEqual(["b1", "c0", "a4"]);
  for (const done of leave.slice(2, 4)) done();
  expect(log.slice(8)).toEqual(["a5", "a6"]);
});

test("whatever the clients do, permits are neither lost nor made", () => {
  const random = randomFrom(1);
  for (let run = 0; run < 50; run++) {
    const limit = 1 + Math.floor(random() * 8);
    const semaphore = createSemaphore(limit);
    let running = 0;
    let waiting = 0;
    const leaves: (() => void)[] = [];
    for (let step = 0; step < 200; step++) {
      if (random() < 0.5 || leaves.length === 0) {
        let isIn = false;
        waiting += 1;
        const leave = semaphore.acquire(
          () => {
            isIn = true;
            running += 1;
            waiting -= 1;
          },
          String(Math.floor(random() * 3)),
        );
        leaves.push(() => {
          if (isIn) running -= 1;
          else waiting -= 1;
          leave();
        });
      } else {
        leaves.splice(Math.floor(random() * leaves.length), 1)[0]?.();
      }
      expect(running).toBeLessThanOrEqual(limit);
      if (waiting > 0) expect(running).toBeGreaterThanOrEqual(Math.floor(limit / 2));
    }
    for (const leave of leaves) leave();
    expect([running, waiting]).toEqual([0, 0]);
    semaphore.acquire(() => running++);
    expect(running).toBe(1);
  }
});
