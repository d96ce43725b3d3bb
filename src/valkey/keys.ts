import { statSync, utimesSync } from "node:fs";
import {
  formatKeys,
  KeyFileError,
  type KeyRecord,
  parseKeys,
  writeKeyFile,
} from "../keys/key-file.ts";
import type { Keyring } from "../keys/keyring.ts";
import { reasonOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import { type RunScript, script } from "./connection.ts";
import source from "./write-keys.lua" with { type: "text" };

/** How long keys are trusted that cannot be compared with Valkey, in milliseconds: a revoked one may be among them. */
export const MAX_AGE_MS = 86_400_000;

/** How often the copy on disk is marked as current, in milliseconds. */
const MARK_MS = 60_000;

/** The keys are a hash: the text of a keys file, and a revision that every change makes new. */
const READ = script("return redis.call('HMGET', KEYS[1], 'revision', 'file')");

const WRITE = script(source);

/**
 * Reads the keys that instances share, and their revision, which is null if there are none yet.
 *
 * @throws ValkeyError; KeyFileError if they cannot be parsed
 */
export async function readSharedKeys(run: RunScript, name: string) {
  const [revision, file] = (await run(READ, [name], [])) as [string | null, string | null];
  return { revision, keys: file === null ? [] : parseKeys(file, `${name} in Valkey`) };
}

/**
 * Changes the keys that instances share; if someone else changes them meanwhile, starts again.
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
    const args = [revision ?? "", crypto.randomUUID(), formatKeys(change(keys))];
    if ((await run(WRITE, [name], args)) === 1) return;
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

  const takeOver = async () => {
    const { revision, keys } = await readSharedKeys(run, name);
    keyring.use(keys);
    used = revision;
    log.info("took over the keys in Valkey", { active: keyring.activeCount() });
    try {
      writeKeyFile(copy, keys);
    } catch (error) {
      log.error(`${reasonOf(error)}; the keys are in memory only`);
    }
  };
  /** Gives the keys in use to a Valkey that has lost them. */
  const restore = async () => {
    if (areOutdated()) {
      throw new KeyFileError(
        `Valkey has no keys, and the copy ${copy} is too old; to use it, run: sixscope keys import ${copy}`,
      );
    }
    const revision = crypto.randomUUID();
    if ((await run(WRITE, [name], ["", revision, formatKeys(keyring.records())])) !== 1) return;
    used = revision;
    const active = keyring.activeCount();
    log.warn("gave Valkey the keys in use, because it had none", { active });
  };
  return {
    /** Milliseconds since the keys were last as Valkey has them. */
    ageMs,
    /** True if a key that was revoked may still be among them. */
    areOutdated,
    /**
     * Takes over the keys of Valkey if its revision is another one.
     *
     * @param revision null if Valkey has no keys
     * @throws ValkeyError
     */
    async follow(revision: string | null): Promise<void> {
      try {
        if (revision === null && keyring.records().length > 0) await restore();
        else if (revision !== used) await takeOver();
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
