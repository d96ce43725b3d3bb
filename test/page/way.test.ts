/** The places of hops on a way: what a picture may never do, with random ways. */
import { expect, test } from "bun:test";
import type { Path } from "../../src/page/browser/pictures/bundle.ts";
import { bundleOf, halfOf, layBundle } from "../../src/page/browser/pictures/bundle.ts";
import { segmentsOf, tintsOf, type WayHop } from "../../src/page/browser/pictures/segments.ts";
import { BREAK, LEFT, layWay } from "../../src/page/browser/pictures/way-layout.ts";
import { randomFrom } from "../lab/simulation.ts";

const WIDTH = 780;

/** A random way: up to 40 hops, some silent, some faster than those before, and perhaps a break. */
function wayOf(seed: number) {
  const random = randomFrom(seed);
  const count = Math.floor(random() * 41);
  let ms = 0;
  const hops = Array.from({ length: count }, (_, at): WayHop => {
    ms += random() < 0.1 ? random() * 80 : random() * 3;
    const isSilent = random() < 0.25;
    const network = random() < 0.3 ? undefined : { asn: 64_500 + Math.floor(at / 4), name: null };
    return {
      ...{ hop: at + 1, ip: isSilent ? null : `2001:db8::${at}`, hostname: null },
      rtt: isSilent ? null : Math.max(0, ms - random() * 5),
      ...(network && { details: { network } }),
    };
  });
  const endMs = random() < 0.2 ? null : ms + random();
  const breakAfter = random() < 0.5 ? Math.floor(random() * (count + 1)) : null;
  return { hops, endMs, breakAfter, mostMs: Math.max(0.1, ms + 1) };
}

const SEEDS = Array.from({ length: 500 }, (_, seed) => seed + 1);

test("hops stand in order, apart, and within the room; a break has its own", () => {
  for (const seed of SEEDS) {
    const { hops, endMs, breakAfter, mostMs } = wayOf(seed);
    const { placed, end, breakAt } = layWay(hops, endMs, { width: WIDTH, mostMs, breakAfter });
    expect(placed.reduce((sum, each) => sum + each.count, 0)).toBe(hops.length);
    const least = Math.min(15, (WIDTH - 44 - BREAK) / (placed.length + 2)) - 0.001;
    let x = LEFT;
    for (const each of placed) {
      const isAcross = breakAt !== null && x <= breakAt && breakAt < each.x;
      expect(each.x - x).toBeGreaterThanOrEqual(isAcross ? BREAK : least);
      x = each.x;
    }
    expect(end).toBeGreaterThanOrEqual(x + least);
    expect(end).toBeLessThanOrEqual(WIDTH + 0.001);
    expect(breakAt === null).toBe(breakAfter === null);
    if (breakAt === null || breakAfter === null) continue;
    // No hop stands within the break, and each on its side.
    for (const { hop, x } of placed) {
      if (hop.hop <= breakAfter) expect(x).toBeLessThanOrEqual(breakAt);
      else expect(x).toBeGreaterThanOrEqual(breakAt + BREAK);
    }
    expect(end).toBeGreaterThanOrEqual(breakAt + BREAK);
  }
});

test("times are on one scale, so that a faster way ends earlier", () => {
  const hop = (at: number, rtt: number): WayHop => ({
    ...{ hop: at, ip: `2001:db8::${at}`, hostname: null, rtt },
  });
  const end = (ms: number) =>
    layWay([hop(1, 1)], ms, { width: WIDTH, mostMs: 100, breakAfter: null }).end;
  expect(end(50)).toBeCloseTo(LEFT + (WIDTH - LEFT) / 2, 5);
  expect(end(100)).toBeCloseTo(WIDTH, 5);
});

test("a way gives way to the scale of another", () => {
  for (const seed of SEEDS) {
    const { hops, endMs, breakAfter, mostMs } = wayOf(seed);
    const options = { width: WIDTH, mostMs, breakAfter };
    const mostPerMs = layWay(hops, endMs, options).perMs / 2;
    const { perMs, end } = layWay(hops, endMs, { ...options, mostPerMs });
    expect(perMs).toBe(mostPerMs);
    expect(end).toBeLessThanOrEqual(WIDTH + 0.001);
  }
});

test("every hop is in one segment, in order, and neighbours differ", () => {
  for (const seed of SEEDS) {
    const { hops } = wayOf(seed);
    const segments = segmentsOf(hops, tintsOf([hops]));
    expect(segments.flatMap((segment) => segment.hops)).toEqual(hops);
    for (const [at, { name, tint }] of segments.entries()) {
      expect(tint === null).toBe(name === null);
      if (at > 0) expect(name).not.toBe(segments[at - 1]?.name as string);
    }
  }
});

const path = (text: string, reached = true): Path => ({
  ...{ flowLabel: 1, labels: 1, reached, reason: reached ? "reached" : "gap-limit" },
  addresses: [...text].map((ip) => (ip === "-" ? null : ip)),
});

