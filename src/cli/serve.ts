import { BASE_PATH } from "../api/endpoint.ts";
import { once } from "../api/schemas.ts";
import { packagedFiles } from "../config/environment-file.ts";
import { exposureOf } from "../config/exposure.ts";
import { type Config, ConfigError, parseConfig, settingsOfAgent } from "../config/settings.ts";
import { publicUrl } from "../config/valkey-address.ts";
import type { Prober } from "../icmp/prober/prober.ts";
import type { NoIcmp } from "../icmp/unavailable.ts";
import { createKeyring, type Keyring } from "../keys/keyring.ts";
import { respondPage } from "../page/respond.ts";
import { serviceManager } from "../platform/systemd.ts";
import { createApp } from "../server/app.ts";
import { followCertificate } from "../server/certificate.ts";
import { boundConnections } from "../server/connections.ts";
import { ENDPOINTS, scheduleRules } from "../server/endpoints.ts";
import { createMetrics } from "../server/metrics.ts";
import { listen } from "../server/server.ts";
import { offerStatus } from "../server/status.ts";
import { reportWaiting } from "../server/waiting.ts";
import type { Services } from "../tools/services.ts";
import { formatCommand } from "../util/command.ts";
import type { Log } from "../util/log.ts";
import { VERSION } from "../util/version.ts";
import { History } from "../watch/history.ts";
import { startNotifier } from "../watch/notify.ts";
import { Watcher } from "../watch/watcher.ts";
import { openIcmpOrReason, openLog, openServices } from "./services.ts";
import { invocation, rawSocketRemedy, say } from "./terminal.ts";

/** Milliseconds that the start waits for Valkey. */
const VALKEY_GRACE_MS = 50;

/** Milliseconds that the end waits for a log that is not read. */
const FLUSH_GRACE_MS = 1000;

/**
 * `sixscope serve`: runs the service until SIGTERM or SIGINT; SIGHUP makes it read the keys, the certificate and
 * the files of networks again. `sixscope agent` is the same without keys and without listeners but for `/healthz` and
 * `/metrics`: it measures for instances elsewhere.
 *
 * @throws ConfigError, CertificateError; Error if a listener cannot be opened
 */
export async function runServe(
  environment: NodeJS.ProcessEnv,
  role: "service" | "agent" = "service",
): Promise<void> {
  const settings = parseConfig(environment, "", packagedFiles(environment));
  const isAgent = role === "agent";
  if (isAgent) requireLocation(settings);
  const config = isAgent ? settingsOfAgent(settings) : settings;
  const { log, lines } = openLog(config, environment);
  // Loaded only if it is used, so that an instance without Valkey starts as fast and stays as small.
  const shared =
    config.valkey &&
    (await (await import("../valkey/shared.ts")).openShared(config.valkey, config, log));
  const icmp = openIcmpOrReason(config);
  const own = isAgent || shared ? null : await createKeyring(config.keysFile, log);
  const keyring = shared?.keys.keyring ?? own;
  const metrics = config.metricsListen.length > 0 ? createMetrics() : null;
  const opened = await openServices(config, icmp, log, metrics ?? {});
  const { networks, probeSlots } = opened;
  const isAlone = config.nats === null && config.location === null;
  const places = isAlone ? null : await import("../locations/locations.ts");
  const locations = places?.createLocations(config, !isAgent, ENDPOINTS, opened, log) ?? null;
  const services = { ...opened, locations };
  const stopping = new AbortController();
  const watching = isAgent ? null : watchWith(services, log, stopping.signal);
  const renewal = config.tls === null ? null : followCertificate(config.tls, log);
  const longestWait = reportWaiting(services.gate, keyring, config.logClients, log);
  const parts = { ...services, keyring, renewal, shared, longestWait, watching };
  const manager = serviceManager(environment);
  // Before anything listens, because an unhandled SIGHUP ends the process.
  process.on("SIGHUP", () =>
    manager.reload(() => {
      void own?.reload();
      networks?.reload();
      renewal?.reload();
    }),
  );
  // A new instance knows its keys before the first request, if Valkey answers as fast as it should.
  if (shared) await Promise.race([shared.start(), Bun.sleep(VALKEY_GRACE_MS)]);
  const app =
    keyring &&
    createApp({ ...parts, keyring, pages: respondPage, log, onAnswered: metrics?.answered });
  const noProbes =
    "unavailable" in icmp ? [`without probes: no raw socket (${icmp.unavailable})`] : [];
  const readiness = () => {
    const problem = watching?.problem;
    return ["ready", ...noProbes, problem ? `without history: ${problem}` : []].flat().join(", ");
  };
  const certificate = renewal?.current() ?? null;
  const listening = app && (await listen(app, config.listen, certificate, log, readiness));
  const scraped = metrics?.expose(parts);
  const exposed = scraped && (await listen(scraped, config.metricsListen, null, log, readiness));
  if (listening) boundConnections(config.trustedProxies.prefixes, log);
  own?.watch();
  watching?.follow(config.watchFile);
  networks?.watch();
  renewal?.watch(async (certificate) => await listening?.renew(certificate));
  const active = keyring?.activeCount() ?? null;
  const { sentence, risks } = exposureOf(config, active);
  for (const { text, advice } of risks) log.warn(`${text}; ${advice}`);
  const urls = listening?.urls.join(" and ");
  say(`sixscope ${VERSION} ${urls ? `listens on ${urls}` : `is the agent of ${config.location}`}`);
  if (exposed) say(`metrics are on ${exposed.urls.join(" and ")}`);
  say(rawSocketProblem(icmp, environment) ?? "raw sockets: ready to probe targets");
  const place = config.valkey === null ? config.keysFile : publicUrl(config.valkey.url);
  const areCurrent = shared?.valkey.isUp ?? true;
  const where = areCurrent ? place : `the copy, because ${place} does not answer`;
  if (keyring) say(`API keys: ${active} in ${where}`);
  say(`access: ${sentence}`);
  const closeStatus = offerStatus(settings, parts, log);
  if (keyring && listening)
    say(`next, ${keyProblem(keyring, areCurrent) ?? exampleRequest(listening.urls)}`);
  const state = () =>
    isAgent
      ? `${config.location}, ${locations?.isConnected ? "connected" : "not connected"} to NATS`
      : `${listening?.urls.join(" ")}; API keys: ${keyring?.activeCount()}; ${readiness()}`;
  manager.ready();
  manager.watch(() => `${state()}; probes running: ${probeSlots.running}`);
  await stopSignal();
  manager.stopping(config.stopGraceMs);
  const running = isAgent ? "questions" : "requests";
  log.info(`stopping; running ${running} may finish`, { graceSeconds: config.stopGraceMs / 1000 });
  stopping.abort();
  exposed?.drain();
  const finish = (ms: number) => Promise.all([listening?.stop(ms), locations?.leave(ms)]);
  await Promise.race([finish(config.stopGraceMs), stopSignal().then(() => finish(0))]);
  await Promise.race([locations?.close(), Bun.sleep(FLUSH_GRACE_MS)]);
  await exposed?.stop(0);
  closeStatus();
  shared?.stop();
  if (watching?.count) watching.history.close();
  if (!("unavailable" in icmp)) log.info("probes since the start", { ...icmp.counters });
  await Promise.race([lines.flush(), Bun.sleep(FLUSH_GRACE_MS)]);
}

