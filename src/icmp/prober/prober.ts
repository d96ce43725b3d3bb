import { equalIpv6, type Ipv6Address } from "../../addr/ipv6.ts";
import { RETRY_MS } from "../../gate/bounds.ts";
import { type Caller, Gate } from "../../gate/gate.ts";
import { type Clock, pause, systemClock } from "../../util/clock.ts";
import type { IcmpSocket, OutgoingPacket, ReceivedPacket, Route } from "../socket/socket.ts";
import type { NoIcmp } from "../unavailable.ts";
import { errorMeaning } from "../wire/icmp-error.ts";
import { COOKIE_BYTES, encodeEchoRequest } from "../wire/packet.ts";
import { matchResponse, probeKey, type Response, type SentProbe } from "./response.ts";

/** The time from a deadline to the read of the socket, in milliseconds: a packet is stamped before it can be read. */
const GRACE_MS = 1;
/**
 * The time that a run without any response listens after its last probe, in milliseconds: after three seconds
 * Linux reports a neighbour that does not exist (RFC 4861 section 10).
 */
export const SILENCE_MS = 3200;
/** A reply replaces an error about the same probe that came at most this much earlier, in milliseconds. */
const REPLY_AFTER_ERROR_MS = 100;
/** Packets read in one turn, and the milliseconds that a turn may take; then the event loop serves others. */
const PACKETS_A_TURN = 1024;
export const TURN_MS = 10;
/**
 * The time that a tag is used for new probes, in milliseconds. Every target learns the tag, and a forged error needs it.
 * The socket also passes the previous tag, so this time must be longer than any probe's timeout.
 */
export const TAG_MS = 60_000;
/** The time that a probe's key stays reserved after its timeout, in milliseconds: no packet is on its way for longer. */
export const QUARANTINE_MS = 10_000;
/** Probes remembered at once, outstanding or in quarantine. */
export const MAX_PROBES = 2 ** 16;
/** The part of `MAX_PROBES` above which no run begins, so that the runs under way can go on. */
const FULL = 0.75;
/** The time between reads of the socket that also free expired probes, in milliseconds; they need no signal. */
export const SWEEP_MS = 1000;
/** Random sequences tried for a probe: an identifier has 65,536, and most are free. */
const MAX_KEY_TRIES = 64;
/** Times that a probe is sent again while the kernel has no buffer for it. */
export const MAX_BUFFER_RETRIES = 5;
/** Errno names of a kernel that has no room for a packet right now. */
export const NO_BUFFER: readonly string[] = ["ENOBUFS", "EAGAIN"];

/** One echo request to send; source and flow label as `Prober.route` returns them. */
export interface ProbeRequest extends Omit<OutgoingPacket, "message"> {
  /** Bytes of the payload, 56 by default. */
  readonly payloadBytes?: number;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** The client that it is sent for; absent if there is only one client. */
  readonly caller?: Caller | undefined;
  /**
   * Called when the probe leaves, which the gate can delay, with its source address. That is not `source` if
   * this machine has lost it, as after a renumbering.
   */
  readonly onSent?: (source: Ipv6Address) => void;
  /**
   * Called at once for each response, also after the timeout, until the signal aborts. `isAnswer` is true for the
   * first response, and for a reply that replaces the error before it; see `REPLY_AFTER_ERROR_MS`.
   */
  readonly onResponse?: (response: Response, isAnswer: boolean) => void;
  /** Called for an error with the probe's identifier and sequence that does not quote the probe. */
  readonly onForged?: (from: Ipv6Address, type: number, parameter: number) => void;
}

/** The end of a probe. */
export type Answer =
  | Response
  | { readonly kind: "timeout" | "aborted" }
  /** No answer, but the kernel dropped packets of the socket, and the answer may be among them. */
  | { readonly kind: "unknown" }
  /** The kernel did not send it, for the reason with this errno name. */
  | { readonly kind: "refused"; readonly code: string };

const ABORTED: Answer = { kind: "aborted" };

