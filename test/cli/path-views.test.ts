/** What `mtr` and `mtu` show of an answer; test/e2e/path-tools.test.ts has the usual cases. */
import { describe, expect, test } from "bun:test";
import { mtrView, mtuView, traceView } from "../../src/cli/path-views.ts";
import type { Line, Screen } from "../../src/cli/screen.ts";
import type { View } from "../../src/cli/tool.ts";
import type { MtrResult, MtrRound } from "../../src/routes/mtr.ts";
import type { MtuResult } from "../../src/routes/mtu.ts";

const TARGET = "2001:db8::80";
const SOURCE = "2001:db8::1";

/** A screen of some width, and the text of its last table and what is printed below. */
function fakeScreen(columns: number) {
  const textOf = (line: Line) =>
    line
      .map((part) => (typeof part === "string" ? part : part[1]))
      .join("")
      .trimEnd();
  const text: string[] = [];
  const screen = {
    ...{ isTerminal: true, columns },
    show() {},
    print: (...lines: Line[]) => text.push(...lines.map(textOf)),
    finish(table: Line[]) {
      text.splice(0);
      text.push(...table.map(textOf));
    },
  };
  return { screen: screen as unknown as Screen, text };
}

function shownBy(
  make: (screen: Screen) => View,
  result: object | null,
  columns = 80,
  events: readonly object[] = [],
) {
  const { screen, text } = fakeScreen(columns);
  const view = make(screen);
  for (const event of events) view.event?.(event, "round");
  const answered = view.end(result);
  return { answered, lines: text };
}

type MtrHop = MtrResult["hops"][number];

function mtrHop(hop: number, given: Partial<MtrHop>): MtrHop {
  const ip = `2001:db8:${hop}::1`;
  return {
    ...{ hop, ip, hostname: null, sent: 10, received: 10, loss: 0, limited: false },
    ...{ last: 1.234, min: 0.5, avg: 99.9951, max: 1234.56, stdDev: 0, jitter: 0, p50: 1, p95: 1 },
    addresses: [{ ip, hostname: null, received: 10, share: 100 }],
    ...given,
  };
}

function mtrResult(hops: MtrHop[], details: Partial<MtrResult["details"]> = {}): MtrResult {
  const about = { reached: true, paths: [], source: SOURCE, flowLabel: 1, ...details };
  return { target: TARGET, ip: TARGET, rounds: 10, hops, details: about };
}

const mtr = (result: MtrResult | null, columns?: number, events?: readonly MtrRound[]) =>
  shownBy((screen) => mtrView(TARGET, screen), result, columns, events);

