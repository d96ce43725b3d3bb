/** All paths to a target, over simulated networks without time. */
import { describe, expect, test } from "bun:test";
import { formatIpv6 } from "../../../src/addr/format.ts";
import type {
  PathsOptions,
  PathsRequest,
  TracedPaths,
} from "../../../src/tools/trace/path-search.ts";
import type { TraceHop } from "../../../src/tools/trace/responses.ts";
import type { TracePath } from "../../../src/tools/trace/result.ts";
import { parseIpv6 } from "../../addr/parse.ts";
import { openIcmp } from "../../icmp/engines.ts";
import {
  echoReply,
  type FakeResponse,
  FakeSocket,
  icmpError,
  type Network,
  SOURCE,
} from "../../icmp/fake.ts";
import { LINUX_RATE_LIMIT } from "../../lab/internet-description.ts";
import { rateLimiter } from "../../lab/simulation.ts";
import { FakeClock } from "../../util/fake-clock.ts";

/**
 * The stations that a packet with a flow label meets, the nth packet of all: names of routers, `-` for a silent
 * one, `lost` where everything is lost, and `T` for the target at the end.
 */
type Topology = (flowLabel: number, nth: number) => readonly string[];

/** The way that a router takes, from 0: as good as random, and independent of other routers. */
function choose(flowLabel: number, ways: number, router: string): number {
  return Number(Bun.hash.wyhash(`${flowLabel} ${router}`) % BigInt(ways));
}

const addressOf = (name: string) =>
  parseIpv6(`2001:db8:1::${[...name].map((letter) => letter.charCodeAt(0)).join(":")}`);

const TARGET = addressOf("T");

const nameOf = new Map<string, string>();
for (const first of "abcdxyzT") {
  for (const rest of ["", ..."0123456789abcdef"]) {
    for (const last of ["", "0", "1", "2", "3"]) {
      const name = first + rest + last;
      nameOf.set(formatIpv6(addressOf(name)), name);
    }
  }
}

/** @param allows whether a station may answer now */
function networkOf(
  topology: Topology,
  allows: (name: string, nowMs: number) => boolean = () => true,
): Network {
  let nth = 0;
  return (packet, nowMs) => {
    const stations = topology(packet.flowLabel, ++nth);
    const at = Math.min(packet.hopLimit, stations.length) - 1;
    const name = stations[at] as string;
    if (name === "-" || stations.slice(0, at + 1).includes("lost") || !allows(name, nowMs))
      return [];
    const message = name === "T" ? echoReply(packet) : icmpError(packet, 3, 0);
    return [{ delayMs: at + 1, from: addressOf(name), message, hopLimit: 64 - at }];
  };
}

/** Random bytes that depend on a seed only. */
function randomFrom(seed: number): (bytes: Uint8Array) => void {
  let count = 0;
  return (bytes) => {
    for (let at = 0; at < bytes.length; at++) {
      bytes[at] = Number(Bun.hash.wyhash(`${seed} ${count++}`) & 0xffn);
    }
  };
}

interface Found {
  readonly outcome: TracedPaths;
  readonly sent: number;
  readonly tookMs: number;
  readonly ways: readonly string[];
  readonly edges: readonly string[];
}

/** Searches for paths, and checks what holds for every search. */
async function find(
  network: Network,
  {
    seed = 1,
    isWithoutLabels = false,
    ...request
  }: Partial<PathsRequest> & { readonly seed?: number; readonly isWithoutLabels?: boolean } = {},
  options?: PathsOptions,
): Promise<Found> {
  const clock = new FakeClock();
  const socket = new FakeSocket(clock, network);
  if (isWithoutLabels) socket.route = () => ({ source: SOURCE, flowLabel: 0 });
  const engine = openIcmp({ openSocket: socket.open, clock, random: randomFrom(seed) });
  const startMs = clock.nowMs();
  const defaults = { target: TARGET, maxHops: 30, timeoutMs: 2000, paths: 16 };
  const outcome = await clock.run(engine.paths({ ...defaults, ...request }, options));
  if (outcome.kind !== "done") throw new Error(outcome.kind);
  expect(engine.outstanding()).toBe(0);
  expect(outcome.sent).toBeGreaterThan(0);
  const tookMs = clock.nowMs() - startMs;
  await clock.advance(1);
  expect(clock.pending).toBe(0);
  const { nodes, edges } = outcome.graph;
  return {
    outcome,
    sent: socket.sent.length,
    tookMs,
    ways: outcome.paths.map(wayOf).toSorted(),
    edges: edges.map(({ from, to }) => `${nameAt(nodes[from])}>${nameAt(nodes[to])}`).toSorted(),
  };
}

