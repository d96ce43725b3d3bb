/** Agents that come, leave and are lost, with a clock of the test. */
import { expect, test } from "bun:test";
import {
  createDirectory,
  MAX_AGENTS,
  MAX_AGENTS_OF_ONE,
  SILENCE_MS,
  SWEEP_MS,
} from "../../src/locations/directory.ts";
import { MAX_ANNOUNCEMENT_BYTES } from "../../src/locations/protocol.ts";
import { randomFrom } from "../lab/simulation.ts";

const ABOUT = { version: "1.0.0", families: [6], since: "2026-01-31T12:00:00Z", tags: ["eu"] };

const nameOf = (at: number) => at.toString(16).padStart(8, "0");

function start(expected: readonly string[] = []) {
  const lines: string[] = [];
  const write = (message: string, fields: object = {}) =>
    void lines.push(`${message} ${Object.values(fields).join(" ")}`);
  const directory = createDirectory(expected, { info: write, warn: write });
  let nowMs = 0;
  const announce = (location: string, at: number, description: object = ABOUT) =>
    directory.note(location, nameOf(at), Buffer.from(JSON.stringify(description)), nowMs);
  const leave = (location: string, at: number) =>
    directory.note(location, nameOf(at), new Uint8Array(), nowMs);
  const pass = (ms: number, beats: () => void = () => {}) => {
    for (const endMs = nowMs + ms; nowMs < endMs; ) {
      nowMs += SWEEP_MS;
      beats();
      directory.sweep(nowMs);
    }
  };
  const rows = () =>
    JSON.parse(directory.list().json).locations as {
      location: string;
      agents: number;
      tags: string[];
    }[];
  const list = () => rows().map(({ location, agents }) => `${location} ${agents}`);
  return { directory, lines, announce, leave, pass, rows, list };
}

test("two agents of one place are two: one leaves or is lost, the place stays", () => {
  const { announce, leave, pass, list, lines, directory } = start(["ams", "fra"]);
  expect(list()).toEqual(["ams 0", "fra 0"]);
  expect([announce("ams", 1), announce("ams", 2), announce("ams", 2)]).toEqual([true, true, false]);
  expect(list()).toEqual(["ams 2", "fra 0"]);
  announce("ams", 3);
  pass(5_000, () => announce("ams", 1));
  leave("ams", 3);
  expect(list()).toEqual(["ams 2", "fra 0"]);
  pass(SILENCE_MS + SWEEP_MS, () => announce("ams", 1));
  expect(list()).toEqual(["ams 1", "fra 0"]);
  expect([...directory.list().byWord]).toEqual([
    ["eu", ["ams"]],
    ["all", ["ams"]],
  ]);
  pass(SILENCE_MS + SWEEP_MS);
  expect(list()).toEqual(["ams 0", "fra 0"]);
  expect(lines).toEqual(["agent left ams 2", "agent lost ams 1", "agent lost ams 0"]);
  expect(announce("ams", 1)).toBe(true);
  expect(list()).toEqual(["ams 1", "fra 0"]);
});

test("an announcement keeps an agent, and only a change is a change", () => {
  const { announce, directory, rows } = start();
  announce("ams", 1);
  const before = directory.list();
  expect(announce("ams", 1)).toBe(false);
  expect(directory.list()).toBe(before);
  expect(announce("ams", 1, { ...ABOUT, tags: ["nl"], version: "2.0.0", newer: 1 })).toBe(false);
  expect<object[]>(rows()).toEqual([
    {
      ...{ location: "ams", state: "up", agents: 1, versions: ["2.0.0"], families: [6] },
      ...{ since: ABOUT.since, tags: ["nl"] },
    },
  ]);
  announce("ams", 2, { ...ABOUT, families: [4, 6], since: "2025-01-31T12:00:00Z" });
  expect(rows()).toMatchObject([
    {
      ...{ agents: 2, versions: ["1.0.0", "2.0.0"], families: [4, 6] },
      ...{ since: "2025-01-31T12:00:00Z", tags: ["eu", "nl"] },
    },
  ]);
});

test("one place cannot fill the table, and the table is bounded", () => {
  const { announce, list, directory } = start();
  for (let at = 0; at < 1000; at++) announce("ams", at);
  expect(list()).toEqual([`ams ${MAX_AGENTS_OF_ONE}`]);
  directory.clear();
  for (let at = 0; at < MAX_AGENTS + 10; at++) announce(`n${at % 2048}`, at);
  expect(list()).toHaveLength(2048);
  expect(announce("fra", 1)).toBe(false);
  directory.clear();
  expect(announce("fra", 1)).toBe(true);
  expect(list()).toEqual(["fra 1"]);
});