describe("mtr", () => {
  test("shows times in five characters, loss in whole percent, and what else is known", () => {
    const others = [
      { ip: "2001:db8:2::1", hostname: null, received: 6, share: 75 },
      { ip: "2001:db8:2::2", hostname: null, received: 2, share: 25 },
    ];
    const network = {
      asn: 64496,
      name: "Example Net",
      prefix: "2001:db8::/32",
      source: "asn-file",
    };
    const hops = [
      mtrHop(1, { sent: 1000, received: 999, loss: 0.1, limited: true }),
      mtrHop(2, { received: 8, loss: 20, addresses: others }),
      mtrHop(3, {
        sent: 1000,
        received: 1,
        loss: 99.9,
        details: { network, zone: "eth0" } as never,
      }),
    ];
    expect(mtr(mtrResult(hops), 200).lines.slice(1, 4)).toEqual([
      "  1   1% 1000  1.23 100.0  0.50  1235  0.00  2001:db8:1::1  limits its answers",
      "  2  20%   10  1.23 100.0  0.50  1235  0.00  2001:db8:2::1  also 2001:db8:2::2 (25%)",
      "  3  99% 1000  1.23 100.0  0.50  1235  0.00  2001:db8:3::1  AS64496  Example Net  on eth0",
    ]);
  });

  const hostname = "a-rather-long-name.example.net";
  test.each([
    [91, "2001:db8:1::1  a-rather-long-name.example.net"],
    [90, "a-rather-long-name.example.net"],
    [Number.POSITIVE_INFINITY, "2001:db8:1::1  a-rather-long-name.example.net"],
  ])("in %d columns shows %p", (columns, said) => {
    const { lines } = mtr(mtrResult([mtrHop(1, { hostname }), mtrHop(2, {})]), columns);
    expect(lines[1]?.slice(45)).toBe(said);
    expect(lines[2]?.slice(45)).toBe("2001:db8:2::1");
  });

  test("says how many rounds took which path, and where they part", () => {
    const path = (rounds: number, ...addresses: (string | null)[]) => ({
      ...{ rounds, reached: true, addresses },
    });
    const paths = [
      path(7, "a::1", "b::1", "d::2", "c::1"),
      path(3, "a::1", "b::2", "d::1", "c::1"),
    ];
    expect(mtr(mtrResult([mtrHop(1, {})], { paths })).lines.at(-1)).toBe(
      "7 + 3 rounds took 2 paths, which differ at hop 2, 3",
    );
  });

  test("names the loss of the target", () => {
    const lossy = mtr(mtrResult([mtrHop(1, { received: 9, loss: 10 })]));
    expect(lossy).toMatchObject({ answered: true });
    expect(lossy.lines.at(-1)).toBe(`${TARGET} reached in 1 hop, 10 % of 10 probes lost`);
  });

  test("says which error ends the path, and where a translator leads", () => {
    const error = { type: 1, code: 0, name: "no-route", from: "2001:db8:3::1", fromTarget: false };
    const dns64 = { ip: "64:ff9b::c000:201", prefix: "64:ff9b::/96", ipv4: "192.0.2.1" };
    const details = { reached: false, error, dns64 };
    expect(mtr(mtrResult([mtrHop(1, {})], details)).lines.slice(-2)).toEqual([
      `${TARGET} not reached: no-route from 2001:db8:3::1`,
      "leads to 192.0.2.1 through a translator (64:ff9b::/96)",
    ]);
  });

  test("shows what there is if it is interrupted", () => {
    const { answered, lines } = mtr(null, 80, [{ round: 1, hops: [mtrHop(1, { sent: 1 })] }]);
    expect(answered).toBe(false);
    expect(lines[1]).toStartWith("  1   0%    1  1.23");
    expect(lines.at(-1)).toBe(`${TARGET} interrupted after 1 round`);
  });
});

describe("trace with paths", () => {
  const FIRST = ["2001:db8:1::1", "2001:db8:2::1", null, TARGET];
  const OTHER = ["2001:db8:1::1", "2001:db8:2::2"];
  const one = { flowLabel: 493_374, labels: 9, reached: true, reason: "reached", addresses: FIRST };
  const other = {
    ...{ flowLabel: 123, labels: 8, reached: false, reason: "gap-limit", addresses: OTHER },
  };
  const node = { hop: 2, ip: "2001:db8:2::2", hostname: "r2.example.net", rtt: 1 };
  const graph = { nodes: [node], edges: [] };

  const shown = (details: object) => {
    const about = { reached: true, reason: "reached", source: SOURCE, flowLabel: 493_374 };
    const result = { target: TARGET, ip: TARGET, hops: [], details: { ...about, ...details } };
    const { answered, lines } = shownBy((screen) => traceView(TARGET, screen), result);
    return { answered, lines: lines.slice(lines.findIndex((line) => line.includes("reached "))) };
  };

  test("shows each with its flow label, and where it differs from the first", () => {
    const paths = [one, other];
    expect(shown({ complete: true, labels: 17, paths, graph })).toEqual({
      answered: true,
      lines: [
        `${TARGET} reached on 1 of 2 paths`,
        "",
        "2 paths for 17 flow labels; with 95 % confidence there are no others",
        "--flow-label 493374    9 of 17  4 hops",
        "--flow-label 123       8 of 17  not reached: gap-limit",
        "    2  2001:db8:2::2  r2.example.net",
      ],
    });
  });

  test("is answered by any of them", () => {
    const end = { reached: false, reason: "gap-limit" };
    const about = { ...end, complete: true, labels: 17, graph };
    expect(shown({ ...about, paths: [other, one] }).answered).toBe(true);
    expect(shown({ ...about, paths: [other] }).answered).toBe(false);
  });

  test("says what is not known", () => {
    const about = { complete: false, labels: 17, perPacket: [3, 4], graph };
    expect(shown({ ...about, paths: [one] }).lines).toEqual([
      `${TARGET} reached in 0 hops`,
      "",
      "at least 1 path for 17 flow labels",
      "the address changes by packet at hop 3, 4",
      "--flow-label 493374    9 of 17  4 hops",
    ]);
  });

  test("shows none if none was looked for", () => expect(shown({}).lines).toHaveLength(1));
});

