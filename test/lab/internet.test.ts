import { expect } from "bun:test";
import { readdirSync } from "node:fs";
import { startInternet } from "./internet.ts";
import type { Router } from "./internet-description.ts";
import { programMissing, testWith, tunMissing } from "./lab.ts";
import { run } from "./run.ts";
import { ping, trace } from "./system-tools.ts";

const internetTest = testWith(tunMissing);
const pingTest = testWith(tunMissing, programMissing("ping"));
const traceTest = testWith(tunMissing, programMissing("traceroute"));

const TARGET = "2001:db8:2::7";

/** Routers 2001:db8:1::1 and on, each 2 ms farther than the one before. */
function routers(count: number, special: Record<number, Partial<Router>> = {}): Router[] {
  return Array.from({ length: count }, (_, index) => ({
    address: `2001:db8:1::${(index + 1).toString(16)}`,
    rttMs: 2 * (index + 1),
    ...special[index + 1],
  }));
}

traceTest("traceroute sees every router but the silent one, and the host", async () => {
  await using _ = await startInternet({
    destinations: [{ to: TARGET, routers: routers(12, { 5: { silent: true } }) }],
  });
  const expected = [...routers(12).map(({ address }) => address), TARGET];
  expect(await trace(TARGET)).toEqual(expected.with(4, "*"));
});

pingTest("a delay is never shorter than described, and seldom much longer", async () => {
  await using _ = await startInternet({ destinations: [{ to: TARGET, end: { rttMs: 30 } }] });
  const { received, rttsMs } = await ping(TARGET, 40);
  expect(received).toBe(40);
  expect(Math.min(...rttsMs)).toBeGreaterThanOrEqual(30);
  expect(rttsMs.toSorted((a, b) => a - b)[20]).toBeLessThan(40);
});

pingTest("the answers that are to be lost are lost, and duplicates arrive", async () => {
  await using _ = await startInternet({
    destinations: [
      {
        to: TARGET,
        end: { loss: [2, 3], rules: [{ probes: [1], beside: true, copies: 2, afterMs: 3 }] },
      },
    ],
  });
  const { received, duplicates } = await ping(TARGET, 5);
  expect({ received, duplicates }).toEqual({ received: 3, duplicates: 2 });
});

pingTest("the log holds what the test host sent", async () => {
  const internet = await startInternet({ destinations: [{ to: "2001:db8:2::/64" }] });
  await ping(TARGET, 3, "-s", "300", "-t", "9");
  expect(internet.count()).toBe(3);
  const probes = await internet.stop();
  expect(probes.map(({ sequence }) => sequence)).toEqual([1, 2, 3]);
  expect(probes[0]).toMatchObject({
    source: "2001:db8::1",
    destination: TARGET,
    hopLimit: 9,
    packetBytes: 348,
    checksumIsRight: true,
  });
  const [first, second] = probes.map(({ timeNs }) => timeNs);
  expect((second ?? 0) - (first ?? 0)).toBeGreaterThan(10e6);
});

internetTest("internets come and go without a trace", async () => {
  const network = () => run(["sh", "-c", "ip -o link | cut -d: -f2; ip -6 route; ip -6 -o addr"]);
  const held = (kind: string) => readdirSync(`/proc/self/${kind}`).length;
  const ROUNDS = 10;
  const before = { network: await network(), descriptors: held("fd"), threads: held("task") };
  for (let round = 0; round < ROUNDS; round++) {
    const internet = await startInternet({ destinations: [{ to: TARGET }] });
    await internet.stop();
    expect(await internet.stop()).toEqual([]);
  }
  expect(await network()).toBe(before.network);
  // The runtime opens and ends some of its own; one left behind in each round would show.
  expect(held("fd")).toBeLessThan(before.descriptors + ROUNDS);
  expect(held("task")).toBeLessThan(before.threads + ROUNDS);
});

internetTest("a device that cannot be set up is not left behind", async () => {
  const start = startInternet({ destinations: [{ to: "2001:db8::/nonsense" }] });
  expect(start).rejects.toThrow("2001:db8::/nonsense");
  await start.catch(() => {});
  expect(await run(["ip", "-o", "link"])).not.toContain("internet");
});

pingTest("a fault of the simulation comes out when it is stopped", async () => {
  const internet = await startInternet({
    destinations: [{ to: TARGET, routers: [{ address: "nowhere" }] }],
  });
  await ping(TARGET, 1, "-t", "1");
  expect(internet.stop()).rejects.toThrow('"nowhere" is no IPv6 address');
});
