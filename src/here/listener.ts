/** Listens to ICMPv6 on the links: incoming packets before this machine's firewall, outgoing packets behind it. */
import { formatIpv6 } from "../addr/format.ts";
import { type Ipv6Address, ipv6FromBytes } from "../addr/ipv6.ts";
import { droppedBy, failure, int, openSocket, socketName } from "../icmp/socket/socket.ts";
import { encodeTypeFilter } from "../icmp/wire/filter.ts";
import { IPV6_HEADER_BYTES, internetChecksum } from "../icmp/wire/packet.ts";
import { CARRIED, inheritedSocket } from "../platform/capabilities.ts";
import { libc } from "../platform/libc.ts";
import {
  AF_PACKET,
  ALL_PROTOCOLS,
  BPF,
  bpfConstant,
  bpfOption,
  encodeBpf,
  IPPROTO_ICMPV6,
  MSG_DONTWAIT,
  OPTION,
  SOCKADDR,
  SOCKADDR_LL,
} from "../platform/linux.ts";
import {
  type Advertisement,
  parseAdvertisement,
  parseNeighbour,
  solicitationOf,
  TYPE,
} from "./discovery.ts";
import type { Interface, OwnAddress } from "./kernel.ts";

/** A router of a link, with its last advertisement. */
export interface Router extends Advertisement {
  readonly ip: Ipv6Address;
  /** The earliest time at which it can have come, in milliseconds of the monotonic clock. */
  readonly heardMs: number;
}

/** The times of solicitations, in milliseconds after the first; RFC 4861 section 10 has three, too. */
const ASKED_MS = [0, 1000, 2000];
/** The time for an answer from the first solicitation on, in milliseconds: a second after the last one. */
const ANSWERED_MS = 3000;
/** Links and gateways that are asked: together they get 72 solicitations. */
const MAX_QUESTIONS = 24;
/** Routers that are kept of a link, and of all links. */
const MAX_ROUTERS = { ofLink: 32, ofAll: 64 } as const;
/** Neighbours that are kept. */
const MAX_NEIGHBOURS = 256;
/** Bytes that are read of each packet; nothing behind them matters. */
const MAX_PACKET_BYTES = 2048;
/** Packets that are read at a time, so that a flood costs bounded time. */
const PACKETS_A_TURN = 256;
const WATCHED = Object.values(TYPE);
/** Types that the firewall must let in. */
const LET_IN = [
  TYPE["Packet Too Big"],
  TYPE["Router Advertisement"],
  TYPE["Neighbor Advertisement"],
];
/** The return value of a filter that passes a whole packet. */
const WHOLE = 0xffff_ffff;

/**
 * Passes the ICMPv6 messages that are watched. Packets begin with the IPv6 header; the protocol is where Linux
 * shows it, SKF_AD_OFF + SKF_AD_PROTOCOL.
 */
const FILTER = encodeBpf([
  [BPF.loadHalf, 0xffff_f000],
  [BPF.jumpIfEqual, 0x86dd, 0, WATCHED.length + 3],
  [BPF.loadByte, 6],
  [BPF.jumpIfEqual, IPPROTO_ICMPV6, 0, WATCHED.length + 1],
  [BPF.loadByte, IPV6_HEADER_BYTES],
  ...WATCHED.map((type, at) => [BPF.jumpIfEqual, type, WATCHED.length - at, 0] as const),
  [BPF.returnConstant, 0],
  [BPF.returnConstant, WHOLE],
]);

/** Notes on the packets of a link: incoming ones before and behind the firewall, and outgoing ones. */
const newNotes = ({ index, hardware, isPointToPoint }: Interface) => ({
  ...{ index, hardware, isPointToPoint },
  /** The routers by their addresses, in the order in which they were heard. */
  routers: new Map<string, Router>(),
  /** Targets of neighbour advertisements, and of this machine's own duplicate address detection. */
  answered: new Set<string>(),
  detected: new Set<string>(),
  /** Types that arrived before the firewall, and types that it let in. */
  arrived: new Set<number>(),
  passed: new Set<number>(),
  /** Types that were sent, types that the kernel refused to send, and types that left. */
  sent: new Set<number>(),
  refused: new Set<number>(),
  left: new Set<number>(),
});

