import { formatPercent } from "../util/text.ts";
import type { Kind } from "./report.ts";

/** A number of milliseconds as people read it: three digits that matter. */
export function formatMs(ms: number): string {
  return ms.toFixed(ms >= 100 ? 0 : ms >= 10 ? 1 : 2);
}

/** How the page writes the numbers of a column, by its kind; the other kinds are no numbers. */
export const NUMBER_FORMATS: Readonly<Partial<Record<Kind, (value: number) => string>>> = {
  time: (ms) => `${ms.toFixed(3)} ms`,
  ms: formatMs,
  percent: formatPercent,
  count: String,
  bytes: (bytes) => `${bytes} bytes`,
};

/** The next round number for a scale: a digit times a power of ten. */
export function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((step) => step * power >= value) ?? 10) * power || 1;
}

/** A round end for a scale of times that begins at 0; null is no time. */
export function scaleOf(times: readonly (number | null)[]): number {
  return roundUp(Math.max(0.01, ...times.map((ms) => ms ?? 0)));
}
