import { expect, test } from "bun:test";
import { fisherExact, logLikelihood, runChance, shareInterval } from "../../src/util/statistics.ts";

/** The rows were computed with R: `prop.test(failed, count, correct = FALSE)$conf.int`. */
test.each([
  [0, 0, 0, 1],
  [10, 0, 0, 0.2775],
  [10, 1, 0.0179, 0.4042],
  [10, 10, 0.7225, 1],
  [30, 15, 0.3315, 0.6685],
  [100, 6, 0.0278, 0.1248],
])("the share of failures behind %d trials with %d", (count, failed, least, most) => {
  const [from, to] = shareInterval({ count, failed });
  expect(from).toBeCloseTo(least, 3);
  expect(to).toBeCloseTo(most, 3);
});

/** n choose k, exactly. */
function choose(n: number, k: number): bigint {
  let ways = 1n;
  for (let at = 1; at <= k; at++) ways = (ways * BigInt(n - k + at)) / BigInt(at);
  return ways;
}

/** The definition, in whole numbers. */
function slowFisher(one: [number, number], other: [number, number]): number {
  const [count, failed] = [one[0] + other[0], one[1] + other[1]];
  let ways = 0n;
  for (let x = one[1]; x <= Math.min(one[0], failed); x++) {
    if (failed - x <= other[0]) ways += choose(one[0], x) * choose(other[0], failed - x);
  }
  return Number((ways * 10n ** 15n) / choose(count, failed)) / 1e15;
}

test.each<[[number, number], [number, number]]>([
  [
    [10, 1],
    [10, 0],
  ],
  [
    [10, 6],
    [10, 0],
  ],
  [
    [10, 10],
    [10, 0],
  ],
  [
    [15, 4],
    [30, 0],
  ],
  [
    [100, 10],
    [400, 3],
  ],
  [
    [30, 23],
    [30, 1],
  ],
  [
    [2000, 60],
    [3000, 45],
  ],
])("Fisher's exact test of %p against %p", (one, other) => {
  const [a, b] = [one, other].map(([count, failed]) => ({ count, failed })) as [never, never];
  const exact = slowFisher(one, other);
  expect(Math.abs(fisherExact(a, b) - exact)).toBeLessThan(1e-6 * exact + 1e-12);
});

test("Fisher's exact test says nothing of fewer failures, and bears many trials", () => {
  expect(fisherExact({ count: 100, failed: 1 }, { count: 50, failed: 1 })).toBe(1);
  expect(fisherExact({ count: 0, failed: 0 }, { count: 50, failed: 1 })).toBe(1);
  expect(fisherExact({ count: 100_000, failed: 6000 }, { count: 3_000_000, failed: 0 })).toBe(0);
  expect(fisherExact({ count: 1e5, failed: 5100 }, { count: 3e6, failed: 150_000 })).toBeWithin(
    0.05,
    0.1,
  );
});

test("the likelihood of what happens always, or never, is that of the rest", () => {
  expect(logLikelihood({ count: 3, failed: 0 }, 0)).toBeCloseTo(0);
  expect(logLikelihood({ count: 3, failed: 3 }, 1)).toBeCloseTo(0);
  expect(logLikelihood({ count: 2, failed: 1 }, 0.5)).toBeCloseTo(2 * Math.log(0.5));
});

/** The share of all orders of the trials in which this number fails in a row. */
function shareWithRun(count: number, failed: number, length: number): number {
  let [all, found] = [0, 0];
  for (let order = 0; order < 2 ** count; order++) {
    const text = order.toString(2);
    if (text.replaceAll("0", "").length !== failed) continue;
    all++;
    if (text.includes("1".repeat(length))) found++;
  }
  return found / all;
}

test.each([
  [10, 5, 5],
  [12, 6, 5],
  [12, 3, 3],
  [14, 9, 8],
  [10, 10, 10],
  [10, 4, 0],
])(
  "among %d trials with %d failures, a row of %d is not more probable than said",
  (count, failed, length) => {
    const chance = runChance({ count, failed }, length);
    const share = shareWithRun(count, failed, length);
    expect(chance).toBeGreaterThanOrEqual(share - 1e-9);
    if (length > 0) expect(chance).toBeLessThan(4 * share + 1e-9);
  },
);