type Notes = ReturnType<typeof newNotes>;

const dropsOf = (types: ReadonlySet<number>, direction: "in" | "out") =>
  Array.from(types, (type) => ({ type, direction }));

/** ICMPv6 that the firewall of this machine drops. */
export type Drop = ReturnType<typeof dropsOf>[number];

/** A solicitation that is repeated until it is answered: of a gateway, or of all routers of a link if `ip` is null. */
interface Question {
  readonly notes: Notes;
  readonly ip: Ipv6Address | null;
  readonly sinceMs: number;
  count: number;
}

const isAnswered = ({ notes: { answered, routers }, ip }: Question) =>
  ip ? answered.has(formatIpv6(ip)) : routers.size > 0;

const isOver = ({ sinceMs }: Question) => performance.now() - sinceMs >= ANSWERED_MS;

/** Listens on links until it is closed, and asks their routers and gateways. */
export class Listener implements Disposable {
  readonly #sockets = new DisposableStack();
  readonly #raw: CarriedSocket;
  readonly #packet: CarriedSocket;
  readonly #links: ReadonlyMap<number, Notes>;
  readonly #own: ReadonlySet<string>;
  readonly #joined: ReadonlySet<number>;
  readonly #questions = new Map<string, Question>();
  #readMs = performance.now();

  /**
   * @param addresses of this machine; packets to other addresses, such as a container's, do not count as dropped
   * @throws SystemError `EPERM` without CAP_NET_RAW if the process was not started with the sockets
   */
  constructor(links: readonly Interface[], addresses: readonly OwnAddress[]) {
    this.#links = new Map(links.map((link) => [link.index, newNotes(link)]));
    this.#own = new Set(addresses.map(({ ip }) => formatIpv6(ip)));
    // A link joins its groups before it has an address, so a link with one has joined them.
    this.#joined = new Set(addresses.map(({ index }) => index));
    using opened = new DisposableStack();
    this.#raw = opened.use(new CarriedSocket("discovery"));
    this.#packet = opened.use(new CarriedSocket("packets"));
    this.#sockets = opened.move();
    this.#raw.set(OPTION.multicastHops, int(255));
    this.#raw.set(OPTION.unicastHops, int(255));
    this.#raw.set(OPTION.icmp6Filter, encodeTypeFilter(LET_IN));
    this.#raw.set(OPTION.attachFilter, bpfConstant(WHOLE));
    this.#packet.set(OPTION.attachFilter, bpfOption(FILTER));
    this.#packet.hearAll();
    for (const { index } of links) this.ask(index, null);
  }

