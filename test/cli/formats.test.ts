/** Results in the formats of mtr; test/e2e/path-tools.test.ts compares them with mtr itself. */
import { describe, expect, test } from "bun:test";
import { FORMATS } from "../../src/cli/formats.ts";
import { mergeRound } from "../../src/tools/mtr/report.ts";
import type { MtrResult, MtrRound } from "../../src/tools/mtr/result.ts";
import { DATED } from "../tools/documents.ts";

const SOURCE = "2001:db8::1";
const HEAD = { target: "www.example.com", ip: "2001:db8::80" };
const VERDICT = "The verdict.";

type MtrHop = MtrResult["hops"][number];

function mtrHop(
  hop: number,
  [sent, received]: [number, number],
  last: number | null,
  ...addresses: [ip: string, received: number][]
): MtrHop {
  const times = { last, min: last, avg: last, max: last, stdDev: last && 0.3 };
  return {
    hop,
    ip: addresses[0]?.[0] ?? null,
    hostname: null,
    ...{ sent, received, late: 0, errors: 0, unknown: 0 },
    loss: sent === 0 ? null : ((sent - received) / sent) * 100,
    cause: null,
    ...times,
    ...{ jitter: last, p50: last, p95: last },
    addresses: addresses.map(([ip, count]) => ({ ip, hostname: null, received: count, share: 1 })),
    others: 0,
  };
}

const TRACED = { ...mtrHop(1, [0, 0], null), ip: "2001:db8:a::1" };
const ROUNDS: MtrRound[] = [
  { round: 0, length: 1, hops: [TRACED] },
  {
    ...{ round: 1, length: 2 },
    hops: [mtrHop(1, [1, 1], 1.5, ["2001:db8:a::1", 1]), mtrHop(2, [1, 0], null)],
  },
  {
    ...{ round: 2, length: 3 },
    hops: [mtrHop(1, [2, 2], 2.5, ["2001:db8:b::1", 1]), mtrHop(3, [1, 1], 9.1, [HEAD.ip, 1])],
  },
  {
    ...{ round: 3, length: 3 },
    hops: [
      { ...mtrHop(1, [3, 2], 2.5), ip: "2001:db8:a::1" },
      mtrHop(2, [2, 0], null),
      mtrHop(3, [2, 2], 9.2, [HEAD.ip, 2]),
    ],
  },
  { round: 4, length: 3, hops: [{ ...mtrHop(3, [3, 2], 9.2), ip: HEAD.ip, unknown: 1 }] },
];
const MTR: MtrResult = {
  ...HEAD,
  rounds: 3,
  hops: ROUNDS.reduce(mergeRound).hops,
  details: {
    ...DATED,
    reached: true,
    toTarget: { sent: 2, received: 2, late: 0, errors: 0, unknown: 0, loss: 0 },
    paths: [],
    verdict: { code: "no-loss", text: VERDICT, lossAtLeast: 0, lossAtMost: 65 },
    source: SOURCE,
    flowLabel: 7,
  },
};

describe("mtr-report", () => {
  const START = "Start: 2026-11-22T12:00:00+0000";

  test("of mtr, to the byte", () => {
    expect(FORMATS["mtr-report"](MTR)).toBe(`${START}
HOST: 2001:db8::1   Loss%   Snt   Last   Avg  Best  Wrst StDev
  1.|-- 2001:db8:a::1 33.3%     3    2.5   2.5   2.5   2.5   0.4
  2.|-- ???           100.0     2    0.0   0.0   0.0   0.0   0.0
  3.|-- 2001:db8::80   0.0%     2    9.2   9.2   9.2   9.2   0.4
${VERDICT}`);
  });
});

test("mtr-report shows no control characters, which the service of another place can send as a name", () => {
  const hops = [{ ...TRACED, hostname: "r\u001b[2J\n 9.|-- all is well" }];
  const lines = FORMATS["mtr-report"]({ ...MTR, hops }).split("\n");
  expect(lines.length).toBe(4);
  expect(lines[2]).toStartWith("  1.|-- r\ufffd[2J\ufffd 9.|-- all is well ");
});

test("mtr-report says the verdict on one line, whatever a service sends", () => {
  const verdict = { ...MTR.details.verdict, text: "All is\u001b[2J\nwell." };
  const lines = FORMATS["mtr-report"]({ ...MTR, details: { ...MTR.details, verdict } });
  expect(lines.split("\n").at(-1)).toBe("All is\ufffd[2J\ufffdwell.");
});

test("mtr-json has the numbers of the report, to a thousandth", () => {
  const { report } = JSON.parse(FORMATS["mtr-json"](MTR));
  const bytes = { psize: "104", bitpattern: "0x00" };
  expect(report.mtr).toEqual({ src: SOURCE, dst: HEAD.target, tos: 0, tests: 3, ...bytes });
  expect(report.hubs[0]).toEqual({
    ...{ count: 1, host: "2001:db8:a::1", "Loss%": 33.333, Snt: 3 },
    ...{ Last: 2.5, Avg: 2.5, Best: 2.5, Wrst: 2.5, StDev: 0.424 },
  });
  expect(report.hubs[1]).toMatchObject({ host: "???", "Loss%": 100, Last: 0 });
});
