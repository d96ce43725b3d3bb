/** A network without time and without a kernel: a virtual clock, and a socket that answers by a function. */
import { type Ipv6Address, ipv6ToBytes } from "../../src/addr/ipv6.ts";
import { type Clock, NS_PER_MS } from "../../src/icmp/clock.ts";
import type {
  IcmpSocket,
  OpenSocket,
  OutgoingPacket,
  ReceivedPacket,
  SendResult,
  SocketListener,
} from "../../src/icmp/socket.ts";
import { parseIpv6 } from "../addr/parse.ts";

interface Timer {
  readonly atNs: number;
  readonly order: number;
  readonly callback: () => void;
  /** Whether it is a packet on its way, and no timer of the code under test. */
  readonly isPacket: boolean;
}

/** A clock that stands still until `run` moves it from timer to timer. */
export class VirtualClock implements Clock {
  #nowNs = 1_000 * NS_PER_MS;
  #timers: Timer[] = [];
  #count = 0;

  nowNs(): number {
    return this.#nowNs;
  }

  get nowMs(): number {
    return this.#nowNs / NS_PER_MS;
  }

  /** Timers that have neither fired nor been taken back. */
  get pending(): number {
    return this.#timers.filter(({ isPacket }) => !isPacket).length;
  }

  after(delayMs: number, callback: () => void): () => void {
    const timer = this.#add(delayMs, callback, false);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  /** A packet comes in after so long. */
  arrive(delayMs: number, callback: () => void): void {
    this.#add(delayMs, callback, true);
  }

  /** The event loop does nothing for so long; timers that were due fire afterwards. */
  block(ms: number): void {
    this.#nowNs += ms * NS_PER_MS;
  }

  /** Lets time pass until the promise is settled. */
  async run<T>(promise: Promise<T>): Promise<T> {
    let settled = false;
    const settle = () => {
      settled = true;
    };
    promise.then(settle, settle);
    for (;;) {
      for (let turn = 0; turn < 10; turn++) await null;
      if (settled) return promise;
      const next = this.#timers.toSorted((a, b) => a.atNs - b.atNs || a.order - b.order)[0];
      if (next === undefined) throw new Error("nothing will ever happen");
      this.#timers = this.#timers.filter((timer) => timer !== next);
      this.#nowNs = Math.max(this.#nowNs, next.atNs);
      next.callback();
    }
  }

  #add(delayMs: number, callback: () => void, isPacket: boolean): Timer {
    const atNs = this.#nowNs + delayMs * NS_PER_MS;
    const timer = { atNs, order: this.#count++, callback, isPacket };
    this.#timers.push(timer);
    return timer;
  }
}

/** A packet that the network gives back, `delayMs` after the request. */
export interface Response {
  readonly delayMs: number;
  readonly from: Ipv6Address;
  readonly message: Uint8Array;
  readonly hopLimit?: number;
  /** How much later than the kernel the process reads it, in milliseconds. */
  readonly readAfterMs?: number;
}

/** What the network does with a request: responses, or an errno name where the kernel refuses it. */
export type Network = (packet: OutgoingPacket, sentMs: number) => readonly Response[] | string;

/** The address that everything is sent from. */
export const SOURCE = parseIpv6("2001:db8::1");

/** A socket on a simulated network; `sent` keeps all that went out. */
export class FakeSocket implements IcmpSocket {
  readonly beats = 0;
  readonly sendBufferBytes: number;
  readonly sent: (OutgoingPacket & { readonly atMs: number })[] = [];
  readonly #clock: VirtualClock;
  readonly #network: Network;
  #listener: SocketListener | null = null;
  tag = 0;
  /** Whether its kernel takes flow labels. */
  takesLabels = true;

  constructor(clock: VirtualClock, network: Network, sendBufferBytes = 2 ** 30) {
    this.#clock = clock;
    this.sendBufferBytes = sendBufferBytes;
    this.#network = network;
  }

  readonly open: OpenSocket = (tag, listener) => {
    this.tag = tag;
    this.#listener = listener;
    return this;
  };

  sourceFor() {
    return { kind: "source", address: SOURCE } as const;
  }

