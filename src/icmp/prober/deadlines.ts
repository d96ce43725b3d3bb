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
  readonly waitMs: number;
  readonly members: Set<T>;
  /** Cancels the timer of the first, if there is one. */
  cancel: (() => void) | undefined;
}

/**
 * Ends probes in time, or with the signal of their run. There are tens of thousands of them: a timer and a listener
 * for each line take less memory than for each probe.
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
  /** The lines of each signal by `waitMs`, and its listener. */
  const bySignal = new Map<AbortSignal, { lines: Map<number, Line<T>>; end: () => void }>();
  const listenTo = (signal: AbortSignal) => {
    const lines = new Map<number, Line<T>>();
    const end = () => {
      for (const { members } of lines.values()) for (const each of members) onAbort(each);
    };
    signal.addEventListener("abort", end);
    return { lines, end };
  };
  const newLine = (waitMs: number): Line<T> => ({ waitMs, members: new Set(), cancel: undefined });
  const startTimer = (line: Line<T>, atMs: number) =>
    clock.after(atMs - clock.nowMs(), () => {
      line.cancel = undefined;
      const nextMs = onDue(line.members);
      if (nextMs !== undefined) line.cancel ??= startTimer(line, nextMs);
    });
  return {
    /** Adds one that ends at its time, about `waitMs` from now. */
    add(member: T, waitMs: number): void {
      const { lines } = bySignal.getOrInsertComputed(member.request.signal, listenTo);
      const line = lines.getOrInsertComputed(waitMs, newLine);
      member.line = line as Line;
      line.members.add(member);
      line.cancel ??= startTimer(line, member.expiryMs);
    },
    remove(member: T): void {
      const { line, request } = member;
      member.line = undefined;
      line?.members.delete(member);
      if (line === undefined || line.members.size > 0) return;
      line.cancel?.();
      const run = bySignal.get(request.signal);
      run?.lines.delete(line.waitMs);
      if (run?.lines.size !== 0) return;
      request.signal.removeEventListener("abort", run.end);
      bySignal.delete(request.signal);
    },
  };
}
