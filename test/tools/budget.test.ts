/** The cost of a run: the bounds hold for every order of charges, and the first one that is met is told. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { formatIpv6 } from "../../src/addr/format.ts";
import {
  createBudget,
  createWorkTime,
  ENOUGH,
  MAX_ADDRESSES,
  MAX_AT_HOP,
  MAX_EVENT_BYTES,
  MAX_WORK_MS,
  WINDOW_MS,
} from "../../src/tools/budget.ts";
import { parseIpv6 } from "../addr/parse.ts";

import { FakeClock } from "../util/fake-clock.ts";

const address = (number: number) => parseIpv6(`2001:db8::${number.toString(16)}`);

function open(client = "one", clock = new FakeClock(), time = createWorkTime()) {
  return { budget: createBudget(client, clock, time), clock, time };
}

/** Checks that a run has ended for a reason. */
function expectMet(
  { cutShort, enough }: ReturnType<typeof createBudget>,
  code: string,
  text: string,
) {
  expect(cutShort()?.code as string).toBe(code);
  expect(cutShort()?.text).toContain(text);
  expect([enough.aborted, enough.reason]).toEqual([true, ENOUGH]);
}

test("never are more addresses admitted, at a hop or in all, whatever answers", () => {
  const answers = fc.record({
    hops: fc.integer({ min: 1, max: 64 }),
    addresses: fc.integer({ min: 1, max: 400 }),
    count: fc.integer({ min: 1, max: 3000 }),
    seed: fc.integer(),
  });
  fc.assert(
    fc.property(answers, ({ hops, addresses, count, seed }) => {
      const { budget } = open();
      const kept = Array.from({ length: hops }, () => new Set<string>());
      for (let at = 0; at < count; at++) {
        const random = Number(Bun.hash.wyhash(`${seed} ${at}`) % 2n ** 30n);
        const [hop, from] = [(random % hops) + 1, address((random >> 8) % addresses)];
        const known = kept[hop - 1]?.has(formatIpv6(from));
        if (budget.admit(hop, formatIpv6(from))) kept[hop - 1]?.add(formatIpv6(from));
        else expect(known).toBe(false);
      }
      const sizes = kept.map(({ size }) => size);
      const all = sizes.reduce((sum, size) => sum + size, 0);
      expect(Math.max(...sizes)).toBeLessThanOrEqual(MAX_AT_HOP);
      expect(all).toBeLessThanOrEqual(MAX_ADDRESSES);
      const isFull = sizes.includes(MAX_AT_HOP) || all === MAX_ADDRESSES;
      expect(budget.enough.aborted && !isFull).toBe(false);
    }),
    { numRuns: 100, seed: 22 },
  );
});

// biome-ignore format: a table
test.each<[string, number, (number: number) => [hop: number, number: number], string]>([
  ["at one hop", MAX_AT_HOP, (number) => [5, number], "addresses-at-hop"],
  ["in all", MAX_ADDRESSES, (number) => [1 + (number % 64), number], "addresses"],
  ["in all, one at each hop", MAX_ADDRESSES, (number) => [number, 1], "addresses"],
])("as many addresses %s as there may be fit, and one more does not", (_, most, at, code) => {
  const { budget } = open();
  const admit = (number: number) => {
    const [hop, from] = at(number);
    return budget.admit(hop, formatIpv6(address(from))) && budget.admit(hop, undefined);
  };
  for (let number = 1; number <= most; number++) expect(admit(number)).toBe(true);
  expect(admit(1)).toBe(true);
  expect(budget.cutShort()).toBeUndefined();
  expect(admit(most + 1)).toBe(false);
  expectMet(budget, code, `More than ${most} different`);
  expect(admit(1)).toBe(true);
});

test("never are more bytes told, and nothing after what was too much", () => {
  const sizes = fc.array(fc.integer({ min: 1, max: MAX_EVENT_BYTES }), { maxLength: 50 });
  fc.assert(
    fc.property(sizes, (events) => {
      const { budget } = open();
      const told = events.filter((bytes) => budget.tell(bytes));
      const sum = told.reduce((all, bytes) => all + bytes, 0);
      expect(sum).toBeLessThanOrEqual(MAX_EVENT_BYTES);
      expect(told).toEqual(events.slice(0, told.length));
      if (told.length < events.length) expectMet(budget, "events", "bytes");
    }),
    { numRuns: 200, seed: 22 },
  );
});

describe("work", () => {
  test("is charged to the client, whose runs end when they have had their time", () => {
    const { budget: first, clock, time } = open();
    const { budget: second } = open("one", clock, time);
    const { budget: other } = open("other", clock, time);
    first.work(() => clock.block(MAX_WORK_MS));
    expect(first.cutShort()).toBeUndefined();
    second.work(() => clock.block(1));
    other.work(() => clock.block(1));
    expectMet(second, "work", `${MAX_WORK_MS} ms`);
    expect([first.cutShort(), other.cutShort()]).toEqual([undefined, undefined]);
    first.work(() => {});
    expectMet(first, "work", `${MAX_WORK_MS} ms`);
  });

  test("of the last window does not count", () => {
    const { budget, clock } = open();
    for (let window = 0; window < 5; window++) {
      budget.work(() => clock.block(MAX_WORK_MS));
      clock.block(WINDOW_MS);
    }
    expect(budget.cutShort()).toBeUndefined();
  });
});
