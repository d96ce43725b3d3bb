/** The conclusions of mtr about networks whose truth changes under way, in a hundred runs each. */
import { expect, test } from "bun:test";
import { formatIpv6 } from "../../../src/addr/format.ts";
import type { Ipv6Address } from "../../../src/addr/ipv6.ts";
import type { Response } from "../../../src/icmp/prober/response.ts";
import { MtrRounds, type Outcome } from "../../../src/tools/mtr/rounds.ts";
import { stationAddress } from "../../icmp/fake.ts";
import { randomFrom } from "../../lab/simulation.ts";

const RUNS = 100;

const received = { scopeId: 0, rttMs: 1, hopLimit: 64 };

const answerOf = (hop: number, isTarget: boolean, route: number): Response => ({
  ...received,
  from: isTarget ? stationAt(99) : routerAt(hop, route),
  ...(isTarget
    ? { kind: "reply", isOtherSource: false }
    : { kind: "error", type: 3, code: 0, parameter: 0, extensions: { mpls: [], interfaces: [] } }),
});

/** A network in one round. */
interface State {
  /** The hop of the target. */
  readonly length: number;
  /** The share of probes that the link to a hop loses. */
  readonly loss?: (hop: number) => number;
}

interface Truth {
  readonly rounds: number;
  readonly at: (round: number) => State;
  /** Routers that answer six probes and then one in this number of rounds, as Linux does. */
  readonly every?: (hop: number) => number;
  /** The share of probes that a hop does not answer. */
  readonly silent?: (hop: number) => number;
  /** Rounds that were sent before the answers of a round came. */
  readonly inFlight?: number;
  /** Which route a round takes: a number in the addresses of the routers from the second hop on; 0 by default. */
  readonly route?: (round: number) => number;
}

const stations = new Map<number, Ipv6Address>();
const stationAt = (number: number) => stations.getOrInsertComputed(number, stationAddress);

/** The router at a hop of a route; the first hop and the target are on all of them. */
const routerAt = (hop: number, route: number) => stationAt(hop > 1 ? hop + 256 * route : hop);

/** The reports of runs with the seeds from 1, by default to `RUNS`. */
function* reports(
  { rounds, at, every, silent, inFlight = 0, route = () => 0 }: Truth,
  runs = RUNS,
) {
  for (let seed = 1; seed <= runs; seed++) {
    const random = randomFrom(seed);
    const counted = new MtrRounds();
    const tokens: number[] = [];
    let asked = at(0).length;
    const lengths: number[] = [];
    for (let number = 0; number < rounds; number++) {
      const { length, loss } = at(number);
      const round: Outcome[] = [];
      const ask = (hop: number): Outcome => {
        const to = Math.min(hop, length);
        for (let link = 1; link <= to; link++) if (random() < (loss?.(link) ?? 0)) return "silent";
        if (random() < (silent?.(to) ?? 0)) return "silent";
        const period = to === length ? undefined : every?.(to);
        if (period !== undefined) {
          tokens[to] = Math.min(6, (tokens[to] ?? 6) + 1 / period);
          if (tokens[to] < 1) return "silent";
          tokens[to]--;
        }
        return answerOf(to, to === length, route(number));
      };
      for (let hop = 1; hop <= asked; hop++) round.push(ask(hop));
      const isRouter = (outcome: Outcome | undefined) =>
        typeof outcome === "object" && outcome.kind === "error";
      while (isRouter(round.at(-1))) round.push(ask(round.length + 1));
      const nearest = round.findIndex((each) => typeof each === "object" && each.kind === "reply");
      lengths.push(nearest < 0 ? round.length : nearest + 1);
      asked = lengths[number - inFlight] ?? asked;
      counted.count(round);
    }
    yield counted.report();
  }
}

const only = (hop: number, share: number) => (each: number) => (each === hop ? share : 0);

/** An outage of a link between two rounds; another length or loss beside it. */
const outage =
  (link: number, from: number, to: number, length = 8, share = 1) =>
  (round: number) => ({ length, loss: only(link, round >= from && round < to ? share : 0) });

