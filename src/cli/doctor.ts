import { type Config, ConfigError, parseConfig } from "../config/settings.ts";
import { runAs } from "../platform/users.ts";
import type { Environment } from "../util/environment.ts";
import {
  checkExecutable,
  checkHidden,
  checkKeys,
  checkTls,
  filesToHandOver,
} from "./doctor/files.ts";
import { type Finding, formatFinding, ok, problem } from "./doctor/finding.ts";
import { checkAddress, checkClock, checkDefaultRoute, checkRawSocket } from "./doctor/host.ts";
import { checkListeners, checkResolvers } from "./doctor/network.ts";
import { checkService } from "./doctor/service.ts";
import { type InstalledService, installedService } from "./installed.ts";
import { relativePathProblem } from "./keys-path.ts";

export const DOCTOR_USAGE =
  "sixscope doctor                                       find out what is wrong, and what to do";

/**
 * `sixscope doctor`: looks at everything that an operator can get wrong; for root also at the installed
 * service, with its settings and its user's rights.
 *
 * @param say takes one line for each thing
 * @returns whether nothing is wrong that matters
 */
export async function runDoctor(
  environment: Environment,
  say: (line: string) => Promise<void>,
): Promise<boolean> {
  const service = installedService(environment);
  const settings = checkSettings(environment, service);
  const findings = [
    ...settings.findings,
    ...(Bun.isStandaloneExecutable ? [checkExecutable(process.execPath)] : []),
    await checkRawSocket(),
    checkAddress(),
    checkDefaultRoute(),
    ...(service === null ? [] : checkService(service)),
    ...(settings.config === null ? [] : await checkConfigured(settings.config, service)),
    checkClock(),
  ];
  for (const finding of findings) await say(formatFinding(finding));
  return findings.every(({ state }) => state !== "problem");
}

function checkSettings(
  environment: Environment,
  service: InstalledService | null,
): { config: Config | null; findings: readonly Finding[] } {
  const where = service === null ? "the environment" : service.sources.join(" and ");
  const tried = `read the settings from ${where}`;
  try {
    return {
      config: service === null ? parseConfig(environment) : parseConfig(service.environment, "/"),
      findings: [ok(tried, "they are right")],
    };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const advice = `put it right in ${where}; the service does not start`;
    return {
      config: null,
      findings: error.problems.map((text) => problem(tried, text, advice)),
    };
  }
}

/** What the settings name, seen with the rights of whoever serves. */
async function checkConfigured(
  config: Config,
  service: InstalledService | null,
): Promise<readonly Finding[]> {
  const user = process.getuid?.() === 0 ? (service?.user ?? null) : null;
  const asServer = <T>(run: () => T) => (user === null ? run() : runAs(user, run));
  const nowMs = Date.now();
  const files = [config.keysFile, ...(config.tls === null ? [] : Object.values(config.tls))];
  return [
    checkListeners(config),
    ...(config.tls === null ? [] : [checkTlsFiles(config.tls, nowMs, asServer)]),
    ...(service === null ? [] : checkHidden(files, service.unit)),
    ...(service === null ? [] : checkKeysPath(service.environment["SIXSCOPE_KEYS_FILE"] || "/")),
    asServer(() => checkKeys(config.keysFile, nowMs)),
    ...(await checkResolvers(config.resolvers)),
  ];
}

/** Before the service runs, systemd has handed nothing over; what it will, it reads as root. */
function checkTlsFiles(
  tls: NonNullable<Config["tls"]>,
  nowMs: number,
  asServer: (check: () => Finding) => Finding,
): Finding {
  const origins = filesToHandOver(tls);
  if (origins === null) return asServer(() => checkTls(tls, nowMs));
  const finding = checkTls(origins, nowMs);
  return { ...finding, tried: `${finding.tried}, which systemd hands over at the start` };
}

function checkKeysPath(keysFile: string): readonly Finding[] {
  const outcome = relativePathProblem(keysFile);
  return outcome === null
    ? []
    : [
        problem(
          "see which keys file is meant",
          outcome,
          "then sixscope keys and the service agree",
        ),
      ];
}
