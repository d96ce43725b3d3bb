import type { Caller } from "../caller.ts";
import type { Run } from "./run.ts";

/** The result of a location, or its error. */
interface Outcome {
  readonly location: string;
  readonly result?: object;
  readonly error?: NonNullable<Run["problem"]>;
}

/**
 * Splits a run by the locations that it asks, into runs as they are without a location; the location is
 * null if none is named.
 *
 * @param from the names of the locations, as they are asked
 */
export function runsByLocation(
  run: Run | null,
  from: string | undefined,
  { all, names }: Caller["from"],
): { readonly location: string | null; readonly run: Run | null }[] {
  // An error of the whole is shown at its field.
  if (!from || !run || (run.problem && run.parts.length === 0)) return [{ location: null, run }];
  if (from !== all && !from.includes(",")) {
    return [{ location: from, run: { ...run, problem: null } }];
  }
  const parts = run.parts as readonly Outcome[];
  const results = (run.result as { readonly locations: readonly Outcome[] } | null)?.locations;
  const asked = from === all ? names : from.split(",");
  const known = results ?? [...asked.map((location) => ({ location })), ...parts];
  return [...new Set(known.map(({ location }) => location))].map((location) => {
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

function isOutcome(part: object): boolean {
  return "result" in part || "error" in part;
}
