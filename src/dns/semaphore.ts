import { leavesRoom, sharersOf } from "../util/shares.ts";

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
  /** The permits of each client and each service that has some. */
  const held = new Map<string, number>();
  const waiting = new Set<{ readonly client: string; readonly enter: () => void }>();
  const heldBy = (client: string) => held.get(client) ?? 0;
  const mayTake = (client: string) => leavesRoom(client, free, heldBy);
  const count = (client: string, change: 1 | -1) => {
    free -= change;
    for (const name of sharersOf(client)) {
      held.set(name, heldBy(name) + change);
      if (heldBy(name) === 0) held.delete(name);
    }
  };
  const take = (client: string, enter: () => void) => {
    count(client, 1);
    enter();
  };
  /** Passes a permit on to the first that waits and may have it, if any. */
  const release = (client: string) => {
    count(client, -1);
    for (const waiter of waiting) {
      if (!mayTake(waiter.client)) continue;
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
      if (mayTake(client)) take(client, enter);
      else waiting.add(waiter);
      return () => {
        if (!waiting.delete(waiter)) release(client);
      };
    },
  };
}
