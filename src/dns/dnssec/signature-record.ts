import { ByteReader, OutOfBoundsError } from "../../util/bytes.ts";
import { DnsFormatError, NameReader } from "../name.ts";

/** The data of an RRSIG record; RFC 4034 section 3.1. */
export interface Signature {
  /** The number of the record type that it covers. */
  readonly covered: number;
  readonly algorithm: number;
  /** Labels of the name that was signed, without those that a wildcard matched. */
  readonly labels: number;
  readonly originalTtl: number;
  /** Seconds since 1970, modulo 2^32. */
  readonly expires: number;
  readonly inception: number;
  readonly keyTag: number;
  /** The zone whose key made it. */
  readonly signer: string;
  /** The data before the signature itself, which is signed too. */
  readonly header: Uint8Array;
  readonly bytes: Uint8Array;
}

/** Reads the data of an RRSIG record in canonical form. Null for data that is cut short. */
export function tryParseSignature(data: Uint8Array): Signature | null {
  try {
    const reader = new ByteReader(data);
    const fields = {
      covered: reader.uint16(),
      algorithm: reader.uint8(),
      labels: reader.uint8(),
      originalTtl: reader.uint32(),
      expires: reader.uint32(),
      inception: reader.uint32(),
      keyTag: reader.uint16(),
      signer: new NameReader().read(reader),
    };
    const header = data.subarray(0, reader.offset);
    return { ...fields, header, bytes: reader.take(reader.remaining) };
  } catch (error) {
    if (error instanceof OutOfBoundsError || error instanceof DnsFormatError) return null;
    throw error;
  }
}
