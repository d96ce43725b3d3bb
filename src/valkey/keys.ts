import { statSync, utimesSync } from "node:fs";
import { z } from "zod";
import { KeyFileError, type KeyRecord, parseRecords, writeKeyFile } from "../keys/key-file.ts";
import type { Keyring } from "../keys/keyring.ts";
import { mergeKeys, revokedKeys } from "../keys/merge.ts";
import { attempt, reasonOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import { type RunScript, script } from "./connection.ts";
import source from "./write-keys.lua" with { type: "text" };

/** How long keys are trusted that cannot be compared with Valkey, in milliseconds: a revoked one may be among them. */
export const MAX_AGE_MS = 86_400_000;

/**
 * The longest time between two comparisons of all keys with those in Valkey, in milliseconds: a key that
 * is restored need not be in the stream. It is up to half as long, at random, so that a fleet spreads out.
 */
const COMPARE_MS = 600_000;

/** How often the copy on disk is marked as current, in milliseconds. */
const MARK_MS = 60_000;

/** Keys in Valkey, with those that were revoked; each takes some 300 bytes there and in memory. */
const MAX_KEYS = 500_000;

/** Keys that are written, and about those that are read, at once, which takes some milliseconds. */
const WRITTEN_AT_ONCE = 100;
const READ_AT_ONCE = 500;

/** The name of the keys, a hash of records by SHA-256, and that of the stream of the last changes. */
type Names = readonly [keys: string, changes: string];

/** Texts that begin with a name or an id, each followed by its value. */
const pairs = () => z.array(z.string().max(1024)).max(20_000);

/** Some keys, where to go on, and the id of the last change. */
const PAGE = script(
  `if redis.call('HLEN', KEYS[1]) > ${MAX_KEYS} then return redis.error_reply('TOOLONG the keys') end
local page = redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', ${READ_AT_ONCE})
local last = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)[1]
return {page[1], page[2], last and last[1] or false}`,
  () => z.tuple([z.string().max(20), pairs(), z.string().max(64).nullable()]),
);

/** The changes after one; null if the stream has it no more. */
const CHANGES = script(
  `if #redis.call('XRANGE', KEYS[2], ARGV[1], ARGV[1]) == 0 then return false end
return redis.call('XRANGE', KEYS[2], '(' .. ARGV[1], '+')`,
  () => z.array(z.tuple([z.string().max(64), pairs()])).nullable(),
);

const WRITE = script(source, () => z.string().max(64).nullable());

const recordsOf = (texts: readonly string[], [name]: Names) =>
  parseRecords(
    texts.filter((_, at) => at % 2 === 1),
    `${name} in Valkey`,
  );

/** The keys that instances share, in pieces, and the id of the last change before each. */
async function* readPages(run: RunScript, names: Names) {
  let cursor = "0";
  do {
    const [next, texts, last] = await run(PAGE, names, [cursor]);
    yield { last, page: recordsOf(texts, names) };
    cursor = next;
  } while (cursor !== "0");
}

/**
 * Reads the keys that instances share, and the id of the last change, which is null if there was none yet.
 *
 * @throws ValkeyError; KeyFileError if they cannot be parsed
 */
export async function readSharedKeys(run: RunScript, names: Names) {
  const pages = await Array.fromAsync(readPages(run, names));
  return { revision: pages[0]?.last ?? null, keys: mergeKeys(pages.flatMap(({ page }) => page)) };
}

/**
 * Writes keys that instances share, unless someone else has changed any.
 *
 * @param before the last change that is known
 * @returns the id of the new last change; null if it was not `before` any more
 * @throws ValkeyError
 */
async function writeSharedKeys(
  run: RunScript,
  names: Names,
  before: string | null,
  keys: readonly KeyRecord[],
): Promise<string | null> {
  let last: string | null = before ?? "";
  for (let at = 0; at < keys.length && last !== null; at += WRITTEN_AT_ONCE) {
    const some = keys.slice(at, at + WRITTEN_AT_ONCE);
    const texts = some.flatMap((key) => [key.sha256, JSON.stringify(key)]);
    last = await run(WRITE, names, [last, ...texts]);
  }
  return last;
}

/**
 * Changes the keys that instances share; if someone else changes them meanwhile, starts again. No key is
 * forgotten: those that the change leaves out stay, so that a revoked one cannot come back.
 *
 * @throws ValkeyError, KeyFileError, and what `change` throws
 */
export async function changeSharedKeys(
  run: RunScript,
  names: Names,
  change: (keys: readonly KeyRecord[]) => readonly KeyRecord[],
): Promise<void> {
  for (;;) {
    const { revision, keys } = await readSharedKeys(run, names);
    const known = new Set(keys.map((key) => JSON.stringify(key)));
    const changed = mergeKeys(keys, change(keys));
    if (changed.length > MAX_KEYS)
      throw new KeyFileError(`there would be more than ${MAX_KEYS} keys in Valkey`);
    const fresh = changed.filter((key) => !known.has(JSON.stringify(key)));
    if ((await writeSharedKeys(run, names, revision, fresh)) !== null) return;
  }
}

/** See `createSharedKeys`. */
export type SharedKeys = ReturnType<typeof createSharedKeys>;

/**
 * Keeps a keyring, and its copy on disk, as Valkey has the keys.
 *
 * @param copy the file of the keyring; its time says when it was last current
 */
export function createSharedKeys(
  run: RunScript,
  names: Names,
  keyring: Keyring,
  copy: string,
  log: Log,
) {
  /** The last change in use, and the last one that cannot be used. */
  let used: string | null = null;
  let unusable: string | null | undefined;
  /** When the keys were last as Valkey has them, when that was noted on disk, and when all were compared. */
  let currentMs = statSync(copy, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  let markedMs = 0;
  let comparedMs = 0;
  const isCompared = () => used !== null && Date.now() - comparedMs < COMPARE_MS;
  /** True if the copy is older than the keys, and while it is written. */
  let isUnsaved = false;
  let isSaving = false;
  const ageMs = () => Date.now() - currentMs;
  const areOutdated = () => ageMs() > MAX_AGE_MS;

  /** Merges keys of Valkey with those in use; returns those that Valkey must be told. */
  const take = (keys: readonly KeyRecord[]) => {
    const known = keys.map((key) => JSON.stringify(key));
    return keyring.merge(keys).filter((key, at) => JSON.stringify(key) !== known[at]);
  };
  /** Merges all keys of Valkey and those in use. */
  const mergeAll = async (revision: string | null) => {
    if (areOutdated()) {
      const own = keyring.records();
      if (revision === null && revokedKeys(own).length < own.length) {
        throw new KeyFileError(
          `Valkey has no keys, and the copy ${copy} is too old; to use it, run: sixscope keys import ${copy}`,
        );
      }
      keyring.forget();
    }
    comparedMs = Date.now() - (Math.random() * COMPARE_MS) / 2;
    const missing = new Map(keyring.records().map((key) => [key.sha256, key]));
    const lacking: KeyRecord[] = [];
    let first: string | null | undefined;
    for await (const { last, page } of readPages(run, names)) {
      first ??= last;
      for (const { sha256 } of page) missing.delete(sha256);
      lacking.push(...take(page));
    }
    return [first ?? null, [...lacking, ...missing.values()]] as const;
  };
  /** Merges what has changed; null if only all keys show that. */
  const mergeChanges = async () => {
    const changes = isCompared() ? await run(CHANGES, names, [used as string]) : null;
    const texts = changes?.flatMap(([, each]) => each);
    return texts && ([changes?.at(-1)?.[0] ?? used, take(recordsOf(texts, names))] as const);
  };
  /** Takes over what has changed, and writes back what Valkey has lost or never knew. */
  const merge = async (revision: string | null) => {
    const before = used;
    const [last, lacking] = (await mergeChanges()) ?? (await mergeAll(revision));
    const active = keyring.activeCount();
    // If someone else has changed them, the next beat merges again.
    used = lacking.length === 0 ? last : await writeSharedKeys(run, names, last, lacking);
    if (lacking.length > 0 && used !== null)
      log.warn("gave Valkey keys or revocations that it did not have", { active });
    if (lacking.length === 0 && used !== before)
      log.info("took over the keys in Valkey", { active });
    isUnsaved = true;
  };
  /** Writes the copy, one after the other. */
  const save = async () => {
    if (isSaving || !isUnsaved) return;
    isSaving = true;
    isUnsaved = false;
    try {
      await writeKeyFile(copy, keyring.records());
    } catch (error) {
      log.error(`${reasonOf(error)}; the keys are in memory only`);
    }
    isSaving = false;
  };
  return {
    /** Milliseconds since the keys were last as Valkey has them. */
    ageMs,
    /** True if a key that was revoked may still be among them. */
    areOutdated,
    /**
     * Merges with the keys of Valkey if they have changed.
     *
     * @param revision the id of the last change; null if Valkey has no keys
     * @throws ValkeyError
     */
    async follow(revision: string | null): Promise<void> {
      try {
        const isLost = revision === null && keyring.records().length > 0;
        if (revision !== used || isLost || (used !== null && !isCompared())) await merge(revision);
      } catch (error) {
        if (!(error instanceof KeyFileError)) throw error;
        if (revision !== unusable) log.error(`${reasonOf(error)}; the old keys stay in use`);
        unusable = revision;
        return;
      }
      currentMs = Date.now();
      void save();
      if (currentMs - markedMs < MARK_MS) return;
      markedMs = currentMs;
      // There may be no copy, and then the log has said why.
      attempt(() => utimesSync(copy, currentMs / 1000, currentMs / 1000));
    },
  };
}
