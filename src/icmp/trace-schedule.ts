import type { Response } from "./response.ts";
import { finalHop, lastResponding, nearerTarget } from "./trace-report.ts";

/** How often a silent hop is asked. */
const MAX_TRIES = 3;
/** The shortest wait for a hop in milliseconds: Linux sends one error in 100 ms to one address. */
const MIN_WAIT_MS = 100;
/** How many times longer the waits for limited hops become: in six times 100 ms, Linux earns its whole burst again. */
const MAX_BACK_OFF = 6;
/** Hops asked behind the last one that responded: routers hide in rows of five and more. */
export const LOOK_AHEAD = 16;
/** Hops first asked at once, and the pause in milliseconds before the next ones: a near target replies meanwhile. */
export const HOPS_AT_ONCE = 4;
const HOPS_PAUSE_MS = 2;
/** How long after a repeat was answered at some distance other traces keep asking there, in milliseconds. */
const LIMITED_MS = 2000;
/** How long a trace keeps asking hops that seem to limit their errors, in milliseconds. */
export const MAX_PERSISTENCE_MS = 10_000;
/** How long a trace keeps asking the hop at which the target seems to be, in milliseconds. */
export const MAX_SUSPICION_MS = 3000;

/** A hop while its trace runs. */
export interface Hop {
  readonly hop: number;
  readonly responses: Response[];
  tries: number;
  /** When it was last asked; infinite while a request waits to be sent. */
  askedMs: number;
  /** Whether it is not asked again. */
  isClosed: boolean;
}

/** Decides which hops of a trace are asked when. */
export class TraceSchedule {
  readonly hops: readonly Hop[];
  /** The responses by hop. */
  readonly responses: readonly Response[][];
  readonly #timeoutMs: number;
  readonly #repeatAnsweredMs: readonly number[];
  readonly #startMs: number;
  #nextNewMs = -Infinity;

  /** @param repeatAnsweredMs when a trace last had a repeated request answered, by hop */
  constructor(
    maxHops: number,
    timeoutMs: number,
    repeatAnsweredMs: readonly number[],
    startMs: number,
  ) {
    this.hops = Array.from({ length: maxHops }, (_, index) => ({
      hop: index + 1,
      responses: [],
      tries: 0,
      askedMs: 0,
      isClosed: false,
    }));
    this.responses = this.hops.map(({ responses }) => responses);
    this.#timeoutMs = timeoutMs;
    this.#repeatAnsweredMs = repeatAnsweredMs;
    this.#startMs = startMs;
  }

  /** The hops to ask now, and when to look again at the latest; null if no hop is open any more. */
  next(nowMs: number): { readonly due: readonly Hop[]; readonly wakeMs: number } | null {
    const final = finalHop(this.responses);
    const due: Hop[] = [];
    let wakeMs = Infinity;
    let isOpen = false;
    let laterRttMs: number | null = null;
    for (const hop of this.hops.slice(0, final ?? undefined).toReversed()) {
      for (const { rttMs } of hop.responses) laterRttMs = Math.max(laterRttMs ?? 0, rttMs);
      if (hop.tries === 0 || hop.isClosed || hop.responses.length > 0) continue;
      const dueMs = this.#dueMs(hop, laterRttMs, nowMs);
      if (nowMs < dueMs) wakeMs = Math.min(wakeMs, dueMs);
      else if (this.#isAskedAgain(hop, nowMs)) due.push(hop);
      else hop.isClosed = true;
      if (!hop.isClosed) isOpen = true;
    }
    const unasked = this.hops.slice(0, final ?? this.#end()).filter(({ tries }) => tries === 0);
    if (unasked.length > 0 && nowMs >= this.#nextNewMs) {
      due.push(...unasked.slice(0, HOPS_AT_ONCE));
      this.#nextNewMs = nowMs + HOPS_PAUSE_MS;
    }
    if (unasked.length > 0) wakeMs = Math.min(wakeMs, this.#nextNewMs);
    return isOpen || unasked.length > 0 ? { due, wakeMs } : null;
  }

  /** The last hop that is asked while the path has no end: those behind `#nearEnd` once, after the others. */
  #end(): number {
    const near = this.hops.slice(0, this.#nearEnd());
    const isOver = near.every(
      (hop) => hop.isClosed || hop.responses.length > 0 || !this.#hasTries(hop),
    );
    return isOver ? this.hops.length : near.length;
  }

  #nearEnd(): number {
    return lastResponding(this.responses) + LOOK_AHEAD;
  }

  #hasTries({ hop, tries }: Hop): boolean {
    return tries < (hop > this.#nearEnd() ? 1 : MAX_TRIES);
  }

  #isAskedAgain(hop: Hop, nowMs: number): boolean {
    const isPersistent = nowMs < this.#startMs + MAX_PERSISTENCE_MS;
    return this.#hasTries(hop) || (isPersistent && this.#isLimited(hop, nowMs));
  }

  /** Whether the hop seems to limit its answers, so that it may be silent only for now. */
  #isLimited({ hop }: Hop, nowMs: number): boolean {
    const isSuspect =
      nowMs < this.#startMs + MAX_SUSPICION_MS && hop === nearerTarget(this.responses);
    return isSuspect || nowMs < (this.#repeatAnsweredMs[hop] ?? -Infinity) + LIMITED_MS;
  }

  #dueMs(hop: Hop, laterRttMs: number | null, nowMs: number): number {
    const backOff = this.#isLimited(hop, nowMs) ? Math.min(MAX_BACK_OFF, 2 ** (hop.tries - 1)) : 1;
    return hop.askedMs + backOff * waitMs(!this.#hasTries(hop), laterRttMs, this.#timeoutMs);
  }
}

/**
 * How long to wait for a silent hop, in milliseconds. If later hops have responded, it should take no
 * longer than they did, so a small multiple of their time is enough; otherwise the waits for its tries add
 * up to the timeout.
 */
function waitMs(isLast: boolean, laterRttMs: number | null, timeoutMs: number): number {
  const mostMs = timeoutMs / (isLast ? 2 : 4);
  const expectedMs = laterRttMs === null ? mostMs : laterRttMs * (isLast ? 2 : 1.5);
  return Math.max(MIN_WAIT_MS, Math.min(mostMs, expectedMs));
}
