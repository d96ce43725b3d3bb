import { closeSync, constants, lstatSync, openSync, readlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { InvalidArgumentError } from "commander";
import { z } from "zod";
import { parseConfig } from "../config/settings.ts";
import { generateApiKey, hashApiKey } from "../keys/api-key.ts";
import {
  isActive,
  isNewKeyName,
  KeyFileError,
  type KeyRecord,
  readKeyFile,
  writeKeyFile,
} from "../keys/key-file.ts";
import { lastError, libc, SystemError } from "../platform/libc.ts";
import { become, ownName, userWithId } from "../platform/users.ts";
import { reasonOf } from "../util/errors.ts";
import { INSTALLED, installedService, installedSettings } from "./installed.ts";
import { invocation, write } from "./terminal.ts";

/**
 * The keys file that the settings name; those of the installed service if there is one. Root becomes
 * the service's user first, so that it reads and writes what the service can, and nothing else.
 *
 * @throws KeyFileError for another user, whose key no service would read
 */
function findKeysFile(environment: NodeJS.ProcessEnv): string {
  const service = installedService(environment);
  if (service === null) return behindLinks(parseConfig(environment).keysFile);
  const { user, userName, isOurs } = service;
  if (!isOurs) {
    const command = ["sudo sixscope", ...Bun.argv.slice(2).map(shellQuote)].join(" ");
    throw new KeyFileError(
      `the keys of the installed service belong to ${userName}; run: ${command}, or set SIXSCOPE_KEYS_FILE for a service of your own`,
    );
  }
  if (user === null) {
    throw new KeyFileError(
      `the service's user ${userName} does not exist; run: systemd-sysusers sixscope.conf`,
    );
  }
  const settings = installedSettings(service, environment).environment;
  const { keysFile } = parseConfig(settings, INSTALLED.workingDirectory);
  if (process.geteuid?.() === 0) become(user);
  return behindLinks(keysFile);
}

/** As many links as the kernel follows on one path; path_resolution(7). */
const MAX_LINKS = 40;

/**
 * The path without symbolic links, so that their target is replaced and not a link.
 *
 * At the first folder or link that belongs to another user, root becomes that user: the owner can
 * move what is below to another place at any time, and root's rights must not follow.
 */
function behindLinks(path: string): string {
  // In a user namespace, the machine's own folders belong to an unknown user.
  const trusted = [0, lstatSync("/").uid];
  const rest = path.split("/");
  let at = "/";
  let links = 0;
  try {
    while (rest.length > 0) {
      const next = join(at, rest.shift() ?? "");
      const found = lstatSync(next, { throwIfNoEntry: false });
      const isFile = found === undefined || found.isFile();
      if (!isFile && process.geteuid?.() === 0 && !trusted.includes(found.uid)) {
        become(userWithId(found.uid));
      }
      if (isFile || !found.isSymbolicLink()) {
        at = next;
        continue;
      }
      if (++links > MAX_LINKS) break;
      const target = readlinkSync(next);
      rest.unshift(...target.split("/"));
      if (target.startsWith("/")) at = "/";
    }
    return links > MAX_LINKS ? path : at;
  } catch (error) {
    if (error instanceof SystemError) throw error;
    // Opening the file reports any other error.
    return path;
  }
}

function shellQuote(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** What `keys add` takes beside the name. */
export interface KeyOptions {
  /** Requests a minute. */
  readonly limit?: number;
  /** A time in ISO 8601. */
  readonly expires?: string;
}

/**
 * `sixscope keys add NAME`: creates a key in the keys file of the service, and prints it once.
 *
 * @throws KeyFileError, ConfigError
 */
export async function addKey(
  name: string,
  { limit, expires }: KeyOptions,
  environment: NodeJS.ProcessEnv,
): Promise<void> {
  const key = generateApiKey();
  const record: KeyRecord = {
    name,
    sha256: hashApiKey(key).toString("hex"),
    created: new Date().toISOString(),
    ...(limit === undefined ? {} : { limit }),
    ...(expires === undefined ? {} : { expires }),
  };
  const path = findKeysFile(environment);
  changeKeys(path, (keys) => {
    const isTaken = keys.some((other) => other.name === name && isActive(other, Date.now()));
    if (isTaken) {
      throw new KeyFileError(
        `a key named ${JSON.stringify(name)} exists already; choose another name or revoke it first`,
      );
    }
    return [...keys.filter((other) => other.name !== name), record];
  });
  const text = `${key}

This is the only time the key is shown. Send it in the header X-API-Key.
It is stored in ${path}; a service that reads this file accepts the key within a second.`;
  await write(text).catch((error) => {
    const undo = `${invocation()} keys revoke ${shellQuote(name)}`;
    throw new Error(`${reasonOf(error)}; the new key was not shown, revoke it: ${undo}`);
  });
}

/**
 * `sixscope keys list`: the keys without secrets, as text.
 *
 * @throws KeyFileError, ConfigError
 */
export function listKeys(environment: NodeJS.ProcessEnv): string {
  const path = findKeysFile(environment);
  const keys = readKeyFile(path);
  if (keys.length === 0) return `No keys in ${path}. Create one: ${invocation()} keys add NAME`;
  const width = Math.max(...keys.map(({ name }) => name.length), "NAME".length);
  const row = (name: string, state: string, limit: string, created: string, expires: string) =>
    `${name.padEnd(width)}  ${state.padEnd(7)}  ${limit.padEnd(11)}  ${created.padEnd(10)}  ${expires}`;
  const rows = keys.map((key) => {
    const limit = key.limit === undefined ? "default" : `${key.limit}/min`;
    const expires = key.expires?.slice(0, 10) ?? "never";
    return row(key.name, stateOf(key), limit, key.created.slice(0, 10), expires);
  });
  return [row("NAME", "STATE", "LIMIT", "CREATED", "EXPIRES"), ...rows].join("\n");
}

/**
 * `sixscope keys revoke NAME`: makes a key invalid from now on, and says so.
 *
 * @throws KeyFileError, ConfigError
 */
export function revokeKey(name: string, environment: NodeJS.ProcessEnv): string {
  const path = findKeysFile(environment);
  changeKeys(path, (keys) => {
    const isRevocable = (key: KeyRecord) => key.name === name && key.revoked === undefined;
    if (!keys.some(isRevocable)) {
      throw new KeyFileError(
        `no key named ${JSON.stringify(name)} can be revoked; see ${invocation()} keys list`,
      );
    }
    const revoked = new Date().toISOString();
    return keys.map((key) => (isRevocable(key) ? { ...key, revoked } : key));
  });
  return `Revoked ${name} in ${path}; a service that reads this file rejects the key within a second.`;
}

function stateOf(key: KeyRecord): string {
  if (key.revoked !== undefined) return "revoked";
  return isActive(key, Date.now()) ? "active" : "expired";
}

/** Reads, changes and writes the file while no other `keys` command does. */
function changeKeys(
  path: string,
  change: (keys: readonly KeyRecord[]) => readonly KeyRecord[],
): void {
  const LOCK_EXCLUSIVE = 2;
  const folder = openFolder(dirname(path));
  try {
    // A lock on the folder leaves no lock file behind and ends with the process; flock(2).
    if (libc().flock(folder, LOCK_EXCLUSIVE) !== 0) throw lastError(`flock ${dirname(path)}`);
    writeKeyFile(path, change(readKeyFile(path)));
  } finally {
    closeSync(folder);
  }
}

function openFolder(path: string): number {
  try {
    return openSync(path, constants.O_DIRECTORY);
  } catch (error) {
    throw new KeyFileError(
      `cannot open the folder ${path} of the keys file: ${reasonOf(error)}; create it, let ${ownName()} write to it, or set SIXSCOPE_KEYS_FILE`,
      { cause: error },
    );
  }
}

/** @throws InvalidArgumentError for a text that cannot be the name of a new key */
export function parseKeyName(text: string): string {
  if (isNewKeyName(text)) return text;
  throw new InvalidArgumentError(
    "It cannot be a name: use up to 64 letters, digits, single spaces inside and . _ @ -",
  );
}

/** @throws InvalidArgumentError for a text that is no limit */
export function parseLimit(text: string): number {
  if (/^[1-9][0-9]{0,6}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("It must be a whole number from 1 to 9999999.");
}

/**
 * The time in ISO 8601 at which a key expires. A date means the end of that day in UTC.
 *
 * @throws InvalidArgumentError also for a time in the past
 */
export function parseExpiry(text: string): string {
  const time = z.iso.date().safeParse(text).success
    ? `${text}T23:59:59.999Z`
    : text.replace(/T\d\d:\d\d(?=[Z+-])/, "$&:00");
  const isTime = z.iso.datetime({ offset: true }).safeParse(time).success;
  const expires = isTime ? new Date(time).toISOString() : "";
  // An offset can move the time beyond the year 9999, which the keys file cannot hold.
  if (!z.iso.datetime().safeParse(expires).success) {
    throw new InvalidArgumentError(
      "It must be a date such as 2027-01-31 (valid to the end of that day in UTC) or a time such as 2027-01-31T12:00:00Z.",
    );
  }
  if (Date.parse(expires) > Date.now()) return expires;
  throw new InvalidArgumentError("It must be in the future.");
}
