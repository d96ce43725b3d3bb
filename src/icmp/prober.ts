import { equalIpv6, type Ipv6Address } from "../addr/ipv6.ts";
import { type Clock, pause, systemClock } from "../util/clock.ts";
import { type Extensions, errorMeaning, splitExtensions } from "./icmp-error.ts";
import {
  COOKIE_BYTES,
  decodeInvokingPacket,
  decodeMessage,
  type EchoMessage,
  type ErrorMessage,
  encodeEchoRequest,
} from "./message.ts";
import {
  type IcmpSocket,
  type OutgoingPacket,
  RawSocket,
  type ReceivedPacket,
  type Route,
} from "./socket.ts";
import { TargetLimit } from "./target-limit.ts";

/** How often the socket is read while a probe is outstanding, in milliseconds. */
const READ_INTERVAL_MS = 1;
/** Packets read in one turn; then the event loop serves others. */
const PACKETS_A_TURN = 1024;
/** How long after its timeout a probe's key stays reserved, in milliseconds: later packets are gone from the Internet. */
export const QUARANTINE_MS = 10_000;
/** Probes remembered at once, outstanding or in quarantine; about 60 MB. */
const MAX_PROBES = 2 ** 18;
/** Random sequences tried for a probe: with all `MAX_PROBES` taken, most are still free. */
const MAX_KEY_TRIES = 64;
/** The wait before a probe is tried again that could not be sent now, in milliseconds: a slow link drains in this time. */
export const RETRY_MS = 20;
/** How often a probe is tried again for which the kernel has no buffer. */
export const MAX_BUFFER_RETRIES = 5;
/** Errno names of a kernel that has no room for a packet right now. */
export const NO_BUFFER: readonly string[] = ["ENOBUFS", "EAGAIN"];

/** One echo request to send; source and flow label as `Prober.route` returns them. */
export interface ProbeRequest extends Omit<OutgoingPacket, "message"> {
  /** Bytes of the payload, 56 by default. */
  readonly payloadBytes?: number;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** Called when the probe leaves, which the bound for its target's /64 can delay. */
  readonly onSent?: () => void;
  /** Called for a further answer, and for one after the timeout, until the signal aborts. */
  readonly onExtra?: (kind: "duplicate" | "late", response: Response) => void;
}

interface Received {
  readonly from: Ipv6Address;
  /** Milliseconds from sending to the kernel's receipt. */
  readonly rttMs: number;
  /** The hop limit of the received packet. */
  readonly hopLimit: number;
}

/** The target's echo reply. */
export interface EchoReply extends Received {
  readonly kind: "reply";
}

/** An ICMPv6 error about the probe. */
export interface ProbeError extends Received {
  readonly kind: "error";
  readonly type: number;
  readonly code: number;
  /** The MTU of a Packet Too Big in bytes, the pointer of a Parameter Problem, else 0. */
  readonly parameter: number;
  readonly extensions: Extensions;
}

/** A packet that answers a probe. */
export type Response = EchoReply | ProbeError;

/** How a probe ends. */
export type Answer =
  | Response
  | { readonly kind: "timeout" | "aborted" }
  /** The kernel did not send it, for the reason with this errno name. */
  | { readonly kind: "refused"; readonly code: string };

interface Probe {
  readonly request: ProbeRequest;
  readonly cookie: Uint8Array;
  readonly sentMs: number;
  /** When its quarantine ends. */
  readonly freeMs: number;
  readonly finish: (answer: Answer) => void;
  hasResponse: boolean;
}

/** A probe's key is the low byte of its identifier and its sequence. */
const SEQUENCES = 2 ** 16;

const ABORTED: Answer = { kind: "aborted" };

/** What a prober is made of; tests supply their own. */
export interface ProberOptions {
  readonly openSocket?: (tag: number) => IcmpSocket;
  readonly clock?: Clock;
  /** Fills bytes with randomness that cannot be guessed. */
  readonly random?: (bytes: Uint8Array<ArrayBuffer>) => void;
  readonly maxProbes?: number;
}

/**
 * Sends echo requests through one raw socket and finds the request that each packet answers.
 *
 * The kernel stamps packets when it receives them, so they may be read late: the socket is read on a
 * timer while a probe is outstanding, and a probe expires only after everything received before its
 * deadline has been read.
 *
 * An identifier is a tag byte of the process and a byte of the flow label. With a random sequence it
 * makes the key by which a probe is remembered until its quarantine is over: a router may return so
 * little of a probe that the cookie is missing, and then nothing else proves an error genuine.
 */
