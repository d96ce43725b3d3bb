import {
  closeSync,
  fchmodSync,
  fchownSync,
  fsyncSync,
  lstatSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { z } from "zod";
import { readRegularFile } from "../platform/regular-file.ts";
import { ownName } from "../platform/users.ts";
import { errorCode, reasonOf } from "../util/errors.ts";

/** The bits of a mode that `chmod 777` sets; inode(7). */
const PERMISSIONS = 0o777;

/** A name must be readable in logs and lists. */
const KEY_NAME_FORM = /^[\p{L}\p{N}][\p{L}\p{N} ._@-]{0,63}$/u;

const keyRecordSchema = () =>
  z.strictObject({
    name: z.string().regex(KEY_NAME_FORM),
    /** SHA-256 of the key in hex. */
    sha256: z.string().regex(/^[0-9a-f]{64}$/),
    created: z.iso.datetime(),
    /** Requests a minute; absent for the default limit. */
    limit: z.int().min(1).optional(),
    /** The key is not valid from this time on. */
    expires: z.iso.datetime().optional(),
    revoked: z.iso.datetime().optional(),
  });

/** Functions, because building schemas takes time, and a file is read seldom. */
const keyFileSchema = () =>
  z.strictObject({ version: z.literal(1), keys: z.array(keyRecordSchema()) });

/** The row of the keys file for one key, without the key itself. */
export type KeyRecord = Readonly<z.infer<ReturnType<typeof keyRecordSchema>>>;

/** The keys cannot be read, parsed or written; the message says where they are and why. */
export class KeyFileError extends Error {
  override readonly name = "KeyFileError";
}

/** True if a text can be the name of a new key; lists must show no two names alike. */
export function isNewKeyName(text: string): boolean {
  return KEY_NAME_FORM.test(text) && !/ {2}| $/.test(text);
}

/** True if a key is valid at a time in Unix milliseconds: not revoked, and not expired. */
export function isActive({ revoked, expires }: KeyRecord, nowMs: number): boolean {
  return revoked === undefined && (expires === undefined || nowMs < Date.parse(expires));
}

/**
 * Reads a keys file; a missing file contains no keys.
 *
 * @throws KeyFileError if the file cannot be read or parsed
 */
export function readKeyFile(path: string): readonly KeyRecord[] {
  let text: string;
  try {
    text = readRegularFile(path);
  } catch (error) {
    if (errorCode(error) === "ENOENT") return [];
    const user = ownName();
    const advice = `if ${user} runs the service, let it enter ${dirname(path)} and run: chown ${user}: ${path}`;
    throw accessError("read", path, error, advice);
  }
  return parseKeys(text, `the keys file ${path}`);
}

/**
 * The keys in the text of a keys file.
 *
 * @param source where it comes from, for messages
 * @throws KeyFileError if it cannot be parsed
 */
export function parseKeys(text: string, source: string): readonly KeyRecord[] {
  try {
    return keyFileSchema().parse(JSON.parse(text)).keys;
  } catch (error) {
    const reason = error instanceof z.ZodError ? z.prettifyError(error) : reasonOf(error);
    throw new KeyFileError(`${source} does not parse: ${reason}`, { cause: error });
  }
}

/** The text of a keys file. */
export function formatKeys(keys: readonly KeyRecord[]): string {
  return `${JSON.stringify({ version: 1, keys }, null, 2)}\n`;
}

/**
 * Replaces a keys file in one step, so that a reader sees the old file or the new one, never a part.
 *
 * A new file gets mode 0600; an existing file keeps its mode and owner. A symbolic link is replaced,
 * not followed.
 *
 * @throws KeyFileError if the file cannot be written
 */
export function writeKeyFile(path: string, keys: readonly KeyRecord[]): void {
  const temporary = `${path}.${crypto.randomUUID()}.tmp`;
  try {
    const existing = lstatSync(path, { throwIfNoEntry: false });
    const file = openSync(temporary, "wx", 0o600);
    try {
      writeFileSync(file, formatKeys(keys));
      if (existing?.isFile()) {
        fchmodSync(file, existing.mode & PERMISSIONS);
        fchownSync(file, existing.uid, existing.gid);
      }
      fsyncSync(file);
      renameSync(temporary, path);
    } catch (error) {
      rmSync(temporary, { force: true });
      throw error;
    } finally {
      closeSync(file);
    }
  } catch (error) {
    throw accessError("write", path, error, `let ${ownName()} write to ${dirname(path)}`);
  }
}

/** @param advice for the case that the system denied access */
function accessError(action: string, path: string, cause: unknown, advice: string): KeyFileError {
  const hint = errorCode(cause) === "EACCES" ? `; ${advice}` : "";
  return new KeyFileError(`cannot ${action} the keys file ${path}: ${reasonOf(cause)}${hint}`, {
    cause,
  });
}
