import { statSync, utimesSync } from "node:fs";
import { reasonOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import { type Script, script } from "../valkey/connection.ts";
import { formatKeys, KeyFileError, type KeyRecord, parseKeys, writeKeyFile } from "./key-file.ts";
import type { Keyring } from "./keyring.ts";

/** How long keys are trusted that cannot be compared with the engine, in milliseconds: a revoked one may be among them. */
export const MAX_AGE_MS = 86_400_000;

/** How often the copy on disk is marked as current, in milliseconds. */
const MARK_MS = 60_000;

/** The keys are a hash: the text of a keys file, and a revision that every change makes new. */
const READ = script("return redis.call('HMGET', KEYS[1], 'revision', 'file')");

/** Writes unless someone else has written since the revision was read. */
const WRITE = script(`
if (redis.call('HGET', KEYS[1], 'revision') or '') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'revision', ARGV[2], 'file', ARGV[3])
return 1
`);

/** Runs a script; throws ValkeyError. */
export type RunScript = (
  wanted: Script,
  keys: readonly string[],
  args: readonly (string | number)[],
) => Promise<unknown>;

/** The keys of the engine, and their revision; null if there are none yet. */
interface SharedKeyFile {
  readonly revision: string | null;
  readonly keys: readonly KeyRecord[];
}

/**
 * Reads the keys that instances share.
 *
 * @throws ValkeyError; KeyFileError if they cannot be parsed
 */
export async function readSharedKeys(run: RunScript, name: string): Promise<SharedKeyFile> {
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

/** Keeps a keyring, and its copy on disk, as the engine has the keys. */
export class SharedKeys {
  readonly #run: RunScript;
  readonly #name: string;
  readonly #keyring: Keyring;
  readonly #copy: string;
  readonly #log: Log;
  readonly #nowMs: () => number;
  /** The revision in use, and the last one that cannot be used. */
  readonly #seen: { used: string | null; unusable?: string | null } = { used: null };
  /** When the keys were last as the engine has them, and when that was noted on disk. */
  #currentMs: number;
  #markedMs = 0;

  /** @param copy the file of the keyring; its time says when it was last current */
  constructor(
    run: RunScript,
    name: string,
    keyring: Keyring,
    copy: string,
    log: Log,
    nowMs: () => number = Date.now,
  ) {
    this.#run = run;
    this.#name = name;
    this.#keyring = keyring;
    this.#copy = copy;
    this.#log = log;
    this.#nowMs = nowMs;
    this.#currentMs = statSync(copy, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  }

  /** Milliseconds since the keys were last as the engine has them. */
  get ageMs(): number {
    return this.#nowMs() - this.#currentMs;
  }

  /** Whether a key that was revoked may still be among them. */
  get areOutdated(): boolean {
    return this.ageMs > MAX_AGE_MS;
  }

  /**
   * Takes over the keys of the engine if its revision is another one.
   *
   * @param revision null if the engine has no keys
   * @throws ValkeyError
   */
  readonly follow = async (revision: string | null): Promise<void> => {
    try {
      if (revision === null && this.#keyring.records.length > 0) await this.#restore();
      else if (revision !== this.#seen.used) await this.#takeOver();
    } catch (error) {
      if (!(error instanceof KeyFileError)) throw error;
      if (revision !== this.#seen.unusable)
        this.#log.error(`${reasonOf(error)}; the old keys stay in use`);
      this.#seen.unusable = revision;
      return;
    }
    this.#currentMs = this.#nowMs();
    if (this.#currentMs - this.#markedMs < MARK_MS) return;
    this.#markedMs = this.#currentMs;
    try {
      utimesSync(this.#copy, this.#currentMs / 1000, this.#currentMs / 1000);
    } catch {
      // There is no copy, or the log has said why it cannot be written.
    }
  };

  async #takeOver(): Promise<void> {
    const { revision, keys } = await readSharedKeys(this.#run, this.#name);
    this.#keyring.use(keys);
    this.#seen.used = revision;
    this.#log.info("took over the keys in Valkey", { active: this.#keyring.activeCount() });
    try {
      writeKeyFile(this.#copy, keys);
    } catch (error) {
      this.#log.error(`${reasonOf(error)}; the keys are in memory only`);
    }
  }

  /** Gives an engine that has lost its keys those that were in use until then. */
  async #restore(): Promise<void> {
    if (this.areOutdated) {
      throw new KeyFileError(
        `Valkey has no keys, and the copy ${this.#copy} is too old; to use it, run: sixscope keys import ${this.#copy}`,
      );
    }
    const revision = crypto.randomUUID();
    const file = formatKeys(this.#keyring.records);
    if ((await this.#run(WRITE, [this.#name], ["", revision, file])) !== 1) return;
    this.#seen.used = revision;
    this.#log.warn("gave Valkey the keys in use, because it had none", {
      active: this.#keyring.activeCount(),
    });
  }
}
