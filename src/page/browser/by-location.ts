import type { Place } from "./place.ts";
import { CALLER, type Run } from "./state.ts";

/** The value of `from` that means every location. */
export const ALL = "all";

/** A run at a location; null if its place names none. */
export interface LocatedRun {
  readonly location: string | null;
  readonly run: Run | null;
}

/** What a location has measured, or why it has not. */
interface Outcome {
  readonly location: string;
  readonly result?: object;
  readonly error?: NonNullable<Run["problem"]>;
}

/** Splits a run by the locations that its place asks, into runs as they are without a location. */
export function runsByLocation({ parameters }: Place, run: Run | null): LocatedRun[] {
  const { from } = parameters;
  // An error of the whole is shown at its field.
  if (!from || !run || (run.problem && run.parts.length === 0)) return [{ location: null, run }];
  if (from !== ALL && !from.includes(",")) {
    return [{ location: from, run: { ...run, problem: null } }];
  }
  const parts = run.parts as readonly (Outcome | { readonly location: string })[];
  const result = run.result as { readonly locations: readonly Outcome[] } | null;
  const asked = from === ALL ? CALLER.locations : from.split(",");
  const known = result?.locations ?? [...asked.map((location) => ({ location })), ...parts];
  return [...new Set(known.map(({ location }) => location))].map((location) => {
    const own = parts.filter((part) => part.location === location);
    const outcome =
      own.findLast(isOutcome) ?? result?.locations.find((each) => each.location === location);
    // A run that goes on has results before it ends.
    const isRunning = run.isRunning && (outcome === undefined || result !== null);
    const ownRun: Run = {
      ...run,
      isRunning,
      parts: own.filter((part) => !isOutcome(part)),
      result: outcome?.result ?? null,
      problem: outcome?.error ?? null,
    };
    return { location, run: ownRun };
  });
}

function isOutcome(part: object): part is Outcome {
  return "result" in part || "error" in part;
}
