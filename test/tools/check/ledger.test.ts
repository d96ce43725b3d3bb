/** The statistics of a ledger, with their error rates over seeded simulations of sites with known truth. */
import { describe, expect, test } from "bun:test";
import {
  type Attempt,
  hasStopped,
  lossOf,
  withRetransmitted,
} from "../../../src/tools/check/ledger.ts";
import { atLeastChance } from "../../../src/util/statistics.ts";

const RUNS = 2000;

/** Mulberry32: numbers from 0 to 1 that a seed decides. */
function randomOf(seed: number) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const IP = "2001:db8::1";

const row = (kind: Attempt["kind"], turn: number, reason: string | null, ms = 20): Attempt => ({
  ...{ kind, ip: IP, turn, atMs: turn * 160, ms, reason },
});

/** What loses packets of a site: on the way there, on the return path, and SYNs alone. */
interface Loss {
  readonly there?: number;
  readonly back?: number;
  readonly limit?: number;
  /** Echo requests that the target does not answer. */
  readonly echo?: number;
}

/** The twenty pairs of a check; a SYN-ACK that is lost comes again after a second. */
function pairsOf({ there = 0, back = 0, limit = 0, echo = 0 }: Loss, random: () => number) {
  const syn = (turn: number) => {
    if (random() < there || random() < limit) return row("syn", turn, "timeout");
    if (random() >= back) return row("syn", turn, null);
    return random() < back ? row("syn", turn, "timeout") : row("syn", turn, null, 1020);
  };
  const isLost = () => random() < there || random() < echo || random() < back;
  const turns = Array.from({ length: 20 }, (_, at) => at + 1);
  return turns.flatMap((turn) => [syn(turn), row("echo", turn, isLost() ? "timeout" : null)]);
}

/** How often each finding comes of so many checks, in percent. */
function findingsOf(loss: Loss): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  const random = randomOf(39);
  for (let run = 0; run < RUNS; run++) {
    const { finding = "none" } = lossOf(withRetransmitted(pairsOf(loss, random))) ?? {};
    counts[finding] = (counts[finding] ?? 0) + 100 / RUNS;
  }
  return counts;
}

describe("of 100 checks of a site", () => {
  test.each<[what: string, loss: Loss, least: object]>([
    ["without loss, all find none", {}, { none: 100 }],
    ["with 30 % loss on the return path, 99 find it", { back: 0.3 }, { "path-loss": 99 }],
    ["with 30 % loss on the way there, 97 find it", { there: 0.3 }, { "path-loss": 97 }],
    ["with 10 % loss on the way there, 69 find it", { there: 0.1 }, { "path-loss": 69 }],
    ["that takes half of the SYNs, 87 find the limit", { limit: 0.5 }, { unknown: 87 }],
    ["that answers a tenth of the echo requests, all find none", { echo: 0.9 }, { none: 100 }],
  ])("%s", (_, loss, least) => {
    const counts = findingsOf(loss);
    for (const [finding, share] of Object.entries(least)) {
      expect({ finding, share: counts[finding] ?? 0 }).toSatisfy(
        (got) => got.share >= share - 1e-6,
      );
    }
  });

  test.each<[what: string, loss: Loss, most: object]>([
    [
      "with 1 % loss, less than one calls it path loss",
      { there: 0.01 },
      { "path-loss": 1, unknown: 1 },
    ],
    ["with 10 % loss, less than one calls it a limit", { there: 0.1 }, { unknown: 1 }],
    ["with 30 % loss, less than one calls it a limit", { there: 0.3 }, { unknown: 1 }],
    ["with loss on the return path alone, none calls it a limit", { back: 0.3 }, { unknown: 0.2 }],
  ])("%s", (_, loss, most) => {
    const counts = findingsOf(loss);
    for (const [finding, share] of Object.entries(most)) {
      expect({ finding, share: counts[finding] ?? 0 }).toSatisfy((got) => got.share < share);
    }
  });

  /** How often one is called stopped, in percent, by which of its ten requests fail. */
  const stopped = (fails: (at: number, random: () => number) => boolean) => {
    const random = randomOf(40);
    const runs = Array.from({ length: RUNS }, () =>
      Array.from({ length: 10 }, (_, at) =>
        row("request", at, fails(at, random) ? "http-error" : null),
      ),
    );
    return (100 * runs.filter(hasStopped).length) / RUNS;
  };

  test.each([
    [0.1, 1],
    [0.25, 1],
    [0.5, 2],
    [0.75, 5],
  ])("of whose requests %d fail at random, less than %i are called stopped", (share, most) => {
    expect(stopped((_, random) => random() < share)).toBeLessThan(most);
  });

  test.each([1, 2, 4, 7])("that ends after %i requests, all are called stopped", (count) => {
    expect(stopped((at) => at >= count)).toBe(100);
  });

  test("with one of four servers broken, at least 94 see a failure among ten", () => {
    const random = randomOf(41);
    const seen = Array.from({ length: RUNS }, () =>
      Array.from({ length: 10 }, () => random() < 0.25).some(Boolean),
    );
    expect(seen.filter(Boolean).length / RUNS).toBeGreaterThan(0.93);
  });
});

