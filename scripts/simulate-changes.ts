/**
 * What is told of changes: `bun scripts/simulate-changes.ts` prints false alarms in stationary noise and how often
 * changes are told, with 95 % confidence. With `--replay --every SECONDS` it reads runs by line, as
 * `{ "name", "at", "sent", "lost", "min", "median", "max" }` with times in milliseconds, and prints what is told of them.
 */
import { parseArgs } from "node:util";
import { round } from "../src/util/numbers.ts";
import { shareInterval } from "../src/util/statistics.ts";
import { formatPercent } from "../src/util/text.ts";
import { diff } from "../src/watch/diff.ts";
import { Levels, levelDifference } from "../src/watch/level.ts";
import { randomFrom } from "../test/lab/simulation.ts";
import {
  type Level,
  mtrOf,
  type Network,
  pathsOf,
  RUNS,
  simulateRun,
  traceOf,
  wayOf,
} from "../test/watch/simulated.ts";

const { values: options } = parseArgs({
  options: {
    replay: { type: "boolean", default: false },
    every: { type: "string", default: "300" },
    months: { type: "string", default: "30" },
    changes: { type: "string", default: "200" },
  },
});

const STEADY: Level = { rtt: 20, swing: 0.1, loss: 0 };

/** An upper and a lower bound on the mean of a count, with 95 % confidence; by Wilson and Hilferty. */
function countInterval(count: number): readonly [number, number] {
  const bound = (shape: number, z: number) =>
    shape === 0 ? 0 : shape * (1 - 1 / (9 * shape) + z / (3 * Math.sqrt(shape))) ** 3;
  return [bound(count, -1.96), bound(count + 1, 1.96)];
}

function printFalseAlarms(name: string, level: Level): void {
  const months = Number(options.months);
  const told = { rtt: 0, loss: 0 };
  for (let month = 0; month < months; month++) {
    const random = randomFrom(1 + month);
    const levels = new Levels();
    for (let at = 0; at < RUNS.aMonth; at++) {
      for (const { kind } of levels.add(simulateRun(level, at, random))) told[kind]++;
    }
  }
  for (const kind of ["rtt", "loss"] as const) {
    const rates = [told[kind], ...countInterval(told[kind])].map((count) =>
      round(count / months, 2),
    );
    console.log(
      `false ${kind}, ${name}: ${rates[0]} a watch and month (${rates[1]} to ${rates[2]})`,
    );
  }
}

function printDetection(
  kind: "rtt" | "loss",
  name: string,
  change: Partial<Level>,
  within: number,
) {
  const count = Number(options.changes);
  let told = 0;
  for (let trial = 0; trial < count; trial++) {
    const random = randomFrom(1e6 + trial);
    const levels = new Levels();
    const begin = 400 + Math.floor(random() * RUNS.aDay);
    for (let at = 0; at < begin; at++) levels.add(simulateRun(STEADY, at, random));
    for (let at = begin; at < begin + within; at++) {
      const changes = levels.add(simulateRun({ ...STEADY, ...change }, at, random));
      if (!changes.some((each) => each.kind === kind)) continue;
      told++;
      break;
    }
  }
  printShare(`${kind} ${name}, told within ${within} runs`, told, count);
}

function printShare(name: string, failed: number, count: number): void {
  const shares = [failed / count, ...shareInterval({ count, failed })];
  const [share, least, most] = shares.map((each) => formatPercent(100 * each));
  console.log(`${name}: ${share} (${least} to ${most})`);
}

const DOCUMENTS = { trace: traceOf, mtr: mtrOf, paths: pathsOf };

function printPaths(tool: keyof typeof DOCUMENTS, network: Network): void {
  const make = DOCUMENTS[tool];
  const random = randomFrom(7);
  const count = Number(options.changes) * 2.5;
  const kinds = { same: 0, named: 0 };
  for (let trial = 0; trial < count; trial++) {
    const label = 1 + Math.floor(random() * 0xfffff);
    const hop = 1 + Math.floor(random() * 5);
    const way = hop === 3 || hop === 4 ? wayOf(label) : 0;
    const pair = (one: Network, other: Network) =>
      diff(make(one, label, random), make(other, label, random));
    if (pair(network, network).length > 0) kinds.same++;
    const heard = { ...network, silence: 0 };
    const found = pair(heard, { ...heard, replaced: { hop, way } });
    if (found.some((each) => each.kind === "path" && each.hop === hop)) kinds.named++;
  }
  const about = `${tool}, ways chosen by ${network.choice}`;
  printShare(`false path, ${about}, one answer of ten missing`, kinds.same, count);
  if (network.choice === "flow")
    printShare(`path, ${about}, router named with its hop`, kinds.named, count);
}

/** Prints what is told of runs from standard input. */
async function replay(): Promise<void> {
  const watches = new Map<string, Levels>();
  for await (const line of console) {
    if (line.trim() === "") continue;
    const { name, at, sent, lost, median } = JSON.parse(line);
    const levels = watches.getOrInsertComputed(name, () => new Levels());
    const us = median === null || median === undefined ? null : Math.round(median * 1000);
    for (const change of levels.add({ sent, lost, median: us })) {
      const { kind, text } = levelDifference(change);
      console.log(JSON.stringify({ name, at, kind, text }));
    }
  }
}

if (options.replay) await replay();
else {
  printFalseAlarms("no loss", STEADY);
  printFalseAlarms("swing of 20 %, 0.1 % loss", { rtt: 20, swing: 0.2, loss: 0.001 });
  printFalseAlarms("1 % loss", { ...STEADY, loss: 0.01 });
  printFalseAlarms("5 % loss", { ...STEADY, loss: 0.05 });
  printDetection("rtt", "20 % more", { rtt: 24 }, 6);
  printDetection("rtt", "20 % less", { rtt: 16 }, 6);
  printDetection("loss", "of 5 %", { loss: 0.05 }, 12);
  printDetection("loss", "of 5 %", { loss: 0.05 }, 18);
  for (const tool of ["trace", "mtr", "paths"] as const)
    printPaths(tool, { choice: "flow", silence: 0.1 });
  printPaths("mtr", { choice: "packet", silence: 0.1 });
}
