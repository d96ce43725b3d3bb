import type { Clock } from "../../util/clock.ts";

/** What ends at a time, or when its signal aborts. */
export interface Waiting {
  readonly request: { readonly signal: AbortSignal };
  /** When it ends, if nothing ends it before. */
  expiryMs: number;
  /** Where it waits; undefined if it does not wait any more. */
  line: Line | undefined;
}

/** All with one signal that wait equally long, the first to end in front. */
interface Line<T = unknown> {
  readonly members: Set<T>;
  /** Cancels its timer, which was set for one that may have ended since. */
  cancel: () => void;
}

/**
 * Ends probes in time, or with the signal of their run. There are tens of thousands of them: a timer for each
 * line and a listener for each run take less memory than for each probe.
 *
 * @param onDue gets those of a line, the first to end in front, and ends each whose time is over; returns when the
 *   next one is due, undefined if none is left
 * @param onAbort gets each of a run whose signal aborts, and ends it
 */
export function createDeadlines<T extends Waiting>(
  clock: Clock,
  onDue: (front: Iterable<T>) => number | undefined,
  onAbort: (member: T) => void,
) {
  /** The lines of each signal by `waitMs`, and its listener. Those of a run with one probe at a time outlast each. */
  const bySignal = new Map<AbortSignal, { lines: Map<number, Line<T>>; end: () => void }>();
  const listenTo = (signal: AbortSignal) => {
    const lines = new Map<number, Line<T>>();
    const end = () => {
      forget(signal);
      for (const line of lines.values()) {
        line.cancel();
        for (const each of line.members) onAbort(each);
      }
    };
    signal.addEventListener("abort", end);
    return { lines, end };
  };
  const forget = (signal: AbortSignal) => {
    const run = bySignal.get(signal);
    if (run) signal.removeEventListener("abort", run.end);
    bySignal.delete(signal);
  };
  const startTimer = (signal: AbortSignal, waitMs: number, line: Line<T>, atMs: number) => {
    line.cancel = clock.after(atMs - clock.nowMs(), () => {
      const nextMs = onDue(line.members);
      if (nextMs !== undefined) {
        startTimer(signal, waitMs, line, nextMs);
        return;
      }
      const lines = bySignal.get(signal)?.lines;
      lines?.delete(waitMs);
      if (lines?.size === 0) forget(signal);
    });
  };
  return {
    /** Adds one that ends at its time, about `waitMs` from now. */
    add(member: T, waitMs: number): void {
      const { signal } = member.request;
      const { lines } = bySignal.getOrInsertComputed(signal, listenTo);
      const known = lines.get(waitMs);
      const line = known ?? { members: new Set(), cancel: () => {} };
      if (known === undefined) {
        lines.set(waitMs, line);
        startTimer(signal, waitMs, line, member.expiryMs);
      }
      member.line = line as Line;
      line.members.add(member);
    },
    remove(member: T): void {
      member.line?.members.delete(member);
      member.line = undefined;
    },
  };
}