/** A probe from its sending to the end of its quarantine. */
interface RememberedProbe extends SentProbe {
  readonly request: ProbeRequest;
  /** The time at which it ends, if nothing ends it before. */
  expiryMs: number;
  /** The number of packets that the kernel had dropped before: see `IcmpSocket.dropped`. */
  readonly dropped: number;
  /** The response that counts so far. */
  answer: Response | undefined;
  /** Ends the probe. */
  readonly resolve: (answer: Answer) => void;
}

/** The outstanding probes with one signal, and the one timer and listener for all of them. */
interface Run {
  readonly signal: AbortSignal;
  readonly probes: Set<RememberedProbe>;
  /** The time at which its timer fires. */
  wakeMs: number;
  cancelTimer: () => void;
  /** Ends all its probes. */
  readonly end: () => void;
}

/** The parts of a prober; tests supply their own. */
export interface ProberOptions {
  readonly openSocket: (tag: number) => IcmpSocket;
  readonly withoutRaw?: NoIcmp | null;
  readonly clock?: Clock;
  /** Fills bytes with randomness that cannot be guessed. */
  readonly random?: (bytes: Uint8Array<ArrayBuffer>) => void;
}

/**
 * Sends echo requests through one raw socket and finds the request that each packet answers.
 *
 * The kernel stamps packets when it receives them, so they may be read late: a signal says that packets have
 * arrived, and a probe expires only after all packets received before its deadline have been read. So a lost
 * signal costs time, but no packet.
 *
 * An identifier is a tag byte of the process and a byte of the flow label. The identifier and a random sequence
 * are the key by which a probe is remembered until its quarantine is over. A router may return so little of a
 * probe that the cookie is missing; then only the key and the flow label prove an error genuine.
 */
export class Prober {
  readonly clock: Clock;
  /** The gate through which its probes leave. */
  readonly gate: Gate;
  /** The reason why it has no raw socket and can only ping; null if it has one. */
  readonly withoutRaw: NoIcmp | null;
  /** The number of each event since the prober was opened. */
  readonly counters = {
    sent: 0,
    /** Probes that the kernel refused to send. */
    refused: 0,
    answered: 0,
    /** Further responses to an answered probe. */
    duplicate: 0,
    /** First replies after the timeout, or after the end of the run. */
    late: 0,
    /** Probes without an answer while the kernel dropped packets of the socket. */
    dropped: 0,
    /** Correct echo replies from another address than the target's. */
    otherSource: 0,
    /** Errors accepted by their flow label, because the invoking packet ends before the cookie. */
    withoutCookie: 0,
    // Packets that answer no probe; see `Match`.
    forged: 0,
    unknown: 0,
    inconclusive: 0,
    malformed: 0,
  };
  readonly #random: (bytes: Uint8Array<ArrayBuffer>) => void;
  #tag: number;
  /** The time of the next tag. */
  #renewMs: number;
  readonly #socket: IcmpSocket;
  readonly #closing = new AbortController();
  /** The remembered probes by their keys, in the order of sending. */
  readonly #probes = new Map<number, RememberedProbe>();
  #outstanding = 0;
  /** A run stays until its timer finds no probe, so that a run with one probe at a time begins once. */
  readonly #runs = new Map<AbortSignal, Run>();
  /** Ends the waits of a run that listens. */
  readonly #listening = new WeakMap<AbortSignal, AbortController>();
  #sweptMs = -Infinity;
  /** The time until which nothing is read, so that a flood leaves time for everything else. */
  #restMs = -Infinity;
  #sweeper: Timer | undefined;

  /** @throws SystemError of the socket: `EPERM` without CAP_NET_RAW, `EAFNOSUPPORT` without IPv6, `ENOSYS` without FFI */
  constructor({
    openSocket,
    withoutRaw = null,
    clock = systemClock,
    random = (bytes) => crypto.getRandomValues(bytes),
  }: ProberOptions) {
    this.clock = clock;
    this.withoutRaw = withoutRaw;
    this.gate = new Gate(clock);
    this.#random = random;
    this.#tag = this.#randomBytes(1).readUInt8();
    this.#renewMs = clock.nowMs() + TAG_MS;
    this.#socket = openSocket(this.#tag);
    this.#socket.onArrival(() => this.readArrived());
  }

  /** Probes without an answer so far. */
  get outstanding(): number {
    return this.#outstanding;
  }

