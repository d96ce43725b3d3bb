import { expect, test } from "bun:test";
import { type Fate, type SizeTrial, searchSize as search } from "../../src/icmp/size-search.ts";

/** Searches where comparisons are not answered, unless others are given. */
function searchSize(
  trySize: SizeTrial["try"],
  first: readonly number[],
  refusedBytes: number,
  compare: SizeTrial["compare"] = async () => null,
) {
  return search({ try: trySize, compare, isOver: () => false }, first, refusedBytes);
}

const FIRST = [65_535, 9000, 9001, 1500, 1501, 1280, 104];

/** A path that carries `pathBytes` behind a link that carries `linkBytes`, and the sizes that were tried. */
function path(pathBytes: number, linkBytes: number, hint?: (bytes: number) => number) {
  const tried: number[] = [];
  const trySize = async (bytes: number): Promise<Fate> => {
    tried.push(bytes);
    if (bytes > linkBytes) return { kind: "refused" };
    if (bytes <= pathBytes) return { kind: "passed" };
    return hint ? { kind: "lost", hintBytes: hint(bytes) } : { kind: "lost" };
  };
  return { tried, trySize };
}

const SIZES = [104, 105, 576, 1279, 1280, 1281, 1300, 1420, 1437, 1499, 1500, 1501, 8999, 9000];

test.each(
  [...SIZES, 65_534, 65_535].flatMap((link) =>
    SIZES.filter((size) => size <= link).map((size) => [size, link] as const),
  ),
)("finds a path of %p bytes behind a link of %p", async (size, link) => {
  const { tried, trySize } = path(size, link);
  const found = await searchSize(trySize, FIRST, 65_536);
  expect(found.bytes).toBe(size);
  expect(found.above.kind).toBe(size === link ? "refused" : "lost");
  expect(found.refusedBytes).toBeGreaterThan(link);
  expect(found.sentBytes).toBeLessThanOrEqual(link);
  expect(new Set(tried).size).toBe(tried.length);
  expect(tried.length).toBeLessThan(FIRST.length + 4 * 7);
});

test("a right hint ends the search in two rounds", async () => {
  const { tried, trySize } = path(1437, 9000, () => 1437);
  const found = await searchSize(trySize, FIRST, 65_536);
  expect(found).toMatchObject({ bytes: 1437, above: { kind: "lost", hintBytes: 1437 } });
  expect(tried).toEqual([...FIRST, 1437, 1438]);
});

test.each([
  ["too small", () => 1281],
  ["too large", (bytes: number) => bytes - 1],
  ["much too small", () => 68],
])("a hint that is %s costs time only", async (_name, hint) => {
  const { trySize } = path(1437, 1500, hint);
  expect((await searchSize(trySize, FIRST, 65_536)).bytes).toBe(1437);
});

test("where nothing passes, the first sizes are all that is tried", async () => {
  const { tried, trySize } = path(0, 1500);
  expect(await searchSize(trySize, FIRST, 65_536)).toMatchObject({ bytes: 0 });
  expect(tried).toEqual(FIRST);
});

test("a small size that is lost by chance does not hide a larger one that passes", async () => {
  const { trySize } = path(1500, 1500);
  const withLoss = async (bytes: number) =>
    bytes === 1280 ? ({ kind: "lost" } as const) : await trySize(bytes);
  expect((await searchSize(withLoss, FIRST, 65_536)).bytes).toBe(1500);
});

test("hints that lie again and again end nothing but themselves", async () => {
  let steps = 0;
  let isAnswered = true;
  const { trySize } = path(1437, 65_535, (bytes) => bytes - 1);
  const counted = async (bytes: number) => {
    // All sizes of a step are tried before the first one is answered.
    if (isAnswered) steps++;
    isAnswered = false;
    await null;
    isAnswered = true;
    return await trySize(bytes);
  };
  const found = await searchSize(counted, [65_535, ...FIRST], 65_536);
  expect(found.bytes).toBe(1437);
  expect(steps).toBeLessThanOrEqual(1 + 4 + 7);
});

test("without hints, all sizes need no more steps than are foreseen", async () => {
  const { tried, trySize } = path(9002, 65_535);
  await searchSize(trySize, FIRST, 65_576);
  expect((tried.length - FIRST.length) / 4).toBeLessThanOrEqual(7);
});

test("silence that is a limit is found out by comparing", async () => {
  const { trySize } = path(1500, 1500);
  let answers = 2;
  const limited = async (bytes: number) => {
    const fate = await trySize(bytes);
    return fate.kind === "passed" && answers-- <= 0 ? ({ kind: "lost" } as const) : fate;
  };
  const compared: [number, number][] = [];
  const compare = async (bytes: number, smaller: number) => {
    compared.push([bytes, smaller]);
    return await trySize(bytes);
  };
  const found = await searchSize(limited, [104, 1280, 1400, 1500, 1501], 65_536, compare);
  expect(found).toMatchObject({ bytes: 1500, above: { kind: "refused" }, isCertain: true });
  expect(compared).toEqual([[1500, 1280]]);
});

test("silence is certain once a smaller size is answered, the largest size first", async () => {
  const { trySize } = path(1437, 1500);
  const compared: number[] = [];
  const compare = async (bytes: number) => {
    compared.push(bytes);
    return await trySize(bytes);
  };
  const found = await searchSize(trySize, FIRST, 65_536, compare);
  expect(found).toMatchObject({ bytes: 1437, above: { kind: "lost" }, isCertain: true });
  expect(compared).toEqual([1500, 1438]);
});

test("silence is not certain if nothing is answered, or no time is left", async () => {
  const { trySize } = path(1437, 1500);
  expect(await searchSize(trySize, FIRST, 65_536)).toMatchObject({ bytes: 1437, isCertain: false });
  const late = { try: trySize, compare: trySize, isOver: () => true };
  expect(await search(late, FIRST, 65_536)).toMatchObject({ bytes: 1280, isCertain: false });
});
