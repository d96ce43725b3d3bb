/** Why probes were lost, and where: by hand, and in thousands of runs whose truth is known. */
import { describe, expect, test } from "bun:test";
import {
  explainLoss,
  type LossBegin,
  type LossCause,
  PathTrials,
} from "../../../src/tools/mtr/loss-cause.ts";
import { randomFrom } from "../../lab/simulation.ts";

type Row = readonly [count: number, failed: number];

function explain(...rows: readonly Row[]) {
  const hops = rows.map(([count, failed]) => ({ count, failed }));
  return explainLoss(Object.assign(new PathTrials(), { hops, target: hops.at(-1) }));
}

const short = (causes: readonly (LossCause | null)[]) =>
  causes.map((cause) => cause?.[0] ?? "-").join("");

// biome-ignore format: a table
test.each<[name: string, causes: string, begin: LossBegin | null, ...rows: Row[]]>([
  ["nothing is lost", "---", null, [10, 0], [10, 0], [10, 0]],
  ["one of ten of a router", "-u-", null, [10, 0], [10, 1], [10, 0]],
  ["one of ten of the target", "--u", null, [10, 0], [10, 0], [10, 1]],
  ["a tenth of one router, of a hundred", "-r--", null, [100, 0], [100, 10], [100, 0], [100, 0]],
  ["all routers limit", "rrr-", null, [20, 16], [20, 16], [20, 16], [20, 0]],
  ["half behind the second", "--pp", { from: 2, to: 3 }, [30, 0], [30, 0], [30, 15], [30, 15]],
  ["half at the target alone", "---p", { from: 3, to: 4 }, [30, 0], [30, 0], [30, 0], [30, 15]],
  ["half from the start", "ppp", { from: 0, to: 1 }, [30, 15], [30, 14], [30, 16]],
  ["a limit before the loss", "r--ppp", { from: 3, to: 4 }, [100, 50], [100, 0], [100, 0], [100, 7], [100, 5], [100, 6]],
  ["a small limit before a like loss", "r---ppp", { from: 4, to: 5 }, [100, 9], [100, 0], [100, 0], [100, 0], [100, 7], [100, 5], [100, 9]],
  ["a limit before a like loss, of ten rounds", "-u-pppp", { from: 1, to: 4 }, [10, 0], [10, 4], [10, 0], [10, 3], [10, 3], [10, 4], [10, 3]],
  ["limits before and behind a larger loss", "uuurrrp", { from: 3, to: 7 }, [300, 90], [300, 93], [300, 88], [300, 216], [300, 214], [300, 219], [300, 180]],
  ["a limit behind the loss", "--prp", { from: 2, to: 3 }, [100, 0], [100, 0], [100, 20], [100, 70], [100, 21]],
  ["a stray loss before the loss", "u--ppp", { from: 3, to: 4 }, [100, 1], [100, 0], [100, 0], [100, 7], [100, 5], [100, 6]],
  ["a limit that only all hops behind it together show", "r------", null, [10, 5], [10, 0], [10, 0], [10, 0], [10, 0], [10, 0], [10, 0]],
  ["a loss that can begin at two links", "--upp", { from: 2, to: 4 }, [100, 0], [100, 0], [100, 1], [100, 7], [100, 6]],
  ["a silent router", "-r-", null, [20, 0], [20, 20], [20, 0]],
  ["a silent router before the loss", "--rp", { from: 2, to: 4 }, [90, 0], [90, 0], [90, 90], [90, 20]],
  ["nothing behind answers", "-uuu", null, [10, 0], [10, 1], [10, 10], [10, 10]],
  ["nothing was asked", "--", null, [0, 0], [0, 0]],
])("%s", (_, causes, begin, ...rows) => {
  const found = explain(...rows);
  expect([short(found.causes), found.begin]).toEqual([causes, begin]);
});

const RUNS = 1000;

/** How a network treats a probe of a hop in a round: true if it is lost on the path, or its answer is not sent. */
interface Truth {
  readonly hops: number;
  readonly rounds: number;
  /** The share that the link to each hop loses, there and back. */
  readonly link?: (hop: number) => number;
  /** The share of probes that arrived which the hop does not answer, or whose answer is lost. */
  readonly silent?: (hop: number) => number;
  /** Rounds between two answers of a hop. */
  readonly every?: (hop: number) => number;
}

/** Runs with the seeds 1 to `RUNS`. */
function* simulate({ hops, rounds, link, silent, every }: Truth) {
  for (let seed = 1; seed <= RUNS; seed++) {
    const random = randomFrom(seed);
    const rows = Array.from({ length: hops }, (_, at) => {
      let failed = 0;
      let answered = -Infinity;
      for (let round = 0; round < rounds; round++) {
        let isLost = false;
        for (let hop = 1; hop <= at + 1; hop++) isLost ||= random() < (link?.(hop) ?? 0);
        isLost ||= random() < (silent?.(at + 1) ?? 0) || round - answered < (every?.(at + 1) ?? 1);
        if (isLost) failed++;
        else answered = round;
      }
      return [rounds, failed] as const;
    });
    yield { rows, ...explain(...rows) };
  }
}

