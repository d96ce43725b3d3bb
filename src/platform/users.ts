import { cString, lastError, libc } from "./libc.ts";
import { tryRead } from "./regular-file.ts";

/** A user of this machine with its primary group, from /etc/passwd. */
export type User = Readonly<ReturnType<typeof users>[number]>;

/** The user with this name, or null. */
export function userNamed(name: string): User | null {
  return users().find((user) => user.name === name) ?? null;
}

/** The user with this number; a user without a name has a group with the same number. */
export function userWithId(uid: number): User {
  return users().find((user) => user.uid === uid) ?? { name: String(uid), uid, gid: uid };
}

/** The name of the user this process runs as, or the uid of a user without a name. */
export function ownName(): string {
  return userWithId(process.geteuid?.() ?? 0).name;
}

/**
 * Drops root's rights for those of another user and all its groups.
 *
 * @throws SystemError
 */
export function become({ name, uid, gid }: User): void {
  if (libc().initgroups(cString(name), gid) !== 0) throw lastError(`initgroups ${name}`);
  process.setegid?.(gid);
  process.seteuid?.(uid);
}

/** The users of this machine; none if it has no /etc/passwd, as in a minimal container. */
function users() {
  const rows = (tryRead("/etc/passwd") ?? "").split("\n").map((row) => row.split(":"));
  return rows.flatMap(([name, , uid, gid]) =>
    name && uid && gid ? { name, uid: Number(uid), gid: Number(gid) } : [],
  );
}
