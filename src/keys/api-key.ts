import { randomInt } from "node:crypto";

/** Makes a leaked key easy to search for. */
const KEY_PREFIX = "sx_";

const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** 62^43 is just above 2^256: as much as 32 random bytes. */
const SECRET_CHARACTERS = 43;

/** 62^6 is the first power above 2^32. The checksum tells a program that looks for leaks a key from other text. */
const CHECKSUM_CHARACTERS = 6;

/** Makes a new key: `sx_`, 256 random bits in base62, and the CRC-32 of both in base62. */
export function generateApiKey(): string {
  const secret = Array.from({ length: SECRET_CHARACTERS }, () => BASE62[randomInt(BASE62.length)]);
  const body = KEY_PREFIX + secret.join("");
  return body + checksum(body);
}

/** The SHA-256 of a key in hex, the only thing that is stored of it. */
export function hashApiKey(key: string): string {
  return new Bun.CryptoHasher("sha256").update(key).digest("hex");
}

function checksum(body: string): string {
  const crc = Bun.hash.crc32(body);
  const digits = Array.from({ length: CHECKSUM_CHARACTERS }, (_, index) => {
    const weight = BASE62.length ** (CHECKSUM_CHARACTERS - 1 - index);
    return BASE62[Math.floor(crc / weight) % BASE62.length];
  });
  return digits.join("");
}
