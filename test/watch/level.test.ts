import { expect, test } from "bun:test";
import { Levels, rankChance } from "../../src/watch/level.ts";
import { randomFrom } from "../lab/simulation.ts";
import { type Level, RUNS, simulateRun } from "./simulated.ts";

/** The same chance, counted over all ways to choose. */
function countedChance(some: readonly number[], others: readonly number[]): number {
  const all = [...some, ...others];
  const rank = (value: number) =>
    all.filter((each) => each < value).length +
    (all.filter((each) => each === value).length + 1) / 2;
  const centre = (some.length * (all.length + 1)) / 2;
  const sumOf = (values: readonly number[]) => values.reduce((sum, value) => sum + rank(value), 0);
  const seen = Math.abs(sumOf(some) - centre);
  let [ways, far] = [0, 0];
  for (let bits = 0; bits < 2 ** all.length; bits++) {
    const chosen = all.filter((_, at) => (bits >> at) & 1);
    if (chosen.length !== some.length) continue;
    ways++;
    if (Math.abs(sumOf(chosen) - centre) >= seen) far++;
  }
  return far / ways;
}

test.each<[some: number[], others: number[]]>([
  [
    [9, 10, 11],
    [1, 2, 3, 4, 5, 6],
  ],
  [
    [1, 5, 9],
    [2, 3, 4, 6, 7],
  ],
  [
    [5, 5, 7],
    [5, 5, 5, 6, 4],
  ],
  [
    [3, 3, 3],
    [3, 3, 3, 3],
  ],
  [
    [1, 2, 3, 4],
    [5, 6, 7, 8, 2],
  ],
])("the exact chance of the ranks of %j among %j", (some, others) => {
  expect(rankChance(some, others)).toBeCloseTo(countedChance(some, others), 12);
});

const STEADY: Level = { rtt: 20, swing: 0.1, loss: 0 };

/** Kinds told of runs, each with the number of runs since the change. */
function toldOf(seed: number, before: Level, runsBefore: number, after: Level, runsAfter: number) {
  const random = randomFrom(seed);
  const levels = new Levels();
  const told: string[] = [];
  for (let at = 0; at < runsBefore + runsAfter; at++) {
    const level = at < runsBefore ? before : after;
    for (const { kind } of levels.add(simulateRun(level, at, random))) {
      told.push(`${kind} ${at < runsBefore ? "before" : at - runsBefore + 1}`);
    }
  }
  return told;
}

const TRIALS = 60;
const shareWithin = (kind: string, runs: number, after: Level, runsBefore: number) => {
  const trials = Array.from({ length: TRIALS }, (_, at) =>
    toldOf(1 + at, STEADY, runsBefore, after, runs).some((told) => told.startsWith(kind)),
  );
  return trials.filter(Boolean).length / TRIALS;
};

test.each<[reason: string, level: Level]>([
  ["a daily swing and heavy tails", STEADY],
  ["seldom loss", { ...STEADY, loss: 0.002 }],
  ["steady loss", { ...STEADY, loss: 0.05 }],
])("two months of %s are at most two false alarms", (_reason, level) => {
  expect(toldOf(5, level, 2 * RUNS.aMonth, level, 0).length).toBeLessThanOrEqual(2);
});

test.each<
  [reason: string, before: number, kind: string, runs: number, after: Level, least: number]
>([
  ["20 % more time", 500, "rtt", 6, { ...STEADY, rtt: 24 }, 0.9],
  ["20 % less time", 420, "rtt", 6, { ...STEADY, rtt: 16 }, 0.9],
  ["5 % loss within twelve runs", 400, "loss", 12, { ...STEADY, loss: 0.05 }, 0.65],
  ["5 % loss within 18 runs", 400, "loss", 18, { ...STEADY, loss: 0.05 }, 0.85],
  ["twice the time after 15 runs", 15, "rtt", 6, { ...STEADY, rtt: 40 }, 0.9],
])("%s is told", (_reason, before, kind, runs, after, least) => {
  expect(shareWithin(kind, runs, after, before)).toBeGreaterThanOrEqual(least);
});

test("a change is told once, and its end too", () => {
  const random = randomFrom(3);
  const levels = new Levels();
  const kinds = Array.from({ length: 900 }, (_, at) => {
    const level = at >= 300 && at < 600 ? { ...STEADY, rtt: 60 } : STEADY;
    return levels
      .add(simulateRun(level, at, random))
      .map(({ kind, before, after }) => [kind, after > before]);
  }).flat();
  expect(kinds).toEqual([
    ["rtt", true],
    ["rtt", false],
  ]);
});

test.each<[reason: string, losses: number[], isTold: boolean]>([
  ["five of six beyond by ten points", [20, 20, 0, 20, 20, 20], true],
  ["four of six", [20, 20, 0, 0, 20, 20], false],
  ["five of six by less", [8, 8, 0, 8, 8, 8], false],
])("after twelve runs, six tell of loss: %s", (_reason, losses, isTold) => {
  const levels = new Levels();
  const run = (lost: number) => levels.add({ sent: 100, lost, median: 20_000 });
  for (let at = 0; at < 12; at++) run(0);
  expect(losses.flatMap(run).length > 0).toBe(isTold);
});

test("the runs since the last change are read before the first", () => {
  const asked: string[] = [];
  const levels = new Levels((kind, count) => {
    asked.push(`${kind} ${count}`);
    return Array.from({ length: 60 }, (_, at) => ({
      sent: 10,
      lost: 0,
      median: 20_000 + (at % 2),
    }));
  });
  const told = Array.from({ length: 4 }, () =>
    levels.add({ sent: 10, lost: 0, median: 30_000 }),
  ).flat();
  expect(asked).toEqual(["rtt 54", "loss 624"]);
  expect(told).toEqual([{ kind: "rtt", before: 20_000.5, after: 30_000 }]);
});