/** How often the place of the loss is right (the link is in it), wrong, and exactly the link. */
function places(truth: Truth, link: number, runs = RUNS) {
  let [right, wrong, exact] = [0, 0, 0];
  for (const { begin } of reports(truth, runs)) {
    if (begin === null) continue;
    if (begin.from < link && link <= begin.to) right++;
    else wrong++;
    if (begin.from === link - 1 && begin.to === link) exact++;
  }
  return { right: right / runs, wrong: wrong / runs, exact: exact / runs };
}

const LIMITED = { every: () => 5 };
const half = (hop: number) => (hop === 2 ? 0.5 : 0);

// biome-ignore format: a table
test.each<[name: string, link: number, Truth, exact: number]>([
  ["that begins in the middle", 4, { rounds: 30, at: outage(4, 15, 30) }, 0.99],
  ["that ends in the middle", 4, { rounds: 30, at: outage(4, 0, 15) }, 0.99],
  ["that comes and goes", 4, { rounds: 30, at: outage(4, 10, 22) }, 0.99],
  ["of the last link", 8, { rounds: 30, at: outage(8, 10, 22) }, 0.99],
  ["of the first link", 1, { rounds: 30, at: outage(1, 10, 22) }, 0.99],
  ["behind a router that does not answer half of the probes", 5, { rounds: 30, at: outage(5, 15, 30), silent: half }, 0.9],
  ["of most of a run behind a router that does not answer half of the probes", 5, { rounds: 30, at: outage(5, 8, 26), silent: half }, 0.9],
  ["right behind a router that does not answer half of the probes", 3, { rounds: 30, at: outage(3, 15, 30), silent: half }, 0],
  ["behind routers that all limit their answers", 8, { rounds: 30, at: outage(8, 12, 30), ...LIMITED }, 0],
  ["of a link that still carries a tenth", 4, { rounds: 60, at: outage(4, 20, 50, 8, 0.9) }, 0.1],
  ["beside a link that loses 5 %", 5, { rounds: 60, at: (round) => ({ length: 8, loss: (hop) => (hop === 5 && round >= 30 ? 1 : hop === 2 ? 0.02 : 0) }) }, 0.4],
  ["of the last link in ten rounds, behind routers that all limit their answers", 8, { rounds: 10, at: outage(8, 5, 10), ...LIMITED }, 0],
  ["in ten rounds, behind a router that limits its answers", 6, { rounds: 10, at: outage(6, 5, 10), every: (hop) => (hop === 4 ? 5 : 1) }, 0.99],
  ["of another link than a second one", 6, { rounds: 60, at: (round) => ({ length: 8, loss: (hop) => ((hop === 6 && round >= 10 && round < 20) || (hop === 3 && round >= 40 && round < 46) ? 1 : 0) }) }, 0.99],
])("an outage %s is placed where it is", (_, link, truth, exact) => {
  const found = places(truth, link);
  expect(found.wrong).toBeLessThanOrEqual(0.02);
  expect(found.exact).toBeGreaterThanOrEqual(exact);
});

// biome-ignore format: a table
test.each<[name: string, link: number, Truth]>([
  ["half at the fourth link, thirty rounds", 4, { rounds: 30, at: () => ({ length: 8, loss: only(4, 0.5) }) }],
  ["a tenth at the fourth link, a hundred rounds", 4, { rounds: 100, at: () => ({ length: 8, loss: only(4, 0.1) }) }],
  ["nine of ten at the fourth link, thirty rounds", 4, { rounds: 30, at: () => ({ length: 8, loss: only(4, 0.9) }) }],
  ["four of five in the second half", 4, { rounds: 60, at: (round) => ({ length: 8, loss: only(4, round < 30 ? 0 : 0.8) }) }],
  ["ten rounds, half", 4, { rounds: 10, at: () => ({ length: 8, loss: only(4, 0.5) }) }],
])("loss by chance is not placed wrong: %s", (_, link, truth) => {
  const found = places(truth, link);
  expect(found.wrong).toBeLessThanOrEqual(0.03);
});

/** How often a loss is called an outage, in enough runs for what is seldom. */
function called(truth: Truth) {
  const all = [...reports(truth, 250)];
  return all.filter(({ inARow }) => inARow > 0).length / all.length;
}

const SHARES = [0.02, 0.1, 0.3, 0.5, 0.9].flatMap((share) =>
  [10, 30, 100].map((rounds) => [share, rounds] as const),
);

