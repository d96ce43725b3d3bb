import { FileWatch } from "../platform/file-watch.ts";
import { reasonOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import { hashApiKey, isWellFormedApiKey } from "./api-key.ts";
import { isActive, type KeyRecord, readKeyFile } from "./key-file.ts";

/** The keys in force; follows its file while the service runs. */
export class Keyring {
  readonly #path: string;
  readonly #log: Log;
  readonly #watch: FileWatch;
  #records: ReadonlyMap<string, KeyRecord> = new Map();

  /** @throws KeyFileError where the file exists and cannot be used: better no start than no keys */
  constructor(path: string, log: Log) {
    this.#path = path;
    this.#log = log;
    this.#watch = new FileWatch([path]);
    this.#use(readKeyFile(path));
  }

  /** Begins to follow the file, until `close`. */
  watch(): void {
    this.#watch.start(() => this.reload());
  }

  close(): void {
    this.#watch.close();
  }

  /** Reads the file again; one that cannot be used is logged, and the keys in force stay. */
  reload(): void {
    this.#watch.look();
    if (!this.#watch.isComplete && this.#records.size > 0) {
      this.#log.error("the keys file has vanished; the old keys stay in force", {
        file: this.#path,
      });
      return;
    }
    try {
      this.#use(readKeyFile(this.#path));
      this.#log.info("keys file read again", { file: this.#path, active: this.activeCount() });
    } catch (error) {
      this.#log.error(`${reasonOf(error)}; the old keys stay in force`);
    }
  }

  /** The record of a key that may be used now, or null. */
  find(key: string, nowMs: number = Date.now()): KeyRecord | null {
    if (!isWellFormedApiKey(key)) return null;
    const record = this.#records.get(hashApiKey(key));
    return record !== undefined && isActive(record, nowMs) ? record : null;
  }

  /** How many keys may be used now. */
  activeCount(nowMs: number = Date.now()): number {
    return [...this.#records.values()].filter((record) => isActive(record, nowMs)).length;
  }

  #use(records: readonly KeyRecord[]): void {
    this.#records = new Map(records.map((record) => [record.sha256, record]));
  }
}
