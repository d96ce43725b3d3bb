import { existsSync } from "node:fs";
import { FileWatch } from "../platform/file-watch.ts";
import { reasonOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import { hashApiKey, isWellFormedApiKey } from "./api-key.ts";
import { isActive, KeyFileError, type KeyRecord, readKeyFile } from "./key-file.ts";

/** Keys with their SHA-256, by its first 32 bits: the others are compared in constant time. */
type Entries = ReadonlyMap<number, { readonly sha256: Buffer; readonly record: KeyRecord }[]>;

/** The keys of a file, which it reads again after each change. */
export class Keyring {
  readonly #path: string;
  readonly #log: Log;
  readonly #watch: FileWatch;
  #entries: Entries;

  /** @throws KeyFileError if the file exists and cannot be used: no start is better than no keys */
  constructor(path: string, log: Log) {
    this.#path = path;
    this.#log = log;
    this.#watch = new FileWatch([path]);
    this.#entries = readEntries(path);
  }

  /** Starts to follow the file, until `close`. */
  watch(): void {
    this.#watch.start(() => this.reload());
  }

  close(): void {
    this.#watch.close();
  }

  /** Reads the file again; if it cannot be used, logs an error and keeps the old keys. */
  reload(): void {
    this.#watch.look();
    try {
      if (this.#entries.size > 0 && !existsSync(this.#path)) {
        throw new KeyFileError(`the keys file ${this.#path} has vanished`);
      }
      this.#entries = readEntries(this.#path);
      this.#log.info("keys file read again", { file: this.#path, active: this.activeCount() });
    } catch (error) {
      this.#log.error(`${reasonOf(error)}; the old keys stay in use`);
    }
  }

  /** The record of a key that is valid now, or null. */
  find(key: string, nowMs: number = Date.now()): KeyRecord | null {
    if (!isWellFormedApiKey(key)) return null;
    const sha256 = hashApiKey(key);
    const candidates = this.#entries.get(sha256.readUInt32BE());
    const record = candidates?.find((entry) =>
      crypto.timingSafeEqual(entry.sha256, sha256),
    )?.record;
    return record !== undefined && isActive(record, nowMs) ? record : null;
  }

  /** How many keys are valid now. */
  activeCount(nowMs: number = Date.now()): number {
    return [...this.#entries.values()].flat().filter(({ record }) => isActive(record, nowMs))
      .length;
  }
}

function readEntries(path: string): Entries {
  const entries = readKeyFile(path).map((record) => ({
    sha256: Buffer.from(record.sha256, "hex"),
    record,
  }));
  return Map.groupBy(entries, ({ sha256 }) => sha256.readUInt32BE());
}
