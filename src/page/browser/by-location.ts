import type { Outcome, Summary } from "../../tools/summary.ts";
import type { Problem, Run } from "./run.ts";

/** The comparison of the locations that a run asks, as far as it is known; null before, and for a run of one. */
export function summaryOf({ result, parts }: Run): Summary | null {
  const { details = {} } = (result ?? {}) as { readonly details?: object };
  return isSummary(details) ? details : (parts.findLast(isSummary) ?? null);
}

/**
 * Splits a run by the locations that it asks, into runs as they are without a location; the location is
 * null if none is named.
 *
 * @param from what names the locations
 */
export function runsByLocation(run: Run | null, from: string | undefined) {
  // An error of the whole is shown at its field.
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
