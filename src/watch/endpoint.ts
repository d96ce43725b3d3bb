import { z } from "zod";
import type { Endpoint as ApiEndpoint, Call } from "../api/endpoint.ts";
import { ApiError, clientGone } from "../api/errors.ts";
import { integerParameter, type Parameter, type Parameters } from "../api/parameters.ts";
import { once, textSchema } from "../api/schemas.ts";
import { endpoint, type Services } from "../tools/services.ts";
import example from "./example.json" with { type: "json" };
import {
  type ChangeDetail,
  changeDetail,
  changeEvent,
  runEvent,
  type WatchDay,
  type Watches,
  type WatchSeries,
  watchList,
  watchSeries,
} from "./result.ts";

/** The watcher as endpoints use it: it runs the watches and keeps their history. */
export interface Watching {
  /** How many watches there are. */
  readonly count: number;
  /** Every watch. */
  list(): Watches;
  /** The last day of a watch in `points` parts. */
  day(name: string, points: number): WatchDay;
  /** The history of a watch between two Unix times in milliseconds; null for an unknown watch. */
  series(name: string, sinceMs: number, untilMs: number, points: number): WatchSeries | null;
  /** A change of a watch; null for an unknown change. */
  change(name: string, id: number): ChangeDetail | null;
  /** Calls the listener with each event once it is stored, until the returned function is called. */
  subscribe(listener: (event: "run" | "change", data: object) => void): () => void;
  /** Aborts when the service stops. */
  readonly stopping: AbortSignal;
}

/** The parts of the service that handlers of watches use. */
export interface WatchServices extends Services {
  /** Absent or null if no watches run. */
  readonly watching?: Watching | null;
}

/** The most parts of a requested time. */
const MAX_POINTS = 2_000;

/** The most parts of the last day in the list: of 500 watches they take 0.5 MB. */
const MAX_DAY_POINTS = 144;

/** Requests that the last day of all watches counts as: 500 watches take 0.15 s. */
const DAYS_PRICE = 10;

/** Each week of a series counts as one request, up to a year: a year of a watch every minute takes 0.3 s. */
const SERIES = { weekMs: 604_800_000, mostWeeks: 52 } as const;

const NO_WATCHES = { watches: [], details: { wrong: [], flaps: 0 } };

const SPAN = /^(\d{1,6})([smhd])$/;
const UNIT_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** The milliseconds of a time such as `5m` or `24h`; null for other texts. */
export function spanMs(text: string): number | null {
  const [, count, unit] = SPAN.exec(text) ?? [];
  return unit ? Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS] : null;
}

/** The Unix time in milliseconds of a text: a time in RFC 3339, or how long ago, such as `24h`. */
export function momentMs(text: string, nowMs: number): number {
  const span = spanMs(text);
  return span === null ? Date.parse(text) : nowMs - span;
}

/** A time as a parameter. */
export const moment = (description: string, preset: string): Parameter<string> => ({
  in: "query",
  schema: once(() => z.iso.datetime({ offset: true }).or(z.string().regex(SPAN)).default(preset)),
  description,
  example: "24h",
  default: preset,
  expected: "a time such as 2027-01-31T12:00:00Z, or how long ago, such as 24h",
});

const name = {
  in: "path",
  schema: textSchema,
  description: "The name of a watch: its line without `every`, with single spaces.",
  example: example.list.watches[0]?.name ?? "",
} as const;

const KEYED = { needsKey: true, errors: [] } as const;

/** `GET /watch`: every watch, and how it is. */
export const watches = watchEndpoint({
  ...KEYED,
  path: "/watch",
  operationId: "listWatches",
  summary: "Every watch, and how it is (beta)",
  description:
    "What the file of watches lists, each with the verdict of its last run, since when it has that, and its changes. As events, each run and each change as soon as it is stored, until the client goes or the service stops.",
  parameters: {
    points: integerParameter({
      ...{ minimum: 1, maximum: MAX_DAY_POINTS, example: 72 },
      price: (points) => (points === undefined ? 1 : DAYS_PRICE),
      description:
        "In how many parts `details.days` has the last day of each watch; without it, there are no `days`.",
    }),
  },
  response: watchList,
  example: example.list,
  events: () => ({ run: runEvent(), change: changeEvent() }),
  isLive: true,
  async handle({ points }, call, { watching }) {
    if (!watching) return NO_WATCHES;
    if (call.onEvent) await untilEnd(watching, call);
    const list = watching.list();
    if (points === undefined || list.watches.length === 0) return list;
    const days: Record<string, WatchDay> = {};
    for (const { name } of list.watches) {
      days[name] = watching.day(name, points);
      // Other requests are answered meanwhile.
      await new Promise(setImmediate);
    }
    return { ...list, details: { ...list.details, days } };
  },
});