function nameAt(row: Pick<TraceHop, "ip"> | undefined): string {
  return row?.ip ? (nameOf.get(row.ip) ?? "?") : "-";
}

function wayOf({ addresses, reason }: TracePath): string {
  const way = addresses.map((ip) => nameAt({ ip })).join(" ");
  return ["gap-limit", "max-hops"].includes(reason) ? `${way} …` : way;
}

/** All ways of a topology, and all its edges. */
function truthOf(topology: Topology) {
  const ways = new Set<string>();
  const edges = new Set<string>();
  for (let label = 1; label < 5000; label++) {
    const stations = topology(label, 0);
    const end = stations.indexOf("lost");
    const answering = end < 0 ? stations : stations.slice(0, end);
    ways.add(end < 0 ? answering.join(" ") : `${answering.join(" ")} …`);
    answering.slice(1).forEach((name, at) => {
      edges.add(`${answering[at]}>${name}`);
    });
  }
  return { ways: [...ways].toSorted(), edges: [...edges].toSorted() };
}

const oneOf =
  (ways: number): Topology =>
  (label) => ["a", "b", `x${choose(label, ways, "b").toString(16)}`, "c", "T"];
const nested: Topology = (label) => {
  const x = choose(label, 4, "a");
  return ["a", `x${x}`, `y${x}${choose(label, 2, `x${x}`)}`, `z${x}`, "c", "T"];
};
const twice: Topology = (label) => [
  "a",
  `x${choose(label, 4, "a")}`,
  "b",
  `y${choose(label, 4, "b")}`,
  "T",
];
const longer: Topology = (label) =>
  choose(label, 2, "a") === 0 ? ["a", "x", "T"] : ["a", "y", "b", "c", "d", "z", "T"];
const oneLoses: Topology = (label) => {
  const x = choose(label, 4, "a");
  return ["a", `x${x}`, ...(x === 2 ? ["lost"] : []), "c", "T"];
};
const losesAtOnce: Topology = (label) =>
  choose(label, 2, "a") === 0 ? ["a", "x", "c", "T"] : ["a", "lost", "c", "T"];
const silentBetween: Topology = (label) => ["a", "-", `x${choose(label, 2, "a")}`, "-", "c", "T"];

describe("all paths are found, and no others", () => {
  test.each<[string, Topology]>([
    ["one", (_) => ["a", "b", "c", "T"]],
    ["one hop", () => ["T"]],
    ["two", oneOf(2)],
    ["four", oneOf(4)],
    ["eight", oneOf(8)],
    ["sixteen", oneOf(16)],
    ["four, each of two", nested],
    ["two of different lengths", longer],
    ["at the first hop", (label) => [`x${choose(label, 3, "")}`, "T"]],
    ["four, one losing everything", oneLoses],
    ["two, one losing everything from its first router on", losesAtOnce],
    ["two between silent routers", silentBetween],
  ])("%s", async (_, topology) => {
    const truth = truthOf(topology);
    const { ways, edges, outcome } = await find(networkOf(topology), { seed: 2 });
    expect(ways).toEqual(truth.ways);
    expect(edges).toEqual(truth.edges);
    expect(outcome.complete).toBe(true);
    expect(outcome.perPacket).toEqual([]);
  });
});

test("of paths that meet and part again, every edge is found, but not every combination", async () => {
  const truth = truthOf(twice);
  const { ways, edges, outcome } = await find(networkOf(twice));
  expect(edges).toEqual(truth.edges);
  expect(truth.ways).toEqual(expect.arrayContaining([...ways]));
  expect(outcome.complete).toBe(true);
});

/** Every node rate-limits its errors. */
const limited = () => {
  const withinLimit = rateLimiter();
  return (name: string, nowMs: number) =>
    name === "T" || withinLimit(name, LINUX_RATE_LIMIT, nowMs);
};

describe("silence is not another path", () => {
  test.each<[string, Topology]>([
    [
      "where one path leads through routers that rate-limit their errors",
      () => ["a", "b", "c", "T"],
    ],
    ["where two paths do", oneOf(2)],
    ["where sixteen paths do", oneOf(16)],
    ["where four of two paths do", nested],
  ])("%s", async (_, topology) => {
    const truth = truthOf(topology);
    const { ways, edges, outcome } = await find(networkOf(topology, limited()));
    expect([ways, edges, outcome.complete]).toEqual([truth.ways, truth.edges, true]);
  });

  test.each([100, 400])("where a target sends one reply in %i ms", async (intervalMs) => {
    const within = rateLimiter();
    const allows = (name: string, nowMs: number) =>
      name !== "T" || within(name, { intervalMs, burst: 1 }, nowMs);
    const truth = truthOf(oneOf(2));
    const { ways, edges } = await find(networkOf(oneOf(2), allows));
    expect([ways, edges]).toEqual([truth.ways, truth.edges]);
  });

  test("where the network loses one packet in ten", async () => {
    let nth = 0;
    const allows = () => choose(++nth, 10, "loss") > 0;
    const truth = truthOf(oneOf(4));
    const { ways, edges } = await find(networkOf(oneOf(4), allows));
    expect([ways, edges]).toEqual([truth.ways, truth.edges]);
  });
});

