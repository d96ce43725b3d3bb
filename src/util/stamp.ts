import { VERSION } from "./version.ts";

/**
 * The details that date a document: when its measurement started, and which version of sixscope measured.
 *
 * @param startMs milliseconds, as `Date.now()` has it
 */
export function newStamp(startMs = Date.now()) {
  return { startedAt: new Date(startMs).toISOString(), version: VERSION };
}
