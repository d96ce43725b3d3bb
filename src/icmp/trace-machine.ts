import { equalIpv6, type Ipv6Address } from "../addr/ipv6.ts";
import type { Answer } from "./answer.ts";
import { NS_PER_MS } from "./clock.ts";
import type { HopPacer } from "./hop-pacer.ts";
import { LIMITS } from "./limits.ts";
import { type Patience, patienceFor } from "./probe-wait.ts";
import { type ProbeEvent, TARGET_BUSY } from "./prober.ts";
import type { NoResult, ProbeMachine, SendProbe } from "./run.ts";
import {
  describeTrace,
  endOf,
  finalHop,
  isFromHop,
  lastAnswered,
  type TraceReport,
} from "./trace-report.ts";

/** What a trace wants to know. */
export interface TraceTask {
  readonly source: Ipv6Address;
  readonly target: Ipv6Address;
  readonly maxHops: number;
  readonly timeoutMs: number;
  /** Called for each address of a hop when it answers for the first time. */
  readonly onAddress: (address: Ipv6Address) => void;
}

/** How far asking a hop has come. */
interface Asking {
  readonly hop: number;
  /** Requests that left this machine, and such as the kernel refused. */
  tries: number;
  refusals: number;
  /** When the last of both was made, and whether it was refused. */
  lastNs: number;
  refused: boolean;
  /** When its turn comes to be asked again, where it waits for one. */
  turnNs: number | null;
  hasWaited: boolean;
}

/** Decides which hop of a trace is asked when, and when the trace is over. */
export class TraceMachine implements ProbeMachine {
  readonly #send: SendProbe;
  readonly #task: TraceTask;
  readonly #pacer: HopPacer;
  readonly #asking: readonly Asking[];
  /** In the order of their coming, by hop. */
  readonly #answers: readonly Answer[][];
  #nextNewNs = 0;
  #lastErrno: string | null = null;

  constructor(send: SendProbe, task: TraceTask, pacer: HopPacer) {
    this.#send = send;
    this.#task = task;
    this.#pacer = pacer;
    this.#answers = Array.from({ length: task.maxHops }, () => []);
    this.#asking = this.#answers.map((_, index) => ({
      hop: index + 1,
      tries: 0,
      refusals: 0,
      lastNs: 0,
      refused: false,
      turnNs: null,
      hasWaited: false,
    }));
  }

  step(nowNs: number): number | null {
    const end = this.#end;
    this.#askNew(end, nowNs);
    let wakeNs = Infinity;
    let laterRttMs: number | null = null;
    for (const asking of this.#asking.toReversed()) {
      const answers = this.#answersOf(asking);
      for (const { rttMs } of answers) laterRttMs = Math.max(laterRttMs ?? 0, rttMs);
      if (answers.length > 0 || asking.hop > end) continue;
      const patience = patienceFor(laterRttMs, this.#task.timeoutMs);
      wakeNs = Math.min(wakeNs, this.#attend(asking, patience, nowNs));
    }
    return wakeNs === Infinity ? null : wakeNs;
  }

  take({ kind, label: hop, answer }: ProbeEvent, nowNs: number): void {
    const { source, target, onAddress } = this.#task;
    if (kind !== "answer") return;
    const answers = this.#answers[hop - 1] as Answer[];
    const isKnown = answers.some(({ from }) => equalIpv6(from, answer.from));
    answers.push(answer);
    if (endOf(answer) === null) {
      const { tries } = this.#asking[hop - 1] as Asking;
      this.#pacer.answered(hop, tries > 1, nowNs);
    }
    if (!isKnown && isFromHop(answer, source, target)) onAddress(answer.from);
  }

  /** The outcome of a trace whose every request was refused, else null. */
  get nothingSent(): NoResult | null {
    if (this.#lastErrno === null || this.#asking.some(({ tries }) => tries > 0)) return null;
    return { kind: "unreachable", code: this.#lastErrno };
  }

  report(): TraceReport {
    return describeTrace(this.#answers, this.#task.source, this.#task.target);
  }

  #answersOf({ hop }: Asking): readonly Answer[] {
    return this.#answers[hop - 1] as readonly Answer[];
  }

  /** The last hop that may be asked, by what is known so far. */
  get #end(): number {
    const ahead = lastAnswered(this.#answers) + LIMITS.lookAhead;
    return finalHop(this.#answers) ?? Math.min(this.#task.maxHops, ahead);
  }

  /** Asks the next few hops that were not asked before. */
  #askNew(end: number, nowNs: number): void {
    if (nowNs < this.#nextNewNs) return;
    const fresh = this.#asking.filter((asking) => asking.hop <= end && isNew(asking));
    for (const asking of fresh.slice(0, LIMITS.hopsAtOnce)) {
      this.#ask(asking, nowNs);
      if (asking.tries > 0) this.#pacer.asked(asking.hop, nowNs);
    }
    if (fresh.length > 0) this.#nextNewNs = nowNs + LIMITS.hopsPauseMs * NS_PER_MS;
  }

  /** Asks a silent hop again when it is time; returns when to look at it next, Infinity for never. */
  #attend(asking: Asking, patience: Patience, nowNs: number): number {
    if (isNew(asking)) return this.#nextNewNs;
    const dueNs = dueOf(asking, patience);
    if (nowNs < dueNs) return dueNs;
    if (asking.tries === LIMITS.maxTriesPerHop || asking.refusals > LIMITS.maxSendRetries) {
      return Infinity;
    }
    asking.turnNs ??= this.#pacer.reserve(asking.hop, nowNs);
    if (nowNs < asking.turnNs && this.#pacer.isWorthWaiting(asking.hop, nowNs)) {
      asking.hasWaited = true;
      return Math.min(asking.turnNs, nowNs + LIMITS.turnCheckMs * NS_PER_MS);
    }
    this.#ask(asking, nowNs);
    if (!asking.refused) {
      if (asking.hasWaited) this.#pacer.repeated(asking.hop);
      asking.turnNs = null;
      asking.hasWaited = false;
    }
    return dueOf(asking, patience);
  }

  #ask(asking: Asking, nowNs: number): void {
    const errno = this.#send(asking.hop, asking.hop);
    asking.lastNs = nowNs;
    asking.refused = errno !== null;
    if (errno === null) {
      asking.tries++;
    } else if (errno !== TARGET_BUSY) {
      asking.refusals++;
      this.#lastErrno = errno;
    }
  }
}

function isNew({ tries, refusals }: Asking): boolean {
  return tries + refusals === 0;
}

/** When a hop that was asked has been waited for long enough. */
function dueOf({ tries, refused, lastNs }: Asking, { repeatMs, lastMs }: Patience): number {
  if (refused) return lastNs + LIMITS.sendRetryMs * NS_PER_MS;
  return lastNs + (tries < LIMITS.maxTriesPerHop ? repeatMs : lastMs) * NS_PER_MS;
}
