import { z } from "zod";
import {
  amount,
  flag,
  list,
  named,
  oneOf,
  shape,
  text,
  type ValueOf,
  whole,
} from "../api/schemas.ts";

/** The tools that a watch can run. */
export const WATCH_TOOLS = ["check", "dns", "here", "mtr", "mtu", "ping", "trace"] as const;

/** The kinds of differences in order; the kind of a change is the first one of its differences. */
export const KINDS = [
  ...["verdict", "addresses", "certificate", "path", "mtu", "resolvers", "finding"],
  ...["rtt", "loss"],
] as const;

/** Seconds between two runs. */
export const EVERY_SECONDS = { minimum: 10, maximum: 86_400, default: 300 } as const;

const moment = (description: string) => z.iso.datetime().describe(description);
const orNull = <Schema extends z.ZodType>(schema: Schema) =>
  schema.nullable().describe(schema.description ?? "");
const rtt = (which: string) =>
  orNull(amount(`The ${which} round-trip time; null if it is not known.`));
const loss = () => orNull(amount("Percentage of lost probes; null if none was sent.", 100));
const code = () => text("The code of the verdict, or of an error about the target.");
const name = () => text("The name of the watch: its line without `every`.");
const kind = () => oneOf(KINDS, "What changed first, in the order of the documentation.");
const document = (description: string) => z.looseObject({}).describe(description);

/** The change of a watch. */
export const watchChange = shape("WatchChange", "A change that a watch has seen.", () => ({
  id: whole("Its number.", 1),
  at: moment("When it was seen first."),
  kind: kind(),
  text: text("What is different, in a few sentences."),
  confirmed: flag("True if a second run saw it too, or if a test of many runs says so."),
}));

/** The data of the event `change`. */
export const changeEvent = shape("WatchChangeEvent", "A change, as soon as it is stored.", () => ({
  name: name(),
  ...watchChange().shape,
}));

/** The data of the event `run`. */
export const runEvent = shape("WatchRun", "A run, as soon as it is stored.", () => ({
  name: name(),
  at: moment("When it began."),
  code: orNull(code()),
  rtt: rtt("median"),
  loss: loss(),
  gap: orNull(text("Why there was no run; null if there was one.")),
}));

const watchRow = shape("Watch", "A watch, and how it is.", () => ({
  name: name(),
  tool: oneOf(WATCH_TOOLS, "What it runs."),
  target: orNull(text("What it is about; null for this machine.")),
  from: orNull(text("The locations that measure, as `from` names them; null for this service.")),
  everySeconds: whole("Seconds between two runs.", EVERY_SECONDS.minimum, EVERY_SECONDS.maximum),
  verdict: z
    .strictObject({
      code: code(),
      text: text("The verdict in words."),
      since: moment("The first run with this code."),
    })
    .nullable()
    .describe("Of the last run; null before the first."),
  last: z
    .strictObject({ at: moment("When it began."), rtt: rtt("median"), loss: loss() })
    .nullable()
    .describe("The last run; null before the first."),
  changes: z
    .strictObject({
      day: whole("In the last 24 hours.", 0),
      month: whole("In the last 30 days.", 0),
    })
    .describe("Changes that were confirmed."),
}));

/** The last day of a watch in equal parts, for a line; each list has a value a part, null where there was no run. */
const watchDay = shape(
  "WatchDay",
  "The last 24 hours of a watch in equal parts, the oldest first; null for a part without a run.",
  () => ({
    rtt: list(z.number().min(0).nullable(), "The median round-trip times."),
    loss: list(z.number().min(0).max(100).nullable(), "Percentages of lost probes."),
    bad: list(z.boolean().nullable(), "True if what is watched did not work in a run."),
    changed: list(whole("From 0.", 0), "The parts in which a change was confirmed."),
  }),
);

/** The schema of `/watch`. */
export const watchList = () =>
  named("Watches", "All watches.", {
    watches: list(watchRow(), "In the order of the file."),
    details: z.strictObject({
      wrong: list(
        z.strictObject({
          line: whole("The number of the line.", 1),
          text: text("What is wrong with it."),
        }),
        "The lines of the file that are not valid.",
      ),
      flaps: whole("Changes in the last 24 hours that did not come again.", 0),
      problem: text("Why no history is kept now; absent if it is.").exactOptional(),
      days: z
        .object({})
        .catchall(watchDay())
        .exactOptional()
        .describe("The last day of each watch by its name, with `points` alone."),
    }),
  });

/** The schema of `/watch/{name}`. */
export const watchSeries = () =>
  named("WatchSeries", "What a watch has seen.", {
    series: list(
      z.strictObject({
        at: moment("When this part begins."),
        runs: whole("Runs in this part.", 0),
        loss: loss(),
        min: rtt("least"),
        median: rtt("median"),
        max: rtt("greatest"),
        code: orNull(code()),
        gap: orNull(text("Why a run is missing; null if none is.")),
      }),
      "In equal parts of the time asked for, the oldest first; parts without a run and without a gap are left out.",
    ),
    changes: list(watchChange(), "The oldest first."),
  });

/** The schema of a difference. */
export const difference = shape("Difference", "A difference between two documents.", () => ({
  kind: kind(),
  text: text("What is different."),
  before: z.unknown().describe("The value before."),
  after: z.unknown().describe("The value after."),
  hop: whole("The hop of a path.", 1).exactOptional(),
  step: text("The step of a check.").exactOptional(),
}));

/** The schema of `/watch/{name}/changes/{id}`. */
export const changeDetail = () =>
  named("WatchChangeDetail", "Both sides of a change.", {
    before: orNull(
      document("The document before; null for a change of level, or if it is no longer kept."),
    ),
    after: orNull(document("The document after.")),
    diff: list(difference(), "What is different."),
    evidence: orNull(
      list(
        document("The answer of a location."),
        "What a check of the same target found from all locations; null if none was made.",
      ),
    ),
  });

/** A watch, and how it is. */
export type WatchRow = ValueOf<ReturnType<typeof watchRow>>;

/** The history of a watch over a time. */
export type WatchSeries = ValueOf<ReturnType<typeof watchSeries>>;

/** A change of a watch. */
export type WatchChange = ValueOf<ReturnType<typeof watchChange>>;

/** A difference between two documents. */
export type Difference = ValueOf<ReturnType<typeof difference>>;

/** All watches. */
export type Watches = ValueOf<ReturnType<typeof watchList>>;

/** The last day of a watch. */
export type WatchDay = ValueOf<ReturnType<typeof watchDay>>;

/** Both sides of a change. */
export type ChangeDetail = ValueOf<ReturnType<typeof changeDetail>>;
