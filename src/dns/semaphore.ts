/** See `createSemaphore`. */
export type Semaphore = ReturnType<typeof createSemaphore>;

/**
 * Bounds how much runs at the same time, with a fair share for each client: one gets a permit only while it
 * holds fewer than are free. So one client gets at most half of them, and the next one finds a permit at
 * once. The others wait in order.
 *
 * @param limit the number of permits
 */
export function createSemaphore(limit: number) {
  let free = limit;
  /** The permits of each client that has some. */
  const held = new Map<string, number>();
  const waiting = new Set<{ readonly client: string; readonly enter: () => void }>();
  const heldBy = (client: string) => held.get(client) ?? 0;
  const take = (client: string, enter: () => void) => {
    free -= 1;
    held.set(client, heldBy(client) + 1);
    enter();
  };
  /** Passes a permit on to the first that waits and may have it, if any. */
  const release = (client: string) => {
    free += 1;
    if (heldBy(client) > 1) held.set(client, heldBy(client) - 1);
    else held.delete(client);
    for (const waiter of waiting) {
      if (free <= heldBy(waiter.client)) continue;
      waiting.delete(waiter);
      take(waiter.client, waiter.enter);
    }
  };
  return {
    /**
     * Calls `enter` as soon as there is a permit for the client, which may be at once. Returns a function, to
     * be called once, that gives the permit back or stops the wait for it.
     */
    acquire(enter: () => void, client = ""): () => void {
      const waiter = { client, enter };
      if (free > heldBy(client)) take(client, enter);
      else waiting.add(waiter);
      return () => {
        if (!waiting.delete(waiter)) release(client);
      };
    },
  };
}
