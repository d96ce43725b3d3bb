/** What doctor says of the history: what is kept, whether there is room, and why nothing is kept. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Scene } from "../../src/cli/doctor/finding.ts";
import { checkHistory } from "../../src/cli/doctor/history.ts";

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "sixscope-doctor-history-"));
  writeFileSync(join(folder, "history.db"), Buffer.alloc(3_000_000));
  writeFileSync(join(folder, "history.db-wal"), Buffer.alloc(200_000));
});

afterAll(() => rmSync(folder, { recursive: true }));

test.each<
  [
    about: string,
    file: string,
    maxMb: number,
    withoutHistory: string | null,
    state: string,
    outcome: string,
  ]
>([
  ["nothing is watched", "none.db", 256, null, "", ""],
  ["it is kept", "history.db", 4, null, "ok", "3.2 of at most 4 MB, last written 2"],
  ["it may outgrow the disk", "history.db", 1_000_000_000, null, "warning", " MB free"],
  [
    "it is not kept",
    "none.db",
    256,
    "disk\u001b full",
    "problem",
    "it is not kept: disk\ufffd full",
  ],
])("%s", (_, file, historyMaxMb, withoutHistory, state, outcome) => {
  const scene = {
    config: { historyFile: join(folder, file), historyMaxMb },
    status: { withoutHistory },
    setting: (name: string) => name,
  } as unknown as Scene;
  const found = checkHistory(scene);
  expect(found.map((each): string => each.state)).toEqual(state ? [state] : []);
  expect(found[0]?.outcome ?? "").toContain(outcome);
});
