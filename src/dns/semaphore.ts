/** See `createSemaphore`. */
export type Semaphore = ReturnType<typeof createSemaphore>;

/**
 * Bounds how much runs at the same time, with a fair share for each owner: one gets a permit only while it
 * holds fewer than are free. So one owner gets at most half of them, and the next one finds a permit at
 * once. The others wait in order.
 *
 * @param limit the number of permits
 */
export function createSemaphore(limit: number) {
  let free = limit;
  /** The permits of each owner that has some. */
  const held = new Map<string, number>();
  const waiting = new Set<{ readonly owner: string; readonly enter: () => void }>();
  const heldBy = (owner: string) => held.get(owner) ?? 0;
  const take = (owner: string, enter: () => void) => {
    free -= 1;
    held.set(owner, heldBy(owner) + 1);
    enter();
  };
  /** Passes a permit on to the first that waits and may have it, if any. */
  const release = (owner: string) => {
    free += 1;
    if (heldBy(owner) > 1) held.set(owner, heldBy(owner) - 1);
    else held.delete(owner);
    for (const waiter of waiting) {
      if (free <= heldBy(waiter.owner)) continue;
      waiting.delete(waiter);
      take(waiter.owner, waiter.enter);
    }
  };
  return {
    /**
     * Calls `enter` as soon as there is a permit for the owner, which may be at once. Returns a function, to
     * be called once, that gives the permit back or stops the wait for it.
     */
    acquire(enter: () => void, owner = ""): () => void {
      const waiter = { owner, enter };
      if (free > heldBy(owner)) take(owner, enter);
      else waiting.add(waiter);
      return () => {
        if (!waiting.delete(waiter)) release(owner);
      };
    },
  };
}