  /** Begins to solicit a gateway on a link, or all its routers if `ip` is null. */
  ask(index: number, ip: Ipv6Address | null): void {
    const notes = this.#links.get(index);
    if (notes === undefined || this.#questions.size >= MAX_QUESTIONS) return;
    // The other end of a point-to-point link need not answer.
    if (ip && notes.isPointToPoint) return;
    const key = `${index} ${ip && formatIpv6(ip)}`;
    this.#questions.getOrInsert(key, { notes, ip, sinceMs: performance.now(), count: 0 });
  }

  /** Sends the solicitations that are due, reads the packets that have come, and asks each router that was heard. */
  turn(): void {
    for (const question of this.#questions.values()) {
      const { sinceMs, count } = question;
      const isDue = performance.now() - sinceMs >= (ASKED_MS[count] ?? Infinity);
      if (isDue && (count === 0 || !isAnswered(question))) this.#solicit(question);
    }
    this.read();
    for (const [index, { routers }] of this.#links)
      for (const { ip } of routers.values()) this.ask(index, ip);
  }

  /** True if each question is answered or has had enough time. */
  isDone(): boolean {
    return this.#questions.values().every((each) => isAnswered(each) || isOver(each));
  }

  /** The gateways that were asked: true if one has answered, false if not in time, null if it still may. */
  gateways() {
    const answersOf = (each: Question) => isAnswered(each) || (isOver(each) ? false : null);
    return [...this.#questions.values()].flatMap((each) =>
      each.ip ? [{ index: each.notes.index, ip: each.ip, answers: answersOf(each) }] : [],
    );
  }

  /** The findings by link: its routers, duplicates of own addresses (RFC 4862 section 5.4), and types that the firewall drops. */
  heard() {
    // If a buffer was full, a missing packet proves nothing.
    const isWhole = !this.#raw.hasDropped() && !this.#packet.hasDropped();
    return Array.from(this.#links, ([index, { routers, detected, answered, ...types }]) => ({
      index,
      routers: [...routers.values()],
      duplicates: [...detected.intersection(answered)] as readonly string[],
      drops: isWhole
        ? [
            ...dropsOf(types.sent.difference(types.left).union(types.refused), "out"),
            ...dropsOf(types.arrived.difference(types.passed), "in"),
          ]
        : [],
    }));
  }

  #solicit(question: Question): void {
    question.count++;
    const { index, hardware, sent, refused } = question.notes;
    const { to, type, message } = solicitationOf(question.ip, hardware);
    const code = this.#raw.send(message, socketName(to, index));
    const isRefused = code === "EPERM" || code === "ENOBUFS";
    // Any other error comes from this machine's addresses or links, not from a firewall.
    if (code === null || isRefused) sent.add(type);
    if (isRefused) refused.add(type);
  }

  /** Reads the packets that have come. */
  read(): void {
    const sinceMs = this.#readMs;
    this.#readMs = performance.now();
    for (const { bytes, name } of this.#packet.received()) {
      const packet = withoutPadding(bytes);
      const notes = this.#links.get(name.getInt32(SOCKADDR_LL.index, true));
      if (notes === undefined || packet.length < IPV6_HEADER_BYTES + 4) continue;
      const isOutgoing = name.getUint8(SOCKADDR_LL.packetType) === SOCKADDR_LL.outgoing;
      if (isOutgoing) noteOutgoing(notes, packet);
      else if (isChecksumRight(packet)) this.#noteIncoming(notes, packet, sinceMs);
    }
    // The raw socket is read last, so that a packet that comes meanwhile does not count as dropped.
    for (const { bytes, name } of this.#raw.received()) {
      const [type = 0] = bytes;
      const index = name.getUint32(SOCKADDR.scopeId, true);
      // A sender that is not link-local has no scope.
      for (const [at, { passed }] of this.#links) if (index === 0 || index === at) passed.add(type);
    }
  }

  #noteIncoming(
    { index, routers, answered, arrived }: Notes,
    packet: Uint8Array,
    heardMs: number,
  ): void {
    const message = packet.subarray(IPV6_HEADER_BYTES);
    const ip = ipv6FromBytes(packet.subarray(8, 24));
    const received = { source: ip, hopLimit: packet[7] ?? 0, message };
    const advertisement = parseAdvertisement(received);
    const neighbour = parseNeighbour(received);
    const count = this.#links.values().reduce((sum, each) => sum + each.routers.size, 0);
    const hasRoom = routers.size < MAX_ROUTERS.ofLink && count < MAX_ROUTERS.ofAll;
    const key = formatIpv6(ip);
    if (advertisement && (hasRoom || routers.has(key)))
      routers.set(key, { ip, ...advertisement, heardMs });
    if (neighbour && answered.size < MAX_NEIGHBOURS) answered.add(formatIpv6(neighbour));
    const [type = 0] = message;
    const isWatched = advertisement || neighbour || type === TYPE["Packet Too Big"];
    const destination = formatIpv6(ipv6FromBytes(packet.subarray(24, 40)));
    const isForHere = packet[24] === 0xff ? this.#joined.has(index) : this.#own.has(destination);
    if (isWatched && isForHere) arrived.add(type);
  }

  [Symbol.dispose](): void {
    this.#sockets.dispose();
  }
}

