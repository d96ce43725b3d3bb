import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Change, History, packed } from "../../src/watch/history.ts";
import { labMissing, testWith } from "../lab/lab.ts";
import { run } from "../lab/run.ts";
import { randomFrom } from "../lab/simulation.ts";
import { EPOCH_MS, quietLog, runAt } from "./runs.ts";

let folder: string;
let file: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "sixscope-history-"));
  file = join(folder, "history.db");
});

afterEach(() => rmSync(folder, { recursive: true }));

const NAME = "ping 2001:db8::1";
const YEAR = 105_120;

const open = (maxMb = 256) => new History(file, maxMb, quietLog, () => EPOCH_MS + 1e12);

const change = (number: number, document: object): Change => ({
  ...{
    kind: "path",
    text: `Change ${number}.`,
    confirmed: true,
    atMs: EPOCH_MS + number * 300_000,
  },
  ...{ diff: [], before: packed.of(document), after: packed.of({ is: number }), evidence: null },
  isToTell: false,
});

test("a part of a series has the worst code of its runs, and of those that are as bad the last", () => {
  using history = open();
  const codes = ["works", "no-reply", "HOSTNAME_NOT_FOUND", "works", "unclear", "no-loss"];
  for (const [number, code] of codes.entries()) history.addRun(NAME, runAt(number, { code }));
  const range = { sinceMs: EPOCH_MS, untilMs: EPOCH_MS + 1_800_000, points: 2 };
  const series = history.series(NAME, range);
  expect(series.map(({ code }) => code)).toEqual(["HOSTNAME_NOT_FOUND", "unclear"]);
  expect(history.line(NAME, range).bad).toEqual([true, false]);
});

test("runs, gaps and changes come back as series of equal parts", () => {
  using history = open();
  for (let number = 0; number < 4; number++)
    history.addRun(NAME, runAt(number, { lost: number === 1 ? 5 : 0 }));
  history.addRun(
    NAME,
    runAt(4, { code: "no-reply", lost: 10, least: null, median: null, greatest: null }),
  );
  history.addGap(NAME, EPOCH_MS + 1_800_000, 900_000, "the service did not run");
  const id = history.addChange(NAME, change(2, { is: "before" })) as number;
  const range = { sinceMs: EPOCH_MS, untilMs: EPOCH_MS + 3_000_000, points: 5 };
  const series = history.series(NAME, range);
  expect(
    series.map(({ runs, loss, median, code, gap }) => [runs, loss, median, code, gap]),
  ).toEqual([
    [2, 25, 20.001, "no-loss", null],
    [2, 0, 20.003, "no-loss", null],
    [1, 100, null, "no-reply", null],
    [0, null, null, null, "the service did not run"],
    [0, null, null, null, "the service did not run"],
  ]);
  expect(history.changes(NAME, EPOCH_MS, range.untilMs)).toEqual([
    { id, at: "2026-11-27T00:10:00.000Z", kind: "path", text: "Change 2.", confirmed: true },
  ]);
  expect(history.change(NAME, id)).toEqual({
    before: { is: "before" },
    after: { is: 2 },
    diff: [],
    evidence: null,
  });
  expect(history.change("ping 2001:db8::2", id)).toBeNull();
  const line = history.line(NAME, range);
  expect(line.bad).toEqual([false, false, true, null, null]);
  expect(line.changed).toEqual([1]);
  history.addChange(NAME, { ...change(3, {}), confirmed: false });
  expect(history.line(NAME, range).changed).toEqual([1]);
  const since = [3, 4].map((number) => history.flaps(EPOCH_MS + number * 300_000));
  expect(since).toEqual([1, 0]);
  expect(history.counts(EPOCH_MS, EPOCH_MS)).toEqual(new Map([[NAME, { day: 1, month: 1 }]]));
});

test("runs at the same time, as after a jump of the clock, are all kept", () => {
  using history = open();
  for (const number of [5, 6, 5, 6, 5]) expect(history.addRun(NAME, runAt(number))).toBe(true);
  const [all] = history.series(NAME, { sinceMs: 0, untilMs: 2 * EPOCH_MS, points: 1 });
  expect(all?.runs).toBe(5);
});

test("a year of a watch every five minutes takes at most 6 MB, measured by slope", () => {
  using history = open();
  const sizes = [5_000, 20_000].map((end, at) => {
    for (let number = at * 5_000; number < end; number++) {
      // Beside others, whose rows come between.
      history.addRun(`ping 2001:db8::${number % 5}`, runAt(Math.floor(number / 5)));
    }
    history.checkpoint();
    return statSync(file).size;
  }) as [number, number];
  const bytesARun = (sizes[1] - sizes[0]) / 15_000;
  expect(bytesARun * YEAR).toBeLessThan(6_000_000);
});

