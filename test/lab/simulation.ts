import { addressBytes, addressText, isInPrefix, parsePrefix } from "./address.ts";
import { answersByRules } from "./answer-rules.ts";
import type {
  Destination,
  ErrorKind,
  Host,
  InternetDescription,
  Loss,
  Node,
  Path,
  RateLimit,
  Router,
} from "./internet-description.ts";
import {
  DESTINATION_UNREACHABLE,
  ECHO_REPLY,
  ECHO_REQUEST,
  formatEcho,
  formatError,
  type Ipv6Packet,
  icmpChecksum,
  MAX_QUOTATION_BYTES,
  mplsExtension,
  NEXT_HEADER_ICMPV6,
  PACKET_TOO_BIG,
  parseEcho,
  parsePacket,
  TIME_EXCEEDED,
  withHopLimit,
} from "./packet.ts";

/** A packet that comes back to the test host so much later. */
export type Answer = { readonly afterMs: number; readonly packet: Uint8Array };

/** Takes a packet that the test host sent, at a time of any steady clock; returns what comes back. */
export type Simulation = (bytes: Uint8Array, nowMs: number) => readonly Answer[];

/** RFC 4884 section 4: with extensions behind it, a quotation is padded to at least this length. */
const EXTENDED_QUOTATION_BYTES = 128;

const DEFAULT_HOP_LIMIT = 64;

/** A small repeatable source of numbers from 0 to 1 (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Counts from 1, for each key. */
function counter(): (key: string) => number {
  const counts = new Map<string, number>();
  return (key) => {
    const count = (counts.get(key) ?? 0) + 1;
    counts.set(key, count);
    return count;
  };
}

/** Token buckets, one for each key, that are full at first. */
export function rateLimiter(): (key: string, limit: RateLimit, nowMs: number) => boolean {
  const buckets = new Map<string, { tokensMs: number; filledAtMs: number }>();
  return (key, { intervalMs, burst }, nowMs) => {
    const capacityMs = burst * intervalMs;
    const bucket = buckets.get(key) ?? { tokensMs: capacityMs, filledAtMs: nowMs };
    const tokensMs = Math.min(capacityMs, bucket.tokensMs + nowMs - bucket.filledAtMs);
    const allowed = tokensMs >= intervalMs;
    buckets.set(key, { tokensMs: allowed ? tokensMs - intervalMs : tokensMs, filledAtMs: nowMs });
    return allowed;
  };
}

function choosePath(destination: Destination, packet: Ipv6Packet, random: () => number): Path {
  if (!("equalPaths" in destination)) return destination;
  const { equalPaths, balanceBy = "flowLabel" } = destination;
  if (balanceBy === "packet") return equalPaths[Math.floor(random() * equalPaths.length)] ?? {};
  const checksum = parseEcho(packet.payload)?.checksum ?? 0;
  const key = balanceBy === "checksum" ? checksum : packet.flowLabel;
  return equalPaths[key % equalPaths.length] ?? {};
}

/** The error that a router answers with instead of forwarding; null where it forwards. */
function errorOf(router: Router, arrived: Uint8Array, hopLimit: number): ErrorKind | null {
  if (hopLimit <= 1) return { type: TIME_EXCEEDED, code: 0 };
  if (router.error) return router.error;
  const isTooBig = arrived.length > (router.mtu ?? Number.POSITIVE_INFINITY);
  return isTooBig ? { type: PACKET_TOO_BIG, code: 0 } : null;
}

