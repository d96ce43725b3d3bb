import type { Outcome, Summary } from "../../tools/summary.ts";
import type { Problem, Run } from "./run.ts";

/** The comparison of the locations of a run so far; null if there is none yet, and for one location. */
export function summaryOf({ result, parts }: Run): Summary | null {
  const { details = {} } = (result ?? {}) as { readonly details?: object };
  return isSummary(details) ? details : (parts.findLast(isSummary) ?? null);
}

/**
 * Splits a run by its locations into runs like those without a location; the location is null if none is named.
 *
 * @param from the value of the parameter that names the locations
 */
export function runsByLocation(run: Run | null, from: string | undefined) {
  // An error of the whole run is shown at its field.
  if (!from || !run || (run.problem && run.parts.length === 0)) return [{ location: null, run }];
  const summary = summaryOf(run);
  if (summary === null) return [{ location: from, run: { ...run, problem: null } }];
  const parts = run.parts as readonly Outcome<Problem>[];
  const results = (run.result as { readonly locations: readonly Outcome<Problem>[] } | null)
    ?.locations;
  const rows = results ?? summary.summary;
  return [...new Set(rows.map(({ location }) => location))].map((location) => {
    const own = parts.filter((part) => part.location === location);
    const outcome =
      own.findLast(isOutcome) ?? results?.find((result) => result.location === location);
    const ownRun: Run = {
      ...run,
      // A run that repeats has results before it ends.
      state: run.state === "running" && outcome !== undefined && !run.repeats ? "done" : run.state,
      parts: own.filter((part) => !isOutcome(part)),
      result: outcome?.result ?? null,
      problem: outcome?.error ?? null,
    };
    return { location, run: ownRun };
  });
}

const isOutcome = (part: object) => "result" in part || "error" in part;

const isSummary = (part: object): part is Summary => "summary" in part;
