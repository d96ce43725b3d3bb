import type { Table, Tone } from "./report.ts";

/** The outcomes of a step. */
export const STATUSES = ["ok", "warn", "fail", "skipped"] as const;

/** The tone of a step that has ended; none if it was not taken. */
export const TONES: Readonly<Record<(typeof STATUSES)[number], Tone | "">> = {
  ok: "good",
  warn: "warn",
  fail: "bad",
  skipped: "",
};

const COLUMNS = [
  { name: "step", kind: "text" },
  { name: "result", kind: "text", isToned: true },
  { name: "address", kind: "value" },
  { name: "", kind: "text" },
] as const;

/** A step that has ended or, without a status, still runs. */
export interface StepRow {
  readonly name: string;
  readonly ip?: string;
  readonly status?: keyof typeof TONES;
  readonly text?: string;
}

/**
 * The table of steps.
 *
 * @param names of all steps: rows that have left the screen cannot move when a longer name comes
 */
export function stepTable(
  steps: readonly StepRow[],
  names: readonly string[],
  hasIp: boolean,
): Table {
  const widest = Math.max(...names.map(({ length }) => length));
  const rows = steps.map(({ name, status, ip = null, text }) => {
    const tone = status && TONES[status];
    const cells = [name.padEnd(widest), status ?? "…", ...(hasIp ? [ip] : []), text || null];
    return { cells, ...(tone && { tone }) };
  });
  return { columns: COLUMNS.filter(({ name }) => hasIp || name !== "address"), rows };
}
