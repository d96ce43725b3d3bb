/** Agents that come, leave and are lost, with a clock of the test. */
import { expect, spyOn, test } from "bun:test";
import {
  createDirectory,
  KNOWN_MS,
  MAX_AGENTS,
  MAX_AGENTS_OF_ONE,
  MAX_LOST,
  SWEEP_MS,
} from "../../src/locations/directory.ts";
import { inTurns, MAX_ANNOUNCEMENT_BYTES } from "../../src/locations/protocol.ts";
import { randomFrom } from "../lab/simulation.ts";

const SAID = { version: "1.0.0", families: [6], since: "2026-01-31T12:00:00Z", tags: ["eu"] };

const idOf = (at: number) => at.toString(16).padStart(8, "0");

function start(expected: readonly string[] = []) {
  const lines: string[] = [];
  const write = (message: string, fields: object = {}) =>
    void lines.push(`${message} ${Object.values(fields).join(" ")}`);
  const directory = createDirectory(expected, { info: write, warn: write });
  let nowMs = 0;
  const say = (location: string, at: number, more: object = {}) =>
    directory.note(location, Buffer.from(JSON.stringify({ id: idOf(at), ...more })), nowMs);
  const pass = (ms: number, beats: () => void = () => {}) => {
    for (const endMs = nowMs + ms; nowMs < endMs; ) {
      nowMs += SWEEP_MS;
      beats();
      directory.sweep(nowMs);
    }
  };
  const list = () =>
    (JSON.parse(directory.known.json()).locations as { location: string; agents: number }[]).map(
      ({ location, agents }) => `${location} ${agents}`,
    );
  const jump = (ms: number) => {
    nowMs += ms;
  };
  return { directory, lines, say, pass, list, jump };
}

test("two agents of one place are two: one leaves or is lost, the place stays", () => {
  const { say, pass, list, lines, directory } = start(["ams", "fra"]);
  expect(list()).toEqual(["ams 0", "fra 0"]);
  expect([say("ams", 1, { said: SAID }), say("ams", 2, { said: SAID })]).toEqual(["new", "new"]);
  expect(list()).toEqual(["ams 2", "fra 0"]);
  say("ams", 3, { said: SAID });
  pass(5_000, () => say("ams", 1));
  say("ams", 3, { left: true });
  expect(list()).toEqual(["ams 2", "fra 0"]);
  pass(KNOWN_MS + 2 * SWEEP_MS, () => say("ams", 1));
  expect(list()).toEqual(["ams 1", "fra 0"]);
  expect([...directory.known.byWord()]).toEqual([
    ["eu", ["ams"]],
    ["all", ["ams"]],
  ]);
  pass(KNOWN_MS + 2 * SWEEP_MS);
  expect(list()).toEqual(["ams 0", "fra 0"]);
  expect(lines).toEqual([
    "agent left ams 2 5",
    expect.stringMatching(/^agent lost ams 1 4\d$/),
    expect.stringMatching(/^agent lost ams 0 9\d$/),
  ] as never);
});

test("a location where nobody takes questions is lost at once, and comes back", () => {
  const { say, list, lines, directory } = start(["ams"]);
  for (const at of [1, 2]) say("ams", at, { said: SAID });
  say("fra", 3, { said: SAID });
  directory.lose("ams", 4000);
  directory.lose("nowhere", 4000);
  expect(list()).toEqual(["ams 0", "fra 1"]);
  expect(directory.known.byWord().get("eu")).toEqual(["fra"]);
  expect(lines).toEqual(["agent lost ams 1 4", "agent lost ams 0 4"]);
  expect(say("ams", 1)).toBe("unknown");
  expect(say("ams", 1, { said: SAID })).toBe("new");
  expect(list()).toEqual(["ams 1", "fra 1"]);
});

test("a beat keeps what is known, and only a change is a change", () => {
  const { say, directory } = start();
  say("ams", 1, { said: SAID });
  const before = directory.known;
  expect(say("ams", 1)).toBeUndefined();
  // An answer to the roll call of another agent's place.
  expect(say("ams", 1, { said: SAID })).toBeUndefined();
  expect(directory.known).toBe(before);
  say("ams", 1, { said: { ...SAID, tags: ["nl"], version: "2.0.0" } });
  expect(JSON.parse(directory.known.json()).locations[0]).toEqual({
    ...{ location: "ams", state: "up", agents: 1, versions: ["2.0.0"], families: [6] },
    ...{ since: SAID.since, tags: ["nl"] },
  });
  say("ams", 2, { said: { ...SAID, families: [4, 6], since: "2025-01-31T12:00:00Z" } });
  expect(JSON.parse(directory.known.json()).locations[0]).toMatchObject({
    ...{ agents: 2, versions: ["1.0.0", "2.0.0"], families: [4, 6] },
    ...{ since: "2025-01-31T12:00:00Z", tags: ["eu", "nl"] },
  });
});

test("a process that was held up does not take that for silence", () => {
  const { say, pass, list, jump } = start();
  say("ams", 1, { said: SAID });
  pass(2 * SWEEP_MS, () => say("ams", 1));
  jump(2 * KNOWN_MS);
  pass(SWEEP_MS);
  expect(list()).toEqual(["ams 1"]);
  pass(5 * SWEEP_MS, () => say("ams", 1));
  expect(list()).toEqual(["ams 1"]);
});

test("a fleet that falls silent at once is lost in several sweeps", () => {
  const { say, pass, list, lines } = start();
  const agents = 4 * MAX_LOST;
  for (let at = 0; at < agents; at++) say(`n${at}`, at, { said: SAID });
  pass(KNOWN_MS);
  expect(list()).toHaveLength(agents);
  for (let sweeps = 1; sweeps <= 4; sweeps++) {
    pass(SWEEP_MS);
    expect(list()).toHaveLength(agents - sweeps * MAX_LOST);
  }
  expect(new Set(lines).size).toBe(agents);
});

