import { type Ipv6Address, ipv6FromBytes } from "../addr/ipv6.ts";
import { decodeMessage, type EchoMessage } from "./message.ts";

/** Length of the fixed IPv6 header; RFC 8200 section 3. */
export const IPV6_HEADER_BYTES = 40;

/** Next Header numbers that lead to an ICMPv6 message; IANA protocol numbers. */
export const NEXT_HEADER = {
  hopByHop: 0,
  routing: 43,
  fragment: 44,
  icmpv6: 58,
  destination: 60,
} as const;

/** RFC 8200 section 4.1 knows six extension headers in one packet; more is an attack on the reader. */
const MAX_EXTENSION_HEADERS = 8;

/** What an ICMPv6 error says about the packet that caused it. */
export interface Quotation {
  readonly source: Ipv6Address;
  readonly destination: Ipv6Address;
  /** The echo request inside, cut where the quotation ends; null for any other payload. */
  readonly echo: EchoMessage | null;
}

/**
 * Decodes the invoking packet of an ICMPv6 error, past its extension headers; RFC 4443 section 3 and
 * RFC 8200 section 4. The quoted hop limit is left out: routers disagree on what they write there.
 *
 * @returns null for what is no IPv6 packet or ends within the fixed header
 */
export function decodeQuotation(bytes: Uint8Array): Quotation | null {
  if (bytes.length < IPV6_HEADER_BYTES || (bytes[0] as number) >>> 4 !== 6) return null;
  return {
    source: ipv6FromBytes(bytes.subarray(8, 24)),
    destination: ipv6FromBytes(bytes.subarray(24, 40)),
    echo: echoRequestIn(bytes),
  };
}

function echoRequestIn(bytes: Uint8Array): EchoMessage | null {
  let nextHeader = bytes[6] as number;
  let offset = IPV6_HEADER_BYTES;
  for (let headers = 0; headers <= MAX_EXTENSION_HEADERS; headers++) {
    if (nextHeader === NEXT_HEADER.icmpv6) {
      const message = decodeMessage(bytes.subarray(offset));
      return message?.kind === "echo-request" ? message : null;
    }
    if (offset + 8 > bytes.length) return null;
    let length: number;
    switch (nextHeader) {
      case NEXT_HEADER.hopByHop:
      case NEXT_HEADER.routing:
      case NEXT_HEADER.destination:
        length = 8 + 8 * (bytes[offset + 1] as number);
        break;
      case NEXT_HEADER.fragment:
        if (isLaterFragment(bytes, offset)) return null;
        length = 8;
        break;
      default:
        return null;
    }
    nextHeader = bytes[offset] as number;
    offset += length;
  }
  return null;
}

/** Whether a fragment header has an offset, so that what follows is not the beginning of a message. */
function isLaterFragment(bytes: Uint8Array, offset: number): boolean {
  return (((bytes[offset + 2] as number) << 8) | (bytes[offset + 3] as number)) >>> 3 !== 0;
}
