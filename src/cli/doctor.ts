import { ConfigError, parseConfig, settingsOfAgent } from "../config/settings.ts";
import { become } from "../platform/users.ts";
import { askStatus, isOfSettings, type Status } from "../server/status.ts";
import { checkCopies, checkOriginals, checkSecrets } from "./doctor/files.ts";
import {
  AUTHORITIES,
  type Finding,
  formatFinding,
  type Scene,
  settingIn,
  trying,
} from "./doctor/finding.ts";
import { checkHistory } from "./doctor/history.ts";
import { checkKeys } from "./doctor/keys.ts";
import { checkMachine, checkRights } from "./doctor/machine.ts";
import { checkNats, checkResolvers } from "./doctor/peers.ts";
import { ASK_AS_ROOT, checkExposure, checkStatus, checkUnit } from "./doctor/service.ts";
import {
  INSTALLED,
  type InstalledService,
  installedService,
  installedSettings,
  propertyOf,
} from "./installed.ts";
import { print } from "./terminal.ts";

/**
 * `sixscope doctor [--json]`: tries what operators get wrong, one line each. For root and for the
 * service's user it checks the installed service, with its settings.
 *
 * @throws Error if there is a problem
 */
export async function runDoctor(isJson: boolean, environment: NodeJS.ProcessEnv): Promise<void> {
  const findings = await diagnose(environment);
  const problems = findings.filter(({ state }) => state === "problem").length;
  await print(
    isJson
      ? JSON.stringify({ problems, findings }, null, 2)
      : findings.map(formatFinding).join("\n"),
  );
  if (problems > 0) throw new Error("there are problems; the lines above say what to do");
}

type Check = (scene: Scene) => readonly Finding[] | Promise<readonly Finding[]>;

/** The checks with the rights of the caller, in the order of their lines. */
const OWN: readonly Check[] = [
  checkSecrets,
  checkRights,
  ({ config }) => checkMachine(config.resolvers[config.targetResolver]),
  checkUnit,
  checkStatus,
  checkExposure,
  checkResolvers,
  checkOriginals,
];

/** The checks with the rights of the service's user. */
const AS_USER: readonly Check[] = [checkCopies, checkKeys, checkHistory, checkNats];

/** Every finding; root has the rights of the service's user afterwards. */
export async function diagnose(environment: NodeJS.ProcessEnv): Promise<readonly Finding[]> {
  const service = installedService(environment);
  if (service !== null && !service.isOurs) {
    return [...(await checkMachine()), ...checkUnit({ service }), invisible(service)];
  }
  const own = { environment, sources: ["the environment"], files: [] };
  const given = service === null ? own : installedSettings(service, environment);
  const { files } = given;
  trustAuthorities(given.environment);
  const { config, findings } = readSettings(given, service);
  if (config === null) {
    const rights = checkRights({ service, status: null, environment });
    return [...findings, ...rights, ...(await checkMachine()), ...checkUnit({ service })];
  }
  const status = await askStatus(config);
  const isOurs = status !== null && isOfSettings(status, config);
  const role = roleOf(propertyOf(service?.unit ?? [], "ExecStart"), isOurs ? status : null);
  const isCurrent = isOurs && status.role === role;
  const setting = settingIn(files);
  const used = role === "agent" ? settingsOfAgent(config) : config;
  const scene = { config: used, service, status, files, environment, role, isCurrent, setting };
  for (const checks of [OWN, AS_USER]) {
    if (checks === AS_USER && process.geteuid?.() === 0 && service?.user) become(service.user);
    findings.push(...(await Promise.all(checks.map((check) => check(scene)))).flat());
  }
  return findings;
}

/**
 * The role that the settings are for: the one that the unit starts, or else that of the process with these settings.
 *
 * @param start `ExecStart=` of the unit as systemd shows it; empty if nothing is installed, or systemd does not answer
 * @param status of a process with these settings; a process with other settings, such as an agent started by hand in the
 *   same folder, says nothing of their role
 */
export function roleOf(start: string, status: Pick<Status, "role"> | null): Status["role"] {
  if (start === "") return status?.role ?? "service";
  return / agent\b/.test(start) ? "agent" : "service";
}

function invisible({ userName }: InstalledService): Finding {
  const { unknown } = trying(`see the settings, keys and certificate of ${INSTALLED.unit}`);
  return unknown(`only root and ${userName} may`, "ask as root", ASK_AS_ROOT);
}

/** Starts this process again with the authorities that the service trusts, which the runtime reads at its start. */
function trustAuthorities({ [AUTHORITIES]: path }: NodeJS.ProcessEnv): void {
  if (!path || process.env[AUTHORITIES] === path) return;
  const argv = [process.execPath, ...(Bun.isStandaloneExecutable ? [] : [Bun.main])];
  const environment = { ...process.env, [AUTHORITIES]: path };
  process.execve?.(process.execPath, [...argv, ...Bun.argv.slice(2)], environment);
}

function readSettings(
  { environment, sources, files }: ReturnType<typeof installedSettings>,
  service: InstalledService | null,
) {
  const where = sources.join(" and ");
  const { ok, problem } = trying(`read the settings from ${where}`);
  try {
    const folder = service === null ? "" : INSTALLED.workingDirectory;
    return { config: parseConfig(environment, folder, files), findings: [ok("they are valid")] };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const advice = `correct it in ${where}; the service does not start`;
    const findings = error.problems.map((text) => problem(text, advice));
    return { config: null, findings };
  }
}
