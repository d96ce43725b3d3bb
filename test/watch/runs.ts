import type { Log } from "../../src/util/log.ts";
import type { Run } from "../../src/watch/measure.ts";

/** A log that nobody reads. */
export const quietLog: Log = { debug() {}, info() {}, warn() {}, error() {}, writes: () => false };

/** The begin of the first run. */
export const EPOCH_MS = Date.parse("2026-11-27T00:00:00Z");

/** The run with a number, five minutes behind the one before. */
export const runAt = (number: number, changes: Partial<Run> = {}): Run => ({
  ...{ atMs: EPOCH_MS + number * 300_000, durationMs: 2_400, code: "no-loss", sent: 10, lost: 0 },
  ...{ least: 19_000 + (number % 7), median: 20_000 + (number % 11), greatest: 24_000, path: 700 },
  ...changes,
});
