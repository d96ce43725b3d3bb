import { existsSync, readFileSync } from "node:fs";
import { ConfigError } from "../config/settings.ts";
import { type User, userNamed } from "../platform/users.ts";
import type { Environment } from "../util/environment.ts";
import { errorCode, reasonOf } from "../util/errors.ts";
import { parseEnvironmentFile, parseShownEnvironment } from "./environment-file.ts";

/** What an installation as a service puts where; the unit and the package say the same. */
export const INSTALLED = {
  unit: "sixscope.service",
  user: "sixscope",
  environmentFile: "/etc/sixscope/sixscope.env",
  stateDirectory: "/var/lib/sixscope",
  /** Of what lies in the one folder, systemd hands `NAME` over as `tls_NAME` in the other at the start. */
  tlsDirectory: "/etc/sixscope/tls",
  credentials: "/run/credentials/sixscope.service",
} as const;

/** What systemd says of the unit: each property has a value for each line that shows it. */
export type Unit = ReadonlyMap<string, readonly string[]>;

/** The service as it is installed on this machine. */
export interface InstalledService {
  /** The name of the user that it runs as. */
  readonly userName: string;
  /** That user; null where it does not exist. */
  readonly user: User | null;
  /** Its environment, and over it that of whoever asks. */
  readonly environment: Environment;
  /** Where its settings stand. */
  readonly sources: readonly string[];
  /** Null where systemd does not answer. */
  readonly unit: Unit | null;
}

/**
 * The installed service, for root and for the service's own user, who say nothing else about it; null
 * for everybody else, and where no service is installed.
 *
 * @throws ConfigError where its settings cannot be read
 */
export function installedService(environment: Environment): InstalledService | null {
  if (["SIXSCOPE_KEYS_FILE", "STATE_DIRECTORY"].some((name) => environment[name])) return null;
  const unit = askSystemd();
  const isInstalled =
    unit === null
      ? existsSync(INSTALLED.environmentFile)
      : propertyOf(unit, "LoadState") === "loaded";
  if (!isInstalled) return null;
  const userName = unit === null ? INSTALLED.user : propertyOf(unit, "User") || "root";
  const user = userNamed(userName);
  const uid = process.getuid?.();
  if (uid !== 0 && uid !== user?.uid) return null;
  const settings = readSettings(unit);
  return {
    userName,
    user,
    environment: {
      STATE_DIRECTORY: INSTALLED.stateDirectory,
      ...settings.variables,
      ...environment,
    },
    sources: settings.sources,
    unit,
  };
}

/** The last value of a property; empty where it has none. */
export function propertyOf(unit: Unit, property: string): string {
  return unit.get(property)?.at(-1) ?? "";
}

const PROPERTIES = [
  ...["LoadState", "ActiveState", "User", "AmbientCapabilities"],
  ...["Environment", "EnvironmentFiles", "ProtectHome", "PrivateTmp"],
];

function askSystemd(): Unit | null {
  // As sd_booted(3) finds out whether there is one to ask.
  if (!existsSync("/run/systemd/system") || Bun.which("systemctl") === null) return null;
  const command = ["systemctl", "show", `--property=${PROPERTIES}`, INSTALLED.unit];
  const { exitCode, stdout } = Bun.spawnSync(command, { stderr: "ignore" });
  if (exitCode !== 0) return null;
  const unit = new Map<string, string[]>();
  for (const line of stdout.toString().trim().split("\n")) {
    const [name = "", value = ""] = line.split(/=(.*)/s);
    unit.set(name, [...(unit.get(name) ?? []), value]);
  }
  return unit;
}

/** What the unit sets, and over it what its files do, in their order; systemd.exec(5). */
function readSettings(unit: Unit | null): { variables: Environment; sources: string[] } {
  const own = unit === null ? {} : parseShownEnvironment(propertyOf(unit, "Environment"));
  const files =
    unit === null
      ? [INSTALLED.environmentFile]
      : (unit.get("EnvironmentFiles") ?? []).map((file) =>
          file.replace(/ \(ignore_errors=.*$/, ""),
        );
  const read = files.map((file) => parseEnvironmentFile(readIfThere(file)));
  const isSet = Object.keys(own).some((name) => name.startsWith("SIXSCOPE_"));
  const sources = [...(isSet ? [`Environment= of ${INSTALLED.unit}`] : []), ...files];
  return {
    variables: Object.assign({}, own, ...read),
    sources: sources.length === 0 ? [INSTALLED.unit] : sources,
  };
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (errorCode(error) === "ENOENT") return "";
    const reason = `cannot read the service's settings ${path}: ${reasonOf(error)}`;
    throw new ConfigError([`${reason}; run it as root, or let its user read them`]);
  }
}
