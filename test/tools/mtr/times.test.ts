import { expect, test } from "bun:test";
import { MAX_TIMES, TimeStatistics, type Times } from "../../../src/tools/mtr/times.ts";
import { randomFrom } from "../../lab/simulation.ts";

function statistics(times: readonly number[]): Times | null {
  const found = new TimeStatistics();
  for (const ms of times) found.add(ms);
  return found.get();
}

test("are none of no time", () => {
  expect(statistics([])).toBeNull();
});

test("of some times", () => {
  const jitter = (2 + 6 + 2 + 1) / 4;
  expect(statistics([4, 2, 8, 6, 5])).toEqual({
    ...{ last: 5, min: 2, avg: 5, max: 8, stdDev: 2, jitter, p50: 5, p95: 8 },
  });
  expect(statistics([3])).toEqual({
    ...{ last: 3, min: 3, avg: 3, max: 3, stdDev: 0, jitter: 0, p50: 3, p95: 3 },
  });
});

test("the percentiles are times that were measured", () => {
  const hundred = Array.from({ length: 100 }, (_, at) => at + 1);
  expect(statistics(hundred)).toMatchObject({ p50: 50, p95: 95 });
});

test("of many times are those of all of them, and the percentiles those of the last", () => {
  const random = randomFrom(7);
  const times = Array.from({ length: 3 * MAX_TIMES }, () => 1000 + random() ** 4);
  const mean = times.reduce((sum, ms) => sum + ms, 0) / times.length;
  const variance = times.reduce((sum, ms) => sum + (ms - mean) ** 2, 0) / times.length;
  const recent = times.slice(-MAX_TIMES).sort((a, b) => a - b);
  const found = statistics(times) as Times;
  expect(found.avg).toBeCloseTo(mean, 9);
  expect(found.stdDev).toBeCloseTo(Math.sqrt(variance), 9);
  expect([found.min, found.max]).toEqual([Math.min(...times), Math.max(...times)]);
  expect([found.p50, found.p95]).toEqual([
    recent[MAX_TIMES / 2 - 1] as number,
    recent[MAX_TIMES * 0.95 - 1] as number,
  ]);
});
