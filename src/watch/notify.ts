/** Tells a receiver of each confirmed change, by one signed POST. */
import type { Config } from "../config/settings.ts";
import { type Clock, pause, systemClock } from "../util/clock.ts";
import { reasonOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import { VERSION } from "../util/version.ts";

/** A confirmed change as the receiver gets it. */
export interface Notification {
  readonly id: number;
  /** The name of the watch. */
  readonly name: string;
  /** RFC 3339. */
  readonly at: string;
  readonly kind: string;
  readonly text: string;
}

/** The notifications that wait in the history. */
export interface Outbox {
  /** The oldest first. */
  waiting(): readonly Notification[];
  /** Forgets a notification that is told or too old. */
  forget(id: number): void;
}

/** Bounds on notifications. */
const LIMITS = {
  /** Milliseconds for an answer, whose body is not read. */
  answerMs: 10_000,
  /** The pause between two tries, which doubles from the least to the most. */
  leastPauseMs: 1_000,
  mostPauseMs: 3_600_000,
  /** After a day, nobody waits for it. */
  ageMs: 86_400_000,
};

/**
 * Sends the waiting notifications, one at a time, and each again until it is answered with 2xx, or for a day.
 *
 * @param signal ends the notifier; notifications that are not told by then wait for the next start
 * @returns the function to call when a new notification waits
 */
export function startNotifier(
  { url, secret }: NonNullable<Config["notify"]>,
  outbox: Outbox,
  log: Log,
  signal: AbortSignal,
  clock: Clock = systemClock,
): () => void {
  /** The ids of the notifications that were begun. */
  const begun = new Set<number>();
  let before: Promise<unknown> = Promise.resolve();
  const post = async (notification: Notification): Promise<string | null> => {
    const body = JSON.stringify(notification);
    const hmac = secret && new Bun.CryptoHasher("sha256", secret.bytes).update(body).digest("hex");
    const headers = {
      "Content-Type": "application/json",
      "User-Agent": `sixscope/${VERSION}`,
      ...(hmac && { "X-Sixscope-Signature": `sha256=${hmac}` }),
    };
    try {
      const response = await fetch(url, {
        ...{ method: "POST", body, headers, redirect: "manual", keepalive: false },
        signal: AbortSignal.any([signal, AbortSignal.timeout(LIMITS.answerMs)]),
      });
      void response.body?.cancel();
      return response.ok ? null : `status ${response.status}`;
    } catch (error) {
      return reasonOf(error);
    }
  };
  const tell = async (notification: Notification): Promise<void> => {
    const about = { change: notification.id };
    for (let pauseMs = LIMITS.leastPauseMs; ; pauseMs = Math.min(2 * pauseMs, LIMITS.mostPauseMs)) {
      const posted = before.then(() => post(notification));
      before = posted;
      const problem = await posted;
      if (signal.aborted) return;
      const isOld = Date.now() - Date.parse(notification.at) > LIMITS.ageMs;
      if (problem === null || isOld) {
        if (problem !== null) log.error(`gave up telling of a change: ${problem}`, about);
        return outbox.forget(notification.id);
      }
      if (pauseMs === LIMITS.leastPauseMs)
        log.warn(`cannot tell of a change yet: ${problem}`, about);
      await pause(clock, pauseMs, signal);
      if (signal.aborted) return;
    }
  };
  const tellWaiting = () => {
    const isNew = ({ id }: Notification) => !begun.has(id);
    for (const notification of outbox.waiting().filter(isNew)) {
      begun.add(notification.id);
      void tell(notification);
    }
  };
  tellWaiting();
  return tellWaiting;
}
