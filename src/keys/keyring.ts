import { existsSync } from "node:fs";
import { followFiles } from "../platform/followed-files.ts";
import type { Log } from "../util/log.ts";
import { hashApiKey, isWellFormedApiKey } from "./api-key.ts";
import { isActive, KeyFileError, type KeyRecord, readKeyPieces } from "./key-file.ts";
import { mergeKeys } from "./merge.ts";

/** How often the keys of running requests are checked, in milliseconds. */
const CHECK_MS = 200;

/** Keys by their SHA-256, which whoever looks for a key cannot choose. */
type Entries = Map<string, KeyRecord>;

/** See `createKeyring`. */
export type Keyring = Awaited<ReturnType<typeof createKeyring>>;

/**
 * The keys of a file, which it reads again after each change. If the file exists and cannot be used, it
 * logs an error; then no key is valid. A key that it has seen revoked stays so until the process ends,
 * whatever the file says later.
 */
export async function createKeyring(path: string, log: Log) {
  let entries: Entries = new Map();
  let isUsable = false;
  let reading = 0;
  const activeCount = (nowMs = Date.now()) =>
    entries.values().reduce((count, key) => count + Number(isActive(key, nowMs)), 0);
  const findHash = (sha256: string, nowMs: number): KeyRecord | null => {
    const record = entries.get(sha256);
    return record !== undefined && isActive(record, nowMs) ? record : null;
  };
  /** Reads the keys without blocking for long, and uses them once all are read; those that were revoked stay so. */
  const readPieces = async () => {
    const own = ++reading;
    const next: Entries = new Map();
    /** Those in use that have not been read yet. */
    const gone = new Map(entries);
    const restored: KeyRecord[] = [];
    for await (const piece of readKeyPieces(path)) {
      for (const key of piece) {
        const known = gone.get(key.sha256);
        gone.delete(key.sha256);
        if (known?.revoked) put(next, known);
        if (known?.revoked && key.revoked === undefined) restored.push(key);
        put(next, key);
      }
      await new Promise(setImmediate);
      // The file has changed again.
      if (own !== reading) return false;
    }
    const names = namesOf(restored);
    if (names)
      log.warn("keys stay revoked that the keys file has as valid; revoke them", { names });
    const lost = namesOf([...gone.values()].filter((key) => isActive(key, Date.now())));
    if (lost) log.warn("keys are no longer in the keys file, and are rejected", { names: lost });
    for (const [sha256, key] of gone) if (key.revoked) next.set(sha256, key);
    entries = next;
    isUsable = true;
    return true;
  };
  const { read, ...file } = followFiles([path], log, {
    async read() {
      if (entries.size > 0 && !existsSync(path)) {
        throw new KeyFileError(
          `the keys file ${path} has vanished; sixscope keys add writes it again`,
        );
      }
      return await readPieces();
    },
    onRenewed: () => log.info("keys file read again", { file: path, active: activeCount() }),
    fallback: () =>
      isUsable ? "the old keys stay in use" : "until it can be used, no key is valid",
  });
  await read();
  return {
    ...file,
    /** True if the file could be used, at the start or since. */
    isUsable: () => isUsable,
    /** All keys, also those that are not valid. */
    records: () => [...entries.values()],
    /** How many keys are valid now. */
    activeCount,
    /** Adds keys, merged with those that it has; returns them as they are now. */
    merge: (keys: readonly KeyRecord[]) => keys.map((key) => put(entries, key)),
    /** Forgets all keys but those that were revoked. */
    forget() {
      entries = new Map(entries.entries().filter(([, key]) => key.revoked));
    },
    /** The record of a key that is valid now, or null. */
    find: (key: string, nowMs = Date.now()) =>
      isWellFormedApiKey(key) ? findHash(hashApiKey(key), nowMs) : null,
    /** Calls `end` within half a second after a key is no longer valid: revoked, expired or removed. The function returned ends that. */
    hold({ sha256 }: KeyRecord, end: () => void): () => void {
      const checks = setInterval(() => findHash(sha256, Date.now()) ?? end(), CHECK_MS);
      return () => clearInterval(checks);
    },
  };
}

/** Names that one line of the log has at most. */
const MAX_NAMES = 20;

function namesOf(keys: readonly KeyRecord[]): string {
  const more = keys.length > MAX_NAMES ? `, and ${keys.length - MAX_NAMES} more` : "";
  const names = keys.slice(0, MAX_NAMES).map(({ name }) => name);
  return names.join(", ") + more;
}

/** Adds a key, merged with what is known of it, and returns it as it is then. */
function put(entries: Entries, key: KeyRecord): KeyRecord {
  const own = entries.get(key.sha256);
  const [merged = key] = own === undefined ? [] : mergeKeys([own], [key]);
  entries.set(key.sha256, merged);
  return merged;
}
