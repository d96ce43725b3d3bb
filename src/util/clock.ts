/** Milliseconds of a day. */
export const DAY_MS = 86_400_000;

/** Time and timers, so that a test can supply its own. */
export interface Clock {
  /** Milliseconds of a clock that never runs backwards. */
  nowMs(): number;
  /** Calls `action` once after `delayMs`; returns a function that cancels the call. */
  after(delayMs: number, action: () => void): () => void;
}

/** The machine's monotonic clock. */
export const systemClock: Clock = {
  nowMs: () => performance.now(),
  after: (delayMs, action) => {
    const timer = setTimeout(action, Math.max(0, Math.ceil(delayMs)));
    return () => clearTimeout(timer);
  },
};

/** Resolves after `delayMs`, or as soon as the signal aborts. */
export function pause(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      cancel();
      signal.removeEventListener("abort", end);
      resolve();
    };
    const cancel = clock.after(delayMs, end);
    signal.addEventListener("abort", end);
    if (signal.aborted) end();
  });
}