test("the history stays within its size: the oldest runs go first, changes last", () => {
  using history = open(1);
  const random = randomFrom(1);
  const noise = () => ({ noise: Array.from({ length: 200 }, random) });
  for (let number = 0; number < 30_000; number++) {
    expect(history.addRun(NAME, runAt(number))).toBe(true);
    if (number % 1_000 === 0) history.addChange(NAME, change(number, noise()));
  }
  expect(history.status().bytes).toBeLessThanOrEqual(1_000_000);
  const end = EPOCH_MS + 30_000 * 300_000;
  const series = history.series(NAME, { sinceMs: EPOCH_MS, untilMs: end, points: 30 });
  expect(
    series
      .map(({ runs }) => runs)
      .slice(1)
      .every((runs) => runs === 1_000),
  ).toBe(true);
  expect(series.length).toBeGreaterThan(5);
  expect(series.length).toBeLessThan(30);
  expect(history.changes(NAME, EPOCH_MS, end).length).toBe(30);
  for (let number = 0; number < 400; number++) history.addChange(NAME, change(number, noise()));
  expect(history.problem).toBeNull();
  expect(history.status().bytes).toBeLessThanOrEqual(1_000_000);
  history.close();
  using smaller = new History(file, 0.7, quietLog);
  expect(smaller.problem).toBeNull();
  expect(smaller.status().bytes).toBeLessThanOrEqual(700_000);
});

test("what was kept is there after each of 200 kills at random points", async () => {
  const random = randomFrom(2);
  const entrypoints = [join(import.meta.dir, "../lab/history-writer.ts")];
  // In one file, which starts in a third of the time that its sources take.
  await Bun.build({ entrypoints, outdir: folder, target: "bun", minify: true });
  const writer = [process.execPath, join(folder, "history-writer.js")];
  let next = 0;
  for (let kill = 0; kill < 200; kill += 10) {
    // Ten at a time, each with a file of its own, because a start takes longer than the rest.
    const children = Array.from({ length: 10 }, (_, at) => {
      const path = join(folder, `${at}.db`);
      const child = Bun.spawn([...writer, path, `${next}`], { stdout: "pipe", stderr: "inherit" });
      return { path, child, lines: 1 + Math.floor(random() * 300) };
    });
    await Promise.all(
      children.map(async ({ path, child, lines }) => {
        let text = "";
        const decoder = new TextDecoder();
        for await (const chunk of child.stdout) {
          text += decoder.decode(chunk, { stream: true });
          if (text.split("\n").length > lines) child.kill("SIGKILL");
        }
        const told = text.split("\n").slice(0, -1).map(Number);
        expect(told.length).toBeGreaterThan(0);
        const db = new Database(path);
        expect(db.query("pragma integrity_check").get()).toEqual({ integrity_check: "ok" });
        const kept = db.query<{ at: number }, []>("select at from run").all();
        const numbers = new Set(kept.map(({ at }) => (at - EPOCH_MS) / 300_000));
        expect(told.filter((number) => !numbers.has(number))).toEqual([]);
        db.close();
      }),
    );
    next += 100_000;
  }
}, 400_000);

test.each<[reason: string, prepare: (db: Database) => void, problem: string]>([
  ["of a newer version", (db) => db.run("pragma user_version = 2"), "it is of version 2"],
  [
    "of another program",
    (db) => db.run("create table other (id)"),
    "it is a file of another program",
  ],
])("a file %s is not touched", (_reason, prepare, problem) => {
  open().close();
  if (problem.includes("another")) rmSync(file);
  const db = new Database(file);
  prepare(db);
  db.run("pragma wal_checkpoint(truncate)");
  db.close();
  const before = readFileSync(file);
  using history = open();
  expect(history.problem).toContain(problem);
  expect(history.addRun(NAME, runAt(1))).toBe(false);
  history.close();
  expect(readFileSync(file).equals(before)).toBe(true);
  expect(readdirSync(folder)).toEqual(["history.db"]);
});

test("a file that is no database is not touched", async () => {
  await Bun.write(file, "not a database\n".repeat(1_000));
  using history = open();
  expect(history.problem).toContain("not a database");
  expect(history.addRun(NAME, runAt(1))).toBe(false);
  expect(readFileSync(file, "utf8")).toBe("not a database\n".repeat(1_000));
});

