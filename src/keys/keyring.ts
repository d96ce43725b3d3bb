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
  #records: ReadonlyMap<string, KeyRecord> = new Map();
  #isUsable = false;

  /** If the file exists and cannot be used, logs an error; then no key is valid. */
  constructor(path: string, log: Log) {
    this.#path = path;
    this.#log = log;
    this.#watch = new FileWatch([path]);
    this.#read();
  }

  /** Whether the file could be used, at the start or since. */
  get isUsable(): boolean {
    return this.#isUsable;
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
    if (this.#read()) {
      this.#log.info("keys file read again", { file: this.#path, active: this.activeCount() });
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

  /** Returns whether the file could be used. */
  #read(): boolean {
    try {
      if (this.#records.size > 0 && !existsSync(this.#path)) {
        throw new KeyFileError(`the keys file ${this.#path} has vanished`);
      }
      const records = readKeyFile(this.#path);
      this.#records = new Map(records.map((record) => [record.sha256, record]));
      this.#isUsable = true;
      return true;
    } catch (error) {
      const until = this.#isUsable
        ? "the old keys stay in use"
        : "until it can be used, no key is valid";
      this.#log.error(`${reasonOf(error)}; ${until}`);
      return false;
    }
  }
}
