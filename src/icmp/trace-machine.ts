import { equalIpv6, type Ipv6Address } from "../addr/ipv6.ts";
import type { Answer } from "./answer.ts";
import { NS_PER_MS } from "./clock.ts";
import { errorName, traceMeaning } from "./errors.ts";
import { LIMITS } from "./limits.ts";
import { TYPE } from "./message.ts";
import { type Patience, patienceFor } from "./patience.ts";
import type { ProbeEvent } from "./prober.ts";
import type { NoResult, ProbeMachine, SendProbe } from "./run.ts";
import type { TraceHop, TraceReason, TraceReport, TraceRequest } from "./traceroute.ts";

/** What is known of a hop. */
interface HopState {
  readonly hop: number;
  /** Requests that left this machine. */
  tries: number;
  /** Requests that the kernel refused. */
  refusals: number;
  /** When the last of both was made, and whether it was refused. */
  lastNs: number;
  refused: boolean;
  /** In the order of their coming. */
  readonly answers: Answer[];
}

/** Decides which hop is asked when, and when the trace is over. */
export class TraceMachine implements ProbeMachine {
  readonly #send: SendProbe;
  readonly #source: Ipv6Address;
  readonly #request: TraceRequest;
  readonly #hops: readonly HopState[];
  #nextNewNs = 0;
  #lastErrno: string | null = null;

  constructor(send: SendProbe, source: Ipv6Address, request: TraceRequest) {
    this.#send = send;
    this.#source = source;
    this.#request = request;
    this.#hops = Array.from({ length: request.maxHops }, (_, index) => ({
      hop: index + 1,
      tries: 0,
      refusals: 0,
      lastNs: 0,
      refused: false,
      answers: [],
    }));
  }

  step(nowNs: number): number | null {
    this.#askNew(nowNs);
    const end = this.#end;
    let wakeNs = Infinity;
    let laterRttMs: number | null = null;
    for (const state of this.#hops.toReversed()) {
      if (state.answers.length > 0) {
        laterRttMs = Math.max(laterRttMs ?? 0, ...state.answers.map(({ rttMs }) => rttMs));
      } else if (state.hop <= end) {
        const patience = patienceFor(laterRttMs, this.#request.timeoutMs);
        wakeNs = Math.min(wakeNs, this.#attend(state, patience, nowNs));
      }
    }
    return wakeNs === Infinity ? null : wakeNs;
  }

  take({ kind, label, answer }: ProbeEvent): void {
    const state = this.#hops[label - 1];
    if (kind !== "answer" || state === undefined) return;
    if (answer.kind === "error" && traceMeaning(answer.type, answer.code) === "none") return;
    const isNews = this.#addressOf(answer) !== null && !state.answers.some(sameSender(answer));
    state.answers.push(answer);
    if (isNews) this.#request.onAddress?.(answer.from);
  }

  /** The outcome of a trace whose every request was refused, else null. */
  get nothingSent(): NoResult | null {
    if (this.#lastErrno === null || this.#hops.some(({ tries }) => tries > 0)) return null;
    return { kind: "unreachable", code: this.#lastErrno };
  }

  report(): TraceReport {
    const end = this.#end;
    const hops = this.#hops.slice(0, end).map((state) => this.#describe(state));
    const last = this.#hops[end - 1]?.answers.find(isFinal);
    if (last === undefined) {
      const reason = end - this.#lastAnswered >= LIMITS.gapLimit ? "gap-limit" : "max-hops";
      return { hops, reached: false, reason, error: null };
    }
    if (last.kind === "reply") return { hops, reached: true, reason: "reached", error: null };
    const { type, code, from } = last;
    const fromTarget = equalIpv6(from, this.#request.target);
    const error = { type, code, name: errorName(type, code), from, fromTarget };
    return { hops, reached: false, reason: traceMeaning(type, code) as TraceReason, error };
  }

  /** The last hop that belongs to the trace, by what is known so far. */
  get #end(): number {
    const final = this.#hops.find(({ answers }) => answers.some(isFinal));
    if (final !== undefined) return final.hop;
    return Math.min(this.#request.maxHops, this.#lastAnswered + LIMITS.gapLimit);
  }

  get #lastAnswered(): number {
    return this.#hops.findLast(({ answers }) => answers.length > 0)?.hop ?? 0;
  }

  /** Asks the next few hops that were not asked before. */
  #askNew(nowNs: number): void {
    if (nowNs < this.#nextNewNs) return;
    const end = this.#end;
    const fresh = this.#hops.filter((state) => state.hop <= end && isNew(state));
    for (const state of fresh.slice(0, LIMITS.hopsAtOnce)) this.#ask(state, nowNs);
    if (fresh.length > 0) this.#nextNewNs = nowNs + LIMITS.hopsPauseMs * NS_PER_MS;
  }

  /** Asks a silent hop again when it is time; returns when to look at it next, Infinity for never. */
  #attend(state: HopState, patience: Patience, nowNs: number): number {
    if (isNew(state)) return this.#nextNewNs;
    const dueNs = dueOf(state, patience);
    if (nowNs < dueNs) return dueNs;
    if (state.tries === LIMITS.maxTriesPerHop || state.refusals > LIMITS.maxSendRetries) {
      return Infinity;
    }
    this.#ask(state, nowNs);
    return dueOf(state, patience);
  }

  #ask(state: HopState, nowNs: number): void {
    const errno = this.#send(state.hop, state.hop);
    state.lastNs = nowNs;
    state.refused = errno !== null;
    if (errno === null) {
      state.tries++;
    } else {
      state.refusals++;
      this.#lastErrno = errno;
    }
  }

  /** The hop that an answer speaks of; null where this machine itself says that it cannot reach one. */
  #addressOf({ from }: Answer): Ipv6Address | null {
    return equalIpv6(from, this.#source) && !equalIpv6(from, this.#request.target) ? null : from;
  }

  #describe({ hop, answers }: HopState): TraceHop {
    const ordered = [...answers.filter(isFinal), ...answers.filter((answer) => !isFinal(answer))];
    const heard = ordered.filter((answer) => this.#addressOf(answer) !== null);
    const errors = heard.filter((answer) => answer.kind === "error");
    const rttsMs = heard.map(({ rttMs }) => rttMs);
    const addresses = heard.map(({ from }) => from);
    const tooBig = errors.find(({ type }) => type === TYPE.packetTooBig);
    return {
      hop,
      address: addresses[0] ?? null,
      rttMs: rttsMs[0] ?? null,
      rttsMs,
      addresses: addresses.filter(
        (from, at) => addresses.findIndex((a) => equalIpv6(a, from)) === at,
      ),
      mpls: errors[0]?.extensions.mpls ?? [],
      interfaces: errors[0]?.extensions.interfaces ?? [],
      mtuBytes: tooBig?.parameter ?? null,
    };
  }
}

/** Whether the way ends with this answer. */
function isFinal(answer: Answer): boolean {
  return answer.kind === "reply" || traceMeaning(answer.type, answer.code) !== "hop";
}

function isNew({ tries, refusals }: HopState): boolean {
  return tries + refusals === 0;
}

function sameSender({ from }: Answer): (other: Answer) => boolean {
  return (other) => equalIpv6(other.from, from);
}

/** When a hop that was asked has been waited for long enough. */
function dueOf({ tries, refused, lastNs }: HopState, { repeatMs, lastMs }: Patience): number {
  if (refused) return lastNs + LIMITS.sendRetryMs * NS_PER_MS;
  return lastNs + (tries < LIMITS.maxTriesPerHop ? repeatMs : lastMs) * NS_PER_MS;
}
