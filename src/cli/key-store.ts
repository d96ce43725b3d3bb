import { closeSync, constants, lstatSync, openSync, readlinkSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { type Config, parseConfig } from "../config/settings.ts";
import { namesBelow, publicUrl, type ValkeyAddress } from "../config/valkey-address.ts";
import { KeyFileError, type KeyRecord, readKeyFile, writeKeyFile } from "../keys/key-file.ts";
import { lastError, libc } from "../platform/libc.ts";
import { become, ownName, userWithId } from "../platform/users.ts";
import { formatCommand } from "../util/command.ts";
import { attempt, orThrow } from "../util/errors.ts";
import { createConnection, type RunScript, ValkeyError } from "../valkey/connection.ts";
import { changeSharedKeys, readSharedKeys } from "../valkey/keys.ts";
import { INSTALLED, installedService, installedSettings } from "./installed.ts";

/** How long a command waits for Valkey, in milliseconds. */
const ANSWER_MS = 5_000;

/** Changes a list of keys; if it throws, the keys stay as they are. */
type Change = (keys: readonly KeyRecord[]) => readonly KeyRecord[];

/** The place where the service has its keys: its file, or Valkey. */
export interface KeyStore {
  /** The name of the place, for messages. */
  readonly place: string;
  /** The file whose keys can be copied to this place; null if this is that file. */
  readonly source: string | null;
  read(): Promise<readonly KeyRecord[]>;
  /** Changes the keys while no other `keys` command does. */
  change(change: Change): Promise<void>;
}

/**
 * Opens the keys that the settings name; those of the installed service if there is one. Root becomes
 * the service's user first, so that it reads and writes what the service can, and nothing else.
 *
 * @throws KeyFileError for another user, whose key no service would read; ConfigError
 */
export function openKeyStore(environment: NodeJS.ProcessEnv): KeyStore {
  const { keysFile, valkey } = settingsOfService(environment, "keys", "SIXSCOPE_KEYS_FILE");
  if (valkey !== null) return valkeyStore(valkey, keysFile);
  const place = behindLinks(keysFile);
  const read = async () => readKeyFile(place);
  return { place, source: null, read, change: (change) => changeFile(place, change) };
}

/** The keys that instances share in Valkey. The keys of the file can be copied there. */
export function valkeyStore({ url, prefix }: ValkeyAddress, keysFile: string): KeyStore {
  const name = namesBelow(prefix).keys;
  const place = publicUrl(url);
  const using = async <T>(action: (run: RunScript) => Promise<T>): Promise<T> => {
    const connection = createConnection(url);
    try {
      return await action((wanted, keys, args) => connection.run(wanted, keys, args, ANSWER_MS));
    } catch (error) {
      if (!(error instanceof ValkeyError)) throw error;
      const advice = "check the URL in the settings, its password, and whether Valkey runs";
      throw new KeyFileError(`cannot use the keys in ${place}: ${error.message}; ${advice}`);
    } finally {
      connection.close();
    }
  };
  return {
    place,
    source: keysFile,
    read: () => using(async (run) => (await readSharedKeys(run, name)).keys),
    change: (change) => using((run) => changeSharedKeys(run, name, change)),
  };
}

/**
 * The settings of the installed service, whose user root becomes; without one, those of the environment.
 *
 * @param what the files of the service that belong to its user, for messages
 * @param setting the variable that names another file
 * @throws KeyFileError for another user; ConfigError
 */
export function settingsOfService(
  environment: NodeJS.ProcessEnv,
  what: string,
  setting: string,
): Config {
  const service = installedService(environment);
  if (service === null) return parseConfig(environment);
  const { user, userName, isOurs } = service;
  if (!isOurs) {
    const command = formatCommand(["sudo", "sixscope", ...Bun.argv.slice(2)]);
    throw new KeyFileError(
      `the ${what} of the installed service belong to ${userName}; run: ${command}, or set ${setting} for a service of your own`,
    );
  }
  if (user === null) {
    throw new KeyFileError(
      `the service's user ${userName} does not exist; run: systemd-sysusers sixscope.conf`,
    );
  }
  const settings = installedSettings(service, environment).environment;
  const config = parseConfig(settings, INSTALLED.workingDirectory);
  if (process.geteuid?.() === 0) become(user);
  return config;
}

/** As many links as the kernel follows on one path; path_resolution(7). */
const MAX_LINKS = 40;

/**
 * The path without symbolic links, so that their target is replaced and not a link.
 *
 * At the first folder or link that belongs to another user, root becomes that user: the owner can
 * move what is below to another place at any time, and root's rights must not follow.
 */
function behindLinks(path: string, links = 0): string {
  // In a user namespace, the machine's own folders belong to an unknown user.
  const trusted = [0, lstatSync("/").uid];
  const names = path.split("/");
  for (let end = 2; end <= names.length; end++) {
    const at = names.slice(0, end).join("/");
    // Undefined too if this user may not see it, which opening it reports.
    const found = attempt(() => lstatSync(at));
    if (found === undefined || found.isFile()) break;
    if (process.geteuid?.() === 0 && !trusted.includes(found.uid)) become(userWithId(found.uid));
    if (!found.isSymbolicLink()) continue;
    const target = resolve(dirname(at), readlinkSync(at), ...names.slice(end));
    return links < MAX_LINKS ? behindLinks(target, links + 1) : path;
  }
  return path;
}

async function changeFile(path: string, change: Change): Promise<void> {
  const folder = dirname(path);
  const failure = (reason: string) =>
    new KeyFileError(
      `cannot open the folder ${folder} of the keys file: ${reason}; create it, let ${ownName()} write to it, or set SIXSCOPE_KEYS_FILE`,
    );
  await whileLocked(folder, failure, () => writeKeyFile(path, change(readKeyFile(path))));
}

/**
 * Runs an action on the files of a folder while no other command runs one there.
 *
 * @param failure makes the error if the folder cannot be opened
 */
export async function whileLocked<T>(
  folder: string,
  failure: (reason: string) => Error,
  action: () => Promise<T>,
): Promise<T> {
  const LOCK_EXCLUSIVE = 2;
  const descriptor = orThrow(() => openSync(folder, constants.O_DIRECTORY), failure);
  try {
    // A lock on the folder leaves no lock file behind and ends with the process; flock(2).
    if (libc().flock(descriptor, LOCK_EXCLUSIVE) !== 0) throw lastError(`flock ${folder}`);
    return await action();
  } finally {
    closeSync(descriptor);
  }
}
