import { existsSync, readFileSync } from "node:fs";
import { ENVIRONMENT_FILE, parseEnvironmentFile } from "../config/environment-file.ts";
import { ConfigError } from "../config/settings.ts";
import { userNamed } from "../platform/users.ts";
import { errorCode, reasonOf } from "../util/errors.ts";

/** Names and paths of an installed service, as the unit and the package set them. */
export const INSTALLED = {
  workingDirectory: "/",
  unit: "sixscope.service",
  stateDirectory: "/var/lib/sixscope",
  runtimeDirectory: "/run/sixscope",
  /** systemd passes each file `NAME` of `tlsDirectory` on as `tls_NAME` in `credentials`. */
  tlsDirectory: "/etc/sixscope/tls",
  credentials: "/run/credentials/sixscope.service",
} as const;

/** The properties of the unit as systemd shows them, in lines of `Property=value`. A property with several values has several lines. */
export type Unit = readonly string[];

/** The unit of the package, in case systemd does not answer; it has no ActiveState. */
const PACKAGED_UNIT: Unit = [
  "LoadState=loaded",
  "User=sixscope",
  `EnvironmentFiles=${ENVIRONMENT_FILE}`,
];

/** Settings that show that the environment is that of another service. */
const OF_ANOTHER = ["SIXSCOPE_KEYS_FILE", "SIXSCOPE_WATCH_FILE", "STATE_DIRECTORY"];

/** The service that is installed on this machine; see `installedService`. */
export type InstalledService = NonNullable<ReturnType<typeof installedService>>;

/** The installed service; null if there is none, or if the environment names the files of another one. */
export function installedService(environment: NodeJS.ProcessEnv) {
  if (OF_ANOTHER.some((name) => environment[name])) return null;
  const unit = askSystemd();
  if (propertyOf(unit, "LoadState") !== "loaded") return null;
  const userName = propertyOf(unit, "User") || "root";
  const user = userNamed(userName);
  const uid = process.geteuid?.();
  return {
    /** The name of the user it runs as. */
    userName,
    /** That user, or null if it does not exist. */
    user,
    /** True if this process is root or the service's user, and so may read its settings and keys. */
    isOurs: uid === 0 || uid === user?.uid,
    unit,
  };
}

/** The value of a property, or an empty string. */
export function propertyOf(unit: Unit, property: string): string {
  return valuesOf(unit, property).at(-1) ?? "";
}

function valuesOf(unit: Unit, property: string): string[] {
  const prefix = `${property}=`;
  return unit.filter((line) => line.startsWith(prefix)).map((line) => line.slice(prefix.length));
}

const PROPERTIES = "LoadState,ActiveState,User,ExecStart,Environment,EnvironmentFiles";

function askSystemd(): Unit {
  // The test that sd_booted(3) uses.
  if (existsSync("/run/systemd/system") && Bun.which("systemctl") !== null) {
    const command = ["systemctl", "show", `--property=${PROPERTIES}`, INSTALLED.unit];
    const { exitCode, stdout } = Bun.spawnSync(command, { stderr: "ignore" });
    if (exitCode === 0) return stdout.toString().trim().split("\n");
  }
  return existsSync(ENVIRONMENT_FILE) ? PACKAGED_UNIT : [];
}

/**
 * The environment of the installed service, overridden by that of the caller, and the places where it is
 * set. The unit comes first, then its environment files in order; systemd.exec(5).
 *
 * @throws ConfigError if a file cannot be read
 */
export function installedSettings({ unit }: InstalledService, environment: NodeJS.ProcessEnv) {
  const ofUnit = parseShownEnvironment(propertyOf(unit, "Environment"));
  const shown = valuesOf(unit, "EnvironmentFiles");
  const paths = shown.map((file) => file.replace(/ \(ignore_errors=\w+\)$/, ""));
  const files = paths.map((path) => parseEnvironmentFile(path, readIfPresent(path)));
  const settings: NodeJS.ProcessEnv = {
    STATE_DIRECTORY: INSTALLED.stateDirectory,
    RUNTIME_DIRECTORY: INSTALLED.runtimeDirectory,
  };
  const variables = files.map((file) => file.variables);
  const isSetInUnit = Object.keys(ofUnit).some((name) => name.startsWith("SIXSCOPE_"));
  const sources = [...(isSetInUnit ? [`Environment= of ${INSTALLED.unit}`] : []), ...paths];
  return {
    environment: Object.assign(settings, ofUnit, ...variables, environment),
    sources: sources.length === 0 ? [INSTALLED.unit] : sources,
    files,
  };
}

function readIfPresent(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (errorCode(error) === "ENOENT") return "";
    const reason = `cannot read the service's settings ${path}: ${reasonOf(error)}`;
    throw new ConfigError([`${reason}; run this as root, or let the service's user read the file`]);
  }
}

/** The variables of `Environment=` as `systemctl show` prints them: words, quoted if necessary. None has a line break. */
export function parseShownEnvironment(text: string): Record<string, string> {
  const words = text.match(/"(?:\\.|[^"\\])*"?|[^\s"]+/g) ?? [];
  const pairs = words.map((word) => {
    const unquoted = word.replace(/^"(.*)"$/s, "$1");
    return unquoted.replaceAll(/\\(.)/g, "$1").split(/=(.*)/).slice(0, 2);
  });
  return Object.fromEntries(pairs);
}
