/**
 * A controller that a signal aborts too. Not `AbortSignal.any`: Bun keeps the joined signals for ever if a listener
 * stays on the result. A disposal aborts it.
 *
 * @param afterMs milliseconds until it aborts by itself
 */
export function abortedBy(signal: AbortSignal, afterMs?: number): AbortController & Disposable {
  const controller = new AbortController();
  const abort = () => controller.abort(signal.reason);
  if (signal.aborted) abort();
  else signal.addEventListener("abort", abort, { once: true });
  if (afterMs !== undefined) {
    const timer = setTimeout(() => controller.abort(), afterMs);
    controller.signal.addEventListener("abort", () => clearTimeout(timer));
  }
  return Object.assign(controller, { [Symbol.dispose]: () => controller.abort() });
}
