import type { TraceOutcome, TraceRequest, Traceroute } from "./engine.ts";
import type { TraceHop } from "./responses.ts";

/**
 * Lets callers that ask for a trace while the same one is running share its outcome, so that many who
 * look at one target cost its routers no more than one does. Its signal aborts when the last caller has
 * the outcome, or has gone.
 */
export function coalesceTraces(trace: Traceroute): Traceroute {
  const running = new Map<string, ReturnType<typeof start>>();

  const start = (key: string, request: TraceRequest) => {
    const controller = new AbortController();
    /** All rows reported so far, for callers that join later. */
    const reported: TraceHop[] = [];
    /** One for each caller. */
    const listeners = new Set<(hop: TraceHop) => void>();
    const onHop = (hop: TraceHop) => {
      reported.push(hop);
      for (const listener of listeners) listener(hop);
    };
    const outcome = trace(request, { signal: controller.signal, onHop }).finally(() => {
      if (running.get(key) === started) running.delete(key);
    });
    const started = { outcome, controller, reported, listeners };
    running.set(key, started);
    return started;
  };

  return async (request, { signal, onHop } = {}) => {
    if (signal?.aborted) return { kind: "aborted" };
    const key = JSON.stringify(request);
    const shared = running.get(key) ?? start(key, request);
    const { promise: aborted, resolve } = Promise.withResolvers<TraceOutcome>();
    const abort = () => resolve({ kind: "aborted" });
    signal?.addEventListener("abort", abort);
    const listener = (hop: TraceHop) => onHop?.(hop);
    shared.reported.forEach(listener);
    shared.listeners.add(listener);
    try {
      return await Promise.race([shared.outcome, aborted]);
    } finally {
      signal?.removeEventListener("abort", abort);
      shared.listeners.delete(listener);
      if (shared.listeners.size === 0) {
        if (running.get(key) === shared) running.delete(key);
        shared.controller.abort();
      }
    }
  };
}
