/**
 * Tests the DNS or ICMPv6 code with random and mutated input: `bun scripts/fuzz.ts dns|icmp [seconds]`,
 * 60 seconds by default. If a property fails, prints the input and a seed to repeat it; exit status 1.
 */
import fc from "fast-check";
import { PROPERTIES as DNS } from "../test/dns/fuzz.ts";
import { PROPERTIES as ICMP } from "../test/icmp/properties.ts";

/** Inputs of one property in each turn. */
const RUNS_A_TURN = 2000;

const SUBJECTS = new Map<string, readonly (readonly [string, fc.IRawProperty<unknown>])[]>([
  ["dns", Object.entries(DNS)],
  ["icmp", ICMP],
]);

const [subject = "", duration = "60"] = Bun.argv.slice(2);
const properties = SUBJECTS.get(subject);
const seconds = Number(duration);
if (properties === undefined || !(seconds > 0)) {
  console.error(`usage: bun scripts/fuzz.ts ${[...SUBJECTS.keys()].join("|")} [seconds]`);
  process.exit(2);
}

const endMs = performance.now() + seconds * 1000;
const inputs = new Map(properties.map(([name]) => [name, 0]));
while (performance.now() < endMs) {
  for (const [name, property] of properties) {
    const result = await fc.check(property, {
      numRuns: RUNS_A_TURN,
      interruptAfterTimeLimit: endMs - performance.now(),
    });
    inputs.set(name, (inputs.get(name) ?? 0) + result.numRuns);
    // The library also reports a turn without input as failed, but without a counterexample.
    if (result.counterexample === null) continue;
    console.error(`failed: ${name}\n${fc.defaultReportMessage(result)}`);
    process.exit(1);
  }
}
for (const [name, count] of inputs) console.log(`${String(count).padStart(9)}  ${name}`);
