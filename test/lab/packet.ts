/**
 * IPv6 and ICMPv6 as bytes: the laboratory's own second implementation, so that a mistake in
 * `src/icmp` cannot hide behind the same mistake here.
 */
import { ByteReader } from "../../src/util/bytes.ts";
import { ByteWriter } from "./byte-writer.ts";

/** The next header value, and protocol of a raw socket, that means ICMPv6; RFC 4443 section 2.1. */
export const NEXT_HEADER_ICMPV6 = 58;
/** ICMPv6 type; RFC 4443 section 4.1. */
export const ECHO_REQUEST = 128;
/** ICMPv6 type; RFC 4443 section 4.2. */
export const ECHO_REPLY = 129;
/** ICMPv6 type; RFC 4443 section 3.1. */
export const DESTINATION_UNREACHABLE = 1;
/** ICMPv6 type; RFC 4443 section 3.2. */
export const PACKET_TOO_BIG = 2;
/** ICMPv6 type; RFC 4443 section 3.3. */
export const TIME_EXCEEDED = 3;

/** Bytes of an IPv6 header; RFC 8200 section 3. */
export const IPV6_HEADER_BYTES = 40;

/** The maximum length of an error message, IPv6 header included; RFC 4443 section 2.4 (c). */
const MINIMUM_MTU = 1280;

/** The most that an error can quote: the minimum MTU less the IPv6 and ICMPv6 headers. */
export const MAX_QUOTATION_BYTES = MINIMUM_MTU - IPV6_HEADER_BYTES - 8;

/** An IPv6 packet; RFC 8200 section 3. Addresses are 16 bytes. */
export type Ipv6Packet = {
  readonly trafficClass: number;
  readonly flowLabel: number;
  readonly nextHeader: number;
  readonly hopLimit: number;
  readonly source: Uint8Array;
  readonly destination: Uint8Array;
  readonly payload: Uint8Array;
};

/** Reads an IPv6 packet, which may be cut short behind its header; null when it is none. */
export function parsePacket(bytes: Uint8Array): Ipv6Packet | null {
  if (bytes.length < IPV6_HEADER_BYTES) return null;
  const reader = new ByteReader(bytes);
  const first = reader.uint32();
  if (first >>> 28 !== 6) return null;
  const payloadBytes = reader.uint16();
  return {
    trafficClass: (first >>> 20) & 0xff,
    flowLabel: first & 0xfffff,
    nextHeader: reader.uint8(),
    hopLimit: reader.uint8(),
    source: reader.take(16),
    destination: reader.take(16),
    payload: reader.take(Math.min(payloadBytes, reader.remaining)),
  };
}

/** Writes an IPv6 packet. */
export function formatPacket(packet: Ipv6Packet): Uint8Array {
  return new ByteWriter(IPV6_HEADER_BYTES + packet.payload.length)
    .uint32(((6 << 28) | (packet.trafficClass << 20) | packet.flowLabel) >>> 0)
    .uint16(packet.payload.length)
    .uint8(packet.nextHeader)
    .uint8(packet.hopLimit)
    .put(packet.source)
    .put(packet.destination)
    .put(packet.payload)
    .finish();
}

/** A copy of a packet's bytes with another hop limit. */
export function withHopLimit(bytes: Uint8Array, hopLimit: number): Uint8Array {
  const copy = bytes.slice();
  copy[7] = hopLimit;
  return copy;
}

/** The Internet checksum (RFC 1071) of parts; all but the last have an even length. */
function internetChecksum(parts: readonly Uint8Array[], initial = 0): number {
  let sum = initial;
  for (const bytes of parts) {
    for (let index = 0; index < bytes.length; index += 2) {
      sum += ((bytes[index] ?? 0) << 8) | (bytes[index + 1] ?? 0);
    }
  }
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}

/**
 * The checksum over the pseudo-header and an ICMPv6 message (RFC 8200 section 8.1, RFC 4443 section
 * 2.3): what belongs into a message whose checksum field is 0, and 0 for a message whose checksum
 * is right.
 */
