import { statSync, utimesSync } from "node:fs";
import { z } from "zod";
import { KeyFileError, type KeyRecord, parseRecords, writeKeyFile } from "../keys/key-file.ts";
import { createKeyring } from "../keys/keyring.ts";
import { formatCommand } from "../util/command.ts";
import { attempt, reasonOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import { type RunScript, script } from "./connection.ts";

/** The time that keys are trusted without Valkey, in milliseconds: a revoked key may be among them. */
export const MAX_AGE_MS = 86_400_000;

/** Keys in Valkey, revoked ones included; each takes some 300 bytes there and in memory. */
const MAX_KEYS = 10_000;

/** The names of the keys (a hash of records by SHA-256), and of their version, which each change replaces. */
type Names = readonly [keys: string, version: string];

/** The version of keys that were never changed. */
const NO_VERSION = "";

/** The version, and the keys as texts. */
const READ = script(
  `if redis.call('HLEN', KEYS[1]) > ${MAX_KEYS} then return redis.error_reply('TOOLONG the keys') end
return {redis.call('GET', KEYS[2]) or '${NO_VERSION}', redis.call('HVALS', KEYS[1])}`,
  () => z.tuple([z.string().max(64), z.array(z.string().max(1024)).max(MAX_KEYS)]),
);

/** Replaces all records, unless the keys have changed since a version. New records come first, because Valkey may be full. */
const WRITE = script(
  `if (redis.call('GET', KEYS[2]) or '${NO_VERSION}') ~= ARGV[1] then return 0 end
local kept = {}
for i = 3, #ARGV, 2 do
  redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
  kept[ARGV[i]] = true
end
for _, name in ipairs(redis.call('HKEYS', KEYS[1])) do
  if not kept[name] then redis.call('HDEL', KEYS[1], name) end
end
redis.call('SET', KEYS[2], ARGV[2])
return 1`,
  () => z.literal([0, 1]),
);

/**
 * Reads the keys that instances share, oldest first, and their version.
 *
 * @throws ValkeyError; KeyFileError if they cannot be parsed
 */
export async function readSharedKeys(run: RunScript, names: Names) {
  const [version, texts] = await run(READ, names, []);
  const keys = parseRecords(texts, `${names[0]} in Valkey`);
  return { version, keys: keys.toSorted((a, b) => (a.created < b.created ? -1 : 1)) };
}

/**
 * Replaces the keys that instances share, unless they have changed since a version. It does not write an empty list:
 * instances would drop their keys for that new version.
 *
 * @returns false if they have changed
 * @throws ValkeyError
 */
async function writeSharedKeys(
  run: RunScript,
  names: Names,
  since: string,
  keys: readonly KeyRecord[],
): Promise<boolean> {
  const records = keys.flatMap((key) => [key.sha256, JSON.stringify(key)]);
  const args = [since, crypto.randomUUID(), ...records];
  return keys.length === 0 || (await run(WRITE, names, args)) === 1;
}

/**
 * Changes the keys that instances share; if someone else changes them meanwhile, starts again.
 *
 * @throws ValkeyError, KeyFileError, and the errors of `change`
 */
export async function changeSharedKeys(
  run: RunScript,
  names: Names,
  change: (keys: readonly KeyRecord[]) => readonly KeyRecord[],
): Promise<void> {
  for (;;) {
    const { version, keys } = await readSharedKeys(run, names);
    const changed = change(keys);
    if (changed.length > MAX_KEYS)
      throw new KeyFileError(`there would be more than ${MAX_KEYS} keys in Valkey`);
    if (await writeSharedKeys(run, names, version, changed)) return;
  }
}

/**
 * Keeps a keyring, and its copy on disk, equal to the keys in Valkey.
 *
 * @param copy the file of the keyring; its modification time is the last time that it was current
 */
export async function createSharedKeys(run: RunScript, names: Names, copy: string, log: Log) {
  const keyring = await createKeyring(copy, log);
  /** The version that was read last, as a beat returns it, and the last one that cannot be used. */
  let usedVersion: string | undefined;
  let badVersion: string | undefined;
  /** The last time that the keys were equal to those in Valkey; the copy has the same time. */
  let currentMs = statSync(copy, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const ageMs = () => Date.now() - currentMs;
  const areOutdated = () => ageMs() > MAX_AGE_MS;

  /** Uses the keys of Valkey. If Valkey has lost all of them, gives it the keys of this instance and returns false. */
  const read = async () => {
    const { version, keys } = await readSharedKeys(run, names);
    const own = keyring.records();
    if (version === NO_VERSION && keys.length === 0 && own.length > 0) {
      if (areOutdated()) {
        const command = formatCommand(["sixscope", "keys", "import", copy]);
        throw new KeyFileError(
          `Valkey has no keys, and the copy ${copy} is too old; to use it, run: ${command}`,
        );
      }
      if (await writeSharedKeys(run, names, version, own))
        log.warn("gave its keys to Valkey, which had none", { active: keyring.activeCount() });
      return false;
    }
    keyring.replace(new Map(keys.map((key) => [key.sha256, key])));
    log.info("took over the keys in Valkey", { active: keyring.activeCount() });
    await writeKeyFile(copy, keyring.records()).catch((error) =>
      log.error(`${reasonOf(error)}; the keys are in memory only`),
    );
    return true;
  };
  return {
    keyring,
    /** Milliseconds since the keys were last equal to those in Valkey. */
    ageMs,
    /** True if a key that was revoked may still be among them. */
    areOutdated,
    /**
     * Reads the keys of Valkey if they have changed.
     *
     * @param version a text that differs after each change
     * @throws ValkeyError
     */
    async follow(version: string): Promise<void> {
      if (version !== usedVersion) {
        try {
          // If Valkey got the keys of this instance, the next beat reads them.
          if (await read()) usedVersion = version;
        } catch (error) {
          if (!(error instanceof KeyFileError)) throw error;
          if (version !== badVersion) log.error(`${reasonOf(error)}; the old keys stay in use`);
          badVersion = version;
          return;
        }
      }
      currentMs = Date.now();
      // Without a copy, the log has the reason already.
      attempt(() => utimesSync(copy, currentMs / 1000, currentMs / 1000));
    },
  };
}
