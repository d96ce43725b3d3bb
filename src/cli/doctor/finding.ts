/** The result of one check: an attempt, its outcome, and what to do; only a problem makes doctor fail. */
export interface Finding {
  readonly state: "ok" | "warning" | "problem" | "unknown";
  readonly tried: string;
  readonly outcome: string;
  /** Null if there is nothing to do. */
  readonly advice: string | null;
  /**
   * The command that does it as root, word by word; a word in capitals is for what only the operator
   * knows. Null if no command does.
   */
  readonly run: string | null;
}

/** The findings that one attempt can have. */
export function trying(tried: string) {
  const finding =
    (state: Finding["state"]) =>
    (outcome: string, advice: string, run: string | null = null): Finding => ({
      ...{ state, tried, outcome, advice, run },
    });
  return {
    /** It is as it should be. */
    ok: (outcome: string): Finding => ({ state: "ok", tried, outcome, advice: null, run: null }),
    /** It works and may fail later, or only some setups need it. */
    warning: finding("warning"),
    /** It does not work. */
    problem: finding("problem"),
    /** This user may not see it. */
    unknown: finding("unknown"),
  };
}

/** A finding as one line for people, which ends with the command. */
export function formatFinding({ state, tried, outcome, advice, run }: Finding): string {
  const line = `${state.padEnd("problem".length)}  ${tried}: ${outcome}`;
  return [line, advice ?? [], run === null ? [] : `run: ${run}`].flat().join("; ");
}
