import { attempt } from "../../../util/errors.ts";

/** A place in the tab of watches: the list, or one watch over a time, perhaps with an open change. */
export interface WatchPlace {
  /** The name of a watch; empty for the list. */
  readonly name: string;
  /** Hours back from now. */
  readonly hours: number;
  /** The number of a change; null if none is open. */
  readonly change: number | null;
}

/** The times that a watch is shown for, in hours. */
export const SPANS = { Day: 24, Week: 168, Month: 720, Year: 8760 } as const;

/** The place that a hash means, such as `#/watch/check%20example.com?hours=168&change=3`; null for one elsewhere. */
export function watchPlaceOf(hash: string): WatchPlace | null {
  const found = /^#\/watch(?:\/([^?]*))?(?:\?(.*))?$/.exec(hash);
  if (found === null) return null;
  const [, text = "", query = ""] = found;
  const given = new URLSearchParams(query);
  const hours = Object.values(SPANS).find((each) => `${each}` === given.get("hours"));
  const name = attempt(() => decodeURIComponent(text)) ?? text;
  return { name, hours: hours ?? SPANS.Week, change: Number(given.get("change")) || null };
}

/** The hash of a place. */
export const watchHash = ({ name, hours, change }: WatchPlace): string =>
  `#/watch/${encodeURIComponent(name)}?hours=${hours}${change === null ? "" : `&change=${change}`}`;
