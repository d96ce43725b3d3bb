/** The search for sizes over simulated paths whose truth is known, and changes. */
import { describe, expect, test } from "bun:test";
import { type Bounds, ECHO, searchPath, UDP } from "../../../src/tools/mtu/size-search.ts";
import { conclude } from "../../../src/tools/mtu/verdict.ts";
import { type SimulatedPath, simulate } from "../../icmp/simulated-path.ts";
import { randomFrom } from "../../lab/simulation.ts";
import { FakeClock } from "../../util/fake-clock.ts";

const END_MS = 14_500;

/** Measures a path, and says how long that took. */
async function measure(path: SimulatedPath, random = randomFrom(1), endMs = END_MS) {
  const clock = new FakeClock();
  const startMs = clock.nowMs();
  const { sent, send, truth } = simulate(path, clock, random);
  const end = new AbortController();
  clock.after(endMs, () => end.abort());
  const search = searchPath({ send, clock, signal: end.signal }, () => {});
  const answering = path.routers.flatMap(({ isSilent }, at) => (isSilent ? [] : at + 1));
  for (const hop of answering) search.add(hop);
  await clock.run(search.finish());
  const tookMs = clock.nowMs() - startMs;
  const rows = path.routers.map((_, at) => {
    const { atLeast, atMost } = search.boundsOf(at + 1);
    const isHeard = answering.includes(at + 1);
    const sizes = { mtu: isHeard ? atLeast : null, atMost: isHeard ? atMost : null };
    return { hop: at + 1, ip: "2001:db8::9", hostname: null, ...sizes };
  });
  const [echo, way] = [search.boundsOf(ECHO), search.boundsOf(UDP)];
  const udp = sent.filter(({ line }) => line === UDP).length;
  const found = conclude(echo, way, rows, []);
  return { rows, echo, way, found, sent, udp, truth, tookMs };
}

const fixed = (...links: number[]) => ({
  links: () => links,
  routers: links.slice(1).map(() => ({})),
});
const exactly = (bytes: number, limit: Bounds["limit"]) => ({
  atLeast: bytes,
  atMost: bytes,
  limit,
});

describe("a path whose target answers", () => {
  const SIZES = [1280, 1281, 1300, 1420, 1437, 1492, 1499, 1500, 8999, 9000];

  test.each(
    SIZES.flatMap((link) =>
      SIZES.filter((size) => size < link).map((size) => [size, link] as const),
    ),
  )("of %p bytes behind a link of %p is found, told and untold", async (size, link) => {
    const told = await measure(fixed(link, size, link));
    expect(told.echo).toEqual(exactly(size, "told"));
    expect(told.rows.map(({ mtu }) => mtu)).toEqual([link, size]);
    expect(told.rows.map(({ atMost }) => atMost)).toEqual([link, size]);
    expect(told.tookMs).toBeLessThan(500);
    const untold = await measure({ ...fixed(link, size, link), routers: [{ isMute: true }, {}] });
    expect(untold.echo).toEqual(exactly(size, "silence"));
    expect(untold.found).toMatchObject({
      verdict: "black-hole",
      cause: "there",
      lastLarge: 1,
      firstSmall: 2,
    });
    expect(untold.tookMs).toBeLessThan(9000);
  });
});

const SLOW = { limitMs: 1000 };

