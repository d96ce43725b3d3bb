/** The prefix of every key, which makes a leaked key easy to search for. */
const KEY_PREFIX = "sx_";

const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** 62^43 is just above 2^256: as much as 32 random bytes. */
const SECRET_CHARACTERS = 43;

/** 62^6 is the first power above 2^32. */
const CHECKSUM_CHARACTERS = 6;

const KEY_FORM = new RegExp(
  `^${KEY_PREFIX}[0-9A-Za-z]{${SECRET_CHARACTERS + CHECKSUM_CHARACTERS}}$`,
);

/** Makes a new key: `sx_`, 256 random bits in base62, and the CRC-32 of both in base62. */
export function generateApiKey(): string {
  // Not imported at the start of the service, which makes no keys.
  const { randomInt } = process.getBuiltinModule("node:crypto");
  const secret = Array.from({ length: SECRET_CHARACTERS }, () => BASE62[randomInt(BASE62.length)]);
  const body = KEY_PREFIX + secret.join("");
  return body + checksum(body);
}

/** True if a text has the form of a key and the right checksum; only such a text is looked up. */
export function isWellFormedApiKey(text: string): boolean {
  const end = -CHECKSUM_CHARACTERS;
  return KEY_FORM.test(text) && text.slice(end) === checksum(text.slice(0, end));
}

/** The SHA-256 of a key in hex; nothing else of it is stored. */
export function hashApiKey(key: string): string {
  return Bun.SHA256.hash(key, "hex");
}

/** The CRC-32 of a text in base62. */
function checksum(body: string): string {
  let text = "";
  let rest = Bun.hash.crc32(body);
  while (text.length < CHECKSUM_CHARACTERS) {
    text = BASE62.charAt(rest % BASE62.length) + text;
    rest = Math.floor(rest / BASE62.length);
  }
  return text;
}