test.each<[what: string, failed: readonly number[], expected: boolean]>([
  ["nothing that fails", [], false],
  ["two failures at the end", [8, 9], false],
  ["three failures at the end", [7, 8, 9], true],
  ["all but the first", [1, 2, 3, 4, 5, 6, 7, 8, 9], true],
  ["all", [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], false],
  ["failures in the middle", [4, 5, 6], false],
  ["one before an end of three, as chance has it", [2, 5, 7, 8, 9], false],
])("%s: it has stopped or not", (_, failed, expected) => {
  const rows = Array.from({ length: 10 }, (_, at) =>
    row("request", at, failed.includes(at) ? "x" : null),
  );
  expect(hasStopped(rows)).toBe(expected);
  expect(hasStopped(rows.toReversed())).toBe(expected);
});

test.each<[what: string, syns: readonly number[], echoes: readonly number[], late: number]>([
  ["one that is a second late", [20, 21, 22, 1025], [20, 20], 1],
  ["one that is half a second late", [20, 21, 22, 525], [20, 20], 0],
  ["one that is as late as an echo reply", [20, 21, 22, 1025], [20, 1030], 0],
  ["all of a far target", [1200, 1210, 1250], [1190], 0],
  ["one alone", [1025], [20], 0],
])("a SYN-ACK was sent again: %s", (_, syns, echoes, late) => {
  const rows = [
    ...syns.map((ms, at) => row("syn", at, null, ms)),
    ...echoes.map((ms, at) => row("echo", at, null, ms)),
  ];
  expect(withRetransmitted(rows).filter(({ reason }) => reason === "retransmitted")).toHaveLength(
    late,
  );
});

test("says where packets are lost, or that it cannot be told", () => {
  const pairs = (lost: number, late: number, echo: number) => [
    ...Array.from({ length: 20 }, (_, at) =>
      at < lost
        ? row("syn", at, "timeout")
        : row("syn", at, at < lost + late ? "retransmitted" : null),
    ),
    ...Array.from({ length: 20 }, (_, at) => row("echo", at, at < echo ? "timeout" : null)),
  ];
  const textOf = (...given: Parameters<typeof pairs>) => lossOf(pairs(...given))?.text;
  expect(textOf(0, 5, 5)).toBe(
    "5 of 20 SYNs and 5 of 20 echo requests were lost; the SYN-ACK of each came a second late, so it was lost on the return path.",
  );
  expect(textOf(3, 2, 5)).toContain(
    "2 of 5 SYN-ACKs came a second late, so both directions lose packets",
  );
  expect(textOf(5, 0, 4)).toContain("on the way there, or the target limits them");
  expect(textOf(1, 0, 0)).toContain("which can be chance");
  // Without echo replies, nothing tells a limit from loss.
  expect(lossOf(pairs(9, 0, 20))?.finding).toBe("path-doubtful");
});

test("the chance of at least so many failures is that of a binomial distribution", () => {
  expect(atLeastChance({ count: 10, failed: 0 }, 0.3)).toBe(1);
  expect(atLeastChance({ count: 1, failed: 1 }, 0.3)).toBeCloseTo(0.3, 9);
  expect(atLeastChance({ count: 10, failed: 3 }, 0.5)).toBeCloseTo(0.9453125, 9);
});
