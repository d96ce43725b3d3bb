/** Agents that come, leave and are lost, with a clock of the test. */
import { expect, test } from "bun:test";
import {
  createDirectory,
  KNOWN_MS,
  MAX_AGENTS,
  MAX_AGENTS_OF_ONE,
  SWEEP_MS,
} from "../../src/locations/directory.ts";

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
    (JSON.parse(directory.known.json).locations as { location: string; agents: number }[]).map(
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
  expect([...directory.known.byWord]).toEqual([
    ["all", ["ams"]],
    ["eu", ["ams"]],
    ["ams", ["ams"]],
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
  expect(directory.known.byWord.get("eu")).toEqual(["fra"]);
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
  expect(JSON.parse(directory.known.json).locations[0]).toEqual({
    ...{ location: "ams", state: "up", agents: 1, versions: ["2.0.0"], families: [6] },
    ...{ since: SAID.since, tags: ["nl"] },
  });
  say("ams", 2, { said: { ...SAID, families: [4, 6], since: "2025-01-31T12:00:00Z" } });
  expect(JSON.parse(directory.known.json).locations[0]).toMatchObject({
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
