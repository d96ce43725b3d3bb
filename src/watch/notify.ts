/** Tells somebody else of each confirmed change, by one signed POST. */
import type { Config } from "../config/settings.ts";
import { type Clock, pause, systemClock } from "../util/clock.ts";
import { reasonOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import { VERSION } from "../util/version.ts";

/** A confirmed change as the receiver gets it. */
export interface Notification {
  readonly id: number;
  /** Of the watch. */
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
  /** Forgets one, which is told or too old. */
  forget(id: number): void;
}

/** Bounds on telling. */
const LIMITS = {
  /** For an answer, whose body is not read. */
  answerMs: 10_000,
  /** Between two tries: doubled from the least to the most. */
  leastPauseMs: 1_000,
  mostPauseMs: 3_600_000,
  /** After a day, nobody waits for it. */
  ageMs: 86_400_000,
};

/**
 * Tells the receiver of what waits, one at a time, until each is answered with 2xx, or for a day.
 *
 * @param signal ends it; what is not told by then waits for the next start
 * @returns the function to call when something new waits
 */
export function startNotifier(
  { url, secret }: NonNullable<Config["notify"]>,
  outbox: Outbox,
  log: Log,
  signal: AbortSignal,
  clock: Clock = systemClock,
): () => void {
  /** The ids of those that are told, or were. */
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
