import { existsSync } from "node:fs";
import { FileWatch } from "../platform/file-watch.ts";
import { reasonOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import { hashApiKey, isWellFormedApiKey } from "./api-key.ts";
import { isActive, KeyFileError, type KeyRecord, readKeyFile } from "./key-file.ts";

/** The keys of a file, which it reads again after each change. */
export class Keyring {
  readonly #path: string;
  readonly #log: Log;
  readonly #watch: FileWatch;
  #records: ReadonlyMap<string, KeyRecord>;

  /** @throws KeyFileError if the file exists and cannot be used: no start is better than no keys */
  constructor(path: string, log: Log) {
    this.#path = path;
    this.#log = log;
    this.#watch = new FileWatch([path]);
    this.#records = readRecords(path);
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
      if (this.#records.size > 0 && !existsSync(this.#path)) {
        throw new KeyFileError(`the keys file ${this.#path} has vanished`);
      }
      this.#records = readRecords(this.#path);
      this.#log.info("keys file read again", { file: this.#path, active: this.activeCount() });
    } catch (error) {
      this.#log.error(`${reasonOf(error)}; the old keys stay in use`);
    }
  }

  /** The record of a key that is valid now, or null. */
  find(key: string, nowMs: number = Date.now()): KeyRecord | null {
    if (!isWellFormedApiKey(key)) return null;
    const record = this.#records.get(hashApiKey(key));
    return record !== undefined && isActive(record, nowMs) ? record : null;
  }

  /** How many keys are valid now. */
  activeCount(nowMs: number = Date.now()): number {
    return [...this.#records.values()].filter((record) => isActive(record, nowMs)).length;
  }
}

/** The records by the SHA-256 of their keys. */
function readRecords(path: string): ReadonlyMap<string, KeyRecord> {
  return new Map(readKeyFile(path).map((record) => [record.sha256, record]));
}