function mtuResult(given: Partial<MtuResult>): MtuResult {
  return {
    ...{ target: TARGET, ip: TARGET, mtu: 1420, verdict: "clear", told: null },
    ...{ lastLarge: null, firstSmall: null, hops: [] },
    details: { doubtful: [], source: SOURCE, flowLabel: 1 },
    ...given,
  };
}

const mtu = (given: Partial<MtuResult>, columns?: number) =>
  shownBy((screen) => mtuView(TARGET, screen), mtuResult(given), columns);

describe("mtu", () => {
  const told = { from: "2001:db8:3::1", hop: 3, mtu: 1420, sent: 1500 };
  const far = { lastLarge: 2, firstSmall: 4 };
  const rows: [Partial<MtuResult>, string][] = [
    [{}, "1420 bytes; clear, no link on the path is narrower than the first"],
    [{ verdict: "narrowed", told }, "1420 bytes; 2001:db8:3::1 at hop 3 said so (Packet Too Big)"],
    [
      { verdict: "narrowed", told: { ...told, hop: null } },
      "1420 bytes; 2001:db8:3::1 said so (Packet Too Big)",
    ],
    [
      { verdict: "narrowed", firstSmall: 1 },
      "1420 bytes; narrowed before hop 1, larger packets get Packet Too Big",
    ],
    [
      { verdict: "blackHole", ...far },
      "1420 bytes; a black hole, larger packets vanish between hops 2 and 4",
    ],
    [
      { verdict: "blackHole", lastLarge: 2 },
      "1420 bytes; a black hole, larger packets vanish behind hop 2",
    ],
    [
      { verdict: "below1280", mtu: 1000, firstSmall: 4 },
      "1000 bytes; too narrow for IPv6, packets of 1280 bytes vanish before hop 4",
    ],
    [{ verdict: "inconclusive", mtu: null }, `no size is known; ${TARGET} does not answer`],
    [{ verdict: "inconclusive" }, `1420 bytes; perhaps more, ${TARGET} answers too seldom to tell`],
  ];
  test.each(rows.map(([given, said]) => [said, given] as const))("%s", (said, given) => {
    const { answered, lines } = mtu(given);
    expect(lines[0]).toBe(said);
    expect(answered).toBe(given.verdict !== "inconclusive");
  });

  test("breaks a verdict that is longer than a line", () => {
    const from = "2001:db8:1111:2222:3333:4444:5555:6666";
    expect(mtu({ verdict: "narrowed", told: { ...told, from } }).lines.slice(0, 3)).toEqual([
      "1420 bytes",
      `${from} at hop 3 said so (Packet Too Big)`,
      "",
    ]);
    expect(mtu({ verdict: "blackHole", ...far }, 50).lines.slice(0, 3)).toEqual([
      "1420 bytes",
      "a black hole, larger packets vanish between hops",
      "2 and 4",
    ]);
  });

  test("shows each hop, and what it does not believe", () => {
    const hops = [
      { hop: 1, ip: "2001:db8:1::1", hostname: "r1.example.net", mtu: 9000 },
      { hop: 2, ip: null, hostname: null, mtu: null },
      { hop: 3, ip: "2001:db8:3::33", hostname: null, mtu: null },
    ];
    const doubtful = [{ from: "2001:db8:1::1", hop: 1, mtu: 500, sent: 1500, doubt: "below-1280" }];
    const details = { doubtful, source: SOURCE, flowLabel: 1 } as MtuResult["details"];
    expect(mtu({ hops, details }).lines.slice(2)).toEqual([
      "  1   9000 bytes  2001:db8:1::1   r1.example.net",
      "  2               no reply",
      "  3      unknown  2001:db8:3::33",
      "",
      "2001:db8:1::1 at hop 1 claims 500 bytes, not believed: every link of IPv6 carries 1280",
    ]);
  });
});
