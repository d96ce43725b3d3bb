/** Time as the client sees it, so that a test can hand in its own. */
export interface Clock {
  /** Milliseconds since some moment; never runs backwards. */
  nowMs(): number;
  /** Calls `action` once after `delayMs`, unless the function that it returns is called before. */
  after(delayMs: number, action: () => void): () => void;
}

/** The machine's monotonic clock. */
export const systemClock: Clock = {
  nowMs: () => performance.now(),
  after: (delayMs, action) => {
    const timer = setTimeout(action, delayMs);
    return () => clearTimeout(timer);
  },
};
