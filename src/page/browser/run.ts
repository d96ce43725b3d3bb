import type { ErrorCode } from "../../api/errors.ts";

/** Why a call has no result. */
export interface Problem {
  /** Null if the API said nothing. */
  readonly code: ErrorCode | null;
  readonly message: string;
  /** As far as the page uses them. */
  readonly details?: { readonly parameter?: string; readonly retryAfterSeconds?: number };
}

/** A run of a tool, under way or ended. */
export interface Run {
  /** The call of the API, below its base path. */
  readonly path: string;
  readonly isRunning: boolean;
  /** True if it repeats its call; `parts` has the events of all calls. */
  readonly repeats: boolean;
  /** The events until now. */
  readonly parts: readonly object[];
  /** Of the last call. */
  readonly result: object | null;
  readonly problem: Problem | null;
  /** Milliseconds, as `Date.now()` has it: when it ended. */
  readonly endedMs: number;
}
