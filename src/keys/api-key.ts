/** A leaked key can be searched for by this beginning. */
const KEY_PREFIX = "sx_";

const SECRET_BYTES = 32;

/** 62^43 is the first power that holds 256 bits. */
const SECRET_CHARACTERS = 43;

/** 62^6 is the first power that holds 32 bits. */
const CHECKSUM_CHARACTERS = 6;

const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

const KEY_FORM = new RegExp(
  `^${KEY_PREFIX}([0-9A-Za-z]{${SECRET_CHARACTERS}})([0-9A-Za-z]{${CHECKSUM_CHARACTERS}})$`,
);

/** A new key: `sx_`, 32 random bytes in base62, and the CRC-32 of what stands before it. */
export function generateApiKey(
  secret: Uint8Array = crypto.getRandomValues(new Uint8Array(SECRET_BYTES)),
): string {
  const value = secret.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
  const body = KEY_PREFIX + base62(value, SECRET_CHARACTERS);
  return body + checksum(body);
}

/** Whether a text has the form of a key and its checksum is right, so that a look-up is worth it. */
export function isWellFormedApiKey(text: string): boolean {
  const [, secret, sum] = KEY_FORM.exec(text) ?? [];
  return secret !== undefined && sum === checksum(KEY_PREFIX + secret);
}

/** The SHA-256 of a key in hex: all that is ever stored of it. */
export function hashApiKey(key: string): string {
  return new Bun.CryptoHasher("sha256").update(key).digest("hex");
}

function checksum(body: string): string {
  return base62(BigInt(Bun.hash.crc32(body)), CHECKSUM_CHARACTERS);
}

function base62(value: bigint, characters: number): string {
  let text = "";
  for (let rest = value; text.length < characters; rest /= 62n) {
    text = BASE62.charAt(Number(rest % 62n)) + text;
  }
  return text;
}
