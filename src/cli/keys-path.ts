import { readlinkSync, statSync } from "node:fs";
import { isAbsolute, join, resolve } from "node:path";
import { ConfigError, parseConfig } from "../config/settings.ts";
import { KeyFileError, readKeyFile } from "../keys/key-file.ts";
import { become, runAs, type User } from "../platform/users.ts";
import type { Environment } from "../util/environment.ts";
import { type InstalledService, installedService } from "./installed.ts";

/** Where the keys are, and to whom root gives a new file. */
export interface KeysPlace {
  /** The file itself, not a symbolic link to it. */
  readonly path: string;
  /** Null where a new file belongs to whoever makes it. */
  readonly owner: User | null;
}

/**
 * The file that the settings name; of the installed service, for its user and for root. Root goes on
 * with the rights of the service's user where anybody but root could lay a link on the way.
 *
 * @throws ConfigError, KeyFileError where the service could not read the file
 */
export function findKeysPlace(environment: Environment): KeysPlace {
  const service = installedService(environment);
  if (service === null) {
    const { keysFile } = parseConfig(environment);
    return { path: behindLinks(keysFile, () => {}), owner: null };
  }
  const { keysFile } = parseConfig(service.environment, "/");
  refuseRelative(service);
  return process.getuid?.() === 0
    ? placeForRoot(keysFile, service)
    : { path: behindLinks(keysFile, () => {}), owner: null };
}

/** What is wrong with a keys file that is not the same one for everybody; null where nothing is. */
export function relativePathProblem(keysFile: string): string | null {
  return isAbsolute(keysFile)
    ? null
    : `SIXSCOPE_KEYS_FILE=${JSON.stringify(keysFile)}: the service takes it from its own folder, ${resolve("/", keysFile)}, and everybody else from theirs; write a path that begins with /`;
}

function refuseRelative({ environment, sources }: InstalledService): void {
  const problem = relativePathProblem(environment["SIXSCOPE_KEYS_FILE"] || "/");
  if (problem !== null) throw new ConfigError([`${problem}, in ${sources.join(" or ")}`]);
}

function placeForRoot(keysFile: string, { user, userName }: InstalledService): KeysPlace {
  if (user === null) {
    throw new KeyFileError(
      `there is no user ${userName}, whom the keys are for; make it: systemd-sysusers sixscope.conf`,
    );
  }
  let isRoot = true;
  const path = behindLinks(keysFile, (folder) => {
    if (!isRoot || belongsToRootAlone(folder)) return;
    become(user);
    isRoot = false;
  });
  if (!isRoot) return { path, owner: null };
  // Said before anything is written; it fails as the service would.
  runAs(user, () => readKeyFile(path));
  return { path, owner: user };
}

/** Whether nobody but root can lay anything into a folder; the group's bits also bound what its ACL allows. */
function belongsToRootAlone(folder: string): boolean {
  const OTHERS_WRITE = 0o022;
  const found = statSync(folder, { throwIfNoEntry: false });
  return found === undefined || (found.uid === 0 && (found.mode & OTHERS_WRITE) === 0);
}

/** As many as Linux follows; whoever opens a loop of links gets ELOOP. */
const MAX_LINKS = 40;

/**
 * Where symbolic links lead, so that the file is replaced and not the link to it.
 *
 * @param enter is told of each folder before anything in it is looked at
 */
function behindLinks(path: string, enter: (folder: string) => void): string {
  let place = "/";
  let waiting = partsOf(path);
  let links = 0;
  for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
    enter(place);
    const target = linkTarget(join(place, name));
    if (target === null) {
      place = join(place, name);
      continue;
    }
    links += 1;
    if (links > MAX_LINKS) return path;
    if (isAbsolute(target)) place = "/";
    waiting = [...partsOf(target), ...waiting];
  }
  return place;
}

function partsOf(path: string): string[] {
  return path.split("/").filter((part) => part !== "" && part !== ".");
}

/** What a symbolic link says; null for anything else, whose faults meet whoever opens it. */
function linkTarget(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
}
