import { type Clock, NS_PER_MS } from "./clock.ts";

/** A run as a machine that is asked again and again what there is to do. */
export interface Machine {
  /**
   * Does what is due.
   *
   * @returns when it wants to be asked again at the latest, in nanoseconds of the clock; null when it is done
   */
  step(nowNs: number): number | null;
}

/** A machine at work. */
export interface Driver {
  /** Resolves once the machine is done, or the run was aborted. */
  readonly finished: Promise<"done" | "aborted">;
  /** Asks the machine now, because an answer has come. */
  wake(): void;
}

/** A timer that fires later than this was held up by a busy event loop, and packets may wait behind it. */
const LATE_NS = 2 * NS_PER_MS;

/**
 * Asks a machine whenever it wants, with one timer at a time. When the event loop was blocked, packets
 * that came in time are let in first, so that a busy process does not see loss where there was none.
 */
export function drive(machine: Machine, clock: Clock, signal: AbortSignal): Driver {
  const { promise, resolve } = Promise.withResolvers<"done" | "aborted">();
  let cancelTimer: (() => void) | null = null;
  let over = false;

  const finish = (how: "done" | "aborted") => {
    over = true;
    cancelTimer?.();
    signal.removeEventListener("abort", abort);
    resolve(how);
  };
  const abort = () => finish("aborted");
  const arm = (atNs: number, nowNs: number) => {
    const delayMs = Math.max(0, (atNs - nowNs) / NS_PER_MS);
    cancelTimer = clock.after(delayMs, () => {
      if (clock.nowNs() - atNs <= LATE_NS) wake();
      else cancelTimer = clock.after(1, wake);
    });
  };
  const wake = () => {
    if (over) return;
    cancelTimer?.();
    cancelTimer = null;
    const nowNs = clock.nowNs();
    const nextNs = machine.step(nowNs);
    if (nextNs === null) finish("done");
    else if (!over) arm(nextNs, nowNs);
  };

  signal.addEventListener("abort", abort, { once: true });
  if (signal.aborted) abort();
  else wake();
  return { finished: promise, wake };
}
