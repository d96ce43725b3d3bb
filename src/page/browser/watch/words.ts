import { type Tone, tonedVerdict } from "../../../tools/report.ts";
import type { WatchRow } from "../../../watch/result.ts";

/** The tone of a watch: an error about the target is bad, and one that has not run has none. */
export function toneOf({ verdict }: Pick<WatchRow, "verdict">): Tone | null {
  if (verdict === null) return null;
  return /^[A-Z0-9_]+$/.test(verdict.code) ? "bad" : (tonedVerdict(verdict)?.tone ?? null);
}

/** True for a code that is bad news. */
export const isBad = (code: string) => toneOf({ verdict: { code, text: "", since: "" } }) === "bad";

/** A time of the API as people read it. */
export const timeText = (at: string) => `${at.slice(0, 16).replace("T", " ")} UTC`;

/** How a watch is measured: its tool with the parameters, and how often. */
export const mannerText = ({ name, target, everySeconds }: WatchRow) =>
  `${name
    .split(" ")
    .filter((word) => word !== target)
    .join(" ")}, every ${everySeconds} s`;
