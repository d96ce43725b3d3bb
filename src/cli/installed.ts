import { existsSync, readFileSync } from "node:fs";
import { ConfigError } from "../config/settings.ts";
import { type User, userNamed } from "../platform/users.ts";
import { errorCode, reasonOf } from "../util/errors.ts";

/** Names and paths of an installed service, as the unit and the package set them. */
export const INSTALLED = {
  workingDirectory: "/",
  unit: "sixscope.service",
  stateDirectory: "/var/lib/sixscope",
  /** systemd passes each file `NAME` of `tlsDirectory` on as `tls_NAME` in `credentials`. */
  tlsDirectory: "/etc/sixscope/tls",
  credentials: "/run/credentials/sixscope.service",
} as const;

/** What systemd shows of the unit: lines of `Property=value`, several for a property with several values. */
export type Unit = readonly string[];

/** The service that is installed on this machine. */
export interface InstalledService {
  /** The name of the user it runs as. */
  readonly userName: string;
  /** That user, or null if it does not exist. */
  readonly user: User | null;
  /** Whether this process is root or the service's user, and so may read its settings and keys. */
  readonly isOurs: boolean;
  readonly unit: Unit;
}

const ENVIRONMENT_FILE = "/etc/sixscope/sixscope.env";

/** The unit of the package, in case systemd does not answer; it has no ActiveState. */
const PACKAGED_UNIT: Unit = [
  "LoadState=loaded",
  "User=sixscope",
  `EnvironmentFiles=${ENVIRONMENT_FILE}`,
];

/** The installed service; null if there is none, or if the environment names another keys file. */
export function installedService(environment: NodeJS.ProcessEnv): InstalledService | null {
  if (environment["SIXSCOPE_KEYS_FILE"] || environment["STATE_DIRECTORY"]) return null;
  const unit = askSystemd();
  if (propertyOf(unit, "LoadState") !== "loaded") return null;
  const userName = propertyOf(unit, "User") || "root";
  const user = userNamed(userName);
  const uid = process.geteuid?.();
  return { userName, user, isOurs: uid === 0 || uid === user?.uid, unit };
}

/** The value of a property, or an empty string. */
export function propertyOf(unit: Unit, property: string): string {
  return valuesOf(unit, property).at(-1) ?? "";
}

function valuesOf(unit: Unit, property: string): string[] {
  const prefix = `${property}=`;
  return unit.filter((line) => line.startsWith(prefix)).map((line) => line.slice(prefix.length));
}

const PROPERTIES =
  "LoadState,ActiveState,User,AmbientCapabilities,Environment,EnvironmentFiles,ProtectHome,PrivateTmp";

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
 * The environment of the installed service, overridden by that of the caller, and where it is set: in
 * the unit, then in its environment files in order; systemd.exec(5).
 *
 * @throws ConfigError if a file cannot be read
 */
export function installedSettings(
  { unit }: InstalledService,
  environment: NodeJS.ProcessEnv,
): {
  environment: NodeJS.ProcessEnv;
  sources: readonly string[];
  /** The lines of each file that systemd ignores, counted from 1. */
  ignored: readonly { readonly file: string; readonly lines: readonly number[] }[];
} {
  const ofUnit = parseShownEnvironment(propertyOf(unit, "Environment"));
  const files = valuesOf(unit, "EnvironmentFiles").map((file) =>
    file.replace(/ \(ignore_errors=.*$/, ""),
  );
  const texts = files.map((file) => ({ file, text: readIfPresent(file) }));
  const isSetInUnit = Object.keys(ofUnit).some((name) => name.startsWith("SIXSCOPE_"));
  const sources = [...(isSetInUnit ? [`Environment= of ${INSTALLED.unit}`] : []), ...files];
  return {
    environment: Object.assign(
      { STATE_DIRECTORY: INSTALLED.stateDirectory },
      ofUnit,
      ...texts.map(({ text }) => parseEnvironmentFile(text)),
      environment,
    ),
    sources: sources.length === 0 ? [INSTALLED.unit] : sources,
    ignored: texts.map(({ file, text }) => ({ file, lines: ignoredLines(text) })),
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

/**
 * One comment or assignment of an environment file: a name up to `=`, then quoted pieces, which may
 * hold line breaks, then unquoted text without the white space at its end.
 */
const ENTRY =
  /^[ \t]*(?:[#;][^\n\r]*|([^=\n\r]+)=((?:[ \t]*(?:'[^']*'?|"(?:\\[\s\S]|[^"\\])*"?))*)[ \t]*((?:[ \t]*(?:\\[\s\S]|[^ \t\n\r\\]))*))/gm;

const QUOTED = /'([^']*)'?|"((?:\\[\s\S]|[^"\\])*)"?/g;

const NAME = /^[A-Za-z_]\w*$/;

/**
 * The variables of an environment file, as systemd reads it: a value may start with quoted text, and a
 * backslash escapes a character or joins two lines; systemd.exec(5), EnvironmentFile.
 */
export function parseEnvironmentFile(text: string): Record<string, string> {
  const entries = [...text.matchAll(ENTRY)].map(
    ([, name = "", quoted = "", unquoted = ""]) =>
      [name.trim(), unquote(quoted) + unquoted.replaceAll(/\\([\s\S])/g, unescaped)] as const,
  );
  return Object.fromEntries(entries.filter(([name]) => NAME.test(name)));
}

/** The lines that systemd ignores, counted from 1: those without `=`, and names such as `export A`. */
export function ignoredLines(text: string): number[] {
  const rest = text.replaceAll(ENTRY, (entry: string, name?: string) => {
    const lineBreaks = entry.replaceAll(/[^\n]/g, "");
    return name === undefined || NAME.test(name.trim()) ? lineBreaks : `${name}${lineBreaks}`;
  });
  return rest.split("\n").flatMap((line, index) => (line.trim() === "" ? [] : [index + 1]));
}

function unquote(pieces: string): string {
  const values = [...pieces.matchAll(QUOTED)].map(
    ([, single, double = ""]) => single ?? double.replaceAll(/\\(["\\`$\n])/g, unescaped),
  );
  return values.join("");
}

/** An escaped line break disappears. */
function unescaped(_: string, character: string): string {
  return /[\n\r]/.test(character) ? "" : character;
}

/** The variables of `Environment=` as `systemctl show` prints them: words, quoted if necessary. */
export function parseShownEnvironment(text: string): Record<string, string> {
  const words = text.match(/"(?:\\.|[^"\\])*"|[^\s"]+/g) ?? [];
  const assignments = words.map((word) => (word.startsWith('"') ? readQuotedWord(word) : word));
  return Object.fromEntries(
    assignments.map((assignment) => assignment.split(/=([\s\S]*)/).slice(0, 2)),
  );
}

function readQuotedWord(word: string): string {
  const ESCAPES: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t" };
  return word
    .slice(1, -1)
    .replaceAll(/\\(.)/g, (_, character: string) => ESCAPES[character] ?? character);
}
