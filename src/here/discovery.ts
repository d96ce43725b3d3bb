/** Neighbor Discovery on the wire; RFC 4861. */
import {
  type Ipv6Address,
  ipv6FromBytes,
  ipv6FromWords,
  ipv6ToBytes,
  isLinkLocal,
} from "../addr/ipv6.ts";
import { solicitedNodeGroup } from "../addr/multicast.ts";
import { prefixOf } from "../addr/prefix.ts";
import { ByteReader, FormatError } from "../util/bytes.ts";
import { attempt } from "../util/errors.ts";

/** ICMPv6 types by the names of their messages; RFC 4861 section 4, and Packet Too Big of RFC 4443 section 3.2. */
export const TYPE = {
  "Packet Too Big": 2,
  "Router Solicitation": 133,
  "Router Advertisement": 134,
  "Neighbor Solicitation": 135,
  "Neighbor Advertisement": 136,
} as const;

/** All routers of a link; RFC 4291 section 2.7.1. */
const ALL_ROUTERS = ipv6FromWords(0xff020000, 0, 0, 2);

/** Options of one kind that are kept. */
const MAX_OPTIONS = 8;
const MIN_BYTES = { 134: 16, 136: 24 } as const;
const OPTION = { target: 2, prefix: 3, mtu: 5, resolvers: 25, nat64: 38 } as const;
/** Prefix lengths of a translator by their code; RFC 8781 section 4. */
const NAT64_LENGTHS = [96, 64, 56, 48, 40, 32];
const PREFERENCES = ["medium", "high", "medium", "low"] as const;

/** A received packet. Only a sender on this link can make it arrive with the hop limit 255. */
export interface Arrived {
  readonly source: Ipv6Address;
  readonly hopLimit: number;
  /** The ICMPv6 message, whose checksum is right. */
  readonly message: Uint8Array;
}

/** The options of a message of a type, in order; null for another message, and for one that RFC 4861 sections 6.1.2 and 7.1.2 discard. */
function optionsIn({ hopLimit, message }: Arrived, type: keyof typeof MIN_BYTES) {
  const [least, isOfType] = [MIN_BYTES[type], message[0] === type && message[1] === 0];
  if (!isOfType || hopLimit !== 255 || message.length < least) return null;
  const readAll = () => {
    const reader = new ByteReader(message, least);
    const options: { readonly type: number; readonly body: ByteReader }[] = [];
    while (reader.remaining > 0) {
      const type = reader.uint8();
      const bytes = reader.uint8() * 8;
      options.push({ type, body: new ByteReader(reader.take(bytes - 2)) });
    }
    return options;
  };
  return attempt(readAll, FormatError) ?? null;
}

/** A router's description of itself and of its link; RFC 4861 section 4.2. A lifetime of null is for ever. */
export type Advertisement = NonNullable<ReturnType<typeof parseAdvertisement>>;

/** A prefix of an advertisement; RFC 4861 section 4.6.2. */
export type AdvertisedPrefix = ReturnType<typeof readPrefix>;

/** Reads an advertisement of a router; null for another message, and for one that RFC 4861 section 6.1.2 discards. */
export function parseAdvertisement(arrived: Arrived) {
  const options = optionsIn(arrived, TYPE["Router Advertisement"]);
  if (!options || !isLinkLocal(arrived.source)) return null;
  const head = new ByteReader(arrived.message, 4);
  const [hops, flags, lifetimeSeconds] = [head.uint8(), head.uint8(), head.uint16()];
  const readOptions = <Row>(kind: number, readRow: (body: ByteReader) => Row) =>
    options
      .filter(({ type }) => type === kind)
      // An option that is shorter than its kind needs is skipped.
      .flatMap(({ body }) => attempt(() => [readRow(body)], FormatError) ?? [])
      .slice(0, MAX_OPTIONS);
  return {
    lifetimeSeconds,
    /** RFC 4191 section 2.1. */
    preference: PREFERENCES[((flags >>> 3) & 3) as 0 | 1 | 2 | 3],
    managed: (flags & 0x80) !== 0,
    other: (flags & 0x40) !== 0,
    hopLimit: hops,
    mtu: readOptions(OPTION.mtu, (body) => [body.uint16(), body.uint32()]).at(-1)?.[1] ?? null,
    prefixes: readOptions(OPTION.prefix, readPrefix),
    resolvers: readOptions(OPTION.resolvers, readResolvers).flat().slice(0, MAX_OPTIONS),
    nat64Prefixes: readOptions(OPTION.nat64, readNat64),
  };
}

function readPrefix(body: ByteReader) {
  const [length, flags] = [body.uint8(), body.uint8()];
  const [validSeconds, preferredSeconds] = [lifetime(body), lifetime(body)];
  body.uint32();
  if (length > 128) throw new FormatError(`a prefix of ${length} bits`);
  return {
    prefix: prefixOf(ipv6FromBytes(body.take(16)), length),
    onLink: (flags & 0x80) !== 0,
    autonomous: (flags & 0x40) !== 0,
    preferredSeconds,
    validSeconds,
  };
}

/** The resolvers of an option; RFC 8106 section 5.1. */
function readResolvers(body: ByteReader) {
  body.uint16();
  const lifetimeSeconds = lifetime(body);
  // An option that ends within an address is not valid; RFC 8106 section 5.3.1.
  const ips = Array.from({ length: Math.ceil(body.remaining / 16) }, () => body.take(16));
  return ips.map((ip) => ({ ip: ipv6FromBytes(ip), lifetimeSeconds }));
}

/** The prefix of a translator, with its lifetime in units of eight seconds; RFC 8781 section 4. */
function readNat64(body: ByteReader) {
  const word = body.uint16();
  const length = NAT64_LENGTHS[word & 7];
  if (length === undefined || body.remaining !== 12)
    throw new FormatError(`prefix length code ${word & 7}, and ${body.remaining} bytes`);
  const network = ipv6FromBytes(Uint8Array.of(...body.take(12), 0, 0, 0, 0));
  return { prefix: prefixOf(network, length), lifetimeSeconds: (word >>> 3) * 8 };
}

function lifetime(body: ByteReader): number | null {
  const seconds = body.uint32();
  return seconds === 0xffff_ffff ? null : seconds;
}

/** The target of an advertisement of a neighbour; null for another message, and for one that RFC 4861 section 7.1.2 discards. */
export function parseNeighbour(arrived: Arrived): Ipv6Address | null {
  const target = arrived.message.subarray(8, 24);
  const isValid = optionsIn(arrived, TYPE["Neighbor Advertisement"]) && target[0] !== 0xff;
  return isValid ? ipv6FromBytes(target) : null;
}

/**
 * A solicitation of one neighbour, or of all routers if the target is null, with this machine's link-layer address;
 * RFC 4861 sections 4.1, 4.3 and 4.6.1. The kernel fills in the checksum.
 *
 * @param hardware the link-layer address, which is left out unless it is an Ethernet address
 */
export function solicitationOf(target: Ipv6Address | null, hardware: Uint8Array) {
  const option = hardware.length === 6 ? [1, 1, ...hardware] : [];
  const [to, type, body] = target
    ? ([solicitedNodeGroup(target), TYPE["Neighbor Solicitation"], ipv6ToBytes(target)] as const)
    : ([ALL_ROUTERS, TYPE["Router Solicitation"], []] as const);
  return { to, type, message: Uint8Array.of(type, 0, 0, 0, 0, 0, 0, 0, ...body, ...option) };
}
