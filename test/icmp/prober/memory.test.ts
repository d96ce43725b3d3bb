import { expect } from "bun:test";
import { fileURLToPath } from "node:url";
import { labMissing, testWith } from "../../lab/lab.ts";
import { labEnvironment } from "../../lab/run.ts";

const EXCHANGE = fileURLToPath(import.meta.resolve("../exchange.ts"));

/** SIXSCOPE_TEST_PACKETS=1000000 for the long run. */
const PACKETS = Number(process.env["SIXSCOPE_TEST_PACKETS"] ?? 20_000);

testWith(labMissing).each([
  ["the ordinary collector", {}],
  ["a collector that runs all the time", { BUN_JSC_slowPathAllocsBetweenGCs: "20" }],
])(
  `${PACKETS} packets through the FFI layer: no crash, no growth, with %s`,
  async (_name, environment) => {
    const child = Bun.spawn([process.execPath, EXCHANGE, String(PACKETS)], {
      env: { ...labEnvironment, ...environment },
      stdout: "pipe",
      stderr: "inherit",
    });
    const [output, status] = [await new Response(child.stdout).text(), await child.exited];
    expect(status).toBe(0);
    const { rssMiddle, rssEnd, ...counts } = JSON.parse(output);
    expect(counts).toEqual({ sent: PACKETS, refused: 0, received: PACKETS, wrong: 0 });
    expect(rssEnd - rssMiddle).toBeLessThan(32e6);
  },
  600_000,
);
