import { existsSync, statSync } from "node:fs";
import type { EnvironmentFile } from "../config/environment-file.ts";
import { type Config, ConfigError, parseConfig } from "../config/settings.ts";
import { everyUserMay } from "../platform/regular-file.ts";
import { become } from "../platform/users.ts";
import { askStatus, type Status } from "../server/status.ts";
import { checkDns64 } from "./doctor/dns64.ts";
import { checkEcho } from "./doctor/echo.ts";
import { type Finding, formatFinding, trying } from "./doctor/finding.ts";
import {
  checkAddress,
  checkClock,
  checkDefaultRoute,
  checkExecutable,
  checkRawSocket,
  checkResolvers,
} from "./doctor/machine.ts";
import { checkNats } from "./doctor/nats.ts";
import { checkNetworks } from "./doctor/networks.ts";
import {
  AUTHORITIES,
  correctLine,
  type SetVariable,
  shareWith,
  variableSetter,
} from "./doctor/repair.ts";
import {
  beforeSystemdCopies,
  checkExposure,
  checkHidden,
  checkKeys,
  checkPorts,
  checkStatus,
  checkTls,
  checkUnit,
} from "./doctor/service.ts";
import { checkValkey } from "./doctor/valkey.ts";
import {
  INSTALLED,
  type InstalledService,
  installedService,
  installedSettings,
  propertyOf,
} from "./installed.ts";
import { keysInUse } from "./key-store.ts";
import { print } from "./terminal.ts";

/**
 * `sixscope doctor [--json]`: tries what operators get wrong, one line each. For root and for the
 * service's user it checks the installed service, with its settings.
 *
 * @throws Error if there is a problem
 */
export async function runDoctor(
  { json = false }: { readonly json?: boolean },
  environment: NodeJS.ProcessEnv,
): Promise<void> {
  const findings = await diagnose(environment);
  const problems = findings.filter(({ state }) => state === "problem").length;
  await print(
    json ? JSON.stringify({ problems, findings }, null, 2) : findings.map(formatFinding).join("\n"),
  );
  if (problems > 0) throw new Error("there are problems; the lines above say what to do");
}

/** Everything that checks look at. */
interface Scene {
  readonly config: Config;
  /** Null if none is installed. */
  readonly service: InstalledService | null;
  /** The answer of the running process; null if there is none. */
  readonly status: Status | null;
  readonly files: readonly EnvironmentFile[];
  readonly set: SetVariable;
  readonly environment: NodeJS.ProcessEnv;
}

/** A check, and whether agents need it too. */
type Check = readonly [
  of: "service" | "all",
  check: (scene: Scene) => readonly Finding[] | Promise<readonly Finding[]>,
];

/** The checks with the rights of whoever runs doctor, in the order of its lines. */
const OWN: readonly Check[] = [
  ["all", ({ files }) => checkSecrets(files)],
  ["all", checkRights],
  ["all", ({ config, files }) => checkMachine([config.keysFile, ...files.map(({ path }) => path)])],
  ["all", checkEcho],
  ["all", ({ service }) => (service === null ? [] : checkUnit(service))],
  ["all", ({ config, status, service }) => checkStatus(config, status, service !== null)],
  ["all", ({ config, status, set }) => checkExposure(config, status, set)],
  ["service", ({ config, status, service, set }) => checkPorts(config, status, service, set)],
  ["all", ({ config, set }) => checkResolvers(config.resolvers, set)],
  ["all", ({ config }) => checkDns64(config.resolvers)],
  ["all", checkFolders],
  ["service", (scene) => checkPair(scene, true)],
];

/** The checks with those of the service's user. */
const AS_USER: readonly Check[] = [
  ["service", (scene) => checkPair(scene, false)],
  ["service", checkAnyKeys],
  ["all", ({ config }) => checkNetworks(config.networkFiles)],
  ["all", ({ config, set }) => checkNats(config, set)],
];

