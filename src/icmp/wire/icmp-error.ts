import { type Ipv6Address, ipv6FromBytes } from "../../addr/ipv6.ts";
import { ByteReader, FormatError } from "../../util/bytes.ts";
import { attempt } from "../../util/errors.ts";
import { safeText } from "../../util/text.ts";
import { type ErrorMessage, internetChecksum, TYPE } from "./packet.ts";
import registry from "./registry.json" with { type: "json" };

/** Names of ICMPv6 errors by type and code, as in IANA's registry of ICMPv6 codes. */
const NAMES: Readonly<Record<string, { readonly other: string; readonly codes: string[] }>> =
  registry.errors;

/** The name of an ICMPv6 error, such as `no-route` for type 1 code 0; the name of the type for an unknown code. */
export function errorName(type: number, code: number): string {
  const names = NAMES[type];
  return names?.codes[code] ?? names?.other ?? `type-${type}`;
}

/** Codes of Destination Unreachable that report a policy rather than a missing route. */
const POLICY_CODES: readonly number[] = [1, 5, 6];

/**
 * Interprets an error as the answer to a probe: `hop` if its sender is a hop, `inconclusive` if the probe may have
 * arrived, else the reason why the path ends; RFC 4443 section 3.
 */
export function errorMeaning(type: number, code: number) {
  if (type === TYPE.destinationUnreachable) {
    return POLICY_CODES.includes(code) ? "prohibited" : "unreachable";
  }
  if (type === TYPE.packetTooBig) return "packet-too-big";
  if (type === TYPE.parameterProblem) return "parameter-problem";
  // Code 1 is a failed reassembly, which another copy of the probe may survive.
  return type === TYPE.timeExceeded && code === 0 ? "hop" : "inconclusive";
}

/** The offset of extensions if the sender gives no length; RFC 4884 section 5.5. */
const DEFAULT_OFFSET_BYTES = 128;
/** A shorter invoking packet has no room for the headers of a probe: its length is wrong and is ignored. */
const LEAST_WORDS = 6;
/** Bytes of the header of the extensions, and of each object. */
const HEADER_BYTES = 4;
const VERSION = 2;
/** Objects that are decoded; more with any content do not fit into 1280 bytes. */
const MAX_OBJECTS = 32;

/** One entry of an MPLS label stack; RFC 4950 section 4 and RFC 3032 section 2.1. */
export type MplsLabel = ReturnType<typeof decodeMpls>[number];

/** The roles of an interface, by the first two bits of the class type; RFC 5837 section 4.1. */
export const INTERFACE_ROLES = ["incoming", "sub-ip", "outgoing", "next-hop"] as const;

/** A router's report about one of its interfaces; RFC 5837 section 4. */
export type InterfaceInformation = ReturnType<typeof decodeInterface>;

/** The extensions of an error that sixscope interprets, in their order. */
export type Extensions = ReturnType<typeof decodeObjects>;

const NO_EXTENSIONS: Extensions = { mpls: [], interfaces: [] };

/**
 * Splits the body of an error into the invoking packet and the extensions; RFC 4884 sections 4 and 5.5.
 * Extensions with a wrong version, checksum or length count as absent; a malformed object is skipped.
 */
export function splitExtensions({ type, body, quotedWords }: ErrorMessage) {
  const withoutExtensions = { invokingPacket: body, extensions: NO_EXTENSIONS };
  if (type !== TYPE.destinationUnreachable && type !== TYPE.timeExceeded) return withoutExtensions;
  const hasLength = quotedWords >= LEAST_WORDS;
  const offset = hasLength ? quotedWords * 8 : DEFAULT_OFFSET_BYTES;
  const cut = { ...withoutExtensions, invokingPacket: body.subarray(0, offset) };
  const bytes = body.subarray(offset);
  if (isExtensionStructure(bytes)) return { ...cut, extensions: decodeObjects(bytes) };
  return hasLength ? cut : withoutExtensions;
}

function isExtensionStructure(bytes: Uint8Array): boolean {
  if (bytes.length < HEADER_BYTES || (bytes[0] as number) >>> 4 !== VERSION) return false;
  return (bytes[2] === 0 && bytes[3] === 0) || internetChecksum(bytes) === 0;
}

/** Decodes the objects of two classes; IANA "ICMP Extension Object Classes". */
function decodeObjects(bytes: Uint8Array) {
  const mpls: MplsLabel[] = [];
  const interfaces: InterfaceInformation[] = [];
  const reader = new ByteReader(bytes, HEADER_BYTES);
  for (let count = 0; count < MAX_OBJECTS && reader.remaining >= HEADER_BYTES; count++) {
    const bodyBytes = reader.uint16() - HEADER_BYTES;
    const [objectClass, classType] = [reader.uint8(), reader.uint8()];
    if (bodyBytes < 0 || bodyBytes > reader.remaining) break;
    const body = reader.take(bodyBytes);
    if (objectClass === 1 && classType === 1) mpls.push(...decodeMpls(body));
    if (objectClass !== 2) continue;
    const information = attempt(() => decodeInterface(classType, body), FormatError);
    if (information) interfaces.push(information);
  }
  return { mpls, interfaces };
}

function decodeMpls(body: Uint8Array) {
  const reader = new ByteReader(body);
  return Array.from({ length: Math.floor(body.length / 4) }, () => {
    const entry = reader.uint32();
    return {
      /** 20 bits. */
      label: entry >>> 12,
      /** 3 bits: traffic class. */
      trafficClass: (entry >>> 9) & 7,
      bottomOfStack: (entry & 0x100) !== 0,
      ttl: entry & 0xff,
    };
  });
}

/** Bits of the class type that announce fields, in their order; RFC 5837 section 4.1. */
const HAS = { index: 0x08, address: 0x04, name: 0x02, mtu: 0x01 } as const;
/** IANA "Address Family Numbers". */
const FAMILY = { ipv4: 1, ipv6: 2 } as const;
const MAX_NAME_BYTES = 64;

/** Throws FormatError if the object is malformed. */
function decodeInterface(classType: number, body: Uint8Array) {
  const reader = new ByteReader(body);
  return {
    role: INTERFACE_ROLES[classType >>> 6] as (typeof INTERFACE_ROLES)[number],
    index: classType & HAS.index ? reader.uint32() : null,
    /** Null also for an IPv4 address. */
    address: classType & HAS.address ? readAddress(reader) : null,
    name: classType & HAS.name ? readName(reader) : null,
    mtuBytes: classType & HAS.mtu ? reader.uint32() : null,
  };
}

function readAddress(reader: ByteReader): Ipv6Address | null {
  const family = reader.uint16();
  reader.take(2);
  if (family !== FAMILY.ipv4 && family !== FAMILY.ipv6) {
    throw new FormatError(`no length is known for address family ${family}`);
  }
  const bytes = reader.take(family === FAMILY.ipv4 ? 4 : 16);
  return family === FAMILY.ipv6 ? ipv6FromBytes(bytes) : null;
}

/** Reads a name. Its length byte counts itself, and zeros fill up its last word. */
function readName(reader: ByteReader): string {
  const length = reader.uint8();
  if (length > MAX_NAME_BYTES) throw new FormatError(`a name of ${length} bytes`);
  const name = safeText(reader.take(length - 1), MAX_NAME_BYTES);
  reader.take(Math.min(-length & 3, reader.remaining));
  return name;
}
