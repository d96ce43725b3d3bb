import { statSync, utimesSync } from "node:fs";
import { z } from "zod";
import {
  formatKeys,
  KeyFileError,
  type KeyRecord,
  parseKeys,
  writeKeyFile,
} from "../keys/key-file.ts";
import type { Keyring } from "../keys/keyring.ts";
import { mergeKeys, revokedKeys } from "../keys/merge.ts";
import { reasonOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import { type RunScript, script } from "./connection.ts";
import source from "./write-keys.lua" with { type: "text" };

/** How long keys are trusted that cannot be compared with Valkey, in milliseconds: a revoked one may be among them. */
export const MAX_AGE_MS = 86_400_000;

/** How often the copy on disk is marked as current, in milliseconds. */
const MARK_MS = 60_000;

/** Bytes of the keys in Valkey, enough for some 40,000. */
const MAX_BYTES = 8 * 1024 * 1024;

/** The keys are a hash: the text of a keys file, and a revision that every change makes new. */
const READ = script(
  `if redis.call('HSTRLEN', KEYS[1], 'file') > ${MAX_BYTES} then return redis.error_reply('TOOLONG the keys') end
return redis.call('HMGET', KEYS[1], 'revision', 'file')`,
  () => z.tuple([z.string().max(64).nullable(), z.string().nullable()]),
);

const WRITE = script(source, () => z.literal([0, 1]));

/**
 * Reads the keys that instances share, and their revision, which is null if there are none yet.
 *
 * @throws ValkeyError; KeyFileError if they cannot be parsed
 */
export async function readSharedKeys(run: RunScript, name: string) {
  const [revision, file] = await run(READ, [name], []);
  return { revision, keys: file === null ? [] : parseKeys(file, `${name} in Valkey`) };
}

/**
 * Writes the keys that instances share, unless someone else has changed them.
 *
 * @param before the revision that they replace
 * @returns the new revision; null if it was not `before` any more
 * @throws ValkeyError; KeyFileError if they are too many
 */
async function writeSharedKeys(
  run: RunScript,
  name: string,
  before: string | null,
  keys: readonly KeyRecord[],
): Promise<string | null> {
  const text = formatKeys(keys);
  if (Buffer.byteLength(text) > MAX_BYTES) {
    throw new KeyFileError(`the keys would take more than ${MAX_BYTES} bytes in Valkey`);
  }
  const revision = crypto.randomUUID();
  return (await run(WRITE, [name], [before ?? "", revision, text])) === 1 ? revision : null;
}

/**
 * Changes the keys that instances share; if someone else changes them meanwhile, starts again. No key is
 * forgotten: those that the change leaves out stay, so that a revoked one cannot come back.
 *
 * @throws ValkeyError, KeyFileError, and what `change` throws
 */
export async function changeSharedKeys(
  run: RunScript,
  name: string,
  change: (keys: readonly KeyRecord[]) => readonly KeyRecord[],
): Promise<void> {
  for (;;) {
    const { revision, keys } = await readSharedKeys(run, name);
    const changed = mergeKeys(keys, change(keys));
    if ((await writeSharedKeys(run, name, revision, changed)) !== null) return;
  }
}

/** See `createSharedKeys`. */
export type SharedKeys = ReturnType<typeof createSharedKeys>;

/**
 * Keeps a keyring, and its copy on disk, as Valkey has the keys.
 *
 * @param copy the file of the keyring; its time says when it was last current
 */
export function createSharedKeys(
  run: RunScript,
  name: string,
  keyring: Keyring,
  copy: string,
  log: Log,
) {
  /** The revision in use, and the last one that cannot be used. */
  let used: string | null = null;
  let unusable: string | null | undefined;
  /** When the keys were last as Valkey has them, and when that was noted on disk. */
  let currentMs = statSync(copy, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  let markedMs = 0;
  const ageMs = () => Date.now() - currentMs;
  const areOutdated = () => ageMs() > MAX_AGE_MS;

  /** Merges the keys of Valkey and those in use, and writes back what Valkey has lost or never knew. */
  const merge = async () => {
    const { revision, keys } = await readSharedKeys(run, name);
    const own = keyring.records();
    const revoked = revokedKeys(own);
    if (revision === null && areOutdated() && revoked.length < own.length) {
      throw new KeyFileError(
        `Valkey has no keys, and the copy ${copy} is too old; to use it, run: sixscope keys import ${copy}`,
      );
    }
    const merged = mergeKeys(keys, areOutdated() ? revoked : own);
    keyring.use(merged);
    const active = keyring.activeCount();
    if (formatKeys(merged) === formatKeys(keys)) {
      used = revision;
      log.info("took over the keys in Valkey", { active });
    } else {
      used = await writeSharedKeys(run, name, revision, merged);
      // Someone else has changed them: the next beat merges again.
      if (used === null) return;
      log.warn("gave Valkey keys or revocations that it did not have", { active });
    }
    try {
      writeKeyFile(copy, merged);
    } catch (error) {
      log.error(`${reasonOf(error)}; the keys are in memory only`);
    }
  };
  return {
    /** Milliseconds since the keys were last as Valkey has them. */
    ageMs,
    /** True if a key that was revoked may still be among them. */
    areOutdated,
    /**
     * Merges with the keys of Valkey if its revision is another one.
     *
     * @param revision null if Valkey has no keys
     * @throws ValkeyError
     */
    async follow(revision: string | null): Promise<void> {
      try {
        if (revision !== used || (revision === null && keyring.records().length > 0)) await merge();
      } catch (error) {
        if (!(error instanceof KeyFileError)) throw error;
        if (revision !== unusable) log.error(`${reasonOf(error)}; the old keys stay in use`);
        unusable = revision;
        return;
      }
      currentMs = Date.now();
      if (currentMs - markedMs < MARK_MS) return;
      markedMs = currentMs;
      try {
        utimesSync(copy, currentMs / 1000, currentMs / 1000);
      } catch {
        // There is no copy, or the log has said why it cannot be written.
      }
    },
  };
}
