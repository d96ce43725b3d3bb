import { formatListenAddress } from "../config/listen-address.ts";
import {
  type Config,
  parseConfig,
  REFUSING_ADVICE,
  RESOLVER_NAMES,
  type ResolverName,
  refusingListeners,
} from "../config/settings.ts";
import { createDnsClient, type DnsClient } from "../dns/client.ts";
import { createApp } from "../http/app.ts";
import { BASE_PATH } from "../http/endpoint.ts";
import { type IcmpEngine, type NoIcmp, openIcmpIfAllowed } from "../icmp/engine.ts";
import type { TargetShare } from "../icmp/target-limit.ts";
import { Keyring } from "../keys/keyring.ts";
import { ProbeSlots } from "../limits/probe-slots.ts";
import type { Locations } from "../locations/locations.ts";
import { openNetworks } from "../networks/networks.ts";
import { dropCapabilities, inheritedRawSocket } from "../platform/capabilities.ts";
import { SystemError } from "../platform/libc.ts";
import { isJournal, STREAM, serviceManager, withPriority } from "../platform/systemd.ts";
import { ENDPOINTS } from "../routes/endpoints.ts";
import { CertificateRenewal } from "../server/certificate.ts";
import { boundConnections } from "../server/connections.ts";
import { Metrics } from "../server/metrics.ts";
import { listen } from "../server/server.ts";
import { createLog, LineWriter, type Log } from "../util/log.ts";
import { VERSION } from "../util/version.ts";
import { publicUrl } from "../valkey/address.ts";
import { invocation, rawSocketRemedy, say } from "./terminal.ts";

/** Lower ports need a capability. */
const FIRST_UNPRIVILEGED_PORT = 1024;

/** How long the start waits for Valkey. */
const VALKEY_GRACE_MS = 50;

/** How long the end waits for a log that is not read. */
export const FLUSH_GRACE_MS = 1000;

/**
 * `sixscope serve`: runs the service until SIGTERM or SIGINT; SIGHUP makes it read the keys and the
 * certificate again.
 *
 * @throws ConfigError, CertificateError, ListenError
 */
export async function runServe(environment: NodeJS.ProcessEnv): Promise<void> {
  const config = parseConfig(environment);
  const { log, lines } = openLog(config, environment);
  // Loaded only if it is used: what is alone must not start later, or grow.
  const shared =
    config.valkey && (await import("./shared.ts")).openShared(config.valkey, config, log);
  const icmp = openIcmpOrReason(config, shared?.targetShare);
  const keyring = shared?.keyring ?? new Keyring(config.keysFile, log);
  const networks = await openNetworks(config.networkFiles, log);
  const probeSlots = new ProbeSlots(config.maxProbes);
  const metrics = config.metricsListen.length > 0 ? new Metrics() : null;
  const resolvers = createResolvers(config, metrics);
  const locations = await openLocations(config, log);
  const tools = { config, resolvers, icmp, probeSlots, networks, locations };
  locations?.answer(ENDPOINTS, tools, log);
  const app = createApp({ ...tools, log, keyring, shared, onAnswered: metrics?.answered });
  const renewal = config.tls === null ? null : new CertificateRenewal(config.tls, log);
  const manager = serviceManager(environment);
  // Before anything listens, because an unhandled SIGHUP ends the process.
  process.on("SIGHUP", () =>
    manager.reload(() => {
      if (shared === null) keyring.reload();
      networks?.reload();
      renewal?.reload();
    }),
  );
  // A new instance knows its keys before the first request, if Valkey answers as fast as it should.
  if (shared) await Promise.race([shared.start(), Bun.sleep(VALKEY_GRACE_MS)]);
  const listening = await listen(app, config, renewal?.current ?? null, log);
  const exposed =
    metrics &&
    (await listen(
      metrics.expose({ ...tools, keyring, renewal, shared }),
      { listen: config.metricsListen },
      null,
      log,
    ));
  const stopCounting = boundConnections(config.trustedProxies.prefixes, log);
  if (shared === null) keyring.watch();
  networks?.watch();
  renewal?.watch((certificate) => listening.renew(certificate));
  for (const address of refusingListeners(config)) {
    log.warn(`this listener refuses every other machine: ${REFUSING_ADVICE}`, {
      listener: formatListenAddress(address),
    });
  }
  for (const line of startLines(
    config,
    listening.urls,
    exposed?.urls ?? [],
    icmp,
    keyring,
    shared?.valkey.isUp ?? true,
    environment,
  ))
    say(line);
  manager.ready();
  manager.watch(
    () =>
      `${listening.urls.join(" ")}; API keys: ${keyring.activeCount()}; probes running: ${probeSlots.running}`,
  );

  await stopSignal();
  manager.stopping(config.stopGraceMs);
  log.info("stopping; running requests may finish", { graceSeconds: config.stopGraceMs / 1000 });
  exposed?.drain();
  const finish = (graceMs: number) =>
    Promise.all([listening.stop(graceMs), locations?.leave(graceMs)]);
  const secondSignal = stopSignal().then(() => finish(0));
  await Promise.race([finish(config.stopGraceMs), secondSignal]);
  await Promise.race([locations?.close(), Bun.sleep(FLUSH_GRACE_MS)]);
  await exposed?.stop(0);
  stopCounting();
  shared?.valkey.close();
  keyring.close();
  networks?.close();
  renewal?.close();
  if (!("unavailable" in icmp)) {
    icmp.close();
    log.info("probes since the start", { ...icmp.counters });
  }
  await Promise.race([lines.flush(), Bun.sleep(FLUSH_GRACE_MS)]);
}