/** Streams of events at once; each takes 20 kB. One more ends the oldest. */
const MAX_STREAMS = 1_000;

const streams = new Set<() => void>();

/** Passes events on until the client goes, the service stops, or newer streams need its place. */
async function untilEnd({ subscribe, stopping }: Watching, { signal, onEvent }: Call) {
  const { promise, resolve } = Promise.withResolvers<void>();
  const [oldest] = streams;
  if (oldest && streams.size >= MAX_STREAMS) {
    streams.delete(oldest);
    oldest();
  }
  streams.add(resolve);
  const unsubscribe = subscribe((event, data) => onEvent?.(event, data));
  const ends = [signal, stopping];
  for (const each of ends) each.addEventListener("abort", () => resolve(), { once: true });
  if (!ends.some(({ aborted }) => aborted)) await promise;
  streams.delete(resolve);
  unsubscribe();
  if (signal.aborted) throw clientGone();
}

/** `GET /watch/{name}`: what a watch has seen. */
export const watch = watchEndpoint({
  ...KEYED,
  path: "/watch/{name}",
  operationId: "getWatch",
  summary: "What a watch has seen (beta)",
  description:
    "Round-trip times, loss, verdicts and gaps in equal parts of a time, and the changes in it.",
  parameters: {
    name,
    since: {
      ...moment("The beginning.", "24h"),
      price(since: string, { until = "0s" }) {
        const nowMs = Date.now();
        const weeks = (momentMs(`${until}`, nowMs) - momentMs(since, nowMs)) / SERIES.weekMs;
        return Math.min(SERIES.mostWeeks, Math.max(1, Math.ceil(weeks)));
      },
    },
    until: moment("The end.", "0s"),
    points: integerParameter({
      ...{ minimum: 1, maximum: MAX_POINTS, default: 288, example: 288 },
      description: "Into how many equal parts the time is divided.",
    }),
  },
  response: watchSeries,
  example: example.series,
  handle({ name, since, until, points }, _call, { watching }) {
    const nowMs = Date.now();
    const [sinceMs, untilMs] = [momentMs(since, nowMs), momentMs(until, nowMs)];
    if (sinceMs >= untilMs) {
      const details = { parameter: "since", value: since };
      throw new ApiError("INVALID_PARAMETER", details, "a time before until");
    }
    return watching?.series(name, sinceMs, untilMs, points) ?? unknown(name);
  },
});

/** `GET /watch/{name}/changes/{id}`: both sides of a change. */
export const change = watchEndpoint({
  ...KEYED,
  path: "/watch/{name}/changes/{id}",
  operationId: "getWatchChange",
  summary: "Both sides of a change (beta)",
  description:
    "The documents before and after, their differences, and the evidence from all locations.",
  parameters: {
    name,
    id: {
      in: "path",
      schema: textSchema,
      description: "The number of a change.",
      example: "1801386720000",
    },
  },
  response: changeDetail,
  example: example.change,
  handle: ({ name, id }, _call, { watching }) =>
    (/^\d{1,15}$/.test(id) && watching?.change(name, Number(id))) || unknown(name, id),
});

function unknown(name: string, id?: string): never {
  const path = `/api/v1/watch/${[name, ...(id ? ["changes", id] : [])].map(encodeURIComponent).join("/")}`;
  const why = id === undefined ? "There is no watch of this name" : "There is no such change";
  throw new ApiError("NOT_FOUND", { method: "GET", path }, why);
}

/** An endpoint whose handler uses `WatchServices`. */
function watchEndpoint<P extends Parameters, Schema extends z.ZodType>(
  definition: ApiEndpoint<WatchServices, P, Schema>,
) {
  return endpoint<P, Schema>(definition);
}
