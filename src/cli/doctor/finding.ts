/** The result of one check: what doctor tried, the outcome, and what to do; only a problem makes doctor fail. */
export interface Finding {
  readonly state: "ok" | "warning" | "problem" | "unknown";
  readonly tried: string;
  readonly outcome: string;
  /** Null if there is nothing to do. */
  readonly advice: string | null;
}

/** Something that is as it should be. */
export function ok(tried: string, outcome: string): Finding {
  return { state: "ok", tried, outcome, advice: null };
}

/** Something that works and may fail later, or that only some setups need. */
export function warning(tried: string, outcome: string, advice: string): Finding {
  return { state: "warning", tried, outcome, advice };
}

/** Something that does not work. */
export function problem(tried: string, outcome: string, advice: string): Finding {
  return { state: "problem", tried, outcome, advice };
}

/** Something that this user may not see. */
export function unknown(tried: string, outcome: string, advice: string): Finding {
  return { state: "unknown", tried, outcome, advice };
}

/** A finding as one line for people. */
export function formatFinding({ state, tried, outcome, advice }: Finding): string {
  const line = `${state.padEnd("problem".length)}  ${tried}: ${outcome}`;
  return advice === null ? line : `${line}; ${advice}`;
}