// biome-ignore format: a table
test.each<[name: string, path: SimulatedPath, endMs: number, lessThanMs: number, echo: object, found: object]>([
  ["routers that send one error a second", { ...fixed(1500, 1500, 1500, 1400, 1400, 1400), routers: [SLOW, SLOW, { ...SLOW, isMute: true }, SLOW, SLOW] }, END_MS, END_MS, exactly(1400, "silence"), { verdict: "black-hole", cause: "there", lastLarge: 3, firstSmall: 4 }],
  ["two narrowings, the second one silent", { ...fixed(1500, 1400, 1300), routers: [{}, { isMute: true }] }, END_MS, 9000, exactly(1300, "silence"), { verdict: "black-hole", mtu: 1300, atMost: 1300 }],
  ["two narrowings, the first one silent", { ...fixed(1500, 1400, 1300), routers: [{ isMute: true }, {}] }, END_MS, 9000, exactly(1300, "told"), { verdict: "narrowed", mtu: 1300 }],
  ["a search that is cut by time", { ...fixed(1500, 1400, 1400), routers: [{ isMute: true }, {}] }, 900, 1300, { atMost: 1500 }, { verdict: "at-least", mtu: 1366, atMost: 1500 }],
  ["a link that shrinks meanwhile", { ...fixed(1500, 1500), links: (atMs) => [1500, atMs < 15 ? 1500 : 1400] }, END_MS, 1000, exactly(1400, "told"), { verdict: "narrowed", mtu: 1400 }],
  ["a link that grows meanwhile", { ...fixed(1500, 1500), links: (atMs) => [1500, atMs < 35 ? 1400 : 1500] }, END_MS, 1000, exactly(1500, "link"), { verdict: "clear", mtu: 1500 }],
  ["a far black hole", { ...fixed(1500, 1400), routers: [{ isMute: true }], rttMs: 300 }, END_MS, END_MS + 1000, exactly(1400, "silence"), { verdict: "black-hole", mtu: 1400 }],
  ["a narrow return path, and no answer to UDP", { ...fixed(1500, 1500), backBytes: 1400 }, END_MS, 9000, exactly(1400, "silence"), { verdict: "black-hole", cause: null, lastLarge: 1, firstSmall: null }],
  ["a narrow return path, and answers to UDP", { ...fixed(1500, 1500), backBytes: 1400, hasClosedPort: true }, END_MS, 9000, exactly(1400, "silence"), { verdict: "black-hole", cause: "back" }],
  ["a target without large echo replies, and no answer to UDP", { ...fixed(1500, 1500), echoBytes: 1000 }, END_MS, 9000, exactly(1000, "silence"), { verdict: "at-least", cause: null, mtu: 1000, atMost: 1500 }],
  ["a target that answers UDP alone, behind a narrow link", { ...fixed(1500, 1400), echoBytes: 0, hasClosedPort: true }, END_MS, 3000, { atLeast: 0 }, { verdict: "narrowed", cause: "echo", mtu: 1400, atMost: 1400 }],
  ["a target that answers nothing, behind a narrow link", { ...fixed(1500, 1400, 1400), echoBytes: 0 }, END_MS, 4000, { atLeast: 0 }, { verdict: "narrowed", cause: null, mtu: null, atMost: 1400, lastLarge: 1, firstSmall: 2 }],
  ["a link that carries less than 1280 bytes", { ...fixed(1500, 1000), hasClosedPort: true }, END_MS, 9000, exactly(1000, "silence"), { verdict: "below-1280", mtu: 1000 }],
])("%s", async (_name, path, endMs, lessThanMs, echo, found) => {
  const measured = await measure(path, randomFrom(1), endMs);
  expect(measured.echo).toMatchObject(echo);
  expect(measured.found).toMatchObject(found);
  expect(measured.tookMs).toBeLessThan(lessThanMs);
  expect(measured.udp).toBeLessThanOrEqual(20);
});

test("a target that answered before a change and after it is never said to answer nothing", async () => {
  const silent: number[] = [];
  for (let endMs = 40; endMs < 500; endMs += 5) {
    const links = (atMs: number) => [1500, atMs < 35 ? 1400 : 1500];
    const { echo } = await measure({ ...fixed(1500, 1500), links }, randomFrom(1), endMs);
    if (echo.atLeast < 1400) silent.push(endMs);
  }
  expect(silent).toEqual([]);
});

/** A path that nobody has chosen. */
function randomPath(
  random: () => number,
): SimulatedPath & { readonly changesMs: readonly number[] } {
  const chance = (probability: number) => random() < probability;
  const upTo = (limit: number) => Math.floor(random() * limit);
  const size = () => [1280, 1300, 1400, 1420, 1480, 1492, 1280 + upTo(221)][upTo(7)] as number;
  const count = 2 + upTo(6);
  const links = [chance(0.1) ? 9000 : 1500];
  while (links.length < count) links.push(chance(0.25) ? size() : (links[0] as number));
  if (chance(0.05)) links[1 + upTo(count - 1)] = 600 + upTo(680);
  const later = links.map((bytes, at) => (at > 0 && chance(0.3) ? size() : bytes));
  const changesMs = chance(0.2) ? [upTo(3000)] : [];
  const isLimited = chance(0.2);
  // Nobody could find out a forgery if no reply followed it.
  const isForged = chance(0.1);
  return {
    links: (atMs) => (atMs >= (changesMs[0] ?? Infinity) ? later : links),
    changesMs,
    routers: links.slice(1).map(() => ({
      isSilent: chance(0.2),
      isMute: chance(0.25),
      ...(chance(0.05) && { claim: [1000, 1280, 1350, 9000][upTo(4)] as number }),
      ...(isForged && chance(0.4) && { forges: 1280 + upTo(200) }),
      ...(isLimited && { limitMs: 1000 }),
    })),
    ...(!isForged && chance(0.15) && { backBytes: size() }),
    ...(!isForged && chance(0.2) && { echoBytes: chance(0.5) ? 0 : 500 + upTo(900) }),
    ...(!isForged && chance(0.1) && { echoLimitMs: 1000 }),
    hasClosedPort: chance(0.6),
    loss: chance(0.5) ? random() * 0.2 : 0,
    rttMs: [1, 10, 40, 150][upTo(4)] as number,
  };
}

