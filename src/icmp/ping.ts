import type { Ipv6Address } from "../addr/ipv6.ts";
import { NS_PER_MS } from "./clock.ts";
import { errorName } from "./errors.ts";
import { LIMITS } from "./limits.ts";
import { type ProbeEvent, type Prober, TARGET_BUSY } from "./prober.ts";
import {
  NO_ROOM,
  type NoResult,
  type ProbeMachine,
  type RunRequest,
  runProbes,
  type SendProbe,
} from "./run.ts";

/** A ping of one target. */
export interface PingRequest extends RunRequest {
  /** Echo requests to send, from 1 to 65,536. */
  readonly count: number;
  /** Milliseconds from one to the next. */
  readonly intervalMs: number;
}

/** An echo request that was answered in time. */
export interface PingSample {
  /** From 1. */
  readonly seq: number;
  /** Hop limit with which the reply arrived. */
  readonly hopLimit: number;
  /** Milliseconds, not rounded. */
  readonly rttMs: number;
}

/** An echo request without a reply: no answer in time, refused by this machine's kernel, or an ICMPv6 error instead. */
export type LostSample =
  | { readonly seq: number; readonly reason: "timeout" }
  /** With an errno name, such as `EPERM`. */
  | { readonly seq: number; readonly reason: "not-sent"; readonly errno: string }
  | {
      readonly seq: number;
      /** The error's name, such as `no-route`; see `errorName`. */
      readonly reason: string;
      readonly type: number;
      readonly code: number;
      /** Who sent the error; the ping's own source where a neighbour did not resolve. */
      readonly from: Ipv6Address;
    };

/** What came of the echo requests of a ping. */
export interface PingReport {
  /** Echo requests that left this machine. */
  readonly transmitted: number;
  /** In the order of `seq`. */
  readonly samples: readonly PingSample[];
  /** In the order of `seq`; with the samples it makes up the count. */
  readonly lost: readonly LostSample[];
  /** Further answers to an answered request. */
  readonly duplicates: number;
  /** Answers that came after the timeout, while the ping was running. */
  readonly late: number;
}

/** How a ping ended. */
export type PingOutcome =
  | (PingReport & {
      readonly kind: "done";
      /** The address that the requests came from. */
      readonly source: Ipv6Address;
      readonly timeoutMs: number;
    })
  | NoResult;

/** The hop limit of an echo request, as the kernel and `ping` choose it. */
const HOP_LIMIT = 64;

/** Pings a target; see `IcmpEngine`. */
export async function ping(prober: Prober, request: PingRequest): Promise<PingOutcome> {
  const { count, timeoutMs } = request;
  const ended = await runProbes(prober, request, count, (send) => new PingMachine(send, request));
  if (ended.kind !== "done") return ended;
  const { machine, source } = ended;
  return machine.nothingSent ?? { kind: "done", source, timeoutMs, ...machine.report() };
}

class PingMachine implements ProbeMachine {
  readonly #send: SendProbe;
  readonly #request: PingRequest;
  readonly #samples: PingSample[] = [];
  readonly #lost: LostSample[] = [];
  /** When each undecided request was sent, by seq. */
  readonly #pending = new Map<number, number>();
  #nextSeq = 1;
  #nextNs = 0;
  #retries = 0;
  #transmitted = 0;
  #duplicates = 0;
  #late = 0;

  constructor(send: SendProbe, request: PingRequest) {
    this.#send = send;
    this.#request = request;
  }

  step(nowNs: number): number | null {
    this.#expire(nowNs);
    if (this.#nextSeq <= this.#request.count && nowNs >= this.#nextNs) this.#sendNext(nowNs);
    const [oldestNs = Infinity] = this.#pending.values();
    const expiryNs = oldestNs + this.#request.timeoutMs * NS_PER_MS;
    if (this.#nextSeq <= this.#request.count) return Math.min(this.#nextNs, expiryNs);
    return this.#pending.size > 0 ? expiryNs : null;
  }

  take({ kind, label: seq, answer }: ProbeEvent): void {
    if (kind === "duplicate") {
      this.#duplicates++;
    } else if (kind === "late" || !(this.#pending.delete(seq) || this.#withdrawError(seq))) {
      this.#late++;
    } else if (answer.kind === "reply") {
      this.#samples.push({ seq, hopLimit: answer.hopLimit, rttMs: answer.rttMs });
    } else {
      const { type, code, from } = answer;
      this.#lost.push({ seq, reason: errorName(type, code), type, code, from });
    }
  }

  /** The outcome of a ping whose every request was refused, else null. */
  get nothingSent(): NoResult | null {
    const last = this.#lost.at(-1);
    if (this.#transmitted > 0 || last === undefined || !("errno" in last)) return null;
    return { kind: "unreachable", code: last.errno };
  }

  report(): PingReport {
    const bySeq = (a: { seq: number }, b: { seq: number }) => a.seq - b.seq;
    return {
      transmitted: this.#transmitted,
      samples: this.#samples.toSorted(bySeq),
      lost: this.#lost.toSorted(bySeq),
      duplicates: this.#duplicates,
      late: this.#late,
    };
  }

  /** Takes back that an error was all that came for a request; whether it was so. */
  #withdrawError(seq: number): boolean {
    const at = this.#lost.findIndex((sample) => sample.seq === seq && "from" in sample);
    if (at >= 0) this.#lost.splice(at, 1);
    return at >= 0;
  }

  #sendNext(nowNs: number): void {
    const seq = this.#nextSeq;
    const errno = this.#send(seq, HOP_LIMIT);
    if (errno === null) {
      this.#transmitted++;
      this.#pending.set(seq, nowNs);
    } else if (errno === TARGET_BUSY) {
      this.#nextNs = nowNs + LIMITS.sendRetryMs * NS_PER_MS;
      return;
    } else if (NO_ROOM.includes(errno) && this.#retries < LIMITS.maxSendRetries) {
      this.#retries++;
      this.#nextNs = nowNs + LIMITS.sendRetryMs * NS_PER_MS;
      return;
    } else {
      this.#lost.push({ seq, reason: "not-sent", errno });
    }
    this.#nextSeq++;
    this.#retries = 0;
    this.#nextNs = nowNs + this.#request.intervalMs * NS_PER_MS;
  }

  #expire(nowNs: number): void {
    for (const [seq, sentNs] of this.#pending) {
      if (sentNs + this.#request.timeoutMs * NS_PER_MS > nowNs) return;
      this.#pending.delete(seq);
      this.#lost.push({ seq, reason: "timeout" });
    }
  }
}
