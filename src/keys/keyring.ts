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
  #entries: Entries = new Map();
  #isUsable = false;
  /** How often the file was read again. */
  readonly reads = { done: 0, failed: 0 };

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

  /** All keys, also those that are not valid. */
  get records(): readonly KeyRecord[] {
    return [...this.#entries.values()].flat().map(({ record }) => record);
  }

  /** Starts to follow the file, until `close`. */
  watch(): void {
    this.#watch.start(() => this.reload());
  }

  close(): void {
    this.#watch.close();
  }

  /** Uses other keys than those of the file. */
  use(records: readonly KeyRecord[]): void {
    this.#entries = entriesOf(records);
    this.#isUsable = true;
  }

  /** Reads the file again; if it cannot be used, logs an error and keeps the old keys. */
  reload(): void {
    this.#watch.look();
    const isRead = this.#read();
    this.reads[isRead ? "done" : "failed"] += 1;
    if (isRead) {
      this.#log.info("keys file read again", { file: this.#path, active: this.activeCount() });
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
    return this.records.filter((record) => isActive(record, nowMs)).length;
  }

  /** Returns whether the file could be used. */
  #read(): boolean {
    try {
      if (this.#entries.size > 0 && !existsSync(this.#path)) {
        throw new KeyFileError(`the keys file ${this.#path} has vanished`);
      }
      this.use(readKeyFile(this.#path));
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

function entriesOf(records: readonly KeyRecord[]): Entries {
  const entries = records.map((record) => ({
    sha256: Buffer.from(record.sha256, "hex"),
    record,
  }));
  return Map.groupBy(entries, ({ sha256 }) => sha256.readUInt32BE());
}