test.each([
  ["as agents write it", {}, true],
  ["without families and tags", { families: [], tags: [] }, true],
  ["a tag that is listed twice", { tags: ["eu", "eu"] }, true],
  ["16 tags", { tags: Array.from({ length: 16 }, (_, at) => `t${at}`) }, true],
  ["17 tags", { tags: Array.from({ length: 17 }, (_, at) => `t${at}`) }, false],
  ["a tag in capitals", { tags: ["EU"] }, false],
  ["a tag that could be two", { tags: ["eu,nl"] }, false],
  ["a tag that is a list", { tags: [["eu"]] }, false],
  ["tags that are a text", { tags: "eu" }, false],
  ["no tags", { tags: undefined }, false],
  ["a family that does not exist", { families: [5] }, false],
  ["a family as a text", { families: ["6"] }, false],
  ["a family that is listed twice", { families: [6, 6] }, false],
  ["a version with a control character", { version: "1.0\u001b[31m" }, false],
  ["a version of 65 characters", { version: "1".repeat(65) }, false],
  ["a version that is a list", { version: ["1.0.0"] }, false],
  ["a time without a zone", { since: "2026-01-31T12:00:00" }, false],
  ["a day that does not exist", { since: "2026-13-31T12:00:00Z" }, false],
  ["a day that its month does not have", { since: "2026-02-31T12:00:00Z" }, false],
  ["an hour that the day does not have", { since: "2026-01-31T24:00:00Z" }, false],
  ["a fraction of a second", { since: "2026-01-31T12:00:00.123456Z" }, true],
  ["a time that is a number", { since: 1_769_860_800_000 }, false],
  ["too many bytes", { more: "x".repeat(MAX_ANNOUNCEMENT_BYTES) }, false],
])("an announcement is checked before it is used: %s", (_, change, isTaken) => {
  const { announce, list } = start();
  announce("ams", 1, { ...ABOUT, ...change });
  expect(list()).toEqual(isTaken ? ["ams 1"] : []);
});

test.each([
  ["no JSON", "{"],
  ["a goodbye", ""],
  ["null", "null"],
  ["a list", "[]"],
])("%s of an agent that is not listed is ignored", (_, text) => {
  const { directory, list, lines } = start();
  expect(directory.note("ams", nameOf(1), Buffer.from(text), 0)).toBe(false);
  expect([list(), lines]).toEqual([[], []]);
});

test.each([
  ["ams", "0000000A"],
  ["ams", ""],
  ["AMS", "00000001"],
  ["all", "00000001"],
  ["x".repeat(33), "00000001"],
])("nobody can be %s %s", (location, name) => {
  const { directory, list } = start();
  expect(directory.note(location, name, Buffer.from(JSON.stringify(ABOUT)), 0)).toBe(false);
  expect(list()).toEqual([]);
});

test("through any history, all that is known is what a slow and simple count says", () => {
  const TAGS = ["eu", "nl", "as64496", "n2"];
  for (let seed = 1; seed <= 40; seed++) {
    const chance = randomFrom(seed);
    const random = (below: number) => Math.floor(chance() * below);
    const { announce, leave, directory, rows } = start(["n0", "n9"]);
    const there = new Map<string, { location: string; tags: readonly string[] }>();
    for (let step = 0; step < 60; step++) {
      const location = `n${random(6)}`;
      const at = random(4);
      const key = `${location} ${at}`;
      const tags = TAGS.filter(() => random(2) === 0);
      const isThere = random(4) > 0;
      if (isThere) announce(location, at, { ...ABOUT, tags });
      else leave(location, at);
      if (isThere) there.set(key, { location, tags });
      else there.delete(key);
      if (random(3) > 0) continue;
      const agents = [...there.values()];
      const names = [...new Set(agents.map((agent) => agent.location))].sort();
      const expected = [...new Set([...names, "n0", "n9"])].sort().map((name) => {
        const own = agents.filter((agent) => agent.location === name);
        return { name, agents: own.length, tags: new Set(own.flatMap((agent) => agent.tags)) };
      });
      expect(rows().map((row) => [row.location, row.agents, row.tags])).toEqual(
        expected.map(({ name, agents, tags }) => [name, agents, [...tags].sort()]),
      );
      const { byWord } = directory.list();
      expect(byWord.get("all")).toEqual(names);
      for (const tag of TAGS) {
        const named = expected.filter(({ tags }) => tags.has(tag)).map(({ name }) => name);
        expect(byWord.get(tag) ?? []).toEqual(names.includes(tag) ? [] : named);
      }
    }
  }
});
