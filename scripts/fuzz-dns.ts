/**
 * Feeds random and mutated input to the DNS code for a while: `bun scripts/fuzz-dns.ts [seconds]`, 60 by
 * default. Exit status 1, with the input and a seed to repeat it, when something that must hold does not.
 */
import fc from "fast-check";
import { PROPERTIES } from "../test/dns/fuzz.ts";

/** Inputs of one property before it is the next one's turn. */
const RUNS_A_TURN = 2000;

const seconds = Number(process.argv[2] ?? 60);
if (!(seconds > 0)) {
  console.error("usage: bun scripts/fuzz-dns.ts [seconds]");
  process.exit(2);
}

const endMs = performance.now() + seconds * 1000;
const names = Object.keys(PROPERTIES);
const inputs = new Map(names.map((name) => [name, 0]));
for (let turn = 0; performance.now() < endMs; turn++) {
  const name = names[turn % names.length] as string;
  const result = await fc.check(PROPERTIES[name] as fc.IRawProperty<unknown>, {
    numRuns: RUNS_A_TURN,
    interruptAfterTimeLimit: endMs - performance.now(),
  });
  inputs.set(name, (inputs.get(name) ?? 0) + result.numRuns);
  if (!result.failed) continue;
  console.error(`failed: ${name}\n${fc.defaultReportMessage(result)}`);
  process.exit(1);
}
for (const [name, count] of inputs) console.log(`${String(count).padStart(9)}  ${name}`);
