import { describe, expect, test } from "bun:test";
import { formatIpv6 } from "../../src/addr/format.ts";
import { describeRounds, type MtrReport, type Round } from "../../src/icmp/mtr-report.ts";
import type { Response } from "../../src/icmp/response.ts";
import { parseIpv6 } from "../addr/parse.ts";

const received = { scopeId: 0, hopLimit: 64 };

/** A router's answer; its address ends in this name. */
function router(name: string, rttMs = 1): Response {
  const from = parseIpv6(`2001:db8::${name}`);
  const extensions = { mpls: [], interfaces: [] };
  return { kind: "error", type: 3, code: 0, parameter: 0, extensions, from, rttMs, ...received };
}

const target = (rttMs = 9): Response => ({
  kind: "reply",
  from: parseIpv6("2001:db8::ffff"),
  isOtherSource: false,
  rttMs,
  ...received,
});

/** `count` rounds over four routers and a target; `isSilent` says which hops are silent in a round. */
function rounds(count: number, isSilent: (hop: number, round: number) => boolean): Round[] {
  return Array.from({ length: count }, (_, round) =>
    [router("a"), router("b"), router("c"), router("d"), target()].map((answer, at) =>
      isSilent(at + 1, round) ? null : answer,
    ),
  );
}

const counts = ({ hops }: MtrReport) => hops.map(({ sent, received }) => [sent, received]);
const limited = ({ hops }: MtrReport) => hops.filter((h) => h.isLimited).map(({ hop }) => hop);
const addresses = ({ paths }: MtrReport) =>
  paths.map((path) => path.addresses.map((address) => address && formatIpv6(address).slice(10)));

test("the times of a hop", () => {
  const times = [4, 2, 8, 6, 5];
  const { hops } = describeRounds(times.map((time) => [target(time)]));
  expect(hops[0]?.times).toEqual({
    last: 5,
    min: 2,
    avg: 5,
    max: 8,
    stdDev: 2,
    jitter: (2 + 6 + 2 + 1) / 4,
    p50: 5,
    p95: 8,
  });
});

test("the times of a hop with one answer, and with none", () => {
  const { hops } = describeRounds([[null, target(3)]]);
  expect(hops.map(({ times }) => times)).toEqual([
    null,
    { last: 3, min: 3, avg: 3, max: 3, stdDev: 0, jitter: 0, p50: 3, p95: 3 },
  ]);
});

test("percentiles are times that were measured", () => {
  const { hops } = describeRounds(Array.from({ length: 100 }, (_, at) => [target(at + 1)]));
  expect(hops[0]?.times).toMatchObject({ p50: 50, p95: 95 });
});

describe("a hop is limited, not lossy,", () => {
  test.each<[string, number, (hop: number, round: number) => boolean, number[]]>([
    ["if it alone loses a tenth", 100, (hop, round) => hop === 3 && round % 10 === 0, [3]],
    ["if it alone loses one of ten", 10, (hop, round) => hop === 3 && round === 4, [3]],
    [
      "if all routers limit, and the target loses nothing",
      20,
      (hop, round) => hop < 5 && round % 5 > 0,
      [1, 2, 3, 4],
    ],
    [
      "if it loses half and the path a tenth",
      100,
      (hop, round) => (hop + round) % (hop === 2 ? 2 : 10) === 0,
      [2],
    ],
    [
      "not if the loss goes on behind it",
      100,
      (hop, round) => hop >= 3 && (round + 3 * hop) % 10 === 0,
      [],
    ],
    [
      "not if those behind lose a little less by chance",
      100,
      (hop, round) => hop >= 3 && round % (hop === 3 ? 8 : 11) === 0,
      [],
    ],
    ["not if the target loses alone", 10, (hop, round) => hop === 5 && round % 2 === 0, []],
    ["not if it never answers", 10, (hop) => hop === 3, []],
    [
      "not if nothing behind it answers",
      10,
      (hop, round) => hop > 3 || (hop === 3 && round === 1),
      [],
    ],
  ])("%s", (_name, count, isSilent, expected) => {
    expect(limited(describeRounds(rounds(count, isSilent)))).toEqual(expected);
  });
});

describe("a path that changes", () => {
  test("loses nothing where it became shorter", () => {
    const long = [router("a"), router("b"), router("c"), target()];
    const short = [router("a"), router("b"), target(), null];
    const report = describeRounds([long, long, long, short, short]);
    expect(counts(report)).toEqual([
      [5, 5],
      [5, 5],
      [5, 5],
      [3, 3],
    ]);
    expect(report.paths.map((path) => path.rounds)).toEqual([3, 2]);
    expect(addresses(report)).toEqual([
      ["a", "b", "c", "ffff"],
      ["a", "b", "ffff"],
    ]);
    expect(limited(report)).toEqual([]);
  });

  test("loses nothing at a hop that is silent on one of its ways", () => {
    const one = [router("a"), router("b"), router("c"), target()];
    const other = [router("a"), null, router("d"), target()];
    const report = describeRounds([one, other, one, other, other]);
    expect(counts(report)).toEqual([
      [5, 5],
      [2, 2],
      [5, 5],
      [5, 5],
    ]);
    expect(report.paths.map((path) => path.rounds)).toEqual([2, 3]);
    expect(report.hops[2]?.addresses.map((each) => each.received)).toEqual([3, 2]);
  });

  test("keeps the times of a common hop in order", () => {
    const one = [router("a"), target(4)];
    const other = [router("b"), target(2)];
    const { hops } = describeRounds([one, other, [router("a"), target(8)]]);
    expect(hops[1]?.times).toMatchObject({ last: 8, jitter: (2 + 6) / 2 });
  });

  test("is none where only answers are missing", () => {
    const whole = [router("a"), router("b"), target()];
    const report = describeRounds([whole, [null, router("b"), null], [null, null, null], whole]);
    expect(report.paths).toHaveLength(1);
    expect(counts(report)).toEqual([
      [4, 2],
      [4, 3],
      [4, 2],
    ]);
  });

  test("goes no further than the target", () => {
    const { hops, reached } = describeRounds([
      [router("a"), target(), target()],
      [router("a"), null, null],
    ]);
    expect([hops.length, reached]).toEqual([2, true]);
  });
});

test("probes whose fate is not known do not count", () => {
  const report = describeRounds([
    [undefined, target()],
    [router("a"), target()],
  ]);
  expect(counts(report)).toEqual([
    [1, 1],
    [2, 2],
  ]);
});

test("no rounds say nothing", () => {
  expect(describeRounds([])).toEqual({ hops: [], paths: [], reached: false });
});
