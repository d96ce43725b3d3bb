import { type Ipv6Address, ipv6FromBytes, ipv6ToBytes } from "../../addr/ipv6.ts";

/** Length of the header of every ICMPv6 message, echo included; RFC 4443 sections 2.1 and 4.1. */
export const HEADER_BYTES = 8;

/** Length of the fixed IPv6 header; RFC 8200 section 3. */
export const IPV6_HEADER_BYTES = 40;

/** The least MTU of an IPv6 link; RFC 8200 section 5. */
export const LEAST_MTU = 1280;

/** ICMPv6 types; RFC 4443 section 2.1. */
export const TYPE = {
  destinationUnreachable: 1,
  packetTooBig: 2,
  timeExceeded: 3,
  parameterProblem: 4,
  echoRequest: 128,
  echoReply: 129,
} as const;

/** The Next Header of ICMPv6; IANA protocol numbers. */
export const NEXT_HEADER_ICMPV6 = 58;

/** Extension headers that a machine on the way may add: hop-by-hop options, routing, fragment, destination options. */
export const EXTENSION_HEADERS: readonly number[] = [0, 43, 44, 60];

type Message = NonNullable<ReturnType<typeof decodeMessage>>;

/** An echo request or reply; RFC 4443 section 4. */
export type EchoMessage = Exclude<Message, { kind: "error" }>;

/** An error message, types 1 to 4; RFC 4443 section 3. */
export type ErrorMessage = Extract<Message, { kind: "error" }>;

/** Bytes of random data at the start of each payload; only machines on the path know them. */
export const COOKIE_BYTES = 8;

/** Bytes of payload that `ping` sends by default. */
export const PAYLOAD_BYTES = 56;

/**
 * The Internet checksum of bytes, RFC 1071: 0 over bytes that hold their own correct checksum. An odd
 * last byte is padded with 0.
 */
export function internetChecksum(bytes: Uint8Array): number {
  let sum = 0;
  for (let at = 0; at < bytes.length; at += 2) {
    sum += ((bytes[at] as number) << 8) | (bytes[at + 1] ?? 0);
  }
  while (sum > 0xffff) sum = (sum & 0xffff) + Math.floor(sum / 0x10000);
  return ~sum & 0xffff;
}

/**
 * An echo request, whose checksum the kernel fills in; RFC 4443 section 4.1. A word behind the cookie cancels
 * identifier, sequence, cookie and length out of the checksum. Routers that choose among equal paths by the
 * first four bytes of ICMPv6 then send all probes of one flow label the same way.
 *
 * @param identifier 16 bits
 * @param sequence 16 bits
 * @param payloadBytes at least 10
 * @param flowLabel 20 bits; 16 of them decide the checksum
 */
export function encodeEchoRequest(
  identifier: number,
  sequence: number,
  cookie: Uint8Array,
  payloadBytes = PAYLOAD_BYTES,
  flowLabel = 0,
): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(HEADER_BYTES + payloadBytes);
  bytes.set([identifier >>> 8, identifier, sequence >>> 8, sequence], 4);
  bytes.set(cookie, HEADER_BYTES);
  // The kernel's checksum covers the length too; RFC 8200 section 8.1.
  bytes.set([flowLabel >>> 12, flowLabel >>> 4, bytes.length >>> 8, bytes.length]);
  // The bytes behind the cookie are zeros.
  const checksum = internetChecksum(bytes.subarray(0, HEADER_BYTES + COOKIE_BYTES));
  bytes.set([checksum >>> 8, checksum], HEADER_BYTES + COOKIE_BYTES);
  bytes.set([TYPE.echoRequest, 0, 0, 0]);
  return bytes;
}

/**
 * The checksum that the kernel writes into all echo requests with a source, target and flow label; see
 * `encodeEchoRequest`. An error through translators quotes it unchanged: they adjust it there and back; RFC 7915.
 */
export function echoChecksum(source: Ipv6Address, target: Ipv6Address, flowLabel: number): number {
  const addresses = [...ipv6ToBytes(source), ...ipv6ToBytes(target)];
  const others = [TYPE.echoRequest, NEXT_HEADER_ICMPV6, ~(flowLabel >>> 12), ~(flowLabel >>> 4)];
  return internetChecksum(Uint8Array.of(...addresses, ...others));
}

/** Two bytes in network order. Small packets need no DataView, which takes longer to make than to use. */
const uint16 = (bytes: Uint8Array, at: number) =>
  ((bytes[at] as number) << 8) | (bytes[at + 1] as number);

/**
 * Decodes an ICMPv6 message; RFC 4443. The kernel has verified the checksum.
 *
 * @returns views into `bytes`; null for other types, and for bytes that end within the header
 */
export function decodeMessage(bytes: Uint8Array) {
  if (bytes.length < HEADER_BYTES) return null;
  const type = bytes[0] as number;
  const data = bytes.subarray(HEADER_BYTES);
  if (type === TYPE.echoRequest || type === TYPE.echoReply) {
    const kind = type === TYPE.echoReply ? "echo-reply" : "echo-request";
    return { kind, identifier: uint16(bytes, 4), sequence: uint16(bytes, 6), data } as const;
  }
  if (type < TYPE.destinationUnreachable || type > TYPE.parameterProblem) return null;
  return {
    kind: "error",
    type,
    code: bytes[1] as number,
    /** The second word: the MTU of a Packet Too Big, the pointer of a Parameter Problem. */
    parameter: uint16(bytes, 4) * 0x10000 + uint16(bytes, 6),
    /** Length of the invoking packet in 64-bit words, 0 if not given; RFC 4884 section 4.2. */
    quotedWords: bytes[4] as number,
    /** As much of the invoking packet as fits, then any extensions. */
    body: data,
  } as const;
}

/**
 * Decodes the invoking packet of an error; RFC 4443 section 3. Probes have no extension headers, but may get
 * some on the way. The hop limit is left out: routers write different values there.
 *
 * @returns the flow label of 20 bits, the destination, the checksum, and the echo request, cut where the packet
 *   is cut; null if the bytes are not an IPv6 packet with an echo request
 */
export function decodeInvokingPacket(bytes: Uint8Array) {
  if (bytes.length < IPV6_HEADER_BYTES || (bytes[0] as number) >>> 4 !== 6) return null;
  let [nextHeader, at] = [bytes[6], IPV6_HEADER_BYTES];
  while (EXTENSION_HEADERS.includes(nextHeader ?? -1)) {
    nextHeader = bytes[at];
    at += 8 * ((bytes[at + 1] ?? 0) + 1);
  }
  const echo = nextHeader === NEXT_HEADER_ICMPV6 ? decodeMessage(bytes.subarray(at)) : null;
  if (echo?.kind !== "echo-request") return null;
  const [, high, middle, low] = bytes as unknown as [number, number, number, number];
  const flowLabel = ((high & 0xf) << 16) | (middle << 8) | low;
  const checksum = uint16(bytes, at + 2);
  return { flowLabel, destination: ipv6FromBytes(bytes.subarray(24, 40)), checksum, echo };
}
