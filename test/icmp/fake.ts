/** A network without a kernel: a socket that answers by a function, on a fake clock. */
import { type Ipv6Address, ipv6ToBytes } from "../../src/addr/ipv6.ts";
import type {
  IcmpSocket,
  OutgoingPacket,
  PortState,
  ReceivedPacket,
  Route,
} from "../../src/icmp/socket/socket.ts";
import { parseIpv6 } from "../addr/parse.ts";
import { FakeClock } from "../util/fake-clock.ts";

/** A packet that the network returns, `delayMs` after the request. */
export interface FakeResponse {
  readonly delayMs: number;
  readonly from: Ipv6Address;
  readonly message: Uint8Array;
  readonly hopLimit?: number;
  /** Of the port, if it answers. */
  readonly state?: PortState;
}

/** The network's reaction to a request: responses, or an errno name if the kernel refuses it. */
export type Network = (packet: OutgoingPacket, sentMs: number) => readonly FakeResponse[] | string;

/** The address that everything is sent from. */
export const SOURCE = parseIpv6("2001:db8::1");
/** A target, and a router on the way to it. */
export const TARGET = parseIpv6("2001:db8:ffff::2");
export const ROUTER = parseIpv6("2001:db8:0:1::1");

/** A socket on a simulated network; `sent` keeps all that went out. */
export class FakeSocket implements IcmpSocket {
  readonly sent: (OutgoingPacket & { readonly atMs: number })[] = [];
  readonly #clock: FakeClock;
  readonly #network: Network;
  #arriving: (Omit<ReceivedPacket, "readMs"> & { readonly readableMs: number })[] = [];
  /** Those that the socket passes, the newest first. */
  tags: readonly number[] = [];
  /** How many packets the kernel has dropped. */
  droppedPackets = 0;
  isClosed = false;
  /** Returns whether the signal of a packet is lost. */
  losesSignal = () => false;
  #onArrival = () => {};

  constructor(clock: FakeClock, network: Network) {
    this.#clock = clock;
    this.#network = network;
  }

  readonly open = (tag: number): IcmpSocket => {
    this.tags = [tag];
    return this;
  };

  route(_target: Ipv6Address, _scopeId: number, flowLabel: number): Route | string {
    return { source: SOURCE, flowLabel };
  }

  send(packet: OutgoingPacket): number | string {
    const atMs = this.#clock.nowMs();
    const responses = this.#network(packet, atMs);
    if (typeof responses === "string") return responses;
    this.sent.push({ ...packet, atMs });
    for (const { delayMs, from: source, message, hopLimit = 60, state } of responses) {
      const receivedMs = atMs + delayMs;
      const { probedPort } = packet;
      const answer = { source, probedPort, message, hopLimit, scopeId: 0, receivedMs };
      this.deliver({ ...answer, ...(state && { state }) }, receivedMs);
    }
    return atMs;
  }

  pass(...tags: [number, number]): boolean {
    this.tags = tags;
    return true;
  }

  dropped(): number {
    return this.droppedPackets;
  }

  onArrival(action: () => void): void {
    this.#onArrival = action;
  }

  /** Lets a packet be read at a time, by default now. */
  deliver(packet: Omit<ReceivedPacket, "readMs">, readableMs = this.#clock.nowMs()): void {
    this.#arriving.push({ ...packet, readableMs });
    this.#arriving.sort((a, b) => a.readableMs - b.readableMs);
    this.#clock.event(readableMs, () => {
      if (!this.isClosed && !this.losesSignal()) this.#onArrival();
    });
  }

  receive(): ReceivedPacket | null {
    const readMs = this.#clock.nowMs();
    const [first] = this.#arriving;
    if (first === undefined || first.readableMs > readMs) return null;
    this.#arriving.shift();
    return { ...first, readMs };
  }

  close(): void {
    this.isClosed = true;
  }
}

/** A clock, a socket on a simulated network, and what gives both to a prober or an engine. */
export function simulate(network: Network) {
  const clock = new FakeClock();
  const socket = new FakeSocket(clock, network);
  return { clock, socket, options: { openSocket: socket.open, clock, random: countingRandom() } };
}

/** The echo reply to a request. */
export function echoReply({ message }: OutgoingPacket): Uint8Array {
  const reply = message.slice();
  reply[0] = 129;
  return reply;
}

/** The error with which a router answers a request, quoting `quoteBytes` bytes of it. */
export function icmpError(
  packet: OutgoingPacket,
  type: number,
  code: number,
  {
    parameter = 0,
    quoteBytes = 1232,
    destination = packet.target,
    flowLabel = packet.flowLabel,
  } = {},
): Uint8Array {
  const quotation = new Uint8Array(40 + packet.message.length);
  quotation.set([0, 0, 0, 0, 0, packet.message.length, 58, 0]);
  new DataView(quotation.buffer).setUint32(0, 0x60000000 + flowLabel);
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

/**
 * The error of an IPv4 router as it arrives from a translator: 40 + 8 bytes with the checksum that the kernel wrote,
 * or another one, and no flow label; then zeros.
 */
export function translatedError(packet: OutgoingPacket, mistake = 0, zeros = 0): Uint8Array {
  const { source, target, message } = packet;
  const pseudo = [ipv6ToBytes(source), ipv6ToBytes(target), [0, 0, 0, message.length, 0, 0, 0, 58]];
  const bytes = [...pseudo.flatMap((part) => [...part]), ...message];
  let sum = 0;
  for (let at = 0; at < bytes.length; at += 2) {
    sum += (bytes[at] as number) * 256 + (bytes[at + 1] as number);
  }
  const error = icmpError(packet, 3, 0, { quoteBytes: 48, flowLabel: 0 });
  new DataView(error.buffer).setUint16(8 + 40 + 2, (0xffff - (sum % 0xffff)) ^ mistake);
  return Uint8Array.of(...error, ...new Uint8Array(zeros));
}

/** A router or the target on a simulated path. */
export interface Station {
  /** Round-trip time to it. */
  readonly rttMs: number;
  /** True if it answers the nth request, counted from 1; always by default. */
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
    return [{ delayMs, from, message, hopLimit: 64 - index }];
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