test("an agent that is not known is to be asked who it is, and one place cannot fill the table", () => {
  const { say, list, directory } = start();
  expect(say("ams", 1)).toBe("unknown");
  expect(say("ams", 1, { left: true })).toBeUndefined();
  expect(list()).toEqual([]);
  for (let at = 0; at < 1000; at++) say("ams", at, { said: SAID });
  expect(list()).toEqual([`ams ${MAX_AGENTS_OF_ONE}`]);
  for (let at = 0; at < 2 * MAX_AGENTS; at++) say(`n${at}`, at, { said: SAID });
  expect(list().length).toBeLessThanOrEqual(MAX_AGENTS);
  directory.clear();
  expect(say("fra", 1, { said: SAID })).toBe("new");
  expect(list()).toEqual(["fra 1"]);
});

test("what an agent says again is compared, not parsed, and a location that did not change keeps its row", () => {
  const { say, list } = start();
  for (let at = 0; at < 100; at++) say(`n${at}`, at, { said: SAID });
  list();
  const parse = spyOn(JSON, "parse");
  const stringify = spyOn(JSON, "stringify");
  for (let at = 0; at < 100; at++) say(`n${at}`, at, { said: SAID });
  for (let at = 0; at < 100; at++) say(`n${at}`, at);
  expect(parse).toHaveBeenCalledTimes(0);
  // By this test.
  expect(stringify).toHaveBeenCalledTimes(200);
  say("n7", 7, { said: { ...SAID, tags: ["nl"] } });
  list();
  const rows = stringify.mock.calls.filter(([value]) => "agents" in Object(value));
  parse.mockRestore();
  stringify.mockRestore();
  expect(rows).toHaveLength(1);
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
])("an announcement is checked before it is used: %s", (_, said, isTaken) => {
  const { say, list } = start();
  say("ams", 1, { said: { ...SAID, ...said } });
  expect(list()).toEqual(isTaken ? ["ams 1"] : []);
});

test.each([
  ["no JSON", "{"],
  ["nothing", ""],
  ["null", "null"],
  ["a list", "[]"],
  ["no id", JSON.stringify({ said: SAID })],
  ["an id in capitals", JSON.stringify({ id: "0000000A", said: SAID })],
  ["an id that is a list", JSON.stringify({ id: ["00000001"], said: SAID })],
  ["no object", JSON.stringify({ id: "00000001", said: 6 })],
  ["null in place of an object", JSON.stringify({ id: "00000001", said: null })],
  [
    "too long",
    JSON.stringify({ id: "00000001", said: SAID }).padEnd(MAX_ANNOUNCEMENT_BYTES + 1, " "),
  ],
])("what is no announcement is ignored: %s", (_, text) => {
  const { directory, list } = start();
  expect(directory.note("ams", Buffer.from(text), 0)).toBeUndefined();
  expect(list()).toEqual([]);
});

test("through any history, all that is known is what a slow and simple count says", () => {
  const TAGS = ["eu", "nl", "as64496", "n2"];
  for (let seed = 1; seed <= 40; seed++) {
    const chance = randomFrom(seed);
    const random = (below: number) => Math.floor(chance() * below);
    const { say, directory } = start(["n0", "n9"]);
    const there = new Map<string, { location: string; tags: readonly string[] }>();
    for (let step = 0; step < 60; step++) {
      const location = `n${random(6)}`;
      const at = random(4);
      const key = `${location} ${at}`;
      const tags = TAGS.filter(() => random(2) === 0);
      const kind = random(6);
      if (kind === 0) directory.lose(location, 0);
      const lost = [...there].filter(([, agent]) => kind === 0 && agent.location === location);
      for (const [each] of lost) there.delete(each);
      if (kind === 1) say(location, at, { left: true });
      if (kind === 1) there.delete(key);
      if (kind === 2) say(location, at);
      if (kind > 2) say(location, at, { said: { ...SAID, tags } });
      if (kind > 2) there.set(key, { location, tags });
      if (random(3) > 0) continue;
      const agents = [...there.values()];
      const names = [...new Set(agents.map((agent) => agent.location))].sort();
      const rows = [...new Set([...names, "n0", "n9"])].sort().map((name) => {
        const own = agents.filter((agent) => agent.location === name);
        return [name, own.length, [...new Set(own.flatMap((agent) => agent.tags))].sort()];
      });
      type Listed = { location: string; agents: number; tags: string[] }[];
      const listed = JSON.parse(directory.known.json()).locations as Listed;
      expect(listed.map((row) => [row.location, row.agents, row.tags])).toEqual(rows);
      const byWord = directory.known.byWord();
      expect(byWord.get("all")).toEqual(names);
      for (const tag of TAGS) {
        const named = rows.filter(([, , tags]) => (tags as string[]).includes(tag));
        const isName = names.includes(tag);
        const expected = named.map(([name]) => name as string);
        expect(byWord.get(tag) ?? []).toEqual(isName ? [] : expected);
      }
    }
  }
});

test("a burst of messages leaves turns of the event loop to others", async () => {
  const used: number[] = [];
  const most: number[] = [];
  const take = inTurns<number>((value) => used.push(value), 1000);
  for (let value = 0; value < 1500; value++) take(value);
  for (let before = -1; used.length > before; ) {
    before = used.length;
    await new Promise(setImmediate);
    most.push(used.length - before);
  }
  expect(used).toEqual(Array.from({ length: 1000 }, (_, at) => at));
  expect(Math.max(...most)).toBeLessThanOrEqual(100);
  take(7);
  await new Promise(setImmediate);
  expect(used.at(-1)).toBe(7);
});