  send(packet: OutgoingPacket): SendResult {
    const atMs = this.#clock.nowMs;
    const responses = this.#network(packet, atMs);
    if (typeof responses === "string") return { kind: "failed", code: responses };
    const flowLabel = this.takesLabels ? packet.flowLabel : 0;
    this.sent.push({ ...packet, flowLabel, atMs });
    for (const { delayMs, readAfterMs = 0, ...response } of responses) {
      const receivedNs = (atMs + delayMs) * NS_PER_MS;
      this.#clock.arrive(delayMs + readAfterMs, () => {
        const { from: source, message, hopLimit = 60 } = response;
        this.deliver({ source, message, hopLimit, scopeId: 0, receivedNs });
      });
    }
    return { kind: "sent", sentNs: this.#clock.nowNs(), flowLabel };
  }

  deliver(packet: Omit<ReceivedPacket, "readNs">): void {
    this.#listener?.packets([{ ...packet, readNs: this.#clock.nowNs() }]);
  }

  /** The receiver breaks down. */
  fail(error: Error): void {
    this.#listener?.failed(error);
  }

  async close(): Promise<void> {
    this.#listener = null;
  }
}

/** The echo reply to a request. */
export function echoReply({ message }: OutgoingPacket): Uint8Array {
  const reply = message.slice();
  reply[0] = 129;
  return reply;
}

/** The error with which a router answers a request, quoting so many bytes of it. */
export function icmpError(
  packet: OutgoingPacket,
  type: number,
  code: number,
  { parameter = 0, quoteBytes = 1232, destination = packet.destination } = {},
): Uint8Array {
  const quotation = new Uint8Array(40 + packet.message.length);
  quotation.set([0x60, 0, 0, 0, 0, packet.message.length, 58, 0]);
  quotation.set(ipv6ToBytes(packet.source), 8);
  quotation.set(ipv6ToBytes(destination), 24);
  quotation.set(packet.message, 40);
  const quoted = quotation.subarray(0, quoteBytes);
  const error = new Uint8Array(8 + quoted.length);
  error.set([type, code]);
  new DataView(error.buffer).setUint32(4, parameter);
  error.set(quoted, 8);
  return error;
}

/** A router or the target on a simulated path. */
export interface Station {
  /** Round-trip time to it. */
  readonly rttMs: number;
  /** Whether it answers the nth request, counted from 1; always by default. */
  readonly answers?: (nth: number, atMs: number) => boolean;
  /** It answers each request with this error, as a firewall does. */
  readonly rejects?: readonly [type: number, code: number];
}

/** The address of the station at a distance from 1. */
export function stationAddress(hop: number): Ipv6Address {
  return parseIpv6(`2001:db8:0:${hop.toString(16)}::1`);
}

/** A chain of stations; the last is the target. A request goes as far as its hop limit, the first station that rejects, or the target. */
export function path(stations: readonly Station[]): Network {
  const asked = stations.map(() => 0);
  const firstRejecting = stations.findIndex(({ rejects }) => rejects !== undefined);
  const end = firstRejecting < 0 ? stations.length : firstRejecting + 1;
  return (packet, sentMs) => {
    const index = Math.min(packet.hopLimit, end) - 1;
    const station = stations[index] as Station;
    const nth = (asked[index] as number) + 1;
    asked[index] = nth;
    if (station.answers?.(nth, sentMs) === false) return [];
    const from = stationAddress(index + 1);
    const { rttMs: delayMs } = station;
    const isTarget = index === stations.length - 1;
    const [type, code] = station.rejects ?? [3, 0];
    const isReply = isTarget && station.rejects === undefined;
    const message = isReply ? echoReply(packet) : icmpError(packet, type, code);
    return [{ delayMs, from, message }];
  };
}

/** Random bytes that are the same in every run. */
export function countingRandom(): (bytes: Uint8Array) => void {
  let state = 1;
  return (bytes) => {
    for (let at = 0; at < bytes.length; at++) {
      state = (state * 48271) % 0x7fffffff;
      bytes[at] = state & 0xff;
    }
  };
}