test.each([2, 4])("at least 57 of 60 searches find all of %i paths", async (ways) => {
  const topology = oneOf(ways);
  const truth = truthOf(topology);
  let complete = 0;
  for (let seed = 1; seed <= 60; seed++) {
    const { ways: found, outcome } = await find(networkOf(topology), { seed });
    expect(truth.ways).toEqual(expect.arrayContaining([...found]));
    expect(outcome.complete).toBe(true);
    if (found.length === ways) complete++;
  }
  expect(complete).toBeGreaterThanOrEqual(57);
});

/** `a - x c T` is what is known of `a b x c T` where b did not answer. */
function isPartOf(way: string, whole: string): boolean {
  const [shown, all] = [way.split(" "), whole.split(" ")];
  return shown.length === all.length && shown.every((name, at) => ["-", all[at]].includes(name));
}

/** One answer in a second, of one router or of all. */
const slowly = (slow: (name: string) => boolean) => () => {
  const within = rateLimiter();
  return (name: string, nowMs: number) =>
    !slow(name) || within(name, { intervalMs: 1000, burst: 1 }, nowMs);
};

const losingOneInTen = (seed: number) => {
  let nth = 0;
  return () => choose(++nth, 10, `loss ${seed}`) > 0;
};

const sixteen = (way: (middle: string) => readonly string[]): Topology => {
  return (label) => way(`x${choose(label, 16, "b").toString(16)}`);
};

describe("a search for sixteen paths takes less than 12 s, and says no more than it knows", () => {
  const SEARCHES = 12;

  /** Whether nine of ten searches find all paths, and whether they know that there are no others. */
  test.each<[string, Topology, (seed: number) => ReturnType<typeof limited>, boolean, boolean]>([
    ["where all routers answer", oneOf(16), () => () => true, true, true],
    ["of Linux routers", oneOf(16), limited, true, false],
    [
      "behind a silent router",
      sixteen((x) => ["a", "-", x, "c", "T"]),
      () => () => true,
      true,
      true,
    ],
    [
      "before a silent router",
      sixteen((x) => ["a", "b", x, "-", "T"]),
      () => () => true,
      true,
      true,
    ],
    [
      "behind a router that answers once a second",
      oneOf(16),
      slowly((name) => name === "b"),
      true,
      false,
    ],
    [
      "before a router that answers once a second",
      oneOf(16),
      slowly((name) => name === "c"),
      false,
      false,
    ],
    [
      "of routers that answer once a second",
      oneOf(16),
      slowly((name) => name !== "T"),
      false,
      false,
    ],
    [
      "to a target that answers once a second",
      oneOf(16),
      slowly((name) => name === "T"),
      false,
      false,
    ],
    ["where one packet in ten is lost", oneOf(16), losingOneInTen, true, true],
  ])("%s", async (_, topology, allowsOf, findsAll, isComplete) => {
    const truth = truthOf(topology).ways;
    let [right, complete] = [0, 0];
    for (let seed = 1; seed <= SEARCHES; seed++) {
      const network = networkOf(topology, allowsOf(seed));
      const { ways, outcome, tookMs } = await find(network, { seed, awaitsRouters: true });
      expect(tookMs).toBeLessThan(12_000);
      expect(ways.filter((way) => !truth.some((whole) => isPartOf(way, whole)))).toEqual([]);
      expect(outcome.complete && outcome.isLate).toBe(false);
      if (ways.length === truth.length) right++;
      if (outcome.complete) complete++;
    }
    if (findsAll) expect(right).toBeGreaterThanOrEqual(0.9 * SEARCHES);
    if (isComplete) expect(complete).toBeGreaterThanOrEqual(0.9 * SEARCHES);
  });
});

