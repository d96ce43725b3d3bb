import type { ErrorCode } from "../../api/errors.ts";
import type { Bookmark } from "./bookmark.ts";

/** Why a call has no result. */
export interface Problem {
  /** Null if the API said nothing. */
  readonly code: ErrorCode | null;
  readonly message: string;
  /** As far as the page uses them. */
  readonly details?: { readonly parameter?: string };
}

/** A run of a tool: all that is shown, copied and saved of it is made from this. */
export interface Run {
  readonly bookmark: Bookmark;
  /** The call of the API, below its base path. */
  readonly path: string;
  /**
   * How far it has come: `stopped` by its user, `broken` without an answer of the service, or `done` with its result or
   * an error.
   */
  readonly state: "running" | "stopped" | "broken" | "done";
  /** True if it repeats its call; `parts` has the events of all calls. */
  readonly repeats: boolean;
  /** The events until now. */
  readonly parts: readonly object[];
  /** Said as long as nothing else is known. */
  readonly waits: string;
  /** Of the last call. */
  readonly result: object | null;
  readonly problem: Problem | null;
  /** Milliseconds, as `Date.now()` has it; null if it is not known. */
  readonly startedMs: number | null;
  /** Where its result came from, if it was not measured now. */
  readonly given: "link" | "file" | null;
}

/** A run that has just begun. */
export const NEW_RUN = {
  ...{ state: "running", repeats: false, parts: [], result: null, problem: null, given: null },
  waits: "Waiting for the first answer",
} as const satisfies Partial<Run>;
