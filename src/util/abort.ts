/** A controller that a signal aborts too. Not `AbortSignal.any`: Bun keeps what that joins for ever if a listener stays on it. */
export function abortedBy(signal: AbortSignal): AbortController {
  const controller = new AbortController();
  const abort = () => controller.abort(signal.reason);
  if (signal.aborted) abort();
  else signal.addEventListener("abort", abort, { once: true });
  return controller;
}
