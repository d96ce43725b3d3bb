import { plural, utcText } from "../../util/text.ts";

/** A name in a sentence. */
export function nameText(name: string): string {
  return name === "." ? "the root" : name.slice(0, -1);
}

/** A record set in a sentence: `www.example.com AAAA`. */
export function setText({ name, type }: { readonly name: string; readonly type: string }): string {
  return `${nameText(name)} ${type}`;
}

/** A time in a sentence: `2026-11-22 08:00 UTC`. @param seconds since 1970 */
export function timeText(seconds: number): string {
  return utcText(isoText(seconds), "minute");
}

/** A time as documents have it: `2026-11-22T08:00:00Z`. @param seconds since 1970 */
export function isoText(seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace(".000", "");
}

const UNITS = [
  ["day", 86_400],
  ["hour", 3600],
  ["minute", 60],
  ["second", 1],
] as const;

/** A length of time in the largest unit that it has twice: `44 minutes`. */
export function durationText(seconds: number): string {
  const [unit, size] = UNITS.find(([, each]) => seconds >= 2 * each) ?? UNITS[3];
  return plural(Math.floor(seconds / size), unit);
}
