/** Whole searches over networks whose links are known, without packets: no link is shown that does not exist. */
import { expect, test } from "bun:test";
import { formatIpv6 } from "../../../src/addr/format.ts";
import type { Prober } from "../../../src/icmp/prober/prober.ts";
import { ENOUGH, type RunBudget, UNBOUNDED } from "../../../src/tools/budget.ts";
import type { TraceOutcome, TraceRequest } from "../../../src/tools/trace/engine.ts";
import { type TracedPaths, tracePaths } from "../../../src/tools/trace/path-search.ts";
import { describeHop, GAP_LIMIT, type TraceHop } from "../../../src/tools/trace/responses.ts";
import { SOURCE, stationAddress } from "../../icmp/fake.ts";
import "../scripted.ts";

/** The stations of a packet, the nth of all, as numbers; the last is the target. */
type Network = (flowLabel: number, nth: number) => readonly number[];

const TARGET = 0xfffe;

/** Of each network. */
const RUNS = 20;

function choose(what: string, ways: number): number {
  return Number(Bun.hash.wyhash(what) % BigInt(ways));
}

/** A search over a network in which answers are lost now and then. */
async function search(network: Network, seed: string, lost = 0, budget = UNBOUNDED) {
  let nth = 0;
  let labels = 0;
  const links = new Set<string>();
  const firstLabel = 1 + choose(`${seed} first`, 0xfffff);
  const nodes = new Map<string, number>();
  const probe = (flowLabel: number, hop: number): TraceHop => {
    const way = network(flowLabel, ++nth);
    for (const [at, station] of way.entries()) links.add(`${at} ${way[at - 1]} ${station}`);
    const silent = describeHop(hop, [], SOURCE, SOURCE);
    if (choose(`${seed} lost ${nth}`, 1000) < lost * 1000) return silent;
    const station = way[Math.min(hop, way.length) - 1] as number;
    const address = stationAddress(station % 0xffff);
    const ip = formatIpv6(address);
    nodes.set(ip, station);
    const end = station === TARGET ? ("reached" as const) : null;
    return { ...silent, ip, rtt: 1, end };
  };
  const traceroute = async (asked: TraceRequest): Promise<TraceOutcome> => {
    const { flowLabel = firstLabel, maxHops, hops: only } = asked;
    const all = Array.from({ length: maxHops }, (_, at) => at + 1);
    const rows = all.map((hop) =>
      only?.includes(hop) === false ? describeHop(hop, [], SOURCE, SOURCE) : probe(flowLabel, hop),
    );
    const end = rows.findIndex(({ end }) => end !== null) + 1;
    const last = rows.findLastIndex(({ ip }) => ip !== null) + 1;
    const reason = end > 0 ? "reached" : last + GAP_LIMIT <= maxHops ? "gap-limit" : "max-hops";
    const hops = rows.slice(0, end || last + GAP_LIMIT);
    return {
      ...{ kind: "done", source: SOURCE, flowLabel, sent: only?.length ?? end, hops, reason },
      ...{ reached: end > 0, error: null, otherSource: null, refused: [], loop: null },
    };
  };
  const randomLabel = () => 1 + choose(`${seed} label ${++labels}`, 0xfffff);
  const signalFor = (...signals: AbortSignal[]) => AbortSignal.any(signals.filter(Boolean));
  const clock = { nowMs: () => nth };
  const prober = { clock, randomLabel, signalFor, traceroute } as unknown as Prober;
  const request = { target: stationAddress(TARGET), maxHops: 30, timeoutMs: 1, paths: 16 };
  const outcome = (await tracePaths(prober, request, { budget })) as TracedPaths;
  const shown = outcome.graph.edges.map(({ from, to }) => {
    const [near, far] = [outcome.graph.nodes[from], outcome.graph.nodes[to]] as [
      TraceHop,
      TraceHop,
    ];
    const names = [near, far].map(({ ip }) => ip && nodes.get(ip));
    return { link: `${near.hop} ${names.join(" ")}`, hops: [near.hop, far.hop] };
  });
  const between = shown.filter(({ link }) => !/ ( |$)/.test(link));
  const wrong = between.filter(({ link }) => !links.has(link));
  const unmarked = wrong.filter(({ hops }) => !hops.some((hop) => outcome.perPacket.includes(hop)));
  return { outcome, links: between.length, wrong, unmarked, sent: outcome.sent };
}

const beside =
  (ways: number): Network =>
  (label) => [1, 2, 16 + choose(`${label} b`, ways), 3, TARGET];