  /** True if so many probes are remembered that no run may begin. */
  get isFull(): boolean {
    return this.#probes.size >= FULL * MAX_PROBES;
  }

  /** A random flow label that is not 0; RFC 6437 section 3. */
  randomLabel(): number {
    return this.#randomBytes(3).readUIntBE(0, 3) & 0xfffff || 1;
  }

  /**
   * The source address and the flow label for the probes of a run. The label is 0 if another program holds
   * an exclusive one. An errno name if there is no route.
   */
  route(target: Ipv6Address, scopeId: number, flowLabel = this.randomLabel()): Route | string {
    return this.#socket.route(target, scopeId, flowLabel);
  }

  /** The signal of a run: it aborts with one of the caller's signals, and when the prober closes. */
  signalFor(...signals: readonly (AbortSignal | undefined)[]): AbortSignal {
    return AbortSignal.any([this.#closing.signal, ...signals.filter((each) => each !== undefined)]);
  }

  /**
   * Sends one echo request and resolves with its answer. After an error of another machine that says that the path
   * ends, it waits `REPLY_AFTER_ERROR_MS` for a reply to the same probe.
   *
   * @param retries times that the kernel had no room for it before
   */
  probe(request: ProbeRequest, retries = 0): Promise<Answer> {
    const { signal } = request;
    if (signal.aborted) return Promise.resolve(ABORTED);
    const mayLeave = this.gate.mayLeave(request, signal);
    // Nearly always the probe leaves at once, without another promise.
    if (mayLeave === true) return this.#send(request, retries);
    return mayLeave.then((leaves) => (leaves ? this.#send(request, retries) : ABORTED));
  }

  /** Handles a refusal of the kernel: sends the probe again if that can help. */
  async #refuse(request: ProbeRequest, retries: number, code: string): Promise<Answer> {
    const { target, scopeId, flowLabel, source, signal } = request;
    if (NO_BUFFER.includes(code) && retries < MAX_BUFFER_RETRIES) {
      await pause(this.clock, RETRY_MS, signal);
      return await this.probe(request, retries + 1);
    }
    const route = this.route(target, scopeId, flowLabel);
    if (typeof route !== "string" && !equalIpv6(route.source, source)) {
      return await this.probe({ ...request, ...route });
    }
    this.counters.refused++;
    return { kind: "refused", code };
  }

  /**
   * Waits until a time, by default a moment, for late responses to the run with this signal; the first one ends
   * all waits of the run.
   */
  async listen(signal: AbortSignal, untilMs = this.clock.nowMs() + GRACE_MS): Promise<void> {
    const heard = this.#listening.getOrInsertComputed(signal, () => new AbortController());
    const waitMs = untilMs - this.clock.nowMs();
    await pause(this.clock, waitMs, this.signalFor(signal, heard.signal));
    this.readArrived();
  }

  /** Aborts all probes and closes the socket. */
  close(): void {
    this.#closing.abort();
    clearInterval(this.#sweeper);
    this.#socket.close();
  }

  /** Sends a probe that may leave. */
  #send(request: ProbeRequest, retries: number): Promise<Answer> {
    const { source, timeoutMs, flowLabel, payloadBytes, probedPort } = request;
    const nowMs = this.clock.nowMs();
    // A blocked event loop delays the sweeper's timer.
    if (nowMs >= this.#sweptMs + SWEEP_MS) this.#sweep();
    this.#renewTag(nowMs);
    const identifier = this.#identifierOf(request);
    const sequence = this.#freeSequence(identifier);
    if (sequence === null) return this.#refuse(request, retries, "ENOBUFS");
    const cookie = this.#randomBytes(COOKIE_BYTES);
    const message = encodeEchoRequest(identifier, sequence, cookie, payloadBytes, flowLabel);
    const dropped = this.#socket.dropped(probedPort);
    const sentMs = this.#socket.send({ ...request, message });
    if (typeof sentMs === "string") return this.#refuse(request, retries, sentMs);
    this.counters.sent++;
    const { promise, resolve } = Promise.withResolvers<Answer>();
    const probe: RememberedProbe = {
      request,
      cookie: cookie.toString("latin1"),
      sentMs,
      dropped,
      answer: undefined,
      expiryMs: sentMs + timeoutMs + GRACE_MS,
      resolve,
    };
    this.#probes.set(probeKey(identifier, sequence), probe);
    this.#sweeper ??= setInterval(() => this.#sweep(), SWEEP_MS).unref();
    request.onSent?.(source);
    this.#outstanding++;
    this.#awaitEnd(probe);
    return promise;
  }

  /** Makes a probe end at its expiry, or with the signal of its run. */
  #awaitEnd(probe: RememberedProbe): void {
    const { signal } = probe.request;
    const run = this.#runs.getOrInsertComputed(signal, () => this.#begin(signal));
    run.probes.add(probe);
    if (probe.expiryMs < run.wakeMs) this.#wakeAt(run, probe.expiryMs);
  }

  #begin(signal: AbortSignal): Run {
    const run: Run = {
      signal,
      probes: new Set(),
      wakeMs: Infinity,
      cancelTimer: () => {},
      end: () => {
        for (const probe of run.probes) this.#finish(probe, probe.answer ?? ABORTED);
        this.#forget(run);
      },
    };
    signal.addEventListener("abort", run.end);
    return run;
  }

  #forget({ signal, cancelTimer, end }: Run): void {
    cancelTimer();
    signal.removeEventListener("abort", end);
    this.#runs.delete(signal);
  }

  #wakeAt(run: Run, wakeMs: number): void {
    run.cancelTimer();
    run.wakeMs = wakeMs;
    run.cancelTimer = this.clock.after(wakeMs - this.clock.nowMs(), () => {
      const nextMs = this.#expire(run);
      const nowMs = this.clock.nowMs();
      if (nextMs === null) this.#forget(run);
      else this.#wakeAt(run, nextMs > nowMs ? nextMs : nowMs + GRACE_MS);
    });
  }

