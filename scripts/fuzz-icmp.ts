/**
 * Throws packets at everything that parses ICMPv6, until the time is over or something breaks:
 * `bun scripts/fuzz-icmp.ts [seconds]`, 60 seconds by default.
 */
import fc from "fast-check";
import { PROPERTIES } from "../test/icmp/properties.ts";

const seconds = Number(process.argv[2] ?? 60);
for (const [name, property] of PROPERTIES) {
  const { failed, numRuns, counterexample, errorInstance, seed } = fc.check(property, {
    numRuns: Number.MAX_SAFE_INTEGER,
    interruptAfterTimeLimit: (seconds * 1000) / PROPERTIES.length,
  });
  console.log(`${failed ? "FAILED" : "holds"} after ${numRuns} runs, seed ${seed}: ${name}`);
  if (failed) {
    console.log(fc.stringify(counterexample), errorInstance);
    process.exitCode = 1;
  }
}
