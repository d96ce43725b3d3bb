import type { ByteReader, ByteWriter } from "../util/bytes.ts";
import { safeText } from "../util/text.ts";
import { MAX_EXTENDED_TEXT_LENGTH } from "./limits.ts";

/** What a resolver says about the reason for its answer; RFC 8914. */
export interface ExtendedError {
  /** The INFO-CODE. */
  readonly code: number;
  /** The code's name, where the registry has one. */
  readonly name?: string;
  /** The EXTRA-TEXT, made safe to print and cut to 256 characters; absent when there is none. */
  readonly text?: string;
}

/** The number of the EDNS option; RFC 8914 section 2. */
export const EXTENDED_ERROR_OPTION = 15;

/** Names by INFO-CODE: 0 to 24 from RFC 8914 section 4, the rest from the IANA registry it opened. */
const NAMES: readonly string[] = [
  "Other Error",
  "Unsupported DNSKEY Algorithm",
  "Unsupported DS Digest Type",
  "Stale Answer",
  "Forged Answer",
  "DNSSEC Indeterminate",
  "DNSSEC Bogus",
  "Signature Expired",
  "Signature Not Yet Valid",
  "DNSKEY Missing",
  "RRSIGs Missing",
  "No Zone Key Bit Set",
  "NSEC Missing",
  "Cached Error",
  "Not Ready",
  "Blocked",
  "Censored",
  "Filtered",
  "Prohibited",
  "Stale NXDOMAIN Answer",
  "Not Authoritative",
  "Not Supported",
  "No Reachable Authority",
  "Network Error",
  "Invalid Data",
  "Signature Expired before Valid",
  "Too Early",
  "Unsupported NSEC3 Iterations Value",
  "Unable to conform to policy",
  "Synthesized",
  "Invalid Query Type",
];

/** Reads the option's data; the reader spans exactly that. Throws OutOfBoundsError for less than two bytes. */
export function decodeExtendedError(reader: ByteReader): ExtendedError {
  const code = reader.uint16();
  const name = NAMES[code];
  // RFC 8914 section 2 lets the text end in a NUL.
  const text = safeText(reader.take(reader.remaining), MAX_EXTENDED_TEXT_LENGTH);
  return { code, ...(name !== undefined && { name }), ...(text !== "" && { text }) };
}

/** Writes the option's data. */
export function encodeExtendedError(writer: ByteWriter, { code, text = "" }: ExtendedError): void {
  writer.uint16(code).put(new TextEncoder().encode(text));
}
