import { expect, test } from "bun:test";
import { labelsToRuleOut } from "../../src/icmp/path-graph.ts";

/** The numbers of labels after which 1 to 16 next hops are believed to be all; Veitch and others, 2009, for 95 %. */
const PUBLISHED = [6, 11, 16, 21, 27, 33, 38, 44, 51, 57, 63, 70, 76, 83, 90, 96];

function binomial(n: number, k: number): number {
  return k === 0 ? 1 : (binomial(n - 1, k - 1) * n) / k;
}

/** The chance that so many labels do not show all of so many equally likely next hops, by inclusion and exclusion. */
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
