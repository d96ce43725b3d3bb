import { readFileSync } from "node:fs";
import { errnoName, libc, SystemError } from "./libc.ts";

/** A user of this machine, with the group that it has from /etc/passwd. */
export interface User {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}

/** The user of this name; null where there is none. */
export function userNamed(name: string): User | null {
  return users().find((user) => user.name === name) ?? null;
}

/** The name of the user whose rights this process has; its number where it has no name. */
export function ownName(): string {
  const uid = process.geteuid?.();
  return users().find((user) => user.uid === uid)?.name ?? String(uid);
}

/**
 * Lets root go on with the rights of another user, those of its further groups among them.
 *
 * @throws SystemError
 */
export function become({ name, uid, gid }: User): void {
  if (libc().initgroups(new TextEncoder().encode(`${name}\0`), gid) !== 0) {
    throw new SystemError(`initgroups ${name}`, errnoName(libc().errno()));
  }
  process.setegid?.(gid);
  process.seteuid?.(uid);
}

/** Runs something with the rights of another user, and then goes on as root. */
export function runAs<T>(user: User, run: () => T): T {
  const groups = process.getgroups?.() ?? [];
  become(user);
  try {
    return run();
  } finally {
    process.seteuid?.(0);
    process.setegid?.(0);
    process.setgroups?.(groups);
  }
}

function users(): User[] {
  return read("/etc/passwd")
    .split("\n")
    .map((line) => line.split(":"))
    .flatMap(([name = "", , uid, gid]) =>
      uid === undefined || gid === undefined ? [] : [{ name, uid: Number(uid), gid: Number(gid) }],
    );
}

/** A machine without the file has no names for its users. */
function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