export function icmpChecksum(
  source: Uint8Array,
  destination: Uint8Array,
  message: Uint8Array,
): number {
  return internetChecksum([source, destination, message], message.length + NEXT_HEADER_ICMPV6);
}

/** Writes an ICMPv6 packet from a message whose checksum is filled in here. */
export function formatIcmp(
  header: Pick<Ipv6Packet, "source" | "destination" | "hopLimit">,
  message: Uint8Array,
): Uint8Array {
  const payload = message.slice();
  payload.fill(0, 2, 4);
  const sum = icmpChecksum(header.source, header.destination, payload);
  payload[2] = sum >>> 8;
  payload[3] = sum;
  return formatPacket({
    trafficClass: 0,
    flowLabel: 0,
    nextHeader: NEXT_HEADER_ICMPV6,
    ...header,
    payload,
  });
}

/** An echo request or reply; RFC 4443 section 4. */
export type Echo = {
  readonly type: number;
  readonly checksum: number;
  readonly identifier: number;
  readonly sequence: number;
  readonly data: Uint8Array;
};

/** Reads an echo request or reply from an ICMPv6 message; null for anything else. */
export function parseEcho(message: Uint8Array): Echo | null {
  if (message.length < 8) return null;
  const reader = new ByteReader(message);
  const type = reader.uint8();
  if (type !== ECHO_REQUEST && type !== ECHO_REPLY) return null;
  reader.uint8();
  return {
    type,
    checksum: reader.uint16(),
    identifier: reader.uint16(),
    sequence: reader.uint16(),
    data: reader.take(reader.remaining),
  };
}

/** Writes an echo message, its checksum 0. */
export function formatEcho({
  type,
  identifier,
  sequence,
  data,
}: Omit<Echo, "checksum">): Uint8Array {
  return new ByteWriter(8 + data.length)
    .uint8(type)
    .uint8(0)
    .uint16(0)
    .uint16(identifier)
    .uint16(sequence)
    .put(data)
    .finish();
}

/** An ICMPv6 error; RFC 4443 section 3, RFC 4884 section 4. */
export type IcmpError = {
  readonly type: number;
  readonly code: number;
  /** The second word of the message: an MTU, a pointer, or the length field of RFC 4884 in its first byte. */
  readonly word: number;
  /** As much of the packet that caused the error as is quoted. */
  readonly quotation: Uint8Array;
  /** The extension structure of RFC 4884 behind the quotation; empty for none. */
  readonly extensions: Uint8Array;
};

/** Writes an ICMPv6 error message, its checksum 0. */
export function formatError({ type, code, word, quotation, extensions }: IcmpError): Uint8Array {
  return new ByteWriter(8 + quotation.length + extensions.length)
    .uint8(type)
    .uint8(code)
    .uint16(0)
    .uint32(word)
    .put(quotation)
    .put(extensions)
    .finish();
}

/** An entry of an MPLS label stack; RFC 3032 section 2.1. */
export type MplsLabel = {
  readonly label: number;
  readonly trafficClass?: number;
  readonly hopLimit?: number;
};

/** An RFC 4884 extension structure with one object: the MPLS label stack of RFC 4950. */
export function mplsExtension(labels: readonly MplsLabel[]): Uint8Array {
  const structure = new ByteWriter(8 + 4 * labels.length)
    .uint32(0x2000_0000)
    .uint16(4 + 4 * labels.length)
    .uint8(1)
    .uint8(1);
  for (const [index, { label, trafficClass = 0, hopLimit = 1 }] of labels.entries()) {
    const bottom = index === labels.length - 1 ? 1 : 0;
    structure.uint32(((label << 12) | (trafficClass << 9) | (bottom << 8) | hopLimit) >>> 0);
  }
  const bytes = structure.finish();
  const sum = internetChecksum([bytes]);
  bytes[2] = sum >>> 8;
  bytes[3] = sum;
  return bytes;
}
