import { describe, expect, test } from "bun:test";
import { formatIpv6 } from "../../../src/addr/format.ts";
import type { Traced } from "../../../src/tools/trace/engine.ts";
import { labelsToRuleOut, PathFindings } from "../../../src/tools/trace/path-graph.ts";
import { SOURCE, stationAddress } from "../../icmp/fake.ts";

/** A trace by its hops: letters, `-` for silence, and `T` for the target. */
function traced(way: string, flowLabel = 0): Traced {
  const hops = [...way].map((letter, index) => {
    const ip = letter === "-" ? null : formatIpv6(stationAddress(letter.charCodeAt(0)));
    return {
      ...{ hop: index + 1, ip, hostname: null, rtt: 1, details: { replyHopLimit: 64 } },
      end: letter === "T" ? ("reached" as const) : null,
    };
  });
  const reached = way.endsWith("T");
  const reason = reached ? "reached" : "gap-limit";
  return {
    ...{ kind: "done", source: SOURCE, flowLabel, sent: 1, hops, reached, reason },
    ...{ error: null, loop: null, otherSource: null, refused: [] },
  };
}

const hopsOf = (way: string) => [...way].map((_, index) => index + 1);

/** The findings of traces from end to end, each `times` times, with a flow label for each place in the list. */
function findingsOf(ways: readonly string[], times = 1): PathFindings {
  const findings = new PathFindings();
  for (const [label, way] of ways.entries()) {
    for (let time = 0; time < times; time++) findings.add(traced(way, label), hopsOf(way), true);
  }
  findings.sort();
  return findings;
}

const letters = "abcxyzT";
const letterOf = ({ ip }: Traced["hops"][number]) =>
  [...letters].find((letter) => formatIpv6(stationAddress(letter.charCodeAt(0))) === ip) ?? "-";

/** The edges of the graph, each with its labels. */
function edgesOf(findings: PathFindings): string[] {
  const { nodes, edges } = findings.graph();
  const text = edges.map(({ from, to, labels }) => {
    const [near, far] = [nodes[from], nodes[to]];
    return `${near && letterOf(near)}${far && letterOf(far)} ${labels}`;
  });
  return text.toSorted();
}

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
    const { paths } = findingsOf(ways);
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
    const findings = findingsOf(ways, 2);
    const { nodes } = findings.graph();
    expect(edgesOf(findings)).toEqual(expected);
    expect(nodes.map(({ hop }) => hop)).toEqual(nodes.map(({ hop }) => hop).toSorted());
  });
});

describe("links", () => {
  const alike = (label: number, way: string): [number, string][] => [
    [label, way],
    [label, way],
  ];
  test.each<[string, [number, string][], string[], number[]]>([
    ["are not believed of one trace", [[0, "axbT"]], [], []],
    ["are believed of two", alike(0, "axbT"), ["ax 1", "bT 1", "xb 1"], []],
    [
      "are believed of two labels, if nobody found another node there",
      [
        [0, "axT"],
        [1, "axT"],
      ],
      ["ax 2", "xT 2"],
      [],
    ],
    [
      "are not, if somebody did",
      [
        [0, "axbT"],
        [1, "aybT"],
      ],
      ["bT 2"],
      [],
    ],
    [
      "are not, where two traces disagree",
      [
        [0, "axbT"],
        [0, "aybT"],
      ],
      ["bT 1"],
      [2],
    ],
    [
      "are not, where silence follows",
      [
        [0, "axbT"],
        [0, "a-bT"],
      ],
      ["bT 1"],
      [],
    ],
    [
      "are left out behind a node that answers in turn with another",
      [...alike(0, "axbT"), [1, "axbT"], [1, "aybT"]],
      ["ax 2", "bT 2"],
      [2],
    ],
  ])("%s", (_, traces, expected, perPacket) => {
    const findings = new PathFindings();
    for (const [label, way] of traces) findings.add(traced(way, label), hopsOf(way), true);
    findings.sort();
    expect(edgesOf(findings)).toEqual(expected);
    expect([...findings.changing]).toEqual(perPacket);
  });
});

test("nodes, links and labels are counted once, in whatever order traces come", () => {
  for (let seed = 0; seed < 300; seed++) {
    const random = (below: number, what: string) =>
      Number(Bun.hash.wyhash(`${seed} ${what}`) % BigInt(below));
    const findings = new PathFindings();
    for (let nth = 0; nth < 30; nth++) {
      const way = Array.from({ length: 4 }, (_, at) => "axy-"[random(4, `${nth} ${at}`)]).join("");
      const asked = random(2, `${nth}`) ? hopsOf(`${way}T`) : [1 + random(5, `hop ${nth}`)];
      findings.add(traced(`${way}T`, random(8, `label ${nth}`)), asked, asked.length > 1);
    }
    findings.sort();
    const shown = [...findings.labels.values()].flatMap((label) =>
      label.shown.flatMap((name, hop) => (name ? `${label.flowLabel} ${hop} ${name}` : [])),
    );
    const kept = findings.levels.flatMap((level, hop) =>
      [...level].flatMap(([name, labels]) =>
        [...labels].map(({ flowLabel }) => `${flowLabel} ${hop} ${name}`),
      ),
    );
    expect(kept.toSorted()).toEqual(shown.toSorted());
    const whole = [...findings.labels.values()].filter(({ isWhole }) => isWhole);
    expect(findings.paths.flatMap(({ labels }) => labels).length).toBe(whole.length);
  }
});

test.each<[string, string[], number]>([
  ["six labels rule out a second next hop", Array(6).fill("axT"), 0],
  ["five do not", Array(5).fill("axT"), 1],
  [
    "eleven rule out a third, but each of two needs six",
    [...Array(6).fill("axbT"), ...Array(5).fill("aybT")],
    1,
  ],
  ["twelve are enough for two", [...Array(6).fill("axbT"), ...Array(6).fill("aybT")], 0],
  ["a silence does not count where another label knows more", [...Array(5).fill("axT"), "a-T"], 1],
  ["a silence for all counts", Array(6).fill("a-T"), 0],
])("%s", (_, ways, missing) => {
  expect(findingsOf(ways).missing).toBe(missing);
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