testWith(labMissing)(
  "a full disk loses nothing that was kept, and is told until there is room",
  async () => {
    await run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder]);
    const other = join(folder, "other");
    writeFileSync(other, new Uint8Array(3_700_000));
    try {
      using history = open();
      let kept = 0;
      while (history.addRun(NAME, runAt(kept))) kept++;
      expect(kept).toBeGreaterThan(20);
      expect(history.problem).toContain("full");
      const all = { sinceMs: EPOCH_MS, untilMs: 2 * EPOCH_MS, points: 1 };
      expect(history.series(NAME, all)[0]?.runs).toBe(kept);
      rmSync(other);
      expect(history.addRun(NAME, runAt(kept))).toBe(true);
      expect(history.problem).toBeNull();
      expect(history.series(NAME, all)[0]?.runs).toBe(kept + 1);
    } finally {
      await run(["umount", folder]);
    }
  },
);

test("a file that is removed or replaced meanwhile is told, and a new one is begun", () => {
  using history = open();
  for (const prepare of [() => {}, () => writeFileSync(file, "")]) {
    expect(history.addRun(NAME, runAt(1))).toBe(true);
    for (const end of ["", "-wal", "-shm"]) rmSync(file + end, { force: true });
    prepare();
    expect(history.addRun(NAME, runAt(2))).toBe(true);
    using other = open();
    const all = { sinceMs: EPOCH_MS, untilMs: 2 * EPOCH_MS, points: 1 };
    expect(other.series(NAME, all)[0]?.runs).toBe(1);
  }
});

test("the number of a change is never given again, also by another file", () => {
  let nowMs = EPOCH_MS;
  using history = new History(file, 1, quietLog, () => nowMs++);
  const add = () => history.addChange(NAME, change(1, {})) as number;
  const first = [add(), add()];
  nowMs -= 1000;
  first.push(add());
  for (const end of ["", "-wal", "-shm"]) rmSync(file + end);
  nowMs += 1000;
  expect(new Set([...first, add(), add()]).size).toBe(5);
});

testWith(labMissing)("a read-only disk is told, and what was kept can be read", async () => {
  const before = open();
  for (let number = 0; number < 5; number++) before.addRun(NAME, runAt(number));
  before.close();
  await run(["mount", "--bind", folder, folder]);
  await run(["mount", "-o", "remount,bind,ro", folder]);
  try {
    using history = open();
    expect(history.problem).toContain(file);
    expect(history.addRun(NAME, runAt(6))).toBe(false);
    const all = { sinceMs: EPOCH_MS, untilMs: 2 * EPOCH_MS, points: 1 };
    expect(history.series(NAME, all)[0]?.runs).toBe(5);
  } finally {
    await run(["umount", folder]);
  }
});

testWith(labMissing).each(["full", "readonly"])(
  "what a killed service kept can be read on a disk that is %s",
  async (fault) => {
    using killed = open();
    for (let number = 0; number < 300; number++) killed.addRun(NAME, runAt(number));
    const standing = { code: "loss", text: "Lost.", sinceMs: EPOCH_MS, document: null };
    killed.keepStanding(NAME, standing);
    const disk = join(folder, "disk");
    mkdirSync(disk);
    await run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk]);
    try {
      const copy = join(disk, "history.db");
      for (const end of ["", "-wal", "-shm"]) copyFileSync(file + end, copy + end);
      if (fault === "readonly") await run(["mount", "-o", "remount,bind,ro", disk]);
      else
        expect(() => writeFileSync(join(disk, "other"), new Uint8Array(4_000_000))).toThrow(
          "space",
        );
      using history = new History(copy, 256, quietLog);
      expect(history.addRun(NAME, runAt(300))).toBe(false);
      expect(history.problem).toContain(fault);
      const all = { sinceMs: EPOCH_MS, untilMs: 2 * EPOCH_MS, points: 1 };
      expect(history.series(NAME, all)[0]?.runs).toBe(300);
      expect(history.standing(NAME).standing).toEqual(standing);
    } finally {
      await run(["umount", disk]);
    }
  },
);

test("a notification waits until it is forgotten", () => {
  using history = open();
  const id = history.addChange(NAME, { ...change(1, {}), isToTell: true }) as number;
  history.addChange(NAME, change(2, {}));
  expect(history.waiting()).toEqual([
    { id, name: NAME, at: "2026-11-27T00:05:00.000Z", kind: "path", text: "Change 1." },
  ]);
  history.forget(id);
  expect(history.waiting()).toEqual([]);
});