function noteOutgoing({ left, detected }: Notes, packet: Uint8Array): void {
  const message = packet.subarray(IPV6_HEADER_BYTES);
  const [type = 0] = message;
  left.add(type);
  const isUnspecified = packet.subarray(8, 24).every((byte) => byte === 0);
  if (type !== TYPE["Neighbor Solicitation"] || !isUnspecified || message.length < 24) return;
  detected.add(formatIpv6(ipv6FromBytes(message.subarray(8, 24))));
}

/** A socket that the process was started with, or a new one. */
class CarriedSocket implements Disposable {
  readonly #fd: number;
  readonly #isInherited: boolean;
  readonly #droppedBefore: number;

  /** @throws SystemError */
  constructor(kind: "discovery" | "packets") {
    const [family, type, protocol] = CARRIED[kind].socket;
    const inherited = inheritedSocket(kind);
    this.#isInherited = inherited !== null;
    this.#fd = inherited ?? openSocket(type, protocol, family);
    this.#droppedBefore = droppedBy(this.#fd);
  }

  /** Sets an option; no system refuses those that are set here. */
  set([level, option]: readonly [number, number], value: Uint8Array): void {
    libc().setsockopt(this.#fd, level, option, value, value.byteLength);
  }

  /** Receives the packets of all protocols, if it is a packet socket; packet(7). */
  hearAll(): void {
    const view = new DataView(new ArrayBuffer(SOCKADDR_LL.bytes));
    view.setUint16(SOCKADDR.family, AF_PACKET, true);
    view.setUint16(SOCKADDR_LL.protocol, ALL_PROTOCOLS, true);
    libc().bind(this.#fd, new Uint8Array(view.buffer), SOCKADDR_LL.bytes);
  }

  /** Sends a message; returns null, or the errno name of the refusal. */
  send(message: Uint8Array, name: Uint8Array): string | null {
    return failure(libc().sendto(this.#fd, message, message.length, 0, name, name.length));
  }

  /** The packets that have come, each with the name of its sender, up to the limit of one turn. */
  *received() {
    const buffer = new Uint8Array(new ArrayBuffer(MAX_PACKET_BYTES));
    const sender = new Uint8Array(new ArrayBuffer(SOCKADDR.bytes));
    const name = new DataView(sender.buffer);
    for (let count = 0; count < PACKETS_A_TURN; count++) {
      const size = int(SOCKADDR.bytes);
      const { recvfrom } = libc();
      const length = recvfrom(this.#fd, buffer, buffer.length, MSG_DONTWAIT, sender, size);
      if (length < 0) return;
      yield { bytes: buffer.slice(0, Number(length)), name };
    }
  }

  /** True if the kernel dropped packets because the buffer was full. */
  hasDropped(): boolean {
    return droppedBy(this.#fd) > this.#droppedBefore;
  }

  /** Closes the socket. An inherited socket cannot be opened again, so it stays open and drops all packets. */
  [Symbol.dispose](): void {
    if (!this.#isInherited) return void libc().close(this.#fd);
    this.set(OPTION.attachFilter, bpfConstant(0));
    while ([...this.received()].length > 0);
  }
}

/** The packet without the padding of its link. */
function withoutPadding(packet: Uint8Array): Uint8Array {
  const [high = 0, low = 0] = packet.subarray(4, 6);
  return packet.subarray(0, IPV6_HEADER_BYTES + high * 256 + low);
}

/** True if the checksum of an ICMPv6 packet is right; RFC 8200 section 8.1. */
function isChecksumRight(packet: Uint8Array): boolean {
  const pseudo = Uint8Array.of(...packet.subarray(4, 6), 0, IPPROTO_ICMPV6);
  // The addresses of the pseudo-header are right before the message.
  return internetChecksum(Buffer.concat([pseudo, packet.subarray(8)])) === 0;
}
