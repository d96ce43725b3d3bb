import { equalIpv6, type Ipv6Address } from "../addr/ipv6.ts";
import type { Answer } from "./answer.ts";
import { type Clock, NS_PER_MS } from "./clock.ts";
import { traceMeaning } from "./errors.ts";
import { splitExtensions } from "./extensions.ts";
import { decodeQuotation } from "./invoking-packet.ts";
import { LIMITS } from "./limits.ts";
import {
  decodeMessage,
  type EchoMessage,
  type ErrorMessage,
  encodeEchoRequest,
} from "./message.ts";
import { COOKIE_BYTES, encodePayload } from "./probe-payload.ts";
import type { IcmpSocket, OpenSocket, ReceivedPacket, SourceChoice } from "./socket.ts";
import { TargetLimiter, UnheardLimiter } from "./target-limiter.ts";

/** Fills bytes with randomness that nobody else can guess. */
export type RandomSource = (bytes: Uint8Array) => void;

/** What all probes of a run have in common. */
export interface RunPlan {
  readonly target: Ipv6Address;
  /** Index of the interface of a link-local target, 0 for none. */
  readonly scopeId: number;
  readonly source: Ipv6Address;
  /** 20 bits, the same for all, so that routers send all of them one way; see `ProbeRun.flowLabel`. */
  readonly flowLabel: number;
  readonly timeoutMs: number;
  /** The most probes that the run will send, up to `LIMITS.maxProbesOfRun`. */
  readonly maxProbes: number;
}

/** An answer to a probe of a run: the first in time, or the reply behind an error; a further one; or one that came after the timeout. */
export interface ProbeEvent {
  readonly kind: "answer" | "duplicate" | "late";
  /** The label under which the probe was sent. */
  readonly label: number;
  readonly answer: Answer;
}

/** The result of a send that was not made, because enough probes go to the target's /64 already: it is to be tried again. */
export const TARGET_BUSY = "target-busy";

/** The probes of one ping or trace. */
export interface ProbeRun {
  /** Its probes that are not answered, until it is closed. */
  readonly outstanding: number;
  /** The flow label that its probes have: the plan's, or 0 once the kernel has not taken that. */
  readonly flowLabel: number;
  /** Sends one probe; null, `TARGET_BUSY`, or the errno name of a refusal, which concerns this probe only. */
  send(label: number, hopLimit: number): string | null;
  /** Ends the run: nothing is outstanding any more, and no event follows. */
  close(): void;
}

/** How often what happened, since the engine was opened. */
export interface ProbeCounters {
  sent: number;
  /** Sends that the kernel refused. */
  refused: number;
  answered: number;
  /** Further answers to an answered probe. */
  duplicate: number;
  /** First answers after the timeout, or after the run had ended. */
  late: number;
  /** Our identifier and sequence with another cookie, or an error that quotes a foreign destination. */
  forged: number;
  /** A right echo reply from another address than the target's. */
  wrongSource: number;
  /** Errors accepted although their quotation ends before the cookie does. */
  withoutCookie: number;
  /** Our tag, with an identifier and sequence that are not in use. */
  unknown: number;
  /** Errors about a probe that do not tell whether it arrives, such as a failed reassembly. */
  beside: number;
  /** What cannot be decoded, or does not concern an echo request. */
  malformed: number;
}

interface Run {
  readonly plan: RunPlan;
  readonly onEvent: (event: ProbeEvent) => void;
  /** The key of its first probe, which the others follow; null before there is one. */
  firstKey: number | null;
  flowLabel: number;
  sent: number;
  outstanding: number;
  /** Whether anybody has answered, apart from this machine's own errors. */
  heard: boolean;
  closed: boolean;
}

interface Probe {
  readonly run: Run;
  readonly label: number;
  readonly cookie: Uint8Array;
  readonly sentNs: number;
  /** When the identifier and sequence may be used again, by a run that begins then. */
  readonly freeNs: number;
  /** What came first, or the reply that came behind an error. */
  answer: Answer["kind"] | null;
}

/** A key is a byte of the identifier and the 16 bits of the sequence. */
const SEQUENCES = 2 ** 16;

/**
 * Sends the probes of all runs through one socket, and finds for each packet that comes in the probe
 * that it answers.
 *
 * An identifier is a tag byte of the process and a byte of the run; with the sequence it makes the key
 * under which a probe is remembered until its quarantine is over. Each run begins at a random key: a
 * router may quote so little of a probe that the cookie is cut off, and then nothing else proves that
 * an error was not made up.
 */
export class Prober {
  readonly clock: Clock;
  readonly counters: ProbeCounters = {
    sent: 0,
    refused: 0,
    answered: 0,
    duplicate: 0,
    late: 0,
    forged: 0,
    wrongSource: 0,
    withoutCookie: 0,
    unknown: 0,
    beside: 0,
    malformed: 0,
  };
  readonly #random: RandomSource;
  readonly #socket: IcmpSocket;
  readonly #tag: number;
  readonly #limiter = new TargetLimiter();
  readonly #unheard: UnheardLimiter;
  readonly #ending = new AbortController();
  readonly #runs = new Set<Run>();
  /** In the order of sending. */
  readonly #probes = new Map<number, Probe>();

