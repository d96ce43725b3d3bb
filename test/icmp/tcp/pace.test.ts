/** How many SYNs a port and a network get, from everybody together. */
import { expect, test } from "bun:test";
import { Bounds, DISTANCE_MS, PACKETS_PER_SECOND, SYN_PAUSE_MS } from "../../../src/gate/bounds.ts";
import { Prober } from "../../../src/icmp/prober/prober.ts";
import { mtr } from "../../../src/tools/mtr/engine.ts";
import { parseIpv6 } from "../../addr/parse.ts";
import { startKernelChain } from "../../lab/kernel-chain.ts";
import { labMissing, programMissing, testWith } from "../../lab/lab.ts";
import { nftRule } from "../../lab/nft.ts";
import { openIcmp } from "../engines.ts";
import { path, simulate, stationAddress } from "../fake.ts";

const SOURCE = parseIpv6("2001:db8::1");

const PROBED_PORT = { protocol: "tcp", port: 443 } as const;

const syn = (target = "2001:db8:1::1", port = 443, hopLimit = 64) => ({
  ...{ target: parseIpv6(target), source: SOURCE, hopLimit },
  probedPort: { protocol: "tcp", port } as const,
});

/** How many of the SYNs leave in a second, if each is tried every millisecond. */
function inSecond(limit: Bounds, fromMs: number, syns: readonly ReturnType<typeof syn>[]) {
  let sent = 0;
  for (let ms = 0; ms < 1000; ms++)
    for (const each of syns) if (limit.take(each, fromMs + ms)) sent++;
  return sent;
}

const A_SECOND = 1000 / SYN_PAUSE_MS;

test.each([
  ["one port, asked by everybody", [syn(), syn(), syn()], A_SECOND],
  ["two ports", [syn(), syn("2001:db8:1::1", 80)], 2 * A_SECOND],
  ["two targets", [syn(), syn("2001:db8:1::2")], 2 * A_SECOND],
  ["hops before the target", [1, 2, 3].map((hop) => syn(undefined, 443, hop)), 3 * A_SECOND],
])("%s", (_, syns, expected) => {
  expect(inSecond(new Bounds(), 0, syns)).toBe(expected);
});

test("SYNs that go as far as one that has reached its port share its bound, for a while", () => {
  const limit = new Bounds();
  const hops = Array.from({ length: 20 }, (_, at) => syn(undefined, 443, at + 1));
  expect(inSecond(limit, 0, hops)).toBe(20 * A_SECOND);
  limit.reached(syn(undefined, 443, 9), 1000);
  limit.reached(syn(undefined, 443, 6), 1000);
  limit.reached(syn(undefined, 443, 8), 1500);
  // Hops 1 to 5 end at routers; 6 to 20 are one.
  expect(inSecond(limit, 2000, hops)).toBe(6 * A_SECOND);
  expect(inSecond(limit, 4000, [syn("2001:db8:1::1", 80, 7), syn("2001:db8:1::1", 80, 8)])).toBe(
    2 * A_SECOND,
  );
  expect(inSecond(limit, 1000 + DISTANCE_MS, hops)).toBe(20 * A_SECOND);
});

test("a SYN that has to wait leaves as soon as it may", async () => {
  const { clock, socket, options } = simulate(path([{ rttMs: 1 }]));
  const prober = new Prober(options);
  const plan = { target: stationAddress(1), scopeId: 0, source: SOURCE, flowLabel: 1 };
  const { signal } = new AbortController();
  const ask = () =>
    prober.probe({ ...plan, probedPort: PROBED_PORT, hopLimit: 9, timeoutMs: 500, signal });
  const first = ask();
  await clock.advance(33);
  await clock.run(Promise.all([first, ask()]));
  prober.close();
  const [one, two] = socket.sent.map(({ atMs }) => atMs) as [number, number];
  expect(two - one).toBeCloseTo(SYN_PAUSE_MS, 3);
});

test("the bound for a /64 holds over all its targets and ports", () => {
  const limit = new Bounds();
  const syns = Array.from({ length: 400 }, (_, at) => syn(`2001:db8:1::${at % 40}`, 1000 + at));
  expect(inSecond(limit, 0, syns)).toBe(PACKETS_PER_SECOND);
});

test("rounds of mtr do not pile up behind the bound", async () => {
  let waiting = 0;
  const network = path([{ rttMs: 1 }, { rttMs: 2 }, { rttMs: 3 }]);
  const { clock, socket, options } = simulate((packet, sentMs) => {
    waiting = Math.max(waiting, clock.pending);
    return network(packet, sentMs);
  });
  const prober = new Prober(options);
  const request = {
    target: stationAddress(3),
    timeoutMs: 500,
    maxHops: 9,
    probedPort: PROBED_PORT,
  };
  const rounds = { ...request, rounds: 60, intervalMs: 10 };
  const outcome = await clock.run(mtr(prober, rounds));
  prober.close();
  expect(outcome).toMatchObject({ kind: "done", toTarget: { sent: 60, received: 60 } });
  expect(socket.sent.length).toBeGreaterThan(180);
  expect(waiting).toBeLessThan(60);
});

testWith(labMissing, programMissing("nft"))(
  "pings of several callers send no more than one ping's SYNs to a port",
  async () => {
    await using chain = await startKernelChain({ routers: 2 });
    const counter = nftRule("input", "tcp dport 443 tcp flags & syn == syn counter");
    await chain.exec(3, ["nft", "-f", "-"], counter);
    const engine = openIcmp();
    const request = { target: parseIpv6(chain.target), timeoutMs: 2000, probedPort: PROBED_PORT };
    const startMs = performance.now();
    const pings = [1, 2, 3].map(() => engine.ping({ ...request, count: 10, intervalMs: 10 }));
    const outcomes = await Promise.all(pings);
    const tookMs = performance.now() - startMs;
    for (const outcome of outcomes) expect(outcome).toMatchObject({ results: { length: 10 } });
    expect(tookMs).toBeGreaterThanOrEqual(29 * SYN_PAUSE_MS);
    expect(await chain.exec(3, ["nft", "list", "ruleset"])).toContain("counter packets 30 ");
    engine.close();
  },
);