export class Prober {
  readonly clock: Clock;
  /** How often each thing has happened since the prober was opened. */
  readonly counters = {
    sent: 0,
    /** Probes that the kernel refused to send. */
    refused: 0,
    answered: 0,
    /** Further responses to an answered probe. */
    duplicate: 0,
    /** First responses after the timeout, or after the end of the run. */
    late: 0,
    /** Our identifier and sequence with another cookie, or an error about another destination. */
    forged: 0,
    /** A correct echo reply from another address than the target's. */
    wrongSource: 0,
    /** Errors accepted although the invoking packet ends before the cookie. */
    withoutCookie: 0,
    /** Our tag with an identifier and sequence that are not in use. */
    unknown: 0,
    /** Errors that do not tell whether the probe arrives, such as a failed reassembly. */
    inconclusive: 0,
    /** Messages that cannot be decoded or do not concern an echo request. */
    malformed: 0,
  };
  readonly #random: (bytes: Uint8Array<ArrayBuffer>) => void;
  readonly #maxProbes: number;
  readonly #tag: number;
  readonly #socket: IcmpSocket;
  readonly #limit = new TargetLimit();
  readonly #closing = new AbortController();
  /** In the order of sending. */
  readonly #probes = new Map<number, Probe>();
  readonly #outstanding = new Set<Probe>();
  #isReading = false;

  /** @throws SystemError if no raw socket can be opened */
  constructor({
    openSocket = (tag) => new RawSocket(tag),
    clock = systemClock,
    random = (bytes) => crypto.getRandomValues(bytes),
    maxProbes = MAX_PROBES,
  }: ProberOptions = {}) {
    this.clock = clock;
    this.#random = random;
    this.#maxProbes = maxProbes;
    this.#tag = this.#randomBytes(1)[0] as number;
    this.#socket = openSocket(this.#tag);
  }

  /** Probes without an answer so far. */
  get outstanding(): number {
    return this.#outstanding.size;
  }

  /**
   * The source address and a random flow label (RFC 6437 section 3) for the probes of a run; the label is 0 if
   * another program prevents one. An errno name if there is no route.
   */
  route(target: Ipv6Address, scopeId: number): Route | string {
    const [a, b, c] = this.#randomBytes(3) as unknown as [number, number, number];
    const label = ((a << 16) | (b << 8) | c) & 0xfffff;
    return this.#socket.route(target, scopeId, label || 1);
  }

  /** Aborts with the caller's signal, and when the prober closes. */
  signalFor(signal: AbortSignal | undefined): AbortSignal {
    const closing = this.#closing.signal;
    return signal === undefined ? closing : AbortSignal.any([signal, closing]);
  }

  /** Sends one echo request and resolves with how it ends. */
  async probe(request: ProbeRequest): Promise<Answer> {
    for (let retries = 0; !request.signal.aborted; ) {
      const answer = this.#send(request);
      if (answer instanceof Promise) return await answer;
      if (answer !== null && (!NO_BUFFER.includes(answer) || ++retries > MAX_BUFFER_RETRIES)) {
        this.counters.refused++;
        return { kind: "refused", code: answer };
      }
      await pause(this.clock, RETRY_MS, request.signal);
    }
    return ABORTED;
  }

  /** Aborts all probes and closes the socket. */
  close(): void {
    this.#closing.abort();
    this.#socket.close();
  }

  /** Sends now: the answer to come, an errno name, or null if a bound for the target is reached. */
  #send(request: ProbeRequest): Promise<Answer> | string | null {
    const { target, source, timeoutMs, flowLabel, payloadBytes, signal } = request;
    const nowMs = this.clock.nowMs();
    if (this.#outstanding.size === 0) this.#read();
    this.#forget(nowMs);
    if (!this.#limit.take(target, source, nowMs)) return null;
    const key = this.#freeKey(flowLabel);
    if (key === null) return "ENOBUFS";
    const sequence = key % SEQUENCES;
    const identifier = this.#tag * 256 + Math.floor(key / SEQUENCES);
    const cookie = this.#randomBytes(COOKIE_BYTES);
    const message = encodeEchoRequest(identifier, sequence, cookie, payloadBytes);
    const sentMs = this.#socket.send({ ...request, message });
    if (typeof sentMs === "string") return sentMs;
    this.counters.sent++;
    const { promise, resolve } = Promise.withResolvers<Answer>();
    const abort = () => finish(ABORTED);
    const finish = (answer: Answer) => {
      this.#outstanding.delete(probe);
      signal.removeEventListener("abort", abort);
      resolve(answer);
    };
    signal.addEventListener("abort", abort);
    const freeMs = sentMs + timeoutMs + QUARANTINE_MS;
    const probe: Probe = { request, cookie, sentMs, freeMs, finish, hasResponse: false };
    this.#probes.set(key, probe);
    this.#outstanding.add(probe);
    request.onSent?.();
    this.#readLater();
    return promise;
  }

  /** A random key that is not in use. */
  #freeKey(flowLabel: number): number | null {
    if (this.#probes.size >= this.#maxProbes) return null;
    for (let tries = 0; tries < MAX_KEY_TRIES; tries++) {
      const [high, low] = this.#randomBytes(2) as unknown as [number, number];
      const key = (flowLabel >>> 12) * SEQUENCES + ((high << 8) | low);
      if (!this.#probes.has(key)) return key;
    }
    return null;
  }

  /** Frees keys whose quarantine is over; a long one delays those behind it, which is safe. */
  #forget(nowMs: number): void {
    for (const [key, { freeMs }] of this.#probes) {
      if (freeMs > nowMs) return;
      this.#probes.delete(key);
    }
  }

  #readLater(): void {
    if (this.#isReading) return;
    this.#isReading = true;
    this.clock.after(READ_INTERVAL_MS, () => {
      this.#isReading = false;
      const readUntilMs = this.#read();
      for (const probe of this.#outstanding) {
        const deadlineMs = probe.sentMs + probe.request.timeoutMs;
        if (deadlineMs < readUntilMs) probe.finish({ kind: "timeout" });
      }
      if (this.#outstanding.size > 0) this.#readLater();
    });
  }

  /** Reads what has arrived. Returns the time up to which nothing is left to read. */
  #read(): number {
    let readUntilMs = this.clock.nowMs();
    for (let count = 0; count < PACKETS_A_TURN; count++) {
      const packet = this.#socket.receive();
      if (packet === null) return readUntilMs;
      this.#receive(packet);
      if (count === PACKETS_A_TURN - 1) readUntilMs = packet.receivedMs;
    }
    return readUntilMs;
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
    } else if (!isFromTarget(packet, probe.request)) {
      this.counters.wrongSource++;
    } else {
      const { source, hopLimit } = packet;
      this.#respond(probe, { kind: "reply", from: source, rttMs: rttOf(probe, packet), hopLimit });
    }
  }