  /** @throws SystemError where no socket can be had */
  constructor(openSocket: OpenSocket, clock: Clock, random: RandomSource) {
    this.clock = clock;
    this.#random = random;
    this.#tag = this.#randomBytes(1)[0] as number;
    this.#socket = openSocket(this.#tag, {
      packets: (packets) => {
        for (const packet of packets) this.#receive(packet);
      },
      failed: (error) => this.#ending.abort(error),
    });
    this.#unheard = new UnheardLimiter(this.#socket.sendBufferBytes);
  }

  /** Signs of life of the receiver; see `IcmpSocket`. */
  get beats(): number {
    return this.#socket.beats;
  }

  /** Probes of all open runs that are not answered. */
  get outstanding(): number {
    let sum = 0;
    for (const run of this.#runs) sum += run.outstanding;
    return sum;
  }

  /** A flow label for a run: 20 random bits, not 0; RFC 6437 section 3. */
  chooseFlowLabel(): number {
    const [a, b, c] = this.#randomBytes(3) as unknown as [number, number, number];
    return ((a << 16) | (b << 8) | c) & 0xfffff || 1;
  }

  /** Aborted when the prober closes, with a null reason, or when its socket has failed, with the error. */
  get ending(): AbortSignal {
    return this.#ending.signal;
  }

  /** The error with which its socket has failed, or null. */
  get failure(): Error | null {
    const { reason } = this.#ending.signal;
    return reason instanceof Error ? reason : null;
  }

  /** The source address for a run; see `IcmpSocket`. */
  sourceFor(target: Ipv6Address, scopeId: number): SourceChoice {
    return this.#socket.sourceFor(target, scopeId);
  }

  /** Begins a run; `onEvent` is called for each answer until the run is closed. */
  open(plan: RunPlan, onEvent: (event: ProbeEvent) => void): ProbeRun {
    const { maxProbes, flowLabel } = plan;
    if (maxProbes > LIMITS.maxProbesOfRun) throw new RangeError(`${maxProbes} probes in one run`);
    const run: Run = {
      plan,
      onEvent,
      firstKey: null,
      flowLabel,
      sent: 0,
      outstanding: 0,
      heard: false,
      closed: false,
    };
    this.#runs.add(run);
    return {
      get outstanding() {
        return run.outstanding;
      },
      get flowLabel() {
        return run.flowLabel;
      },
      send: (label, hopLimit) => this.#send(run, label, hopLimit),
      close: () => this.#close(run),
    };
  }

  /** Ends all runs and closes the socket; resolves once nothing uses it any more. */
  close(): Promise<void> {
    this.#ending.abort(null);
    return this.#socket.close();
  }

  /** The first of so many keys that share an identifier, chosen at random; null where a few tries find none free. */
  #chooseKeys(count: number): number | null {
    for (let tries = 0; tries < LIMITS.maxKeyTries; tries++) {
      const [a, b, c] = this.#randomBytes(3) as unknown as [number, number, number];
      const first = a * SEQUENCES + (((b << 8) | c) % (SEQUENCES - count + 1));
      if (this.#areFree(first, count)) return first;
    }
    return null;
  }

  /** Whether no open run has one of the keys, and none is in quarantine. */
  #areFree(first: number, count: number): boolean {
    for (const { firstKey, plan } of this.#runs) {
      if (firstKey === null) continue;
      if (first < firstKey + plan.maxProbes && firstKey < first + count) return false;
    }
    for (let key = first; key < first + count; key++) if (this.#probes.has(key)) return false;
    return true;
  }

  #send(run: Run, label: number, hopLimit: number): string | null {
    const { target, scopeId, source, timeoutMs, maxProbes } = run.plan;
    if (run.sent === maxProbes) throw new RangeError(`more than ${maxProbes} probes in this run`);
    const nowNs = this.clock.nowNs();
    this.#forget(nowNs);
    run.firstKey ??= this.#chooseKeys(maxProbes);
    if (this.#probes.size >= LIMITS.maxProbes || run.firstKey === null) return "ENOBUFS";
    if (!run.heard && !this.#unheard.allows(target, nowNs)) return TARGET_BUSY;
    if (!this.#limiter.take(target, nowNs)) return TARGET_BUSY;
    const key = run.firstKey + run.sent;
    const sequence = key % SEQUENCES;
    const identifier = this.#tag * 256 + Math.floor(key / SEQUENCES);
    const cookie = this.#randomBytes(COOKIE_BYTES);
    const message = encodeEchoRequest(identifier, sequence, encodePayload(sequence, cookie));
    const { flowLabel } = run;
    const packet = { destination: target, scopeId, source, hopLimit, flowLabel, message };
    const result = this.#socket.send(packet);
    if (result.kind === "failed") {
      this.counters.refused++;
      return result.code;
    }
    const { sentNs } = result;
    run.flowLabel = result.flowLabel;
    if (!run.heard) this.#unheard.sent(run, target, nowNs);
    const freeNs = sentNs + (timeoutMs + LIMITS.quarantineMs) * NS_PER_MS;
    this.#probes.set(key, { run, label, cookie, sentNs, freeNs, answer: null });
    this.counters.sent++;
    run.sent++;
    run.outstanding++;
    return null;
  }

  #close(run: Run): void {
    run.closed = true;
    run.outstanding = 0;
    this.#runs.delete(run);
  }

  /** Frees the keys whose quarantine is over; a long one holds up those behind it, which is safe. */
  #forget(nowNs: number): void {
    for (const [key, probe] of this.#probes) {
      if (probe.freeNs > nowNs) return;
      this.#probes.delete(key);
    }
  }

  #receive(packet: ReceivedPacket): void {
    const message = decodeMessage(packet.message);
    if (message?.kind === "echo-reply") this.#receiveReply(packet, message);
    else if (message?.kind === "error") this.#receiveError(packet, message);
    else this.counters.malformed++;
  }

  #receiveReply(packet: ReceivedPacket, reply: EchoMessage): void {
    const probe = this.#find(reply);
    if (probe === null) {
      this.counters.unknown++;
    } else if (reply.data.length < COOKIE_BYTES || !hasCookie(reply.data, probe.cookie)) {
      this.counters.forged++;
    } else if (!isFromTarget(packet, probe.run.plan)) {
      this.counters.wrongSource++;
    } else {
      const { source, hopLimit } = packet;
      const rttMs = rttOf(probe, packet);
      this.#settle(probe, { kind: "reply", from: source, rttMs, hopLimit });
    }
  }

  #receiveError(packet: ReceivedPacket, error: ErrorMessage): void {
    const { quotation, extensions } = splitExtensions(error);
    const quoted = decodeQuotation(quotation);
    if (quoted === null || quoted.echo === null) {
      this.counters.malformed++;
      return;
    }
    const { echo, destination } = quoted;
    const probe = this.#find(echo);
    if (probe === null) {
      this.counters.unknown++;
      return;
    }
    if (!equalIpv6(destination, probe.run.plan.target) || !hasCookie(echo.data, probe.cookie)) {
      this.counters.forged++;
      return;
    }
    if (echo.data.length < COOKIE_BYTES) this.counters.withoutCookie++;
    const { type, code, parameter } = error;
    if (traceMeaning(type, code) === "none") {
      this.counters.beside++;
      return;
    }
    const { source, hopLimit } = packet;
    const rttMs = rttOf(probe, packet);
    const what = { kind: "error", type, code, parameter, extensions } as const;
    this.#settle(probe, { ...what, from: source, rttMs, hopLimit });
  }

  #find({ identifier, sequence }: EchoMessage): Probe | null {
    if (identifier >>> 8 !== this.#tag) return null;
    return this.#probes.get((identifier & 0xff) * SEQUENCES + sequence) ?? null;
  }

  #settle(probe: Probe, answer: Answer): void {
    const { run, label } = probe;
    const inTime = !run.closed && answer.rttMs <= run.plan.timeoutMs;
    // The target's own reply is worth more than what somebody on the way said before.
    const isNews = probe.answer === null || (probe.answer === "error" && answer.kind === "reply");
    const kind = !isNews ? "duplicate" : inTime ? "answer" : "late";
    this.counters[kind === "answer" ? "answered" : kind]++;
    if (probe.answer === null && !run.closed) run.outstanding--;
    if (isNews) probe.answer = answer.kind;
    // What this machine itself says about a neighbour only means that the neighbour was not found.
    const isOwnWord = answer.kind === "error" && equalIpv6(answer.from, run.plan.source);
    if (!run.heard && !isOwnWord) this.#hear(run);
    if (!run.closed) run.onEvent({ kind, label, answer });
  }

  #hear(run: Run): void {
    run.heard = true;
    this.#unheard.heard(run, run.plan.target);
  }

  #randomBytes(count: number): Uint8Array {
    const bytes = new Uint8Array(count);
    this.#random(bytes);
    return bytes;
  }
}

/** Whether the data begins with the cookie, or with as much of it as it has room for. */
function hasCookie(data: Uint8Array, cookie: Uint8Array): boolean {
  const length = Math.min(data.length, cookie.length);
  for (let at = 0; at < length; at++) if (data[at] !== cookie[at]) return false;
  return true;
}

/** The kernel names a scope for link-local senders only; theirs must be the target's. */
function isFromTarget({ source, scopeId }: ReceivedPacket, plan: RunPlan): boolean {
  return equalIpv6(source, plan.target) && (scopeId === 0 || scopeId === plan.scopeId);
}

/** A receipt before the sending means that the wall clock was set just then; the reading of the packet counts then. */
function rttOf({ sentNs }: Probe, { receivedNs, readNs }: ReceivedPacket): number {
  return ((receivedNs >= sentNs ? receivedNs : readNs) - sentNs) / NS_PER_MS;
}