test.each<[why: string, paths: readonly Path[], ends: readonly [number, number] | null]>([
  ["part behind a and join at d", [path("abdt"), path("acdt")], [1, 3]],
  ["part here and join at the site", [path("at"), path("bt")], [0, 2]],
  ["have different lengths", [path("abcdt"), path("aedt")], [1, 4]],
  ["are silent where they part and join", [path("a-b-t"), path("a-c-t")], [1, 5]],
  ["end inside", [path("abdt"), path("acdt"), path("acx", false)], [1, 4]],
  ["end before any other hop", [path("abt"), path("a", false)], [1, 2]],
  ["are shown by one that arrives", [path("ax", false), path("abct")], [1, 3]],
  ["all end behind the same router", [path("abd", false), path("acd", false)], [1, 3]],
  ["all end elsewhere", [path("ab", false), path("ac", false)], null],
  ["are one", [path("abt")], null],
])("paths that %s", (_, paths, ends) => {
  const bundle = bundleOf(paths);
  expect(bundle && [bundle.near, bundle.far]).toEqual(ends && [...ends]);
});

test("a router is a thread's own only if no other path has it", () => {
  const bundle = bundleOf([path("abct"), path("abdt"), path("aect"), path("a-x", false)]);
  const routers = bundle?.threads.map(({ path, routers }) => [path, routers]);
  expect(routers).toEqual([
    [3, [2 / 3]],
    [0, []],
    [1, [2 / 3]],
    [2, [1 / 3]],
  ]);
});

/** Up to 40 random paths, of which some are silent at some hops, some end inside, and some are longer. */
function pathsOf(seed: number): Path[] {
  const random = randomFrom(seed);
  const before = "ab".slice(0, Math.floor(random() * 3));
  const after = "yz".slice(0, Math.floor(random() * 3));
  const lost = random() < 0.5 ? random() : 0;
  const inside = () =>
    Array.from({ length: Math.floor(random() * 4) }, () => "cdefgh-"[Math.floor(random() * 7)]);
  return Array.from({ length: 1 + Math.floor(random() * 40) }, () => {
    const own = inside().join("");
    return random() < lost ? path(`${before}${own}x`, false) : path(`${before}${own}${after}t`);
  });
}

test("threads begin and end at the common hops, and stay within the bundle", () => {
  for (const seed of SEEDS) {
    const paths = pathsOf(seed);
    const bundle = bundleOf(paths);
    if (bundle === null) {
      expect(paths.length === 1 || !paths.some(({ reached }) => reached)).toBe(true);
      continue;
    }
    const { main, near, far } = bundle;
    expect(near).toBeLessThan(far);
    const joined = paths.filter(({ reached }) => reached === main.reached);
    const rest = main.addresses.slice(far - 1);
    for (const { addresses } of paths)
      expect(addresses.slice(0, near)).toEqual(main.addresses.slice(0, near));
    for (const { addresses } of joined) expect(addresses.slice(-rest.length)).toEqual(rest);
    for (const isOpen of [false, true]) {
      const half = halfOf(bundle, isOpen, 24);
      const threads = layBundle(bundle, { from: 100, to: 250, y: 50, half, isOpen });
      expect(threads.length).toBe(isOpen ? paths.length : Math.min(16, paths.length));
      expect(threads.some(({ isLost }) => isLost)).toBe(joined.length < paths.length);
      for (const [at, { d, y, isLost, routers, end }] of threads.entries()) {
        expect(d).toStartWith("M100 50C");
        expect(d.endsWith(" 250 50")).toBe(!isLost);
        expect(Math.abs(y - 50)).toBeLessThanOrEqual(half - 3 + 0.001);
        if (isOpen && at > 0) expect(y - (threads[at - 1]?.y ?? 0)).toBeCloseTo(9, 5);
        for (const x of routers) expect(x > 100 && x < end).toBe(true);
      }
    }
  }
});

test("a bundle has room of its own, between the common hops", () => {
  for (const seed of SEEDS) {
    const { hops, endMs, mostMs } = wayOf(seed);
    const bundle = { near: Math.floor(hops.length / 3), far: Math.ceil((hops.length + 1) / 2) };
    const heard = hops.map((hop) => ({ ...hop, ip: "::1", rtt: hop.rtt ?? 1 }));
    const options = { width: WIDTH, mostMs, breakAfter: null, bundle };
    const { placed, end } = layWay(heard, endMs, options);
    const from = placed.find(({ hop }) => hop.hop === bundle.near)?.x ?? LEFT;
    const to = placed.find(({ hop }) => hop.hop === bundle.far)?.x ?? end;
    expect(to - from).toBeGreaterThanOrEqual(149.999);
    expect(end).toBeLessThanOrEqual(WIDTH + 0.001);
  }
});