describe("a search", () => {
  test("says that there are more paths than were wanted", async () => {
    const { outcome, ways } = await find(networkOf(oneOf(4)), { paths: 2 });
    expect(ways.length).toBe(2);
    expect(outcome.complete).toBe(false);
    // So few labels show all next hops.
    const { outcome: three } = await find(networkOf(oneOf(3)), { paths: 2 });
    expect([three.complete, three.paths.length, three.labels < 32]).toEqual([false, 2, true]);
  });

  test("costs at most 16 flow labels for each path that is wanted", async () => {
    const labels = new Set<number>();
    const many: Topology = (label) => {
      labels.add(label);
      return [
        "a",
        `x${choose(label, 15, "a").toString(16)}`,
        `y${choose(label, 16, "b").toString(16)}`,
        "T",
      ];
    };
    const { outcome } = await find(networkOf(many), { paths: 3 });
    expect(labels.size).toBe(48);
    expect(outcome.complete).toBe(false);
  });

  test("traces no label but the first beyond the longest path, unless it may be longer", async () => {
    const furthest = new Map<number, number>();
    const network = networkOf(oneOf(4));
    const { outcome } = await find((packet, nowMs) => {
      const { flowLabel, hopLimit } = packet;
      furthest.set(flowLabel, Math.max(furthest.get(flowLabel) ?? 0, hopLimit));
      return network(packet, nowMs);
    });
    furthest.delete(outcome.flowLabel);
    expect(Math.max(...furthest.values())).toBe(5);
  });

  test("begins no trace after 10,000 probes", async () => {
    const far = Array.from({ length: 60 }, (_, hop) => hop);
    const topology: Topology = (label) => [
      ...far.map((hop) => `x${choose(label, 6, `${hop}`)}`),
      "T",
    ];
    const network = networkOf(topology);
    // So near that the time is not over before.
    const near: Network = (packet, nowMs) =>
      [...network(packet, nowMs)].map((answer) => ({ ...(answer as FakeResponse), delayMs: 1 }));
    const { outcome, sent } = await find(near, { maxHops: 64 });
    expect(outcome.sent).toBe(sent);
    expect(sent).toBeWithin(10_000, 10_000 + 16 * 64);
    expect(outcome.complete).toBe(false);
  });

  test("begins with the flow label that is given, and repeats its path", async () => {
    for (const flowLabel of [0, 1, 7, 0xfffff]) {
      const { outcome } = await find(networkOf(oneOf(8)), { flowLabel });
      expect(outcome.flowLabel).toBe(flowLabel);
      expect(outcome.paths[0]?.flowLabel).toBe(flowLabel);
      expect(outcome.hops.map(nameAt)).toEqual([...oneOf(8)(flowLabel, 0)]);
    }
  });

  test("gives every path the label that repeats it", async () => {
    const { outcome } = await find(networkOf(nested));
    for (const path of outcome.paths) {
      expect(wayOf(path)).toBe(nested(path.flowLabel, 0).join(" "));
    }
  });

  test("says at which hops a router chooses by packet, in 95 of 100 cases for two next hops", async () => {
    const found: string[] = [];
    for (let seed = 1; seed <= 20; seed++) {
      const byPacket: Topology = (_, nth) => ["a", `x${choose(nth, 2, `${seed}`)}`, "b", "T"];
      const { outcome } = await find(networkOf(byPacket), { seed });
      found.push(outcome.perPacket.join());
    }
    expect(found.filter((hops) => hops === "2").length).toBeGreaterThanOrEqual(19);
    expect(found.every((hops) => hops === "2" || hops === "")).toBe(true);
  });

  test("reports each path once it is found, and the first path's hops as a trace does", async () => {
    const hops: number[] = [];
    const told: TracePath[] = [];
    const { outcome } = await find(
      networkOf(oneOf(4)),
      {},
      { onHop: ({ hop }) => hops.push(hop), onPath: (path) => told.push(path) },
    );
    expect(new Set([1, 2, 3, 4, 5]).difference(new Set(hops)).size).toBe(0);
    expect(told.map(wayOf)).toEqual(outcome.paths.map(wayOf));
  });

  test("ends when its signal aborts", async () => {
    const controller = new AbortController();
    let asked = 0;
    const topology: Topology = (label) => {
      if (++asked === 60) controller.abort();
      return oneOf(8)(label, 0);
    };
    const found = find(networkOf(topology), {}, { signal: controller.signal });
    await expect(found).rejects.toThrow("aborted");
    expect(asked).toBeLessThan(100);
  });

  test("of a target that does not answer ends with what there is", async () => {
    const { ways, outcome } = await find(networkOf(() => ["a", "b", "lost", "T"]));
    expect(ways).toEqual(["a b …"]);
    expect(outcome).toMatchObject({ reached: false, reason: "gap-limit", complete: true });
  });

  test("of a target without a route has no result", async () => {
    await expect(find(() => "ENETUNREACH")).rejects.toThrow("unreachable");
  });
});

test("where another program prevents flow labels, one path is found, and perhaps there are more", async () => {
  const network = networkOf(oneOf(4));
  const { outcome, ways, sent } = await find(network, { isWithoutLabels: true });
  expect(ways).toEqual([oneOf(4)(0, 0).join(" ")]);
  expect(outcome).toMatchObject({ flowLabel: 0, labels: 1, complete: false });
  expect(sent).toBeLessThan(100);
});
