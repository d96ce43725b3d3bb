import { reporterOf, type ToolName } from "../../tools/reports.ts";
import { plural } from "../../util/text.ts";
import { isAboutLocation } from "./by-location.ts";
import { CALLER } from "./caller.ts";
import type { Run } from "./run.ts";
import { TEXTS } from "./texts.ts";

/** The document of a run as far as it is known: of the result, an error, or the events; null if nothing is. */
export function documentOf(tool: ToolName, subject: string, run: Run): object | null {
  const { result, problem, parts, repeats, state } = run;
  if (result !== null && !repeats) return result;
  const { draft, explain } = reporterOf(tool);
  const said = problem?.details && explain?.({ ...problem.details });
  if (draft === undefined || parts.length === 0) return said ?? null;
  const drafted = draft(subject, parts);
  // The details of the last call are valid for the whole run, except for its verdict.
  const { details: last } = (result ?? {}) as { readonly details?: object };
  const { details } = drafted as { readonly details?: object };
  const startedAt = new Date(run.startedMs).toISOString();
  const own = { verdict: undefined, startedAt, version: CALLER.version, state };
  return { ...result, ...drafted, details: { ...last, ...details, ...own } };
}

/** The state of a run, as in "Stopped after 11 of 60 rounds", and when it started, and where. */
export function stampOf(
  tool: ToolName,
  { state, startedMs, parts, repeats }: Run,
  values: Readonly<Record<string, string>>,
): string {
  const { progress } = reporterOf(tool);
  const last = parts.findLast((part) => !isAboutLocation(part));
  const isWhole = state === "done" || progress === undefined || last === undefined;
  const wanted = progress && !repeats ? `of ${values[progress.wanted]} ` : "";
  const count = isWhole ? 0 : progress.of(last);
  const after = isWhole
    ? ""
    : TEXTS.after(wanted ? `${count} ${wanted}${progress.noun}s` : plural(count, progress.noun));
  const utc = `${new Date(startedMs).toISOString().slice(0, 19).replace("T", " ")} UTC`;
  const stamp = TEXTS.stamp(utc, CALLER.version, location.host);
  return `${TEXTS.states[state]}${after}: ${stamp}`;
}
