import type { ErrorCode } from "../../api/errors.ts";
import type { Bookmark } from "./bookmark.ts";

/** Why a call has no result. */
export interface Problem {
  /** Null if the API gave no answer. */
  readonly code: ErrorCode | null;
  readonly message: string;
  /** The details that the page uses. */
  readonly details?: { readonly parameter?: string };
}

/** A run of a tool, from which all that is shown, copied and saved is made. */
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
  /** The text while nothing else is known. */
  readonly waits: string;
  /** The result of the last call. */
  readonly result: object | null;
  readonly problem: Problem | null;
  /** Unix milliseconds; null if not known. */
  readonly startedMs: number | null;
  /** The origin of a result that was not measured now. */
  readonly given: "link" | "file" | null;
}

/** A run that has just begun. */
export const NEW_RUN = {
  ...{ state: "running", repeats: false, parts: [], result: null, problem: null, given: null },
  waits: "Waiting for the first answer",
} as const satisfies Partial<Run>;
