/** Which connections are closed when there are too many. */
import { describe, expect, test } from "bun:test";
import { connectionRounds, surplusOf } from "../../src/server/connections.ts";

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

describe("rounds over the descriptors", () => {
  const SLICE = 512;

  /** Descriptors by number, with their networks, and rounds over them that count their looks. */
  function start(size: number, networkOf: (fd: number) => string | null) {
    const table = Array.from({ length: size }, (_, fd) => networkOf(fd));
    const rounds = connectionRounds((fd) => {
      seen++;
      return table[fd] ?? null;
    });
    let seen = 0;
    let crowdedAsked = 0;
    const isCrowded = () => {
      crowdedAsked++;
      return true;
    };
    /** Looks once; the surplus, and how many descriptors were looked at. */
    const look = () => {
      seen = 0;
      const surplus = rounds(isCrowded, () => table.length);
      return { surplus, seen };
    };
    return { table, look, asked: () => crowdedAsked };
  }

  test.each([
    [1_100, 3],
    [8_000, 16],
    [16_384, 33],
    [65_536, 129],
  ])(
    "%i descriptors: no look is longer than a slice, and the surplus is known after %i",
    (size, looks) => {
      const { look, asked } = start(size, (fd) => (fd < 1_025 ? "flood" : fd % 2 ? `${fd}` : null));
      for (let round = 0; round < 3; round++) {
        for (let nth = 1; nth < looks; nth++) {
          const { surplus, seen } = look();
          expect(surplus).toBeNull();
          expect(seen).toBe(SLICE);
        }
        const { surplus, seen } = look();
        // Those that are to be closed are looked at once more.
        expect(seen).toBeLessThanOrEqual(SLICE + (surplus?.length ?? 0));
        expect(surplus?.includes(1_024)).toBe(true);
      }
      expect(asked()).toBe(3);
    },
  );

  test("a descriptor that belongs to another network by the end of the round stays open", () => {
    const { table, look } = start(4_000, (fd) => (fd < 1_034 ? "flood" : null));
    for (let nth = 0; nth < 4; nth++) look();
    table[1_024] = "another";
    table[1_025] = null;
    for (let nth = 0; nth < 3; nth++) look();
    expect(look().surplus).toEqual([1_026, 1_027, 1_028, 1_029, 1_030, 1_031, 1_032, 1_033]);
  });

  test("connections that come behind the look are found in the next round", () => {
    const { table, look } = start(4_000, () => null);
    for (let nth = 0; nth < 3; nth++) look();
    table.fill("flood", 0, 1_030);
    for (let nth = 0; nth < 4; nth++) look();
    expect(look().surplus).toEqual([]);
    for (let nth = 0; nth < 7; nth++) expect(look().surplus).toBeNull();
    expect(look().surplus).toHaveLength(6);
  });

  test("without a crowd, nothing is looked at", () => {
    const rounds = connectionRounds(() => expect.unreachable());
    for (let nth = 0; nth < 3; nth++)
      expect(
        rounds(
          () => false,
          () => 9_000,
        ),
      ).toEqual([]);
  });
});
