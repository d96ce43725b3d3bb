import { chownSync, closeSync, existsSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { parseArgs } from "node:util";
import { generateApiKey, hashApiKey } from "../keys/api-key.ts";
import {
  isActive,
  isNewKeyName,
  KeyFileError,
  type KeyRecord,
  readKeyFile,
  writeKeyFile,
} from "../keys/key-file.ts";
import { errnoName, libc, SystemError } from "../platform/libc.ts";
import type { Environment } from "../util/environment.ts";
import { reasonOf } from "../util/errors.ts";
import { ownCommand } from "./invocation.ts";
import { findKeysPlace, type KeysPlace } from "./keys-path.ts";
import { OutputError, print, write } from "./output.ts";
import { UsageError } from "./usage.ts";

export const KEYS_USAGE = `sixscope keys add NAME [--limit N] [--expires DATE]   make a key and print it once
sixscope keys list                                    show the keys, without secrets
sixscope keys revoke NAME                             refuse a key from now on`;

/** `write` fails where nobody can read the text; `print` lets a reader stop early. */
interface KeysOutput {
  readonly print: (text: string) => Promise<void>;
  readonly write: (text: string) => Promise<void>;
}

/**
 * `sixscope keys …`: makes, shows and revokes API keys in the file that the service reads; root and
 * the installed service's user find its file without being told.
 *
 * @param output takes the text for standard output
 * @throws UsageError, KeyFileError, ConfigError, OutputError
 */
export async function runKeys(
  argv: readonly string[],
  environment: Environment,
  output: KeysOutput = { print, write },
  nowMs: number = Date.now(),
): Promise<void> {
  const [action, ...rest] = argv;
  const place = findKeysPlace(environment);
  switch (action) {
    case "add":
      return await showKey(addKey(place, rest, nowMs), place, output);
    case "list":
      return await output.print(listKeys(place, rest, nowMs));
    case "revoke":
      return await output.print(revokeKey(place, rest, nowMs));
    default:
      throw new UsageError(
        action === undefined ? "keys needs add, list or revoke" : `keys has no action ${action}`,
        KEYS_USAGE,
      );
  }
}

/** A key that was made, and the name that it has. */
interface NewKey {
  readonly name: string;
  readonly key: string;
}

/** Shows a new key; one that nobody saw is of use to nobody, and is revoked. */
async function showKey({ name, key }: NewKey, place: KeysPlace, { write }: KeysOutput) {
  const text = `${key}

This is the only time the key is shown. Send it in the header X-API-Key.
It is stored in ${place.path}; a service that reads it takes it up within a second.`;
  try {
    await write(text);
  } catch (error) {
    if (!(error instanceof OutputError)) throw error;
    const outcome = takeBack(name, place);
    throw new OutputError(`${error.message}; nobody saw the key, ${outcome}`, { cause: error });
  }
}

/** Revokes a key, and says what came of it: a disk that is full for the one may be so for the other. */
function takeBack(name: string, place: KeysPlace): string {
  try {
    revokeKey(place, [name], Date.now());
    return "so it is revoked again: see where the output goes, and make another";
  } catch (error) {
    if (!(error instanceof KeyFileError)) throw error;
    return `and it still counts, for ${error.message}: put that right, then ${ownCommand()} keys revoke ${JSON.stringify(name)}`;
  }
}

function addKey(place: KeysPlace, argv: readonly string[], nowMs: number): NewKey {
  const { values, positionals } = parse(argv, {
    limit: { type: "string" },
    expires: { type: "string" },
  });
  const name = onlyName(positionals);
  if (!isNewKeyName(name)) {
    throw new UsageError(
      `${JSON.stringify(name)} cannot be a name: use up to 64 letters, digits, single spaces inside and . _ @ -`,
      KEYS_USAGE,
    );
  }
  const limit = values["limit"];
  if (limit !== undefined && !/^[1-9][0-9]{0,6}$/.test(limit)) {
    throw new UsageError(`--limit ${limit}: must be a whole number from 1 to 9999999`, KEYS_USAGE);
  }
  const expires = values["expires"];
  const record: Omit<KeyRecord, "sha256"> = {
    name,
    created: new Date(nowMs).toISOString(),
    ...(limit === undefined ? {} : { limit: Number(limit) }),
    ...(expires === undefined ? {} : { expires: parseExpiry(expires, nowMs) }),
  };
  const key = generateApiKey();
  changeKeys(place, (keys) => {
    const taken = keys.find((other) => other.name === name && isActive(other, nowMs));
    if (taken !== undefined) {
      throw new KeyFileError(
        `there is a key named ${JSON.stringify(name)} already; choose another name or revoke it first`,
      );
    }
    return [...keys.filter((other) => other.name !== name), { ...record, sha256: hashApiKey(key) }];
  });
  return { name, key };
}

function listKeys({ path }: KeysPlace, argv: readonly string[], nowMs: number): string {
  if (parse(argv, {}).positionals.length > 0) {
    throw new UsageError("keys list takes no arguments", KEYS_USAGE);
  }
  const keys = readKeyFile(path);
  if (keys.length === 0) return `No keys in ${path}. Make one: ${ownCommand()} keys add NAME`;
  const rows = keys.map((key) => [
    key.name,
    stateOf(key, nowMs),
    key.limit === undefined ? "default" : `${key.limit}/min`,
    key.created.slice(0, 10),
    key.expires?.slice(0, 10) ?? "never",
  ]);
  return table([["NAME", "STATE", "LIMIT", "CREATED", "EXPIRES"], ...rows]);
}

function revokeKey(place: KeysPlace, argv: readonly string[], nowMs: number): string {
  const name = onlyName(parse(argv, {}).positionals);
  changeKeys(place, (keys) => {
    if (!keys.some((key) => key.name === name && key.revoked === undefined)) {
      throw new KeyFileError(
        `there is no key named ${JSON.stringify(name)} to revoke; see ${ownCommand()} keys list`,
      );
    }
    const revoked = new Date(nowMs).toISOString();
    return keys.map((key) =>
      key.name === name && key.revoked === undefined ? { ...key, revoked } : key,
    );
  });
  return `Revoked ${name} in ${place.path}; a service that reads it refuses the key within a second.`;
}

function stateOf(key: KeyRecord, nowMs: number): string {
  if (key.revoked !== undefined) return "revoked";
  return isActive(key, nowMs) ? "active" : "expired";
}

/** Reads, changes and writes the file while no other `keys` command does. */
function changeKeys(
  { path, owner }: KeysPlace,
  change: (keys: readonly KeyRecord[]) => readonly KeyRecord[],
): void {
  const unlock = lockDirectory(dirname(path));
  try {
    const isNew = !existsSync(path);
    writeKeyFile(path, change(readKeyFile(path)));
    if (isNew && owner !== null) chownSync(path, owner.uid, owner.gid);
  } finally {
    unlock();
  }
}

/** Holds flock(2) on a directory, so that no lock file is left and a crash frees it. */
function lockDirectory(path: string): () => void {
  if (!existsSync(path)) {
    throw new KeyFileError(
      `there is no folder ${path} for the keys file; make it, or set SIXSCOPE_KEYS_FILE`,
    );
  }
  const LOCK_EXCLUSIVE = 2;
  const directory = openFolder(path);
  if (libc().flock(directory, LOCK_EXCLUSIVE) !== 0) {
    const code = errnoName(libc().errno());
    closeSync(directory);
    throw new SystemError(`flock ${path}`, code);
  }
  return () => closeSync(directory);
}

function openFolder(path: string): number {
  try {
    return openSync(path, "r");
  } catch (error) {
    throw new KeyFileError(
      `cannot open the folder ${path} of the keys file: ${reasonOf(error)}; run it as root, or set SIXSCOPE_KEYS_FILE to a file in a folder of yours`,
      { cause: error },
    );
  }
}

/** A date means its end in UTC; a moment is taken as it stands. */
function parseExpiry(text: string, nowMs: number): string {
  const FORM = /^(\d{4}-\d{2}-\d{2})(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2}))?$/;
  const [, day = "", time] = FORM.exec(text) ?? [];
  const moment = new Date(time === undefined ? `${day}T23:59:59.999Z` : text);
  // Date reads 30 February as 2 March.
  const dayBegins = new Date(`${day}T00:00:00Z`);
  const isDay = !Number.isNaN(dayBegins.getTime()) && dayBegins.toISOString().startsWith(day);
  if (!isDay || Number.isNaN(moment.getTime())) {
    throw new UsageError(
      `--expires ${text}: must be a date such as 2027-01-31, whose end in UTC is meant, or a moment such as 2027-01-31T12:00:00Z`,
      KEYS_USAGE,
    );
  }
  // A year of five digits has another form, which the file's readers do not take.
  if (moment.getUTCFullYear() > 9999) {
    throw new UsageError(`--expires ${text}: lies behind the year 9999 in UTC`, KEYS_USAGE);
  }
  if (moment.getTime() <= nowMs) {
    throw new UsageError(`--expires ${text}: lies in the past`, KEYS_USAGE);
  }
  return moment.toISOString();
}

function onlyName(positionals: readonly string[]): string {
  const [name, ...more] = positionals;
  if (name === undefined) throw new UsageError("the key's NAME is missing", KEYS_USAGE);
  if (more.length > 0) {
    throw new UsageError("one NAME only; put a name with spaces in quotes", KEYS_USAGE);
  }
  return name;
}

function parse(argv: readonly string[], options: Record<string, { type: "string" }>) {
  try {
    return parseArgs({ args: [...argv], options, allowPositionals: true, strict: true });
  } catch (error) {
    throw new UsageError(reasonOf(error), KEYS_USAGE);
  }
}

function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  );
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