/** Every finding; root has the rights of the service's user afterwards. */
export async function diagnose(environment: NodeJS.ProcessEnv): Promise<readonly Finding[]> {
  const service = installedService(environment);
  if (service !== null && !service.isOurs) {
    return [...checkMachine([]), ...checkUnit(service), invisible(service)];
  }
  const installed = service && installedSettings(service, environment);
  const files = installed?.files ?? [];
  const settings = installed?.environment ?? environment;
  trustAuthorities(settings);
  const read = readSettings(settings, service, installed?.sources ?? ["the environment"], files);
  const { config, findings } = read;
  if (config === null) {
    const unit = service === null ? [] : checkUnit(service);
    const rights = checkRights({ service, status: null, environment });
    return [...findings, ...rights, ...checkMachine(files.map(({ path }) => path)), ...unit];
  }
  const status = await askStatus(config);
  const scene = { config, service, status, files, set: variableSetter(files), environment };
  const starts = service === null ? "" : propertyOf(service.unit, "ExecStart");
  const role = status?.role ?? (/ agent\b/.test(starts) ? "agent" : "service");
  for (const checks of [OWN, AS_USER]) {
    if (checks === AS_USER && process.geteuid?.() === 0 && service?.user) become(service.user);
    for (const [of, check] of checks) {
      if (of === "all" || of === role) findings.push(...(await check(scene)));
    }
  }
  return findings;
}

/** The service's user gets the capability from systemd only, and a running process says what it has. */
function checkRights({
  service,
  status,
  environment,
}: Pick<Scene, "service" | "status" | "environment">): readonly Finding[] {
  const isTelling = status === null && (service === null || process.geteuid?.() === 0);
  return isTelling ? [checkRawSocket(environment)] : [];
}

function checkMachine(files: readonly string[]): readonly Finding[] {
  const times = files.filter((file) => existsSync(file)).map((file) => statSync(file).mtimeMs);
  return [
    ...(Bun.isStandaloneExecutable ? [checkExecutable(process.execPath)] : []),
    checkAddress(),
    checkDefaultRoute(),
    checkClock(Math.max(0, ...times)),
  ];
}

function invisible({ userName }: InstalledService): Finding {
  const { unknown } = trying(`see the settings, keys and certificate of ${INSTALLED.unit}`);
  return unknown(`only root and ${userName} may`, "ask as root", "sudo sixscope doctor");
}

/** The runtime reads the authorities that the service trusts at its start, so this process starts again with them. */
function trustAuthorities({ [AUTHORITIES]: path }: NodeJS.ProcessEnv): void {
  if (!path || process.env[AUTHORITIES] === path) return;
  const argv = [process.execPath, ...(Bun.isStandaloneExecutable ? [] : [Bun.main])];
  const environment = { ...process.env, [AUTHORITIES]: path };
  process.execve?.(process.execPath, [...argv, ...Bun.argv.slice(2)], environment);
}

function readSettings(
  environment: NodeJS.ProcessEnv,
  service: InstalledService | null,
  sources: readonly string[],
  files: readonly EnvironmentFile[],
) {
  const where = sources.join(" and ");
  const { ok, problem } = trying(`read the settings from ${where}`);
  try {
    const folder = service === null ? "" : INSTALLED.workingDirectory;
    return { config: parseConfig(environment, folder, files), findings: [ok("they are valid")] };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const advice = `correct it in ${where}; the service does not start`;
    const findings = error.problems.map((text) => problem(text, advice, correctLine(text)));
    return { config: null, findings };
  }
}

/** Finds files with passwords in variables that every user can read. */
function checkSecrets(files: readonly EnvironmentFile[]): readonly Finding[] {
  return files.flatMap(({ path, variables }) => {
    const isSecret = (name: string) => /:\/\/[^/]*@|^sx_/.test(variables[name] ?? "");
    const secret = Object.keys(variables).find(isSecret);
    if (secret === undefined || !everyUserMay("read", path)) return [];
    const outcome = `every user of this machine, and ${secret} has a secret`;
    const advice = "change the secret if others use this machine";
    return [trying(`see who can read ${path}`).warning(outcome, advice, shareWith("root", path))];
  });
}

async function checkAnyKeys({ config, set }: Scene): Promise<readonly Finding[]> {
  const { valkey, keysFile } = config;
  if (valkey !== null) return await checkValkey(valkey, Date.now(), set);
  return [checkKeys(keysFile, Date.now(), await keysInUse(config))];
}

function checkFolders({ config, service }: Scene): readonly Finding[] {
  const { keysFile, nats, networkFiles, tls } = config;
  const files = [keysFile, nats?.credsFile, ...Object.values({ ...networkFiles, ...tls })];
  const named = files.filter((file) => file != null);
  return service === null ? [] : checkHidden(named, service.unit);
}

/** Checks certificate and key; root reads what systemd has yet to copy, as systemd does. */
function checkPair({ config: { tls }, service }: Scene, isCopied: boolean): readonly Finding[] {
  const files = tls && beforeSystemdCopies(tls);
  if (files === null || (files.keyFile !== tls?.keyFile) !== isCopied) return [];
  return [checkTls(files, Date.now(), service?.userName)];
}
