import {
  chmodSync,
  chownSync,
  closeSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { z } from "zod";
import { ownName } from "../platform/users.ts";
import { errorCode, reasonOf } from "../util/errors.ts";

/** A name must be readable in logs and lists. */
const KEY_NAME_FORM = /^[\p{L}\p{N}][\p{L}\p{N} ._@-]{0,63}$/u;

/** What the keys file holds of one key; the key itself is not in it. */
const keyRecordSchema = z.strictObject({
  name: z.string().regex(KEY_NAME_FORM),
  /** SHA-256 of the key in hex. */
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  created: z.iso.datetime(),
  /** Requests a minute, where the key has a limit of its own. */
  limit: z.int().min(1).optional(),
  /** From this moment on the key is refused. */
  expires: z.iso.datetime().optional(),
  revoked: z.iso.datetime().optional(),
});

const keyFileSchema = z.strictObject({ version: z.literal(1), keys: z.array(keyRecordSchema) });

export type KeyRecord = Readonly<z.infer<typeof keyRecordSchema>>;

/** The keys file cannot be read, written or understood; the message says which file and why. */
export class KeyFileError extends Error {
  override readonly name = "KeyFileError";
}

/** Whether a text can be the name of a new key: one that no list shows like another. */
export function isNewKeyName(text: string): boolean {
  return KEY_NAME_FORM.test(text) && !/ {2}| $/.test(text);
}

/** Whether a key may be used at a moment. */
export function isActive(record: KeyRecord, nowMs: number): boolean {
  return (
    record.revoked === undefined &&
    (record.expires === undefined || nowMs < Date.parse(record.expires))
  );
}

/**
 * Reads a keys file; one that does not exist holds no keys.
 *
 * @throws KeyFileError where it cannot be read or does not parse
 */
export function readKeyFile(path: string): readonly KeyRecord[] {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (errorCode(error) === "ENOENT") return [];
    throw new KeyFileError(`cannot read the keys file ${path}: ${whyNotRead(path, error)}`, {
      cause: error,
    });
  }
  try {
    return keyFileSchema.parse(JSON.parse(text)).keys;
  } catch (error) {
    const reason = error instanceof z.ZodError ? z.prettifyError(error) : reasonOf(error);
    throw new KeyFileError(`the keys file ${path} does not parse: ${reason}`, { cause: error });
  }
}

/** Says also what there is to do where the file, or the way to it, is somebody else's. */
function whyNotRead(path: string, error: unknown): string {
  const reason = reasonOf(error);
  if (errorCode(error) !== "EACCES") return reason;
  const user = ownName();
  return isReachable(path)
    ? `${reason}; if ${user} runs the service: chown ${user}: ${path}`
    : `${reason}; if ${user} runs the service, let it enter ${dirname(path)} and the folders above`;
}

function isReachable(path: string): boolean {
  try {
    statSync(path);
    return true;
  } catch {
    return false;
  }
}

/**
 * Replaces a keys file in one step: a reader sees the old or the new one, never a part.
 *
 * A new file gets mode 0600; an existing file keeps its mode and owner. A symbolic link is replaced,
 * not followed.
 *
 * @throws KeyFileError if it cannot be written
 */
export function writeKeyFile(path: string, keys: readonly KeyRecord[]): void {
  const temporary = `${path}.${process.pid}.tmp`;
  try {
    // Left over by a killed process that had this one's number, or laid as a trap.
    rmSync(temporary, { force: true });
    const existing = statSync(path, { throwIfNoEntry: false });
    const file = openSync(temporary, "wx", 0o600);
    try {
      // Unlike write(2), it writes all or throws, also where the disk is full.
      writeFileSync(file, `${JSON.stringify({ version: 1, keys }, null, 2)}\n`);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    if (existing !== undefined) keepModeAndOwner(temporary, existing);
    renameSync(temporary, path);
    syncDirectory(dirname(path));
  } catch (error) {
    removeIfPossible(temporary);
    const advice =
      errorCode(error) === "EACCES" ? `; let ${ownName()} write to ${dirname(path)}` : "";
    throw new KeyFileError(`cannot write the keys file ${path}: ${reasonOf(error)}${advice}`, {
      cause: error,
    });
  }
}

/** What keeps the file from being written may keep its rest from being removed. */
function removeIfPossible(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // The error before this one is the one to tell.
  }
}

function keepModeAndOwner(path: string, existing: Stats): void {
  chmodSync(path, existing.mode);
  const created = statSync(path);
  if (created.uid !== existing.uid || created.gid !== existing.gid) {
    chownSync(path, existing.uid, existing.gid);
  }
}

/** Makes the rename itself survive a power cut. */
function syncDirectory(path: string): void {
  const directory = openSync(path, "r");
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}
