import { type Config, ConfigError, parseConfig } from "../config/settings.ts";
import { become } from "../platform/users.ts";
import { type Finding, formatFinding, ok, problem } from "./doctor/finding.ts";
import {
  checkAddress,
  checkClock,
  checkDefaultRoute,
  checkExecutable,
  checkRawSocket,
  checkResolvers,
} from "./doctor/machine.ts";
import {
  beforeSystemdCopies,
  checkHidden,
  checkKeys,
  checkListeners,
  checkService,
  checkTls,
} from "./doctor/service.ts";
import {
  INSTALLED,
  type InstalledService,
  installedService,
  installedSettings,
} from "./installed.ts";
import { print } from "./terminal.ts";

/**
 * `sixscope doctor`: checks what operators get wrong, one line each. For root and for the service's
 * user it checks the installed service, with its settings.
 *
 * @throws Error if there is a problem
 */
export async function runDoctor(environment: NodeJS.ProcessEnv): Promise<void> {
  const installed = installedService(environment);
  const service = installed?.isOurs === true ? installed : null;
  const settings = checkSettings(environment, service);
  const findings = [
    ...settings.findings,
    ...(Bun.isStandaloneExecutable ? [checkExecutable(process.execPath)] : []),
    checkRawSocket(),
    checkAddress(),
    checkDefaultRoute(),
    checkClock(),
    ...(service === null ? [] : checkService(service)),
    ...(settings.config === null ? [] : await checkConfigured(settings.config, service)),
  ];
  for (const finding of findings) await print(formatFinding(finding));
  if (findings.some(({ state }) => state === "problem")) {
    throw new Error("there are problems; the lines above say what to do");
  }
}

function checkSettings(
  environment: NodeJS.ProcessEnv,
  service: InstalledService | null,
): { config: Config | null; findings: readonly Finding[] } {
  const settings =
    service === null
      ? { environment, sources: ["the environment"] }
      : installedSettings(service, environment);
  const where = settings.sources.join(" and ");
  const tried = `read the settings from ${where}`;
  try {
    const folder = service === null ? process.cwd() : INSTALLED.workingDirectory;
    const config = parseConfig(settings.environment, folder);
    return { config, findings: [ok(tried, "they are valid")] };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const advice = `correct it in ${where}; the service does not start`;
    const findings = error.problems.map((text) => problem(tried, text, advice));
    return { config: null, findings };
  }
}

/** What the settings name; root reads files with the rights of the service's user, and keeps these rights. */
async function checkConfigured(
  config: Config,
  service: InstalledService | null,
): Promise<readonly Finding[]> {
  const { tls, keysFile } = config;
  const nowMs = Date.now();
  const findings = [checkListeners(config), ...(await checkResolvers(config.resolvers))];
  if (service !== null) {
    findings.push(...checkHidden([keysFile, ...Object.values(tls ?? {})], service.unit));
  }
  const asUser = () => {
    if (process.geteuid?.() === 0 && service?.user) become(service.user);
  };
  if (tls !== null) {
    const files = beforeSystemdCopies(tls);
    // systemd reads what it copies as root.
    if (files.keyFile === tls.keyFile) asUser();
    findings.push(checkTls(files, nowMs));
  }
  asUser();
  findings.push(checkKeys(keysFile, nowMs));
  return findings;
}
