import { existsSync, readFileSync } from "node:fs";
import type { Environment } from "../environment.ts";

/** What an installation as a service puts where; the unit and the package say the same. */
export const INSTALLED = {
  unit: "sixscope.service",
  user: "sixscope",
  environmentFile: "/etc/sixscope/sixscope.env",
  stateDirectory: "/var/lib/sixscope",
} as const;

/**
 * The environment of the installed service, for root who says nothing else about it; null for
 * everybody else, and where no service is installed.
 */
export function serviceEnvironment(environment: Environment): Environment | null {
  const { environmentFile, stateDirectory } = INSTALLED;
  const isTold = ["SIXSCOPE_KEYS_FILE", "STATE_DIRECTORY"].some((name) => environment[name]);
  if (process.getuid?.() !== 0 || isTold || !existsSync(environmentFile)) return null;
  return {
    STATE_DIRECTORY: stateDirectory,
    ...parseEnvironmentFile(readFileSync(environmentFile, "utf8")),
    ...environment,
  };
}

/** The variables of an environment file: `NAME=value` lines, quotes around a value, `#` or `;` before a comment; systemd.exec(5). */
export function parseEnvironmentFile(text: string): Record<string, string> {
  const assignments = text.matchAll(/^[ \t]*([A-Za-z_]\w*)=[ \t]*(.*?)[ \t]*$/gm);
  return Object.fromEntries(
    [...assignments].map(([, name = "", value = ""]) => [
      name,
      /^(["']).*\1$/.test(value) ? value.slice(1, -1) : value,
    ]),
  );
}

/** A user of this machine, with its own group. */
export interface User {
  readonly uid: number;
  readonly gid: number;
}

/** Lets root go on with the rights of another user. */
export function become({ uid, gid }: User): void {
  process.setgroups?.([gid]);
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
