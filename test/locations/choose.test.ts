/** Which locations a request asks, by hundreds of seeded choices. */
import { expect, test } from "bun:test";
import type { Parameter } from "../../src/api/parameters.ts";
import { chooseLocations, withFrom } from "../../src/locations/from.ts";
import { ping } from "../../src/tools/ping/endpoint.ts";

const FROM = withFrom(ping).parameters["from"] as Parameter;

/** Numbers from 0 to 1; mulberry32. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let value = Math.imul(state ^ (state >>> 15), state | 1);
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61);
    return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32;
  };
}

const names = (letter: string, count: number) =>
  Array.from({ length: count }, (_, at) => `${letter}${at}`);

test("each tag has its turn, each location its chance, and the order is that of the words", () => {
  const [eu, asn] = [names("e", 40), names("s", 10)];
  const counts = new Map<string, number>();
  const runs = 2000;
  for (let seed = 0; seed < runs; seed++) {
    const chosen = chooseLocations([eu, asn], 5, randomOf(seed));
    expect(chosen.length).toBe(5);
    expect(chosen.filter((name) => name.startsWith("e")).length).toBe(3);
    expect(chosen).toEqual([...eu, ...asn].filter((name) => chosen.includes(name)));
    for (const name of chosen) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  // Within five standard deviations of 3 of 40, and of 2 of 10.
  for (const [all, share] of [[eu, 3 / 40] as const, [asn, 2 / 10] as const]) {
    const spread = 5 * Math.sqrt(runs * share * (1 - share));
    for (const name of all) {
      expect(Math.abs((counts.get(name) ?? 0) - runs * share)).toBeLessThan(spread);
    }
  }
});

test.each<[what: string, meant: string[][], limit: number, chosen: string[]]>([
  ["names, in their order", [["b"], ["a"]], 32, ["b", "a"]],
  ["as many names as allowed", [["b"], ["a"], ["c"]], 2, ["b", "a"]],
  ["a name beside its tag, once", [["a"], ["a", "b"]], 32, ["a", "b"]],
  ["none", [[]], 32, []],
])("%s", (_, meant, limit, chosen) => {
  for (let seed = 0; seed < 20; seed++) {
    expect(chooseLocations(meant, limit, randomOf(seed))).toEqual(chosen);
  }
});

test("a short tag leaves its turns to the others", () => {
  const chosen = chooseLocations([["a"], names("b", 9)], 5, randomOf(1));
  expect([chosen.length, chosen[0]]).toEqual([5, "a"]);
});

test("whatever the words mean, as many are chosen as there are and `limit` allows, each once", () => {
  const all = names("n", 60);
  for (let seed = 0; seed < 500; seed++) {
    const random = randomOf(seed);
    const meant = Array.from({ length: 1 + Math.floor(random() * 4) }, () => {
      const part = random();
      return all.filter(() => random() < part);
    });
    const limit = 1 + Math.floor(random() * 32);
    const chosen = chooseLocations(meant, limit, random);
    const possible = new Set(meant.flat());
    expect([seed, chosen.length]).toEqual([seed, Math.min(limit, possible.size)]);
    const byWord = new Map(meant.map((names, at) => [`w${at}`, names]));
    const words = [...byWord.keys()].join();
    const price = FROM.price?.(words, { limit }, () => byWord);
    expect([seed, price]).toEqual([seed, Math.max(1, chosen.length)]);
    expect([new Set(chosen).size, possible.isSupersetOf(new Set(chosen))]).toEqual([
      chosen.length,
      true,
    ]);
  }
});
