import type { RunDetails } from "../../tools/report.ts";
import { reporterOf, type ToolName } from "../../tools/reports.ts";
import { plural, utcText } from "../../util/text.ts";
import { CALLER } from "./caller.ts";
import type { Run } from "./run.ts";

const STATES = { running: "Running", stopped: "Stopped", broken: "Broken off", done: "Finished" };

/** The values of a tool's options in a run. */
type Values = Readonly<Record<string, string>>;

/** The details of a document about its run. */
type Dates = Partial<Pick<RunDetails, "startedAt" | "version">>;

/** The details about the run in a document, or in that of the first of several locations. */
function datesOf(document: object | null): Dates {
  const { details, locations = [] } = { ...document } as {
    readonly details?: Dates;
    readonly locations?: readonly { readonly result?: { readonly details?: Dates } }[];
  };
  const all = [details, ...locations.map(({ result }) => result?.details)];
  return all.find((each) => each?.startedAt !== undefined) ?? {};
}

/** The document of a run so far: from its result, an error, or the events; null if nothing is known. */
export function documentOf(tool: ToolName, subject: string, run: Run, values: Values) {
  const { result, problem, parts, repeats, state, startedMs } = run;
  if (result !== null && !repeats) return result;
  const { draft, explain } = reporterOf(tool);
  if (draft === undefined || parts.length === 0) {
    return (problem?.details && explain?.({ ...problem.details })) ?? null;
  }
  const drafted = draft(subject, parts);
  // The details of the last call are valid for the whole run, except for its verdict.
  const { details: last } = (result ?? {}) as { readonly details?: object };
  const { details } = drafted as { readonly details?: object };
  const progress = progressOf(tool, run, values) || undefined;
  const { version } = CALLER;
  const own = { startedAt: isoTime(startedMs), version, state, progress };
  return { ...result, ...drafted, details: { ...last, verdict: undefined, ...details, ...own } };
}

/** How far a run has come, as in "11 of 60 rounds"; empty if that is not known. */
function progressOf(tool: ToolName, { parts, repeats }: Run, values: Values): string {
  const { progress } = reporterOf(tool);
  if (progress === undefined) return "";
  // The result of one of several locations has no number.
  const counts = parts.map((part) => progress.of(part) as number | undefined);
  const count = counts.findLast((each) => each !== undefined);
  if (count === undefined) return "";
  const { noun, wanted } = progress;
  return repeats ? plural(count, noun) : `${count} of ${values[wanted]} ${noun}s`;
}

/**
 * The state of a run, as in "Stopped after 11 of 60 rounds", when it started, and where.
 *
 * @param document of the run, whose time is better than that of this machine's clock
 */
export function stampOf(tool: ToolName, run: Run, values: Values, document: object | null): string {
  const { state, startedMs, given } = run;
  const dates = datesOf(document);
  const { startedAt = isoTime(startedMs) } = dates;
  const progress = progressOf(tool, run, values);
  // The service behind a result from a link or a file is not known.
  const { version = given === null ? CALLER.version : "" } = dates;
  const host = given === null ? ` at ${location.host}` : "";
  const about = [startedAt && utcText(startedAt), version && `sixscope ${version}${host}`].filter(
    Boolean,
  );
  const after = state === "done" || progress === "" ? "" : ` after ${progress}`;
  return `${STATES[state]}${after}${about.length > 0 ? `: ${about.join(", ")}` : ""}`;
}

/** The words about a run: its subject, how far it has come, and when it was. */
export function aboutOf(
  tool: ToolName,
  run: Run,
  values: Values,
  document: object | null,
  from: string,
) {
  const { state, startedMs } = run;
  const progress = progressOf(tool, run, values);
  const { port } = { ...document } as { readonly port?: number };
  const words = {
    running: progress,
    stopped: progress === "" ? "stopped" : `stopped after ${progress}`,
    broken: progress === "" ? "broken off" : `broken off after ${progress}`,
    done: "",
  };
  const { startedAt = isoTime(startedMs) } = datesOf(document);
  const time = startedAt && utcText(startedAt);
  return [
    run.bookmark.subject,
    port && `TCP ${port}`,
    from,
    words[state],
    state === "running" ? "" : time,
  ].filter(Boolean);
}

const isoTime = (ms: number | null) => (ms === null ? undefined : new Date(ms).toISOString());