const nested: Network = (label) => {
  const x = choose(`${label} x`, 4);
  return [1, 16 + x, 32 + 2 * x + choose(`${label} y ${x}`, 2), 3, TARGET];
};
/** Two routers in a row on each way, all ways by packet. */
const byPacket =
  (ways: number): Network =>
  (_, nth) => {
    const x = choose(`${nth} p`, ways);
    return [1, 16 + x, 32 + x, 48 + x, 3, TARGET];
  };
const behind: Network = (label, nth) => {
  const way = choose(`${label} a`, 2);
  const x = way === 0 ? 0 : 1 + choose(`${nth} p`, 2);
  return [1, 8 + way, 16 + x, 32 + x, 3, TARGET];
};
const lengths: Network = (_, nth) =>
  choose(`${nth} p`, 2) === 0 ? [1, 16, TARGET] : [1, 17, 18, 19, TARGET];
/** A network that becomes another one at a moment of the search. */
const changing =
  (before: Network, after: Network, at: number): Network =>
  (label, nth) =>
    nth < at ? before(label, nth) : after(label, nth);
const renamed =
  (network: Network): Network =>
  (label, nth) =>
    network(label, nth).map((station) =>
      station > 8 && station < TARGET ? station + 100 : station,
    );
const swapped: Network = (label) => nested(label + 1, 0);

const CASES: [string, (seed: string) => Network, number?][] = [
  ["one path", () => beside(1)],
  ["two by label", () => beside(2)],
  ["nested by label", () => nested],
  ["nested by label, 5 % lost", () => nested, 0.05],
  ["two by packet", () => byPacket(2)],
  ["four by packet", () => byPacket(4)],
  ["by packet, 5 % lost", () => byPacket(3), 0.05],
  ["by packet behind by label", () => behind],
  ["different lengths by packet", () => lengths],
  [
    "one path that becomes another",
    (seed) => changing(beside(1), renamed(beside(1)), choose(seed, 60)),
  ],
  ["nested that become others", (seed) => changing(nested, renamed(nested), choose(seed, 300))],
  ["nested that are chosen anew", (seed) => changing(nested, swapped, choose(seed, 300))],
  ["by label that becomes by packet", (seed) => changing(nested, byPacket(4), choose(seed, 300))],
];

test.each(CASES)("%s: no false link without a mark", async (name, network, lost) => {
  let wrongRuns = 0;
  for (let seed = 0; seed < RUNS; seed++) {
    const found = await search(network(`${name} ${seed}`), `${name} ${seed}`, lost);
    if (found.wrong.length > 0) wrongRuns++;
    expect({ seed, unmarked: found.unmarked }).toEqual({ seed, unmarked: [] });
  }
  expect(wrongRuns).toBeLessThanOrEqual(1);
});

test("of a network without false links, all links are shown", async () => {
  let links = 0;
  for (let seed = 0; seed < RUNS; seed++) {
    const { links: found, outcome } = await search(nested, `links ${seed}`, 0.05);
    links += found;
    expect(outcome.perPacket).toEqual([]);
  }
  // Four links from the first router, eight from those, eight to the next one, and one to the target.
  expect(links / RUNS).toBeWithin(0.97 * 21, 21.001);
});

test("a network that answers every probe from a new address costs little more probes than its graph has nodes", async () => {
  let station = 1000;
  const controller = new AbortController();
  let admitted = 0;
  const budget: RunBudget = {
    ...UNBOUNDED,
    enough: controller.signal,
    admit() {
      if (++admitted > 1024) controller.abort(ENOUGH);
      return admitted <= 1024;
    },
  };
  const network = () => Array.from({ length: 64 }, () => ++station);
  const { outcome, sent } = await search(network, "new", 0, budget);
  expect(outcome.complete).toBe(false);
  expect(outcome.graph.nodes.length).toBeWithin(768, 1025);
  expect(sent).toBeLessThan(1.2 * 1024);
});

/** The probes of scamper 20211212, `tracelb -P icmp-echo`, as `bun run bench icmp` prints them. */
test.each([
  [1, 20],
  [2, 48],
  [4, 78],
  [8, 135],
  [16, 269],
])("%i paths cost at most 1.5 times the %i probes of scamper on average", async (ways, probes) => {
  let sum = 0;
  for (let seed = 0; seed < 20; seed++) sum += (await search(beside(ways), `${seed}`)).sent;
  expect(sum / 20).toBeLessThanOrEqual(1.5 * probes);
});
