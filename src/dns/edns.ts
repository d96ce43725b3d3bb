import { ByteReader, ByteWriter } from "../util/bytes.ts";
import {
  decodeExtendedError,
  EXTENDED_ERROR_OPTION,
  type ExtendedError,
  encodeExtendedError,
} from "./extended-error.ts";
import { MAX_EXTENDED_ERRORS, MAX_MESSAGE_BYTES } from "./limits.ts";

/** What an OPT record says; RFC 6891 section 6.1. */
export interface Edns {
  /** Bytes of a datagram that the sender can take. */
  readonly payloadBytes: number;
  readonly version: number;
  readonly dnssecOk: boolean;
  /** Extended errors in order, eight at most; other options are left out. */
  readonly extendedErrors: readonly ExtendedError[];
}

/** The number of the OPT pseudo-record; RFC 6891 section 6.1.1. */
export const OPT_CODE = 41;

const DNSSEC_OK = 0x8000;

/**
 * What the OPT record says whose class, TTL and data these are, but for the response code's high bits
 * (the first eight of the TTL), which belong to the message. Throws OutOfBoundsError for an option
 * that runs beyond the data.
 */
export function decodeEdns(payloadBytes: number, ttl: number, reader: ByteReader): Edns {
  const extendedErrors: ExtendedError[] = [];
  while (reader.remaining > 0) {
    const code = reader.uint16();
    const data = reader.take(reader.uint16());
    if (code === EXTENDED_ERROR_OPTION && extendedErrors.length < MAX_EXTENDED_ERRORS) {
      extendedErrors.push(decodeExtendedError(new ByteReader(data)));
    }
  }
  return {
    payloadBytes,
    version: (ttl >>> 16) & 0xff,
    dnssecOk: (ttl & DNSSEC_OK) !== 0,
    extendedErrors,
  };
}

/** Writes the whole OPT record. @param rcodeHigh the high eight bits of the response code */
export function encodeEdns(writer: ByteWriter, edns: Edns, rcodeHigh: number): void {
  const options = new ByteWriter(edns.extendedErrors.length === 0 ? 0 : MAX_MESSAGE_BYTES);
  for (const error of edns.extendedErrors) {
    const data = new ByteWriter(MAX_MESSAGE_BYTES);
    encodeExtendedError(data, error);
    options.uint16(EXTENDED_ERROR_OPTION).uint16(data.length).put(data.finish());
  }
  writer
    .uint8(0)
    .uint16(OPT_CODE)
    .uint16(edns.payloadBytes)
    .uint8(rcodeHigh)
    .uint8(edns.version)
    .uint16(edns.dnssecOk ? DNSSEC_OK : 0)
    .uint16(options.length)
    .put(options.finish());
}
