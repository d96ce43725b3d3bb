import { type Config, ConfigError, parseConfig } from "../config.ts";
import type { Environment } from "../environment.ts";
import { checkExecutable, checkKeys, checkTls } from "./doctor/files.ts";
import { type Finding, formatFinding, ok, problem } from "./doctor/finding.ts";
import { checkAddress, checkClock, checkDefaultRoute, checkRawSocket } from "./doctor/host.ts";
import { checkListeners, checkResolvers } from "./doctor/network.ts";
import { checkService, serviceUser } from "./doctor/service.ts";
import { INSTALLED, runAs, serviceEnvironment } from "./installed.ts";

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
  say: (line: string) => void,
): Promise<boolean> {
  const service = serviceEnvironment(environment);
  const settings = checkSettings(service ?? environment, service !== null);
  const findings = [
    ...settings.findings,
    ...(Bun.isStandaloneExecutable ? [checkExecutable(process.execPath)] : []),
    await checkRawSocket(),
    checkAddress(),
    checkDefaultRoute(),
    ...(service === null ? [] : await checkService(serviceUser())),
    ...(settings.config === null ? [] : await checkConfigured(settings.config, service !== null)),
    checkClock(),
  ];
  for (const finding of findings) say(formatFinding(finding));
  return findings.every(({ state }) => state !== "problem");
}

function checkSettings(
  environment: Environment,
  isService: boolean,
): { config: Config | null; findings: readonly Finding[] } {
  const where = isService ? INSTALLED.environmentFile : "the environment";
  const tried = `read the settings from ${where}`;
  try {
    return { config: parseConfig(environment), findings: [ok(tried, "they are right")] };
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
async function checkConfigured(config: Config, isService: boolean): Promise<readonly Finding[]> {
  const user = isService ? serviceUser() : null;
  const asServer = <T>(run: () => T) => (user === null ? run() : runAs(user, run));
  const nowMs = Date.now();
  const { tls } = config;
  return [
    checkListeners(config),
    ...(tls === null ? [] : [asServer(() => checkTls(tls, nowMs))]),
    asServer(() => checkKeys(config.keysFile, nowMs)),
    ...(await checkResolvers(config.resolvers)),
  ];
}
