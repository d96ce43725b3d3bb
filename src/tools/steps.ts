import type { Tone } from "./report.ts";

/** The outcomes of a step. */
export const STATUSES = ["ok", "warn", "fail", "skipped"] as const;

/** The tone of a step that has ended; none if it was not taken. */
export const TONES: Readonly<Record<(typeof STATUSES)[number], Tone | "">> = {
  ok: "good",
  warn: "warn",
  fail: "bad",
  skipped: "",
};
