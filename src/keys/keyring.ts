import { existsSync } from "node:fs";
import { followFiles } from "../platform/followed-files.ts";
import type { Log } from "../util/log.ts";
import { hashApiKey, isWellFormedApiKey } from "./api-key.ts";
import { isActive, KeyFileError, type KeyRecord, readKeyFile } from "./key-file.ts";
import { mergeKeys, revokedKeys } from "./merge.ts";

/** How often the keys of running requests are checked, in milliseconds. */
const CHECK_MS = 200;

/** Keys with their SHA-256, by its first 32 bits: the others are compared in constant time. */
type Entries = ReadonlyMap<number, { readonly sha256: Buffer; readonly record: KeyRecord }[]>;

/** See `createKeyring`. */
export type Keyring = ReturnType<typeof createKeyring>;

/**
 * The keys of a file, which it reads again after each change. If the file exists and cannot be used, it
 * logs an error; then no key is valid. A key that it has seen revoked stays so until the process ends,
 * whatever the file says later.
 */
export function createKeyring(path: string, log: Log) {
  let entries: Entries = new Map();
  let isUsable = false;
  const records = () => [...entries.values()].flat().map(({ record }) => record);
  const activeCount = (nowMs = Date.now()) =>
    records().filter((record) => isActive(record, nowMs)).length;
  const recordOf = (sha256: Buffer) =>
    entries
      .get(sha256.readUInt32BE())
      ?.find((entry) => crypto.timingSafeEqual(entry.sha256, sha256))?.record;
  const findHash = (sha256: Buffer, nowMs: number): KeyRecord | null => {
    const record = recordOf(sha256);
    return record !== undefined && isActive(record, nowMs) ? record : null;
  };
  const use = (keys: readonly KeyRecord[]) => {
    const wasRevoked = ({ sha256 }: KeyRecord) => recordOf(Buffer.from(sha256, "hex"))?.revoked;
    const restored = keys.filter((key) => key.revoked === undefined && wasRevoked(key));
    const names = namesOf(restored);
    if (names)
      log.warn("keys stay revoked that the keys file has as valid; revoke them", { names });
    const valid = records().filter((key) => isActive(key, Date.now()));
    entries = entriesOf(mergeKeys(keys, revokedKeys(records())));
    isUsable = true;
    const gone = namesOf(valid.filter(({ sha256 }) => !recordOf(Buffer.from(sha256, "hex"))));
    if (gone) log.warn("keys are no longer in the keys file, and are rejected", { names: gone });
  };
  const { read, ...file } = followFiles([path], log, {
    read() {
      if (entries.size > 0 && !existsSync(path)) {
        throw new KeyFileError(
          `the keys file ${path} has vanished; sixscope keys add writes it again`,
        );
      }
      use(readKeyFile(path));
      return true;
    },
    onRenewed: () => log.info("keys file read again", { file: path, active: activeCount() }),
    fallback: () =>
      isUsable ? "the old keys stay in use" : "until it can be used, no key is valid",
  });
  read();
  return {
    ...file,
    /** True if the file could be used, at the start or since. */
    get isUsable() {
      return isUsable;
    },
    /** All keys, also those that are not valid. */
    records,
    /** How many keys are valid now. */
    activeCount,
    /** Uses other keys than those of the file. */
    use,
    /** The record of a key that is valid now, or null. */
    find: (key: string, nowMs = Date.now()) =>
      isWellFormedApiKey(key) ? findHash(hashApiKey(key), nowMs) : null,
    /** Calls `end` within half a second after a key is no longer valid: revoked, expired or removed. The function returned ends that. */
    hold({ sha256 }: KeyRecord, end: () => void): () => void {
      const hash = Buffer.from(sha256, "hex");
      const checks = setInterval(() => findHash(hash, Date.now()) ?? end(), CHECK_MS);
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

function entriesOf(records: readonly KeyRecord[]): Entries {
  const entries = records.map((record) => ({ sha256: Buffer.from(record.sha256, "hex"), record }));
  return Map.groupBy(entries, ({ sha256 }) => sha256.readUInt32BE());
}