test("over 2,000 paths, no bound is wrong, and no verdict", async () => {
  const wrong: unknown[] = [];
  const verdicts: Record<string, number> = {};
  let [exact, slowest, packets] = [0, 0, 0];
  for (let seed = 0; seed < 2000; seed++) {
    const random = randomFrom(seed);
    const path = randomPath(random);
    const m = await measure(path, random);
    const { verdict, cause } = m.found;
    verdicts[verdict] = (verdicts[verdict] ?? 0) + 1;
    slowest = Math.max(slowest, m.tookMs);
    packets = Math.max(packets, m.sent.length);
    if (m.echo.atLeast === m.echo.atMost) exact++;
    const isRight = ([echo, way, link]: readonly number[]) => {
      const [E, W, L] = [echo as number, way as number, link as number];
      const verdicts = {
        clear: W === L && (E === L || E === 0 || cause === "echo"),
        narrowed: W < L && (E === W || E === 0 || cause === "echo"),
        "black-hole": E < L && (E >= 1280 || W < L),
        "below-1280": W < 1280,
        "at-least": true,
        inconclusive: E === 0,
      };
      const causes = {
        there: W < L && W === E,
        back: W > E,
        echo: W >= 1280 && (E < 1280 || path.echoLimitMs !== undefined),
      };
      return verdicts[verdict] && (cause === null || causes[cause]);
    };
    // The last packets may have been sent before a change.
    const truths = [m.tookMs, m.tookMs - 3 * (path.rttMs ?? 0)].map((atMs) =>
      [ECHO, UDP, 1].map((line) => m.truth(line, atMs)),
    );
    if (!truths.some(isRight)) wrong.push([seed, verdict, cause, truths, path]);
    const bounds: [line: number, low: number | null, high: number | null][] = [
      ...m.rows.map((row) => [row.hop, row.mtu, row.atMost] as const),
      [UDP, m.way.atLeast, m.way.atMost],
      [ECHO, m.echo.atLeast, m.echo.atMost],
    ].map(([line, low, high]) => [line as number, low ?? null, high ?? null]);
    for (const [line, low, high] of bounds) {
      // A hop's bounds are those of some time within the measurement.
      const isTrue = [0, ...path.changesMs, m.tookMs].some((atMs) => {
        const truth = m.truth(line, atMs);
        return (low ?? 0) <= truth && truth <= (high ?? Infinity);
      });
      if (!isTrue) wrong.push([seed, line, low, high, path]);
    }
  }
  expect(Object.keys(verdicts)).toHaveLength(6);
  expect(exact).toBeGreaterThan(1700);
  expect(slowest).toBeLessThan(END_MS + 1000);
  expect(packets).toBeLessThan(1500);
  expect(wrong).toEqual([]);
});

test("over 1,000 paths with outages under way, no bound is wrong, and no verdict says too much", async () => {
  const wrong: unknown[] = [];
  const verdicts: Record<string, number> = {};
  for (let seed = 0; seed < 1000; seed++) {
    const random = randomFrom(seed);
    const { changesMs, ...always } = randomPath(random);
    const links = always.links(0);
    const first = 1 + Math.floor(random() * links.length);
    const beginMs = random() * 3000;
    const endMs = beginMs + random() * (random() < 0.3 ? 20_000 : 2000);
    const isOut = (line: number, atMs: number) => line >= first && atMs >= beginMs && atMs < endMs;
    const m = await measure({ ...always, links: () => links, isOut }, random);
    verdicts[m.found.verdict] = (verdicts[m.found.verdict] ?? 0) + 1;
    const [E, W, L] = [m.truth(ECHO), m.truth(UDP), links[0] as number];
    const isRight = {
      clear: W === L,
      narrowed: W < L,
      "black-hole": E < L,
      "below-1280": W < 1280,
      "at-least": true,
      inconclusive: true,
    }[m.found.verdict];
    if (!isRight) wrong.push([seed, m.found.verdict, E, W, L]);
    for (const [line, bounds] of [[ECHO, m.echo] as const, [UDP, m.way] as const]) {
      if (m.truth(line) < bounds.atLeast || m.truth(line) > bounds.atMost)
        wrong.push([seed, line, bounds, m.truth(line)]);
    }
  }
  expect(Object.keys(verdicts).length).toBeGreaterThan(4);
  expect(wrong).toEqual([]);
});
