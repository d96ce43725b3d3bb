/** Which connections are closed when there are too many. */
import { expect, test } from "bun:test";
import { surplusOf } from "../../src/server/connections.ts";

/** `count` networks with `connections` connections each. */
function networks(count: number, connections: number): Map<string, number[]> {
  const descriptors = () => Array.from({ length: connections }, (_, index) => index);
  return new Map(Array.from({ length: count }, (_, index) => [`${index}`, descriptors()]));
}

test.each([
  ["one network at its bound", 1, 1_024, 0],
  ["one network above it", 1, 1_500, 476],
  ["sixteen networks fill the bound for all", 16, 1_024, 0],
  ["more networks get less each", 32, 1_024, 16_384],
  ["as many networks as connections lose none", 16_384, 1, 0],
  ["of more networks with one each, only the surplus is closed", 20_000, 1, 3_616],
])("%s", (_, count, connections, closed) => {
  expect(surplusOf(networks(count, connections))).toHaveLength(closed);
});
