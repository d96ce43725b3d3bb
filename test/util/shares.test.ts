/** Shares at two levels: a service that asks over NATS, and the clients that it names. */
import { expect, test } from "bun:test";
import { createBudget, createWorkTime, MAX_WORK_MS } from "../../src/tools/budget.ts";
import { clientOfService, hasShare, leavesRoom, sharersOf } from "../../src/util/shares.ts";
import { FakeClock } from "./fake-clock.ts";

/** How many places each gets that takes as many as it may, in turn. */
function fill(limit: number, clients: readonly string[]): number[] {
  const taken: string[] = [];
  const heldBy = (name: string) => taken.filter((other) => sharersOf(other).includes(name)).length;
  for (let round = 0; round < limit; round++) {
    for (const client of clients)
      if (leavesRoom(client, limit - taken.length, heldBy)) taken.push(client);
  }
  return clients.map((client) => taken.filter((other) => other === client).length);
}

const many = (service: string, count: number) =>
  Array.from({ length: count }, (_, at) => clientOfService(service, `${at}`));

// biome-ignore format: a table
test.each<[what: string, limit: number, clients: readonly string[], expected: number[]]>([
  ["a client without a service", 64, ["a"], [32]],
  ["the only client of a service", 64, many("a", 1), [16]],
  ["two services with a client each", 64, [...many("a", 1), ...many("b", 1)], [13, 13]],
  ["the only place", 1, many("a", 1), [1]],
])("%s gets its part", (_, limit, clients, expected) => {
  expect(fill(limit, clients)).toEqual(expected);
});

test("10,000 clients of a service get no more than one client alone, and leave as much to others", () => {
  const [honest = 0, ...flood] = fill(64, [...many("b", 1), ...many("a", 10_000)]);
  expect(flood.reduce((a, b) => a + b)).toBeLessThanOrEqual(32);
  expect(honest).toBeGreaterThan(0);
});

test("the share of those who wait is that of the service, then of its client in it", () => {
  const flood = many("a", 30);
  expect(hasShare("a/new", 64, flood)).toBe(false);
  expect(hasShare("a/new", 64, [...flood, "b/1"])).toBe(false);
  expect(hasShare("a/new", 60, [...flood, "b/1"])).toBe(true);
  expect(hasShare("b/1", 60, [...flood, ...many("a", 30)])).toBe(false);
  expect(hasShare("b/1", 60, [...flood, ...Array(15).fill("b/1"), "b/2"])).toBe(true);
});

test("all clients of a service together may work as much as two", () => {
  const [clock, time] = [new FakeClock(), createWorkTime()];
  const work = (client: string) => {
    const budget = createBudget(client, clock, time);
    budget.work(() => clock.block(MAX_WORK_MS * 0.75));
    return budget.cutShort()?.code;
  };
  expect(["a/1", "a/2", "a/3", "b/1", "a/4"].map(work)).toEqual([
    ...[undefined, undefined, "work", undefined, "work"],
  ] as never);
});
