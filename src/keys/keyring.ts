import { existsSync } from "node:fs";
import { followFiles } from "../platform/followed-files.ts";
import { abortedBy } from "../util/abort.ts";
import type { Log } from "../util/log.ts";
import { hashApiKey, isWellFormedApiKey } from "./api-key.ts";
import { isActive, KeyFileError, type KeyRecord, readKeyFile } from "./key-file.ts";

/** The time between checks of the keys of running requests, in milliseconds. */
const CHECK_MS = 200;

/** Keys by their SHA-256, which the sender of a key cannot choose. */
export type KeysByHash = ReadonlyMap<string, KeyRecord>;

/** See `createKeyring`. */
export type Keyring = Awaited<ReturnType<typeof createKeyring>>;

/**
 * The keys of a file, which it reads again after each change. If the file exists and cannot be used, it
 * logs an error, and the old keys stay in use.
 */
export async function createKeyring(path: string, log: Log) {
  let keys: KeysByHash = new Map();
  let isUsable = false;
  const activeCount = (nowMs = Date.now()) =>
    keys.values().reduce((count, key) => count + Number(isActive(key, nowMs)), 0);
  const findHash = (sha256: string, nowMs: number): KeyRecord | null => {
    const record = keys.get(sha256);
    return record !== undefined && isActive(record, nowMs) ? record : null;
  };
  /** Uses other keys from now on. */
  const replace = (next: KeysByHash) => {
    keys = next;
    isUsable = true;
  };
  const { read, ...file } = followFiles([path], log, {
    read() {
      if (keys.size > 0 && !existsSync(path)) {
        throw new KeyFileError(`the keys file ${path} has vanished; restore it from a backup`);
      }
      replace(new Map(readKeyFile(path).map((key) => [key.sha256, key])));
      return true;
    },
    onRenewed: () => log.info("keys file read again", { file: path, active: activeCount() }),
    fallback: () =>
      isUsable ? "the old keys stay in use" : "until it can be used, no key is valid",
  });
  await read();
  return {
    ...file,
    /** True if the file could be used at least once. */
    isUsable: () => isUsable,
    /** All keys, also invalid ones. */
    records: () => [...keys.values()],
    /** The number of keys that are valid now. */
    activeCount,
    replace,
    /** The record of a key that is valid now, or null. */
    find: (key: string, nowMs = Date.now()) =>
      isWellFormedApiKey(key) ? findHash(hashApiKey(key), nowMs) : null,
    /**
     * Runs a task while a key is valid; its signal also aborts within half a second after the key is revoked, expires or
     * is removed.
     *
     * @throws the error that `invalid` makes if the task fails after that
     */
    async whileValid<T>(
      { sha256 }: KeyRecord,
      signal: AbortSignal,
      run: (signal: AbortSignal) => T | Promise<T>,
      invalid: () => Error,
    ): Promise<T> {
      const isValid = () => findHash(sha256, Date.now()) !== null;
      const ending = abortedBy(signal);
      const checks = setInterval(() => isValid() || ending.abort(), CHECK_MS);
      try {
        return await run(ending.signal);
      } catch (error) {
        throw isValid() ? error : invalid();
      } finally {
        clearInterval(checks);
      }
    },
  };
}
