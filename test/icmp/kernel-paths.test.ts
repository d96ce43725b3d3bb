/** All paths through real Linux routers that choose by flow label. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { PathsRequest, TracedPaths } from "../../src/tools/trace/path-search.ts";
import type { TraceHop } from "../../src/tools/trace/responses.ts";
import { parseIpv6 } from "../addr/parse.ts";
import { hashSeedMissing, type KernelGraph, startKernelGraph } from "../lab/kernel-graph.ts";
import { describeWith, labMissing, programMissing, testWith } from "../lab/lab.ts";
import { nftRule } from "../lab/nft.ts";
import { type IcmpEngine, openIcmp } from "./engines.ts";

type Next = Readonly<Record<string, readonly string[]>>;

const UNLIMITED = { "net/ipv6/icmp/ratelimit": 0 };

/** `count` routers side by side, between two others. */
function beside(count: number): Next {
  const names = Array.from({ length: count }, (_, index) => `x${index}`);
  return { a: names, ...Object.fromEntries(names.map((name) => [name, ["b"]])), b: ["T"], T: [] };
}

const NESTED: Next = {
  a: ["x0", "x1", "x2", "x3"],
  ...Object.fromEntries(
    [0, 1, 2, 3].flatMap((x) => [
      [`x${x}`, [`y${x}0`, `y${x}1`]],
      [`y${x}0`, ["b"]],
      [`y${x}1`, ["b"]],
    ]),
  ),
  b: ["T"],
  T: [],
};

/** All ways from the first node, or from another one, to the target. */
function waysOf(next: Next, from = Object.keys(next)[0] as string): string[] {
  const behind = next[from] ?? [];
  return behind.length === 0
    ? [from]
    : behind.flatMap((node) => waysOf(next, node).map((way) => `${from} ${way}`));
}

const edgesOf = (next: Next) =>
  Object.entries(next).flatMap(([from, nodes]) => nodes.map((to) => `${from}>${to}`));

describeWith(labMissing)("through kernel routers", () => {
  let engine: IcmpEngine;

  beforeAll(() => {
    engine = openIcmp();
  });

  afterAll(() => engine?.close());

  /** The paths to a target by the names of their nodes, with `…` where everything is lost. */
  async function find(
    network: KernelGraph,
    next: Next,
    request: Partial<PathsRequest> = {},
  ): Promise<{ ways: string[]; edges: string[]; outcome: TracedPaths }> {
    const names = new Map(Object.keys(next).map((node) => [network.addressOf(node), node]));
    const nameOf = (row: Pick<TraceHop, "ip"> | undefined) =>
      row?.ip ? (names.get(row.ip) ?? row.ip) : "-";
    const outcome = await engine.paths({
      ...{ target: parseIpv6(network.target), maxHops: 30, timeoutMs: 1000, paths: 16 },
      ...request,
    });
    if (outcome.kind !== "done") throw new Error(JSON.stringify(outcome));
    const { nodes, edges } = outcome.graph;
    return {
      ways: outcome.paths.map(({ addresses, reason }) => {
        const way = addresses.map((ip) => nameOf({ ip })).join(" ");
        return ["gap-limit", "max-hops"].includes(reason) ? `${way} …` : way;
      }),
      edges: edges.map(({ from, to }) => `${nameOf(nodes[from])}>${nameOf(nodes[to])}`),
      outcome,
    };
  }

  /**
   * Searches until all of the truth has been found: a search may miss a part of it by chance, one in twenty times,
   * but never finds what does not exist.
   */
  async function expectToFind(network: KernelGraph, next: Next, ways: readonly string[]) {
    const found = new Set<string>();
    const edges = new Set<string>();
    for (let searches = 0; searches < 10 && found.size < ways.length; searches++) {
      const { ways: some, edges: more, outcome } = await find(network, next);
      expect(outcome).toMatchObject({ complete: true, perPacket: [] });
      for (const way of some) found.add(way);
      for (const edge of more) edges.add(edge);
    }
    expect([...found].toSorted()).toEqual(ways.toSorted());
    return edges;
  }

  const expectAll = async (next: Next) => {
    await using network = await startKernelGraph(next, UNLIMITED);
    const edges = await expectToFind(network, next, waysOf(next));
    expect([...edges].toSorted()).toEqual(edgesOf(next).toSorted());
    const { outcome, ways } = await find(network, next);
    for (const [index, path] of outcome.paths.entries()) {
      const { flowLabel } = path;
      const { ways: again, outcome: repeated } = await find(network, next, { flowLabel, paths: 2 });
      expect(repeated.flowLabel).toBe(flowLabel);
      expect(again[0]).toBe(ways[index]);
    }
  };

  test.each([2, 4, 8])("%i paths are found, and each flow label repeats its path", (count) =>
    expectAll(beside(count)),
  );

  testWith(hashSeedMissing)(
    "four paths, each of two, are found, and each flow label repeats its path",
    () => expectAll(NESTED),
  );

  test("routers that rate-limit their errors as Linux does are not further paths", async () => {
    const next = beside(2);
    await using network = await startKernelGraph(next);
    await expectToFind(network, next, waysOf(next));
  });

  describeWith(programMissing("nft"))("one path that loses everything", () => {
    test("is shown to the hop where it ends", async () => {
      const next = beside(4);
      await using network = await startKernelGraph(next, UNLIMITED);
      await network.exec(
        "x2",
        ["nft", "-f", "-"],
        nftRule("forward", "icmpv6 type echo-request drop"),
      );
      const ways = waysOf(next).map((way) => (way === "a x2 b T" ? "a x2 …" : way));
      const edges = await expectToFind(network, next, ways);
      expect([...edges].toSorted()).toEqual(
        edgesOf(next)
          .filter((edge) => edge !== "x2>b")
          .toSorted(),
      );
    });
  });
});
