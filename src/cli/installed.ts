import { existsSync, readFileSync, statSync } from "node:fs";

/** What an installation as a service puts where; the unit and the package say the same. */
export const INSTALLED = {
  unit: "sixscope.service",
  user: "sixscope",
  environmentFile: "/etc/sixscope/sixscope.env",
  stateDirectory: "/var/lib/sixscope",
} as const;

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The environment of the installed service, for root who says nothing else about it; null for
 * everybody else, and where no service is installed.
 */
export function serviceEnvironment(
  environment: Environment,
  { environmentFile, stateDirectory }: typeof INSTALLED = INSTALLED,
): Environment | null {
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

/**
 * Lets root go on as the owner of a folder, so that the files made there are the owner's, and nothing
 * that the owner may have put there can lead root astray.
 */
export function becomeOwnerOf(folder: string): void {
  const { uid, gid } = statSync(folder);
  process.setgroups?.([gid]);
  process.setegid?.(gid);
  process.seteuid?.(uid);
}
