import { createHash, createPublicKey, type KeyObject, verify } from "node:crypto";
import { attempt } from "../../util/errors.ts";
import { encodeName } from "../message/name.ts";

/** The flags of a DNSKEY record: RFC 4034 section 2.1.1, RFC 5011 section 7. */
export const KEY_FLAG = { zone: 0x0100, revoked: 0x0080 } as const;

/** The only protocol of a DNSKEY record; RFC 4034 section 2.1.2. */
const PROTOCOL = 3;

/** Bits of an RSA modulus; RFC 5702 section 2. */
const RSA_BITS = { minimum: 512, maximum: 4096 } as const;

/** Makes a JSON Web Key (RFC 7517) of a public key; null if it does not have the form of its algorithm. */
type ToJwk = (key: Buffer) => Readonly<Record<string, string>> | null;

/** The form of keys that are a point of a curve. @param axisBytes bytes of each coordinate */
const curve =
  (kty: string, crv: string, axisBytes: number): ToJwk =>
  (key) => {
    const x = key.toString("base64url", 0, axisBytes);
    const y = key.toString("base64url", axisBytes);
    if (key.length !== (kty === "EC" ? 2 : 1) * axisBytes) return null;
    return { kty, crv, x, ...(y && { y }) };
  };

/**
 * The algorithms of RFC 8624 and RFC 9904: the hash of the signed data, null where one has its own, the form of its
 * keys, and the microseconds of CPU that a signature takes at most (for RSA, with a large exponent). Those with SHA-1
 * count as unsupported: RFC 9905 section 2.
 */
const ALGORITHMS: Readonly<
  Record<number, readonly [hash: string | null, jwk: ToJwk, verifyUs: number]>
> = {
  8: ["sha256", rsaKey, 250],
  10: ["sha512", rsaKey, 250],
  13: ["sha256", curve("EC", "P-256", 32), 100],
  14: ["sha384", curve("EC", "P-384", 48), 800],
  15: [null, curve("OKP", "Ed25519", 32), 100],
};

/** The digests of DS records; RFC 4509, RFC 6605. Those without a hash are not used: RFC 9905 for SHA-1. */
const DIGESTS: Readonly<Record<number, readonly [name: string, hash?: string]>> = {
  1: ["SHA-1"],
  2: ["SHA-256", "sha256"],
  3: ["GOST R 34.11-94"],
  4: ["SHA-384", "sha384"],
  5: ["GOST R 34.11-2012"],
  6: ["SM3"],
};

/** A key of a zone: a DNSKEY record. */
export type Key = NonNullable<ReturnType<typeof tryParseKey>>;

/** The data of a DS record: the digest of a key that the parent zone vouches for; RFC 4034 section 5.1. */
export type KeyDigest = NonNullable<ReturnType<typeof tryParseKeyDigest>>;

/** The name of a DS record's digest; its number if it has none. */
export function digestName(digestType: number): string {
  return DIGESTS[digestType]?.[0] ?? `digest ${digestType}`;
}

/** True if signatures of the algorithm can be verified here. */
export function canVerify(algorithm: number): boolean {
  return algorithm in ALGORITHMS;
}

/** True if a DS record can be used: its algorithm and its digest are known. */
export function isUsableDigest({ algorithm, digestType }: KeyDigest): boolean {
  return canVerify(algorithm) && DIGESTS[digestType]?.[1] !== undefined;
}

/** Reads the data of a DNSKEY record; null for data that is cut short. */
export function tryParseKey(data: Uint8Array) {
  const [high = 0, low = 0, protocol, algorithm = 0] = data;
  if (data.length < 5) return null;
  const flags = (high << 8) | low;
  const [hash, toJwk, verifyUs = 0] = ALGORITHMS[algorithm] ?? [];
  let imported: KeyObject | null | undefined;
  return {
    tag: keyTag(data),
    algorithm,
    /** True if it may sign the records of its zone: RFC 4034 section 2.1.1, RFC 5011 section 2.1. */
    isUsable:
      (flags & (KEY_FLAG.zone | KEY_FLAG.revoked)) === KEY_FLAG.zone && protocol === PROTOCOL,
    /** The data of the record. */
    data,
    /** Microseconds of CPU that a signature takes at most. */
    verifyUs,
    /** Verifies a signature; null if the key does not have the form of its algorithm. */
    verify(signed: Uint8Array, signature: Uint8Array): boolean | null {
      imported ??= tryImport(toJwk?.(Buffer.from(data.subarray(4))));
      const key = imported && ({ key: imported, dsaEncoding: "ieee-p1363" } as const);
      return key && verify(hash, signed, key, signature);
    },
  };
}

/** Reads the data of a DS record; null for data that is cut short. */
export function tryParseKeyDigest(data: Uint8Array) {
  const [high = 0, low = 0, algorithm = 0, digestType = 0] = data;
  const digest = data.subarray(4);
  if (digest.length === 0) return null;
  return { tag: (high << 8) | low, algorithm, digestType, digest };
}

/** True if a DS record has the digest of a key of the zone; RFC 4034 section 5.1.4. */
export function isDigestOf({ digestType, digest }: KeyDigest, zone: string, key: Key): boolean {
  return keyDigest(zone, key.data, digestType)?.equals(digest) ?? false;
}

/** The digest of a key, as a DS record has it; null if the digest is not known. */
export function keyDigest(zone: string, key: Uint8Array, digestType: number): Buffer | null {
  const hash = DIGESTS[digestType]?.[1];
  return hash === undefined ? null : createHash(hash).update(encodeName(zone)).update(key).digest();
}

/** The tag of a key; RFC 4034 appendix B. */
function keyTag(data: Uint8Array): number {
  let sum = 0;
  for (let at = 0; at < data.length; at++) sum += (data[at] as number) << (at % 2 === 0 ? 8 : 0);
  return (sum + (sum >>> 16)) & 0xffff;
}

/** Null for data that is not a key, such as a point off the curve. */
const tryImport = (jwk: ReturnType<ToJwk> | undefined): KeyObject | null =>
  (jwk && attempt(() => createPublicKey({ key: jwk, format: "jwk" }))) ?? null;

/** Makes a JSON Web Key of an RSA key; RFC 3110 section 2. */
function rsaKey(key: Buffer): ReturnType<ToJwk> {
  const isLong = key[0] === 0;
  const start = isLong ? 3 : 1;
  const modulusAt = start + (isLong && key.length > 2 ? key.readUInt16BE(1) : (key[0] ?? 0));
  const modulus = key.subarray(key.findIndex((byte, at) => at >= modulusAt && byte !== 0));
  const bits = 8 * modulus.length;
  if (modulusAt >= key.length || bits < RSA_BITS.minimum || bits > RSA_BITS.maximum) return null;
  const e = key.toString("base64url", start, modulusAt);
  return { kty: "RSA", e, n: modulus.toString("base64url") };
}