/** The error that a node sends about a packet, as it arrived there. */
function errorAbout(
  arrived: Uint8Array,
  { type, code }: ErrorKind,
  { quotationBytes = MAX_QUOTATION_BYTES, ...node }: Router | Host,
): Uint8Array {
  const labels = "extensions" in node ? node.extensions : undefined;
  if (labels === undefined || (type !== DESTINATION_UNREACHABLE && type !== TIME_EXCEEDED)) {
    const word = type === PACKET_TOO_BIG && "mtu" in node ? (node.claimedMtu ?? node.mtu ?? 0) : 0;
    const quotation = arrived.subarray(0, quotationBytes);
    return formatError({ type, code, word, quotation, extensions: new Uint8Array() });
  }
  const extensions = labels instanceof Uint8Array ? labels : mplsExtension(labels);
  const quotation = new Uint8Array(EXTENDED_QUOTATION_BYTES);
  quotation.set(arrived.subarray(0, Math.min(quotationBytes, quotation.length)));
  const lengthField =
    ("lengthField" in node ? node.lengthField : undefined) ?? quotation.length / 8;
  return formatError({ type, code, word: lengthField * 2 ** 24, quotation, extensions });
}

/**
 * The simulated internet without its clock and device: what each packet of the test host meets on
 * its way, and what comes back when.
 */
export function createSimulation(description: InternetDescription): Simulation {
  const random = randomFrom(description.seed ?? 1);
  const answered = counter();
  const forwarded = counter();
  const withinLimit = rateLimiter();
  let many = 0;
  const destinations = description.destinations
    .map((destination) => ({ destination, prefix: parsePrefix(destination.to) }))
    .sort((a, b) => b.prefix.bits - a.prefix.bits);

  const isLost = (loss: Loss | undefined, count: number): boolean =>
    typeof loss === "number" ? random() < loss : (loss?.includes(count) ?? false);

  /** The packets that arrive when a node's answer comes back over `distance` links. */
  const send = (
    node: Node,
    from: Uint8Array,
    probe: Ipv6Packet,
    message: Uint8Array,
    distance: number,
  ): readonly Answer[] => {
    const count = answered(addressText(from));
    if (node.silent || isLost(node.loss, count)) return [];
    const answer = {
      source: from,
      destination: probe.source,
      hopLimit: Math.max(1, (node.hopLimit ?? DEFAULT_HOP_LIMIT) - distance + 1),
      message,
    };
    const afterMs = (node.rttMs ?? 0) + random() * (node.jitterMs ?? 0);
    return answersByRules(node.rules ?? [], count, answer, afterMs, random);
  };

  return (bytes, nowMs) => {
    const packet = parsePacket(bytes);
    const found =
      packet &&
      destinations.find(({ prefix }) => isInPrefix(packet.destination, prefix))?.destination;
    if (!packet || !found) return [];
    const { routers = [], end = {} } = choosePath(found, packet, random);
    const loopOf = typeof end === "object" && "loopOf" in end ? end.loopOf : 0;

    const routerAt = (index: number): Router | undefined =>
      index < routers.length || loopOf === 0
        ? routers[index]
        : routers[routers.length - loopOf + ((index - routers.length) % loopOf)];

    let router = routerAt(0);
    for (let index = 0; router; router = routerAt(++index)) {
      const hopLimit = packet.hopLimit - index;
      const arrived = withHopLimit(bytes, hopLimit);
      const error = errorOf(router, arrived, hopLimit);
      if (error) {
        const key = `${router.address} ${addressText(packet.source)}`;
        if (router.rateLimit && !withinLimit(key, router.rateLimit, nowMs)) return [];
        const message = errorAbout(arrived, error, router);
        const from = addressBytes(router.address);
        if (router.isMany) new DataView(from.buffer).setUint32(12, ++many);
        return send(router, from, packet, message, index + 1);
      }
      if (isLost(router.forwardLoss, forwarded(router.address))) return [];
    }
    if (end === "blackhole" || "loopOf" in end) return [];

    const distance = routers.length + 1;
    const arrived = withHopLimit(bytes, packet.hopLimit - routers.length);
    const isSound =
      packet.nextHeader === NEXT_HEADER_ICMPV6 &&
      icmpChecksum(packet.source, packet.destination, packet.payload) === 0;
    const echo = isSound ? parseEcho(packet.payload) : null;
    if (echo?.type !== ECHO_REQUEST) return [];
    const message = end.error
      ? errorAbout(arrived, end.error, end)
      : formatEcho({ ...echo, type: ECHO_REPLY });
    return send(end, packet.destination, packet, message, distance);
  };
}
