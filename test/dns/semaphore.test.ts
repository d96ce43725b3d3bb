import { expect, test } from "bun:test";
import { SocketPlaces } from "../../src/dns/semaphore.ts";
import { settle } from "./fake-clock.ts";

/** Takes a place for somebody, and notes in `log` how that ended. */
function taker(places: SocketPlaces, log: string[]) {
  return (who: string, hasBegun = false) => {
    const controller = new AbortController();
    places.take(hasBegun, controller.signal).then((taken) => {
      log.push(taken ? who : `${who} left`);
    });
    return controller;
  };
}

test("places are given in order, to those first who have begun", async () => {
  const places = new SocketPlaces(1);
  const log: string[] = [];
  const take = taker(places, log);
  take("a");
  take("b");
  take("c");
  take("d", true);
  await settle();
  expect(log).toEqual(["a"]);
  expect(places.areContended).toBe(true);
  for (let round = 0; round < 3; round++) {
    places.give();
    await settle();
    expect(places.taken).toBe(1);
  }
  expect(log).toEqual(["a", "d", "b", "c"]);
  expect(places.areContended).toBe(false);
  places.give();
  expect(places.taken).toBe(0);
});

test("who leaves takes no place", async () => {
  const places = new SocketPlaces(1);
  const log: string[] = [];
  const take = taker(places, log);
  take("a");
  const b = take("b");
  take("c");
  b.abort();
  places.give();
  await settle();
  expect(log).toEqual(["a", "b left", "c"]);
  places.give();
  expect(places.taken).toBe(0);
});

test("who had left before takes no place even where one is free", async () => {
  const places = new SocketPlaces(1);
  expect(await places.take(false, AbortSignal.abort())).toBe(false);
  expect(places.taken).toBe(0);
});

test("who is admitted and leaves in the same moment has the place, and gives it back", async () => {
  const places = new SocketPlaces(1);
  const log: string[] = [];
  const take = taker(places, log);
  take("a");
  const b = take("b");
  places.give();
  b.abort();
  await settle();
  expect(log).toEqual(["a", "b"]);
  expect(places.taken).toBe(1);
});
