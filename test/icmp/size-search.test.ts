import { expect, test } from "bun:test";
import { type Fate, searchSize } from "../../src/icmp/size-search.ts";

const FIRST = [65_535, 9000, 9001, 1500, 1501, 1280, 104];

/** A path that carries so many bytes behind a link that carries so many, and how often it was asked. */
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