test.each(SHARES)(
  "loss of %p by chance in %i rounds is hardly ever called an outage",
  (share, rounds) => {
    const at = () => ({ length: 8, loss: only(4, share) });
    expect(called({ rounds, at })).toBeLessThanOrEqual(0.025);
  },
);

test("an outage is called one", () => {
  expect(called({ rounds: 30, at: outage(4, 15, 30) })).toBe(1);
  expect(called({ rounds: 100, at: outage(4, 50, 56) })).toBe(1);
});

/** How often the target's old hop is said not to answer every probe. */
function blamed(truth: Truth, hops: readonly number[]) {
  const all = [...reports(truth)];
  const isBlamed = ({ hops: rows }: (typeof all)[number]) =>
    rows.some(({ hop, cause }) => hops.includes(hop) && cause === "replies");
  return all.filter(isBlamed).length / all.length;
}

const LOSSY = only(3, 0.1);

// biome-ignore format: a table
test.each<[name: string, Truth]>([
  ["a path that becomes shorter, and then loses", { rounds: 200, at: (round) => (round < 100 ? { length: 5 } : { length: 3, loss: LOSSY }) }],
  ["a path that loses, and becomes longer", { rounds: 200, at: (round) => (round < 100 ? { length: 3, loss: LOSSY } : { length: 5 }) }],
  ["a path that loses, and becomes longer, with rounds in flight", { rounds: 200, inFlight: 8, at: (round) => (round < 100 ? { length: 3, loss: LOSSY } : { length: 5 }) }],
  ["a path that is short and lossy now and then", { rounds: 200, at: (round) => (round % 40 < 20 ? { length: 3, loss: LOSSY } : { length: 6 }) }],
])("what the path lost is never what a hop did not answer: %s", (_, truth) => {
  expect(blamed(truth, [3])).toBeLessThanOrEqual(0.01);
  expect(places(truth, 3).wrong).toBeLessThanOrEqual(0.02);
});

/** A change of route in the middle of a run, and the loss of a link of one route alone. */
const changed = (isLossy: (round: number) => boolean, link: number, share: number): Truth => ({
  rounds: 40,
  route: (round) => (round < 20 ? 1 : 2),
  at: (round) => ({ length: 8, loss: only(link, isLossy(round) ? share : 0) }),
});

const isOld = (round: number) => round < 20;
const isNew = (round: number) => round >= 20;

// biome-ignore format: a table
test.each<[name: string, link: number, route: number, Truth, placed: number]>([
  ["the new one is dead from the third link on", 3, 2, changed(isNew, 3, 1), 0.99],
  ["the new one is dead from the last link on", 8, 2, changed(isNew, 8, 1), 0.99],
  ["the new one loses half at the fifth link", 5, 2, changed(isNew, 5, 0.5), 0.9],
  ["the new one loses a third at the fifth link", 5, 2, changed(isNew, 5, 0.33), 0.7],
  ["the old one loses half at the fifth link", 5, 1, changed(isOld, 5, 0.5), 0.9],
  ["the old one was dead from the fifth link on", 5, 1, changed(isOld, 5, 1), 0.9],
  ["the new one is dead for its last rounds", 4, 2, changed((round) => round >= 30, 4, 1), 0.99],
  ["rounds take turns, and one loses half at the fourth link", 4, 2, { ...changed((round) => round % 2 === 1, 4, 0.5), route: (round) => 1 + (round % 2) }, 0.7],
  ["both lose a third at the sixth link", 6, 0, changed(() => true, 6, 0.33), 0.7],
])("after a change of route, the loss is placed on the path that has it: %s", (_, link, route, truth, placed) => {
  const found = places(truth, link);
  expect(found.wrong).toBeLessThanOrEqual(0.03);
  expect(found.right).toBeGreaterThanOrEqual(placed);
  let [named, strange] = [0, 0];
  for (const { begin, lossPath } of reports(truth)) {
    for (const hop of begin === null ? [] : [begin.from, begin.to]) {
      const address = lossPath[hop - 1];
      if (hop === 0 || !address || hop === 8) continue;
      named++;
      const routers = [1, 2].filter((each) => route === 0 || each === route);
      if (!routers.some((each) => address === formatIpv6(routerAt(hop, each)))) strange++;
    }
  }
  expect(named).toBeGreaterThan(RUNS / 2);
  expect(strange / named).toBeLessThanOrEqual(0.01);
});
