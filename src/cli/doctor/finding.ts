/** How bad it is: only a problem makes doctor fail. */
type State = "ok" | "warning" | "problem";

/** One thing that doctor looked at: what it tried, what came of it, and what there is to do. */
export interface Finding {
  readonly state: State;
  readonly tried: string;
  readonly outcome: string;
  readonly advice: string;
}

/** Something that is as it should be. */
export function ok(tried: string, outcome: string): Finding {
  return { state: "ok", tried, outcome, advice: "nothing to do" };
}

/** Something that works, and could turn out badly or be better. */
export function warning(tried: string, outcome: string, advice: string): Finding {
  return { state: "warning", tried, outcome, advice };
}

/** Something that does not work. */
export function problem(tried: string, outcome: string, advice: string): Finding {
  return { state: "problem", tried, outcome, advice };
}

/** A finding as one line for people. */
export function formatFinding({ state, tried, outcome, advice }: Finding): string {
  return `${state.padEnd("problem".length)}  ${tried}: ${outcome}; ${advice}`;
}
