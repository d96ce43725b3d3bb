import { dirname } from "node:path";
import { z } from "zod";
import { readRegularFile, replaceFile } from "../platform/regular-file.ts";
import { ownName } from "../platform/users.ts";
import { formatCommand } from "../util/command.ts";
import { errorCode, reasonOf } from "../util/errors.ts";

/** The form of a key's name, which must be readable in logs and lists. */
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

/** The schemas are functions, because building them takes time, and the file is seldom read. */
const keyFileSchema = () =>
  z.strictObject({ version: z.literal(1), keys: z.array(keyRecordSchema()) });

/** The row of the keys file for one key, without the key itself. */
export type KeyRecord = Readonly<z.infer<ReturnType<typeof keyRecordSchema>>>;

/** The keys cannot be read, parsed or written; the message has the place and the reason. */
export class KeyFileError extends Error {
  override readonly name = "KeyFileError";
}

/** True if a text can be the name of a new key. Two names must not look the same in lists, so spaces are limited. */
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
  try {
    return parseKeys(readRegularFile(path), `the keys file ${path}`);
  } catch (error) {
    if (errorCode(error) === "ENOENT") return [];
    if (error instanceof KeyFileError) throw error;
    const user = ownName();
    const command = formatCommand(["chown", `${user}:`, path]);
    const advice = `if ${user} runs the service, let it enter ${dirname(path)} and run: ${command}`;
    throw accessError("read", path, error, advice);
  }
}

/**
 * The keys in texts of one record each.
 *
 * @param source the place of the texts, for messages
 * @throws KeyFileError if one cannot be parsed
 */
export const parseRecords = (texts: readonly string[], source: string) =>
  parseKeys(`{"version":1,"keys":[${texts.join()}]}`, source);

function parseKeys(text: string, source: string): readonly KeyRecord[] {
  try {
    return keyFileSchema().parse(JSON.parse(text)).keys;
  } catch (cause) {
    // A file can have a problem in each of its keys.
    const [first] = cause instanceof z.ZodError ? cause.issues : [];
    const reason = first
      ? `${first.message} at ${first.path.join(".") || "its top"}`
      : reasonOf(cause);
    throw new KeyFileError(`${source} does not parse: ${reason}`, { cause });
  }
}

/**
 * Replaces a keys file in one step, so that a reader sees the old file or the new one, never a part.
 *
 * A new file gets mode 0600; an existing file keeps its mode and owner. A symbolic link is replaced,
 * not followed.
 *
 * @throws KeyFileError if the file cannot be written
 */
export async function writeKeyFile(path: string, keys: readonly KeyRecord[]): Promise<void> {
  const rows = keys.map((key) => `\n${JSON.stringify(key)}`);
  try {
    await replaceFile(path, `{"version":1,"keys":[${rows.join()}\n]}\n`);
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