/** Makes the watcher, which tells the receiver in the settings of changes. */
function watchWith(
  services: Services & { readonly config: Config },
  log: Log,
  stopping: AbortSignal,
): Watcher {
  const { config } = services;
  const history = once(() => new History(config.historyFile, config.historyMaxMb, log));
  const watching = new Watcher({
    ...{ services, log, stopping, rules: scheduleRules(config) },
    get history() {
      return history();
    },
  });
  const wake = config.notify && startNotifier(config.notify, history(), log, stopping);
  if (wake) watching.subscribe((event) => event === "change" && wake());
  return watching;
}

/** @throws ConfigError if an agent has no location or no way to be asked */
function requireLocation({ nats, location }: Config): void {
  const missing = [
    nats === null ? "SIXSCOPE_NATS_URL is not set; set it to the URL of a NATS server" : [],
    location === null ? "SIXSCOPE_LOCATION is not set; set it to the name of this place" : [],
  ].flat();
  if (missing.length > 0) throw new ConfigError(missing);
}

/** Why no caller has a valid key, and the command to run; null if one has. */
function keyProblem(keyring: Keyring, areCurrent: boolean): string | null {
  if (!keyring.isUsable()) {
    return "correct or restore the keys file; doctor says what is wrong with it";
  }
  if (keyring.activeCount() > 0) return null;
  return areCurrent
    ? `create a key to probe targets: ${invocation()} keys add me`
    : `see what is wrong: ${invocation()} doctor`;
}

/** A sentence that the service cannot trace, or not even ping, and what to do; null if it can. */
function rawSocketProblem(icmp: Prober | NoIcmp, environment: NodeJS.ProcessEnv) {
  const withoutRaw = "unavailable" in icmp ? icmp : icmp.withoutRaw;
  if (withoutRaw === null) return null;
  const remedy = rawSocketRemedy(withoutRaw, environment);
  const probes = icmp === withoutRaw ? "all probes" : "all probes but pings";
  return `raw sockets: none (${withoutRaw.unavailable}), so ${probes} answer ICMP_UNAVAILABLE; ${remedy}`;
}

/** A curl command to paste, for the first listener that answers this machine directly. */
function exampleRequest(urls: readonly string[]): string {
  const direct = urls
    .map((url) => url.replace("//[::]:", "//[::1]:").replace("//0.0.0.0:", "//127.0.0.1:"))
    .find((url) => /^(https:|http:..(127\.|\[::1\]))/.test(url));
  if (direct === undefined) return "try a request through your proxy";
  // The certificate is for a name, not for this address.
  const insecure = direct.startsWith("https:") ? "k" : "";
  const url = `${direct}${BASE_PATH}/validate?address=2001:0db8::0001`;
  return `try a request: ${formatCommand(["curl", `-s${insecure}`, url])}`;
}

/** Resolves at the first SIGTERM or SIGINT from now on. */
function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => resolve());
  });
}
