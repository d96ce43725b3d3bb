import { DAY_MS } from "../../../util/clock.ts";
import { listText, splitSentence } from "../../../util/text.ts";
import type { WatchRow } from "../../../watch/result.ts";
import type { PageTool } from "../../caller.ts";

const WEEKDAYS = new Intl.DateTimeFormat("en-GB", { weekday: "short", timeZone: "UTC" });

/** A time of the API in UTC: the time of today, the weekday and time of the last days, or else the date alone. */
export function timeText(at: string): string {
  const time = Date.parse(at);
  const days = Math.floor(Date.now() / DAY_MS) - Math.floor(time / DAY_MS);
  if (days >= 7) return at.slice(0, 10);
  return `${days === 0 ? "" : `${WEEKDAYS.format(time)} `}${at.slice(11, 16)}`;
}

/** A text as its first sentence, without the full stop, and the others. */
export function sentencesOf(text: string): readonly [first: string, others: string] {
  const [first, others] = splitSentence(text);
  return [first.replace(/\.$/, ""), others];
}

/** The first sentence of a verdict, and its beginning. */
export const sinceText = ({ text, since }: NonNullable<WatchRow["verdict"]>) =>
  `${sentencesOf(text)[0]} since ${timeText(since)}.`;

/** The target of a watch, or else its tool. */
export const titleOf = ({ tool, target }: WatchRow) => target ?? tool;

const UNITS = { d: 86_400, h: 3600, min: 60, s: 1 } as const;

/** The parameters in the line of a watch. */
export const optionsOf = ({ name }: WatchRow): Readonly<Record<string, string>> =>
  Object.fromEntries(
    [...name.matchAll(/ ([^ =]+)=([^ ]*)/g)].map(([, key, value]) => [key, value]),
  );

/** How a watch is measured: its tool with the parameters as the page calls them, and how often. */
export function mannerText(watch: WatchRow, tool: Pick<PageTool, "label" | "options">): string {
  const { target, everySeconds: every } = watch;
  const options = Object.entries(optionsOf(watch)).map(([key, value]) => {
    if (key === "from") return `from ${listText(value.split(","))}`;
    const label = tool.options.find(({ name }) => name === key)?.label ?? key;
    return `${label.replace(/^[A-Z](?![A-Z])/, (first) => first.toLowerCase())} ${value}`;
  });
  const [unit, seconds = 1] = Object.entries(UNITS).find(([, size]) => every % size === 0) ?? [];
  const parts = [target !== null && tool.label, ...options, `every ${every / seconds} ${unit}`];
  return parts.filter(Boolean).join(", ");
}
