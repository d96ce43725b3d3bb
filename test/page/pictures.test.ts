/** The data that the pictures of the tools are drawn from. */
import { describe, expect, test } from "bun:test";
import { digitsOf, partsOf } from "../../src/page/browser/pictures/address-parts.ts";
import { isLossy, levelsOf, type Path } from "../../src/page/browser/pictures/paths-lanes.ts";
import { formatMs, NUMBER_FORMATS, roundUp, scaleOf } from "../../src/tools/numbers.ts";
import { describeAddress } from "../../src/tools/validate/engine.ts";
import { parseIpv6 } from "../addr/parse.ts";

describe("the bits of an address", () => {
  test.each<[string, Readonly<Record<string, string>>]>([
    [
      "2001:db8:42:7::1",
      { prefix: "2001:0db8:0042", subnet: "0007", interface: "0000:0000:0000:0001" },
    ],
    [
      "2001:db8::21b:44ff:fe11:3ab7",
      { prefix: "2001:0db8:0000", subnet: "0000", mac: "021b:44:11:3ab7", eui64: "ff:fe" },
    ],
    ["fe80::1", { prefix: "fe80:0000:0000:0000", interface: "0000:0000:0000:0001" }],
    [
      "ff02::1:ff00:1",
      { prefix: "ff", flags: "0", scope: "2", group: "0000:0000:0000:0000:0001:ff00:0001" },
    ],
    ["::ffff:192.0.2.7", { prefix: "0000:0000:0000:0000:0000:ffff", ipv4: "c000:0207" }],
    ["64:ff9b::192.0.2.7", { prefix: "0064:ff9b:0000:0000:0000:0000", ipv4: "c000:0207" }],
    [
      "2002:c000:207::1",
      { prefix: "2002", ipv4: "c000:0207", subnet: "0000", interface: "0000:0000:0000:0001" },
    ],
    [
      "2001:db8::5efe:192.0.2.7",
      { prefix: "2001:0db8:0000", subnet: "0000", interface: "0000:5efe", ipv4: "c000:0207" },
    ],
    [
      "2001:db8::c000:207",
      { prefix: "2001:0db8:0000", subnet: "0000", interface: "0000:0000", ipv4: "c000:0207" },
    ],
    [
      "2001:0:4136:e378:8000:63bf:3fff:fdd2",
      {
        prefix: "2001:0000",
        server: "4136:e378",
        flags: "8000",
        port: "63bf",
        client: "3fff:fdd2",
      },
    ],
  ])("%s", (text, expected) => {
    const validation = describeAddress(parseIpv6(text), null);
    const parts = partsOf(validation);
    const digits = validation.expanded.replaceAll(":", "");
    const found = [...new Set(parts)].map((part) => [part, digitsOf(part, digits, parts)]);
    expect(Object.fromEntries(found)).toEqual(expected);
  });
});

describe("the lanes of paths", () => {
  const node = (hop: number, ip: string | null) => ({ hop, ip, hostname: null, rtt: null });
  const path = (reached: boolean, ...addresses: (string | null)[]): Path => ({
    ...{ flowLabel: 1, labels: 1, reached, addresses },
    reason: reached ? "reached" : "gap-limit",
  });
  const paths = [path(true, "a", "c", "t"), path(true, "a", null, "t"), path(false, "a", "b")];
  const graph = {
    nodes: [node(1, "a"), node(2, "b"), node(2, "c"), node(2, null), node(3, "t")],
    edges: [
      [0, 1],
      [0, 2],
      [0, 3],
      [2, 4],
      [3, 4],
    ].map(([from = 0, to = 0]) => ({ from, to, labels: 1 })),
  };

  test("have the first path at the left, and each node once", () => {
    const levels = levelsOf(paths, graph).map(({ rows }) =>
      rows.map(({ node, lane, on, hasPrevious, hasNext }) => [
        node.ip,
        lane,
        on,
        hasPrevious,
        hasNext,
      ]),
    );
    expect(levels).toEqual([
      [["a", 0, [0, 1, 2], false, true]],
      [
        ["c", 0, [0], true, true],
        [null, 1, [1], true, true],
        ["b", 2, [2], true, false],
      ],
      [["t", 0, [0, 1], true, false]],
    ]);
  });

  test("have links from hop to hop, with the paths that take them", () => {
    const links = levelsOf(paths, graph).map((level) =>
      level.links.map(({ from, to, on }) => [from.lane, to.lane, on]),
    );
    expect(links).toEqual([
      [],
      [
        [0, 2, [2]],
        [0, 0, [0]],
        [0, 1, [1]],
      ],
      [
        [0, 0, [0]],
        [1, 0, [1]],
      ],
    ]);
  });

  test("lose where only paths lead that do not reach the target, and others do", () => {
    expect(isLossy([2], paths)).toBe(true);
    expect(isLossy([0, 2], paths)).toBe(false);
    expect(isLossy([], paths)).toBe(false);
    expect(isLossy([0], [path(false, "a")])).toBe(false);
  });
});

describe("numbers", () => {
  test.each([
    [0.0456, "0.05"],
    [9.994, "9.99"],
    [10, "10.0"],
    [99.94, "99.9"],
    [1234.5, "1235"],
  ])("%p ms is %s", (ms, text) => {
    expect(formatMs(ms)).toBe(text);
  });

  test("are written by their kind", () => {
    const texts = Object.entries(NUMBER_FORMATS).map(([kind, format]) => [kind, format(2)]);
    expect(Object.fromEntries(texts)).toEqual({
      ...{ time: "2.000 ms", ms: "2.00", percent: "2 %", count: "2", bytes: "2 bytes" },
    });
  });

  test.each([
    [[0.3, 82.9, null], 100],
    [[1.1], 1.5],
    [[20], 20],
    [[], 0.01],
  ])("%p ms are on a scale to %p", (times, end) => {
    expect(scaleOf(times)).toBeCloseTo(end, 10);
    for (const ms of times) expect(roundUp(ms ?? 1)).toBeGreaterThanOrEqual(ms ?? 1);
  });
});
