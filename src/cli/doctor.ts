import { type Config, ConfigError, parseConfig } from "../config/settings.ts";
import { become } from "../platform/users.ts";
import { checkDns64 } from "./doctor/dns64.ts";
import { type Finding, formatFinding, trying } from "./doctor/finding.ts";
import {
  checkAddress,
  checkClock,
  checkDefaultRoute,
  checkExecutable,
  checkRawSocket,
  checkResolvers,
} from "./doctor/machine.ts";
import { checkMetricsListener } from "./doctor/metrics.ts";
import { checkNats } from "./doctor/nats.ts";
import { checkNetworks } from "./doctor/networks.ts";
import {
  beforeSystemdCopies,
  checkHidden,
  checkKeys,
  checkListeners,
  checkService,
  checkTls,
} from "./doctor/service.ts";
import { checkValkey } from "./doctor/valkey.ts";
import {
  INSTALLED,
  type InstalledService,
  installedService,
  installedSettings,
} from "./installed.ts";
import { print } from "./terminal.ts";

/**
 * `sixscope doctor [--json]`: checks what operators get wrong, one line each. For root and for the
 * service's user it checks the installed service, with its settings.
 *
 * @throws Error if there is a problem
 */
export async function runDoctor(
  { json = false }: { readonly json?: boolean },
  environment: NodeJS.ProcessEnv,
): Promise<void> {
  const installed = installedService(environment);
  const findings =
    installed === null || installed.isOurs
      ? await checkAll(installed, environment)
      : [...checkMachine(), ...checkService(installed), invisible(installed)];
  const problems = findings.filter(({ state }) => state === "problem").length;
  await print(
    json ? JSON.stringify({ problems, findings }, null, 2) : findings.map(formatFinding).join("\n"),
  );
  if (problems > 0) throw new Error("there are problems; the lines above say what to do");
}

/** Checks with the rights of the service that is installed, or with those of whoever starts it by hand. */
async function checkAll(service: InstalledService | null, environment: NodeJS.ProcessEnv) {
  const settings = checkSettings(environment, service);
  return [
    ...settings.findings,
    // The service's user gets the capability from systemd only.
    ...(service === null || process.geteuid?.() === 0 ? [checkRawSocket(environment)] : []),
    ...checkMachine(),
    ...(service === null ? [] : checkService(service)),
    ...(settings.config === null ? [] : await checkConfigured(settings.config, service)),
  ];
}

function checkMachine(): readonly Finding[] {
  return [
    ...(Bun.isStandaloneExecutable ? [checkExecutable(process.execPath)] : []),
    checkAddress(),
    checkDefaultRoute(),
    checkClock(),
  ];
}

function invisible({ userName }: InstalledService): Finding {
  const { unknown } = trying(`see the settings, keys and certificate of ${INSTALLED.unit}`);
  return unknown(`only root and ${userName} may`, "run: sudo sixscope doctor");
}

function checkSettings(environment: NodeJS.ProcessEnv, service: InstalledService | null) {
  const settings =
    service === null
      ? { environment, sources: ["the environment"], unclear: [] }
      : installedSettings(service, environment);
  const where = settings.sources.join(" and ");
  const { ok, problem } = trying(`read the settings from ${where}`);
  const form =
    "write NAME=value on one line, without export or backslash, with quotes around the whole value or none";
  const unclear = settings.unclear.flatMap(({ file, lines }) =>
    lines.map((line) =>
      trying(`read ${file}`).problem(`systemd ignores line ${line}, or reads it otherwise`, form),
    ),
  );
  try {
    const folder = service === null ? "" : INSTALLED.workingDirectory;
    const config = parseConfig(settings.environment, folder);
    return { config, findings: [ok("they are valid"), ...unclear] };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const advice = `correct it in ${where}; the service does not start`;
    const findings = error.problems.map((text) => problem(text, advice));
    return { config: null, findings: [...findings, ...unclear] };
  }
}

/** Checks everything that the settings name; root reads files with the rights of the service's user, and keeps these rights. */
async function checkConfigured(config: Config, service: InstalledService | null) {
  const { tls, keysFile, valkey, networkFiles } = config;
  const nowMs = Date.now();
  const findings = [
    checkListeners(config),
    ...(await Promise.all(config.metricsListen.map(checkMetricsListener))),
    ...(await Promise.all([checkResolvers(config.resolvers), checkDns64(config.resolvers)])).flat(),
  ];
  if (service !== null) {
    const files = [keysFile, config.nats?.credsFile, ...Object.values({ ...networkFiles, ...tls })];
    const named = files.filter((file) => file != null);
    findings.push(...checkHidden(named, service.unit));
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
  const keys = valkey === null ? [checkKeys(keysFile, nowMs)] : await checkValkey(valkey, nowMs);
  const networks = await checkNetworks(networkFiles);
  findings.push(...keys, ...networks, ...(await checkNats(config)));
  return findings;
}