  #receiveError(packet: ReceivedPacket, error: ErrorMessage): void {
    const { invokingPacket, extensions } = splitExtensions(error);
    const invoking = decodeInvokingPacket(invokingPacket);
    if (invoking === null) {
      this.counters.malformed++;
      return;
    }
    const { echo, destination } = invoking;
    const probe = this.#find(echo);
    if (probe === null) {
      this.counters.unknown++;
      return;
    }
    if (!equalIpv6(destination, probe.request.target) || !hasCookie(echo.data, probe.cookie)) {
      this.counters.forged++;
      return;
    }
    if (echo.data.length < COOKIE_BYTES) this.counters.withoutCookie++;
    const { type, code, parameter } = error;
    if (errorMeaning(type, code) === "inconclusive") {
      this.counters.inconclusive++;
      return;
    }
    const received = {
      from: packet.source,
      rttMs: rttOf(probe, packet),
      hopLimit: packet.hopLimit,
    };
    this.#respond(probe, { kind: "error", type, code, parameter, extensions, ...received });
  }

  #find({ identifier, sequence }: EchoMessage): Probe | null {
    if (identifier >>> 8 !== this.#tag) return null;
    return this.#probes.get((identifier & 0xff) * SEQUENCES + sequence) ?? null;
  }

  #respond(probe: Probe, response: Response): void {
    const { request } = probe;
    // This machine's own error says only that it did not find a neighbour.
    if (response.kind === "reply" || !equalIpv6(response.from, request.source)) {
      this.#limit.answered(request.target, this.clock.nowMs());
    }
    const isOutstanding = this.#outstanding.has(probe);
    const isInTime = isOutstanding && response.rttMs <= request.timeoutMs;
    const kind = probe.hasResponse ? "duplicate" : isInTime ? "answered" : "late";
    this.counters[kind]++;
    probe.hasResponse = true;
    if (isOutstanding) probe.finish(isInTime ? response : { kind: "timeout" });
    if (kind !== "answered" && !request.signal.aborted) request.onExtra?.(kind, response);
  }

  #randomBytes(count: number): Uint8Array<ArrayBuffer> {
    const bytes = new Uint8Array(count);
    this.#random(bytes);
    return bytes;
  }
}

/** Whether the data begins with the cookie, or with as much of it as fits. */
function hasCookie(data: Uint8Array, cookie: Uint8Array): boolean {
  const length = Math.min(data.length, cookie.length);
  for (let at = 0; at < length; at++) if (data[at] !== cookie[at]) return false;
  return true;
}

/** The kernel gives link-local senders a scope, which must be the target's. */
function isFromTarget({ source, scopeId }: ReceivedPacket, request: ProbeRequest): boolean {
  return equalIpv6(source, request.target) && (scopeId === 0 || scopeId === request.scopeId);
}

/** A stamp before the time of sending shows a step of the wall clock; then the time of reading is used. */
function rttOf({ sentMs }: Probe, { receivedMs, readMs }: ReceivedPacket): number {
  return (receivedMs >= sentMs ? receivedMs : readMs) - sentMs;
}
