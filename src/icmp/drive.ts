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

/** What is done later than this was held up by a busy event loop, and packets may wait to be taken. */
const LATE_NS = 2 * NS_PER_MS;
/** How long they are given then, in milliseconds: time for the event loop to turn. */
const GRACE_MS = 1;

/**
 * Asks a machine whenever it wants, with one timer at a time. When the event loop was blocked, packets
 * that came in time are let in first, so that a busy process does not see loss where there was none.
 */
export function drive(machine: Machine, clock: Clock, signal: AbortSignal): Driver {
  const { promise, resolve } = Promise.withResolvers<"done" | "aborted">();
  let cancelTimer = () => {};
  /** When the machine wants to be asked. */
  let dueNs = Infinity;
  let over = false;

  const isLate = () => clock.nowNs() - dueNs > LATE_NS;
  const finish = (how: "done" | "aborted") => {
    over = true;
    cancelTimer();
    signal.removeEventListener("abort", abort);
    resolve(how);
  };
  const abort = () => finish("aborted");
  const ask = () => {
    cancelTimer();
    const nowNs = clock.nowNs();
    const nextNs = machine.step(nowNs);
    if (nextNs === null) {
      finish("done");
    } else if (!over) {
      dueNs = nextNs;
      cancelTimer = clock.after(Math.max(0, (dueNs - nowNs) / NS_PER_MS), onTimer);
    }
  };
  const onTimer = () => {
    if (isLate()) cancelTimer = clock.after(GRACE_MS, ask);
    else ask();
  };

  signal.addEventListener("abort", abort, { once: true });
  if (signal.aborted) abort();
  else ask();
  return {
    finished: promise,
    wake: () => {
      // When it is late, the timer is about to fire, and asks once all packets are in.
      if (!over && !isLate()) ask();
    },
  };
}
