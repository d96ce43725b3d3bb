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

/** The lines of one signal. */
interface Lines<T> {
  readonly byWait: Map<number, Line<T>>;
  readonly onAbort: () => void;
}

/**
 * Ends probes in time, or with the signal of their run. There are tens of thousands of them: a timer and a listener
 * for each line take less memory than for each probe.
 */
export class Deadlines<T extends Waiting> {
  readonly #clock: Clock;
  readonly #onDue: (front: Iterable<T>) => number | undefined;
  readonly #onAbort: (member: T) => void;
  readonly #lines = new Map<AbortSignal, Lines<T>>();

  /**
   * @param onDue ends those in front whose time is over, and returns when to look again if any is left
   * @param onAbort ends one whose signal aborts
   */
  constructor(
    clock: Clock,
    onDue: (front: Iterable<T>) => number | undefined,
    onAbort: (member: T) => void,
  ) {
    this.#clock = clock;
    this.#onDue = onDue;
    this.#onAbort = onAbort;
  }

  /** Adds one that ends at its time, about `waitMs` from now. */
  add(member: T, waitMs: number): void {
    const line = this.#lineOf(member.request.signal, waitMs);
    member.line = line as Line;
    line.members.add(member);
    line.cancel ??= this.#timer(line, member.expiryMs);
  }

  /** Removes one. */
  remove(member: T): void {
    const { line, request } = member;
    if (line === undefined) return;
    member.line = undefined;
    line.members.delete(member);
    if (line.members.size > 0) return;
    line.cancel?.();
    const lines = this.#lines.get(request.signal);
    lines?.byWait.delete(line.waitMs);
    if (lines?.byWait.size !== 0) return;
    request.signal.removeEventListener("abort", lines.onAbort);
    this.#lines.delete(request.signal);
  }

  #lineOf(signal: AbortSignal, waitMs: number): Line<T> {
    const { byWait } = this.#lines.getOrInsertComputed(signal, () => {
      const lines = new Map<number, Line<T>>();
      const onAbort = () => {
        for (const { members } of lines.values()) for (const each of members) this.#onAbort(each);
      };
      signal.addEventListener("abort", onAbort);
      return { byWait: lines, onAbort };
    });
    return byWait.getOrInsertComputed(waitMs, () => ({
      waitMs,
      members: new Set<T>(),
      cancel: undefined,
    }));
  }

  #timer(line: Line<T>, atMs: number) {
    return this.#clock.after(atMs - this.#clock.nowMs(), () => {
      line.cancel = undefined;
      const nextMs = this.#onDue(line.members);
      if (nextMs !== undefined) line.cancel ??= this.#timer(line, nextMs);
    });
  }
}
