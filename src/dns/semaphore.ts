/** See `createSemaphore`. */
export type Semaphore = ReturnType<typeof createSemaphore>;

/**
 * Bounds how much runs at the same time; the others wait in order.
 *
 * @param limit the number of permits
 */
export function createSemaphore(limit: number) {
  let free = limit;
  const waiting = new Set<() => void>();
  /** Passes a permit on to the first that waits, if any. */
  const release = () => {
    const [enter] = waiting;
    if (enter === undefined) {
      free += 1;
    } else {
      waiting.delete(enter);
      enter();
    }
  };
  return {
    /**
     * Calls `enter` as soon as there is a permit, which may be at once. Returns a function, to be called
     * once, that gives the permit back or stops the wait for it.
     */
    acquire(enter: () => void): () => void {
      if (free > 0) {
        free -= 1;
        enter();
      } else {
        waiting.add(enter);
      }
      return () => {
        if (!waiting.delete(enter)) release();
      };
    },
  };
}
