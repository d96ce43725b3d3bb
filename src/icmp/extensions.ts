import { type Ipv6Address, ipv6FromBytes } from "../addr/ipv6.ts";
import { safeText } from "../util/text.ts";
import { internetChecksum } from "./checksum.ts";
import { type ErrorMessage, TYPE } from "./message.ts";

/** Where extensions begin when the sender states no length; RFC 4884 section 5.5. */
const DEFAULT_OFFSET_BYTES = 128;
const HEADER_BYTES = 4;
const VERSION = 2;
/** An error fits into 1280 bytes, so more objects than this are nonsense. */
const MAX_OBJECTS = 32;

/** One entry of an MPLS label stack; RFC 4950 section 4 and RFC 3032 section 2.1. */
export interface MplsLabel {
  /** 20 bits. */
  readonly label: number;
  /** 3 bits: traffic class. */
  readonly trafficClass: number;
  readonly bottomOfStack: boolean;
  readonly ttl: number;
}

/** What a router tells of one of its interfaces; RFC 5837 section 4. */
export interface InterfaceInformation {
  readonly role: "incoming" | "sub-ip" | "outgoing" | "next-hop";
  readonly index: number | null;
  /** Null too for an IPv4 address. */
  readonly address: Ipv6Address | null;
  readonly name: string | null;
  readonly mtuBytes: number | null;
}

/** The extensions of an error message that sixscope understands, in the order in which they stand. */
export interface Extensions {
  readonly mpls: readonly MplsLabel[];
  readonly interfaces: readonly InterfaceInformation[];
}

/** What an error says that has no extensions. */
export const NO_EXTENSIONS: Extensions = { mpls: [], interfaces: [] };

interface Collected {
  readonly mpls: MplsLabel[];
  readonly interfaces: InterfaceInformation[];
}

/** Object classes; IANA "ICMP Extension Object Classes". */
const OBJECTS: Readonly<
  Record<number, (classType: number, body: Uint8Array, into: Collected) => void>
> = {
  1: collectMpls,
  2: collectInterface,
};

/**
 * Splits the body of an error into the quotation and its extensions; RFC 4884 sections 4 and 5.5.
 * Extensions with a wrong version, checksum or length are taken as not there; a malformed object is
 * skipped.
 */
export function splitExtensions(message: ErrorMessage): {
  readonly quotation: Uint8Array;
  readonly extensions: Extensions;
} {
  const { type, body, quotedWords } = message;
  const whole = { quotation: body, extensions: NO_EXTENSIONS };
  if (type !== TYPE.destinationUnreachable && type !== TYPE.timeExceeded) return whole;
  const offset = quotedWords === 0 ? DEFAULT_OFFSET_BYTES : quotedWords * 8;
  const bytes = body.subarray(offset);
  if (!isExtensionStructure(bytes)) {
    return quotedWords === 0 ? whole : { ...whole, quotation: body.subarray(0, offset) };
  }
  return { quotation: body.subarray(0, offset), extensions: decodeObjects(bytes) };
}

function isExtensionStructure(bytes: Uint8Array): boolean {
  if (bytes.length < HEADER_BYTES || (bytes[0] as number) >>> 4 !== VERSION) return false;
  return (bytes[2] === 0 && bytes[3] === 0) || internetChecksum(bytes) === 0;
}

function decodeObjects(bytes: Uint8Array): Extensions {
  const found: Collected = { mpls: [], interfaces: [] };
  const view = viewOf(bytes);
  let offset = HEADER_BYTES;
  for (let count = 0; count < MAX_OBJECTS && offset + 4 <= bytes.length; count++) {
    const length = view.getUint16(offset);
    if (length < 4 || offset + length > bytes.length) break;
    const body = bytes.subarray(offset + 4, offset + length);
    OBJECTS[view.getUint8(offset + 2)]?.(view.getUint8(offset + 3), body, found);
    offset += length;
  }
  return found;
}

function collectMpls(classType: number, body: Uint8Array, into: Collected): void {
  if (classType !== 1) return;
  const view = viewOf(body);
  for (let offset = 0; offset + 4 <= body.length; offset += 4) {
    const entry = view.getUint32(offset);
    into.mpls.push({
      label: entry >>> 12,
      trafficClass: (entry >>> 9) & 7,
      bottomOfStack: (entry & 0x100) !== 0,
      ttl: entry & 0xff,
    });
  }
}

const ROLES = ["incoming", "sub-ip", "outgoing", "next-hop"] as const;
/** Bits of the class type that say which fields follow, in this order; RFC 5837 section 4.1. */
const HAS = { index: 0x08, address: 0x04, name: 0x02, mtu: 0x01 } as const;
/** Address family numbers, and the bytes of an address. */
const FAMILY_BYTES: Readonly<Record<number, number>> = { 1: 4, 2: 16 };
const MAX_NAME_BYTES = 64;

function collectInterface(classType: number, body: Uint8Array, into: Collected): void {
  const view = viewOf(body);
  let offset = 0;
  let index: number | null = null;
  let address: Ipv6Address | null = null;
  let name: string | null = null;
  let mtuBytes: number | null = null;
  if (classType & HAS.index) {
    if (offset + 4 > body.length) return;
    index = view.getUint32(offset);
    offset += 4;
  }
  if (classType & HAS.address) {
    if (offset + 4 > body.length) return;
    const length = FAMILY_BYTES[view.getUint16(offset)];
    offset += 4;
    if (length === undefined || offset + length > body.length) return;
    if (length === 16) address = ipv6FromBytes(body.subarray(offset, offset + length));
    offset += length;
  }
  if (classType & HAS.name) {
    if (offset >= body.length) return;
    const length = body[offset] as number;
    if (length < 1 || length > MAX_NAME_BYTES || offset + length > body.length) return;
    name = safeText(body.subarray(offset + 1, offset + length), MAX_NAME_BYTES);
    offset += Math.ceil(length / 4) * 4;
  }
  if (classType & HAS.mtu) {
    if (offset + 4 > body.length) return;
    mtuBytes = view.getUint32(offset);
  }
  const role = ROLES[classType >>> 6] as InterfaceInformation["role"];
  into.interfaces.push({ role, index, address, name, mtuBytes });
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