/** The share of all rows, or of those of one hop, that have a cause. */
function share(truth: Truth, cause: LossCause, hop?: number): number {
  let count = 0;
  let all = 0;
  for (const { causes } of simulate(truth)) {
    const rows = hop === undefined ? causes : [causes[hop - 1]];
    all += rows.length;
    count += rows.filter((each) => each === cause).length;
  }
  return count / all;
}

describe("in 1,000 runs", () => {
  const at = (hop: number, value: number) => (each: number) => (each === hop ? value : 0);
  // biome-ignore format: a table
  test.each<[string, Truth, number]>([
    ["5 % lost at the fourth link, ten rounds", { hops: 8, rounds: 10, link: at(4, 0.05) }, 0.001],
    ["5 % lost at the first link, thirty rounds", { hops: 12, rounds: 30, link: at(1, 0.05) }, 0.01],
    ["6 % lost at the fourth link, a hundred rounds", { hops: 8, rounds: 100, link: at(4, 0.06) }, 0.01],
    ["30 % lost at the second link, a hundred rounds", { hops: 8, rounds: 100, link: at(2, 0.3) }, 0.01],
    ["1 % lost at every link, a hundred rounds", { hops: 15, rounds: 100, link: () => 0.01 }, 0.01],
  ])("loss of the path is hardly ever that of replies: %s", (_, truth, most) => {
    expect(share(truth, "replies")).toBeLessThanOrEqual(most);
  });

  const second = { every: at(3, 5), rounds: 30, hops: 8 };
  // biome-ignore format: a table
  test.each<[string, Truth, number]>([
    ["one answer in five rounds", second, 0.999],
    ["one answer in five rounds, before a link that loses 6 %", { ...second, link: at(5, 0.06) }, 0.99],
    ["one answer in five rounds, behind a link that loses 6 %", { ...second, link: at(2, 0.06) }, 0.95],
    ["one answer in five rounds, a target that answers half", { ...second, silent: at(8, 0.5) }, 0.95],
    ["all routers one answer in five", { ...second, every: (hop) => (hop < 8 ? 5 : 1) }, 0.999],
    ["a return path of its own that loses 20 %, a hundred rounds", { hops: 8, rounds: 100, silent: at(3, 0.2) }, 0.99],
  ])("a router that does not answer all is found: %s", (_, truth, least) => {
    expect(share(truth, "replies", 3)).toBeGreaterThanOrEqual(least);
  });

  // biome-ignore format: a table
  test.each<[string, number, Truth, number]>([
    ["6 % at the fourth link", 4, { hops: 8, rounds: 100, link: at(4, 0.06) }, 0.9],
    ["6 % at the first link", 1, { hops: 8, rounds: 100, link: at(1, 0.06) }, 0.9],
    ["6 % at the last link", 8, { hops: 8, rounds: 100, link: at(8, 0.06) }, 0.9],
    ["6 % at the fourth link, a limited router before it", 4, { hops: 8, rounds: 100, link: at(4, 0.06), every: at(2, 5) }, 0.9],
    ["30 % at the fourth link, a router before it that answers 60 %, ten rounds", 4, { hops: 8, rounds: 10, link: at(4, 0.3), silent: at(2, 0.4) }, 0.05],
    ["60 % at the fourth link, a router before it that answers 60 %, ten rounds", 4, { hops: 8, rounds: 10, link: at(4, 0.6), silent: at(2, 0.4) }, 0.8],
    ["30 % at the fourth link, a router before it that answers 80 %, thirty rounds", 4, { hops: 8, rounds: 30, link: at(4, 0.3), silent: at(2, 0.2) }, 0.85],
    ["6 % at the fourth link, limited routers behind it", 4, { hops: 8, rounds: 100, link: at(4, 0.06), every: (hop) => (hop === 6 || hop === 7 ? 5 : 1) }, 0.9],
    ["20 % at the sixth of 20 links", 6, { hops: 20, rounds: 100, link: at(6, 0.2) }, 0.95],
    ["half at the third link, thirty rounds", 3, { hops: 8, rounds: 30, link: at(3, 0.5) }, 0.94],
  ])("the link that loses is found: %s", (_, hop, truth, least) => {
    let right = 0;
    let wrong = 0;
    for (const { begin } of simulate(truth)) {
      if (begin?.from === hop - 1 && begin.to === hop) right++;
      else if (begin !== null && (hop <= begin.from || hop > begin.to)) wrong++;
    }
    expect(right / RUNS).toBeGreaterThanOrEqual(least);
    // A stretch that the link is not in is named less often than one that it is in with others.
    expect(wrong / RUNS).toBeLessThanOrEqual(0.03);
  });

  test("no link is named where nothing is lost but what is ordinary", () => {
    const named = [...simulate({ hops: 10, rounds: 100, silent: () => 0.005 })].filter(
      (run) => run.begin,
    );
    expect(named.length / RUNS).toBeLessThanOrEqual(0.02);
  });
});