  /**
   * Ends the expired probes, after reading all packets from before their expiry. Returns the time at which the next one
   * expires, or null if none is left.
   */
  #expire({ probes }: Run): number | null {
    const readUntilMs = this.readArrived();
    let nextMs: number | null = null;
    for (const probe of probes) {
      const { answer, expiryMs, request } = probe;
      if (readUntilMs < expiryMs) {
        nextMs = Math.min(nextMs ?? expiryMs, expiryMs);
        continue;
      }
      const isKnown =
        answer !== undefined || this.#socket.dropped(request.probedPort) === probe.dropped;
      if (!isKnown) this.counters.dropped++;
      this.#finish(probe, answer ?? { kind: isKnown ? "timeout" : "unknown" });
    }
    return nextMs;
  }

  /** Ends an outstanding probe with a response, at once or when no reply can replace it any more. */
  #settle(probe: RememberedProbe, answer: Response, isInTime: boolean): void {
    if (isInTime && isReplaceable(answer, probe.request)) {
      probe.expiryMs = probe.sentMs + answer.rttMs + REPLY_AFTER_ERROR_MS;
      this.#awaitEnd(probe);
    } else this.#finish(probe, isInTime ? answer : { kind: "timeout" });
  }

  #finish(probe: RememberedProbe, answer: Answer): void {
    this.#runs.get(probe.request.signal)?.probes.delete(probe);
    this.#outstanding--;
    probe.resolve(answer);
  }

  /** The identifier of a probe; random for a SYN, which has no cookie. */
  #identifierOf({ probedPort, flowLabel }: ProbeRequest): number {
    if (probedPort?.protocol === "tcp") return this.#randomBytes(2).readUInt16BE();
    return this.#socket.identifier ?? this.#tag * 256 + (flowLabel >>> 12);
  }

  /** A random sequence that is not in use with the identifier; null if there is no room. */
  #freeSequence(identifier: number): number | null {
    if (this.#probes.size >= MAX_PROBES) return null;
    for (let tries = 0; tries < MAX_KEY_TRIES; tries++) {
      const sequence = this.#randomBytes(2).readUInt16BE();
      if (!this.#probes.has(probeKey(identifier, sequence))) return sequence;
    }
    return null;
  }

  /** Frees the probes whose quarantine is over, after a read. A probe with a long timeout delays those behind it. */
  #sweep(): void {
    this.#sweptMs = this.clock.nowMs();
    const readUntilMs = this.readArrived();
    for (const [key, { sentMs, request }] of this.#probes) {
      if (sentMs + request.timeoutMs + QUARANTINE_MS > readUntilMs) break;
      this.#probes.delete(key);
    }
    if (this.#probes.size > 0) return;
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
  }

  /** Takes a new tag when it is time. Answers to probes with the previous tag still arrive. */
  #renewTag(nowMs: number): void {
    if (nowMs < this.#renewMs) return;
    const tag = this.#randomBytes(1).readUInt8();
    if (!this.#socket.pass?.(tag, this.#tag)) return;
    this.#tag = tag;
    this.#renewMs = nowMs + TAG_MS;
  }

  /**
   * Reads arrived packets. Call it before a decision at a set time: a timer can fire before the kernel's signal.
   *
   * @returns the time up to which all packets have been read
   */
  readArrived(): number {
    const nowMs = this.clock.nowMs();
    let readUntilMs = -Infinity;
    if (nowMs < this.#restMs) return readUntilMs;
    for (let count = 0; count < PACKETS_A_TURN; count++) {
      const packet = this.#socket.receive();
      if (packet === null) return nowMs;
      readUntilMs = packet.receivedMs;
      this.#receive(packet);
      if (packet.readMs >= nowMs + TURN_MS) break;
    }
    this.#restMs = nowMs + GRACE_MS;
    this.clock.after(GRACE_MS, () => this.readArrived());
    return readUntilMs;
  }

  #receive(packet: ReceivedPacket): void {
    const match = matchResponse(packet, this.#probes);
    if (typeof match === "string") {
      this.counters[match]++;
      return;
    }
    if ("forged" in match) {
      this.counters.forged++;
      const { error, forged } = match;
      if (error !== null) forged.request.onForged?.(packet.source, error.type, error.parameter);
      return;
    }
    const { probe, response, isWithoutCookie } = match;
    const { request } = probe;
    const { aborted } = request.signal;
    const isReply = response.kind === "reply";
    if (isWithoutCookie) this.counters.withoutCookie++;
    if (isReply && response.isOtherSource) this.counters.otherSource++;
    // An error of this machine itself only says that it did not find a neighbour.
    if (isReply || !equalIpv6(response.from, request.source)) {
      this.gate.bounds.answered(request.target, this.clock.nowMs());
    }
    if (isReply && !aborted) this.gate.bounds.reached(request, this.clock.nowMs());
    // An error is never late: Linux takes three seconds to miss a neighbour.
    const isInTime = !aborted && (!isReply || response.rttMs <= request.timeoutMs);
    const isFirst = probe.answer === undefined;
    this.counters[isFirst ? (isInTime ? "answered" : "late") : "duplicate"]++;
    const isAnswer = isFirst || (isInTime && replaces(response, probe.answer));
    if (isAnswer) probe.answer = response;
    if (!aborted) request.onResponse?.(response, isAnswer);
    this.#listening.get(request.signal)?.abort();
    this.#listening.delete(request.signal);
    const isOutstanding = this.#runs.get(request.signal)?.probes.has(probe);
    if (isAnswer && isOutstanding) this.#settle(probe, response, isInTime);
  }

  #randomBytes(count: number): Buffer<ArrayBuffer> {
    const bytes = Buffer.alloc(count);
    this.#random(bytes);
    return bytes;
  }
}

/** True if a reply can still replace a response: an error by which another machine says that the path ends. */
function isReplaceable(response: Response, { source }: ProbeRequest): boolean {
  if (response.kind === "reply" || equalIpv6(response.from, source)) return false;
  return errorMeaning(response.type, response.code) !== "hop";
}

/** True if a response replaces the answer so far; see `REPLY_AFTER_ERROR_MS`. */
function replaces(response: Response, answer: Response | undefined): boolean {
  if (response.kind !== "reply" || answer?.kind !== "error") return false;
  return response.rttMs - answer.rttMs <= REPLY_AFTER_ERROR_MS;
}
