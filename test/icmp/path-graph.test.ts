import { describe, expect, test } from "bun:test";
import { graphOf, groupByPath, labelsToRuleOut, missingLabels } from "../../src/icmp/path-graph.ts";
import type { Traced } from "../../src/icmp/traceroute.ts";
import { SOURCE, stationAddress } from "./fake.ts";

/** A trace by its hops: letters, `-` for silence, and `T` for the target. */
function traced(way: string, flowLabel = 0): Traced {
  const hops = [...way].map((letter, index) => ({
    ...{ hop: index + 1, scopeId: 0, rttMs: 1, rttsMs: [1], replyHopLimit: 64, addresses: [] },
    address: letter === "-" ? null : stationAddress(letter.charCodeAt(0)),
    ...{ mpls: [], interfaces: [], mtuBytes: null, end: null },
  }));
  const reached = way.endsWith("T");
  const reason = reached ? "reached" : "gap-limit";
  return {
    ...{ kind: "done", source: SOURCE, flowLabel, sent: 1, hops, reached, reason },
    ...{ error: null, loop: null, otherSource: null, refused: [] },
  };
}

const letters = "abcxyT";
const letterOf = ({ address }: Traced["hops"][number]) =>
  [...letters].find((letter) => stationAddress(letter.charCodeAt(0)).word1 === address?.word1) ??
  "-";

describe("traces are sorted by path", () => {
  test.each<[string, string[], number[]]>([
    ["the same", ["axT", "axT"], [2]],
    ["other addresses", ["axT", "ayT", "axT"], [2, 1]],
    ["silence agrees with every address, before it and after it", ["a-T", "axT", "a-T"], [3]],
    ["what was silent is known from another trace", ["a-T", "axT", "ayT"], [2, 1]],
    ["another length", ["axT", "axxT"], [1, 1]],
    ["a target that is not reached", ["axT", "ax-", "ax", "a"], [1, 3]],
    ["a target that is reached over what another did not reach", ["ax", "axT"], [1, 1]],
  ])("%s", (_, ways, counts) => {
    const paths = groupByPath(ways.map((way, index) => traced(way, index)));
    expect(paths.map(({ labels }) => labels.length)).toEqual(counts);
  });
});

describe("a graph", () => {
  test.each<[string, string[], string[]]>([
    ["of one path", ["axT", "axT"], ["ax 2", "xT 2"]],
    ["of two paths", ["axbT", "aybT"], ["ax 1", "ay 1", "bT 2", "xb 1", "yb 1"]],
    ["has no edge that no single label showed", ["ax-T", "a-yT"], ["ax 1", "yT 1"]],
    ["has silence where no label knows more", ["a-T", "a-T"], ["-T 2", "a- 2"]],
    ["of a path that ends", ["axT", "ay"], ["ax 1", "ay 1", "xT 1"]],
  ])("%s", (_, ways, expected) => {
    const { nodes, edges } = graphOf(groupByPath(ways.map(traced)));
    const text = edges.map(({ from, to, labels }) => {
      const [near, far] = [nodes[from], nodes[to]];
      return `${near && letterOf(near)}${far && letterOf(far)} ${labels}`;
    });
    expect(text.toSorted()).toEqual(expected);
    expect(nodes.map(({ hop }) => hop)).toEqual(nodes.map(({ hop }) => hop).toSorted());
  });
});

test.each<[string, string[], number]>([
  ["six labels rule out a second next hop", Array(6).fill("axT"), 0],
  ["five do not", Array(5).fill("axT"), 1],
  [
    "eleven rule out a third, but each of two needs six",
    [...Array(6).fill("axT"), ...Array(5).fill("ayT")],
    1,
  ],
  ["twelve are enough for two", [...Array(6).fill("axT"), ...Array(6).fill("ayT")], 0],
  ["a silence does not count where another label knows more", [...Array(5).fill("axT"), "a-T"], 1],
  ["a silence for all counts", Array(6).fill("a-T"), 0],
])("%s", (_, ways, missing) => {
  expect(missingLabels(groupByPath(ways.map(traced)))).toBe(missing);
});

/** The numbers of labels after which 1 to 16 next hops are believed to be all; Veitch and others, 2009, for 95 %. */
const PUBLISHED = [6, 11, 16, 21, 27, 33, 38, 44, 51, 57, 63, 70, 76, 83, 90, 96];

function binomial(n: number, k: number): number {
  return k === 0 ? 1 : (binomial(n - 1, k - 1) * n) / k;
}

/** The chance that `labels` labels do not show all of `nextHops` equally likely next hops, by inclusion and exclusion. */
function missingChance(nextHops: number, labels: number): number {
  let chance = 0;
  for (let unseen = 1; unseen < nextHops; unseen++) {
    const sign = unseen % 2 === 1 ? 1 : -1;
    chance += sign * binomial(nextHops, unseen) * (1 - unseen / nextHops) ** labels;
  }
  return chance;
}

test.each(PUBLISHED.map((labels, at) => [at + 1, labels] as const))(
  "%i next hops are all after %i labels",
  (nextHops, labels) => {
    expect(labelsToRuleOut(nextHops + 1)).toBe(labels);
    expect(missingChance(nextHops + 1, labels)).toBeLessThanOrEqual(0.05);
    expect(missingChance(nextHops + 1, labels - 1)).toBeGreaterThan(0.05);
  },
);
