import { expect } from "bun:test";
import { programMissing, testWith } from "../lab/lab.ts";
import { run } from "../lab/run.ts";
import { valkeyMissing } from "../lab/valkey.ts";

const missing = valkeyMissing ?? programMissing("nats-server");

testWith(missing)(
  "the simulation of a fleet shows where one Valkey ends, and what a cut changes",
  async () => {
    const output = await run([process.execPath, "scripts/simulate-fleet.ts"]);
    const givenUp = (row: string) =>
      Number(
        output
          .split("\n")
          .find((line) => line.includes(` ${row} `))
          ?.match(/([\d.]+) %\s*│$/)?.[1],
      );
    expect(output).toMatch(/It carries [\d,]+ instances, (8\d|90)\.\d % busy\./);
    expect(givenUp("10 instances")).toBe(0);
    expect(givenUp("one Valkey, far away")).toBe(100);
    expect(givenUp("by key hash, 8 Valkeys")).toBe(0);
  },
);