/** The log on standard error, and the writer that keeps its lines until they are read. */
export function openLog(
  { logLevel, logFormat }: Pick<Config, "logLevel" | "logFormat">,
  environment: NodeJS.ProcessEnv,
) {
  const lines = new LineWriter(Bun.stderr.writer());
  const log = createLog({
    level: logLevel,
    format: logFormat,
    priorities: isJournal(STREAM.error, environment),
    write: (line) => lines.write(line),
  });
  return { log, lines };
}

/** Where else to measure, and who asks this service; null, and nothing of it is loaded, without the settings. */
async function openLocations(config: Config, log: Log): Promise<Locations | null> {
  if (config.nats === null && config.location === null) return null;
  const { Locations } = await import("../locations/locations.ts");
  return new Locations(config, true, log);
}

/**
 * The engine without the capabilities that it needs no longer, or the reason why there is none.
 *
 * @param share what of the bound for each target's network is this instance's, if there are several
 */
export function openIcmpOrReason(
  { listen, metricsListen }: Pick<Config, "listen" | "metricsListen">,
  share?: TargetShare,
): IcmpEngine | NoIcmp {
  try {
    dropCapabilities(
      [...listen, ...metricsListen].some(
        (address) => address.kind === "tcp" && address.port < FIRST_UNPRIVILEGED_PORT,
      ),
    );
    return openIcmpIfAllowed(inheritedRawSocket(), share);
  } catch (error) {
    if (error instanceof SystemError) return { unavailable: error.message };
    throw error;
  }
}

/** A client for each resolver. */
export function createResolvers(
  config: Config,
  metrics: Metrics | null,
): Readonly<Record<ResolverName, DnsClient>> {
  const client = (name: ResolverName) => {
    const plain = createDnsClient({ servers: config.resolvers[name] });
    return metrics === null ? plain : metrics.countQueries(name, plain);
  };
  const [a, b, c] = RESOLVER_NAMES;
  return { [a]: client(a), [b]: client(b), [c]: client(c) };
}

/** Where it listens, whether it can probe, its keys, and what to type next. */
function startLines(
  { keysFile, trustedProxies, valkey }: Config,
  urls: readonly string[],
  metricsUrls: readonly string[],
  icmp: IcmpEngine | NoIcmp,
  keyring: Keyring,
  areKeysCurrent: boolean,
  environment: NodeJS.ProcessEnv,
): string[] {
  const keys = keyring.activeCount();
  const withoutRaw = "unavailable" in icmp ? icmp : icmp.withoutRaw;
  const whenNoKeys = areKeysCurrent
    ? `create a key to probe targets: ${invocation()} keys add me`
    : `see what is wrong: ${invocation()} doctor`;
  const nextStep = keys > 0 ? exampleRequest(urls, trustedProxies.unix) : whenNoKeys;
  const place = valkey === null ? keysFile : publicUrl(valkey.url);
  return [
    `sixscope ${VERSION} listens on ${urls.join(" and ")}`,
    ...(metricsUrls.length > 0 ? [`metrics are on ${metricsUrls.join(" and ")}`] : []),
    withoutRaw === null
      ? "raw sockets: ready to probe targets"
      : withPriority(
          noRawSockets(icmp, withoutRaw, environment),
          "warn",
          STREAM.output,
          environment,
        ),
    areKeysCurrent
      ? `API keys: ${keys} in ${place}`
      : `API keys: ${keys} in the copy, because ${place} does not answer`,
    `next, ${keyring.isUsable ? nextStep : "correct or restore the keys file; doctor says what is wrong with it"}`,
  ];
}

/** That the service cannot trace, or not even ping, and what to do. */
export function noRawSockets(
  icmp: IcmpEngine | NoIcmp,
  withoutRaw: NoIcmp,
  environment: NodeJS.ProcessEnv,
): string {
  const remedy = rawSocketRemedy(withoutRaw, environment);
  const what = icmp === withoutRaw ? "all probes answer" : "all probes but pings answer";
  return `raw sockets: none (${withoutRaw.unavailable}), so ${what} ICMP_UNAVAILABLE; ${remedy}`;
}

/** A curl command to paste, for the first listener that answers this machine directly. */
function exampleRequest(urls: readonly string[], trustsUnix: boolean): string {
  const path = `${BASE_PATH}/validate?address=2001:0db8::0001`;
  const candidates = urls.flatMap((url) => {
    if (url.startsWith("unix:")) {
      const socket = url.slice("unix:".length);
      const options = `--unix-socket ${socket} -H 'X-Forwarded-Proto: https'`;
      return trustsUnix ? `curl -s ${options} 'http://localhost${path}'` : [];
    }
    const here = url.replace("//[::]:", "//[::1]:").replace("//0.0.0.0:", "//127.0.0.1:");
    // The certificate is for a name, not for this address.
    if (here.startsWith("https:")) return `curl -sk '${here}${path}'`;
    return /^http:..(127\.|\[::1\])/.test(here) ? `curl -s '${here}${path}'` : [];
  });
  return `try a request${candidates.length > 0 ? `: ${candidates[0]}` : " through your proxy"}`;
}

/** Resolves at the first SIGTERM or SIGINT from now on. */
export function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => resolve());
  });
}
