/**
 * A controller that a signal aborts too. Not `AbortSignal.any`: Bun keeps what that joins for ever if a listener stays
 * on it.
 *
 * @param afterMs when it aborts by itself, in milliseconds; who needs it no longer aborts it, which ends the timer
 */
export function abortedBy(signal: AbortSignal, afterMs?: number): AbortController {
  const controller = new AbortController();
  const abort = () => controller.abort(signal.reason);
  if (signal.aborted) abort();
  else signal.addEventListener("abort", abort, { once: true });
  if (afterMs !== undefined) {
    const timer = setTimeout(() => controller.abort(), afterMs);
    controller.signal.addEventListener("abort", () => clearTimeout(timer));
  }
  return controller;
}
