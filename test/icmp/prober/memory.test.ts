import { expect, test } from "bun:test";
import { fileURLToPath } from "node:url";
import { MAX_PROBES } from "../../../src/icmp/prober/prober.ts";
import { labMissing, testWith } from "../../lab/lab.ts";
import { labEnvironment } from "../../lab/run.ts";

const OUTSTANDING = fileURLToPath(import.meta.resolve("../outstanding.ts"));
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

/** Fills a prober in a process of its own; `bytes` are those that it took more. */
async function fillProber(wanted: number) {
  const child = Bun.spawn([process.execPath, OUTSTANDING, `${wanted}`], {
    // Garbage is collected as the unit lets it be.
    env: { ...labEnvironment, BUN_JSC_forceRAMSize: "134217728" },
    stdout: "pipe",
    stderr: "inherit",
  });
  const [output, status] = [await new Response(child.stdout).text(), await child.exited];
  expect(status).toBe(0);
  return JSON.parse(output) as {
    outstanding: number;
    refused: number;
    isFull: boolean;
    bytes: number;
  };
}

test("65,536 outstanding probes, with all that their pings, traces and mtr hold, take at most 100 MB", async () => {
  // In the prober are those of its first runs too, which have ended.
  const WANTED = 64_000;
  const MOST_BYTES = (100e6 * WANTED) / MAX_PROBES;
  let least = Infinity;
  // A busy machine leaves more garbage between the pages that are in use.
  for (let tries = 0; tries < 3 && least > MOST_BYTES; tries++) {
    const { outstanding, bytes, ...others } = await fillProber(WANTED);
    expect(outstanding).toBeGreaterThanOrEqual(WANTED);
    expect(others).toEqual({ refused: 0, isFull: true });
    least = Math.min(least, bytes);
  }
  expect(least).toBeLessThanOrEqual(MOST_BYTES);
}, 300_000);
