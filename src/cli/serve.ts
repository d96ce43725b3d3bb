import { BASE_PATH } from "../api/endpoint.ts";
import { packagedFiles } from "../config/environment-file.ts";
import { exposureOf } from "../config/exposure.ts";
import { type Config, parseConfig } from "../config/settings.ts";
import { publicUrl } from "../config/valkey-address.ts";
import type { IcmpEngine, NoIcmp } from "../icmp/engine.ts";
import { createKeyring, type Keyring } from "../keys/keyring.ts";
import type { Locations } from "../locations/locations.ts";
import { PAGES } from "../page/respond.ts";
import { STREAM, serviceManager, withPriority } from "../platform/systemd.ts";
import { createApp, readinessOf } from "../server/app.ts";
import { followCertificate } from "../server/certificate.ts";
import { boundConnections } from "../server/connections.ts";
import { ENDPOINTS } from "../server/endpoints.ts";
import { createMetrics } from "../server/metrics.ts";
import { listen } from "../server/server.ts";
import { offerStatus } from "../server/status.ts";
import type { LineWriter, Log } from "../util/log.ts";
import { VERSION } from "../util/version.ts";
import { openIcmpOrReason, openLog, openServices } from "./services.ts";
import { invocation, rawSocketRemedy, say } from "./terminal.ts";

/** How long the start waits for Valkey. */
const VALKEY_GRACE_MS = 50;

/** How long the end waits for a log that is not read. */
const FLUSH_GRACE_MS = 1000;

/**
 * `sixscope serve`: runs the service until SIGTERM or SIGINT; SIGHUP makes it read the keys and the
 * certificate again.
 *
 * @throws ConfigError, CertificateError, ListenError
 */
export async function runServe(environment: NodeJS.ProcessEnv): Promise<void> {
  const config = parseConfig(environment, "", packagedFiles(environment));
  const { log, lines } = openLog(config, environment);
  // Loaded only if it is used: what is alone must not start later, or grow.
  const shared =
    config.valkey &&
    (await (await import("../valkey/shared.ts")).openShared(config.valkey, config, log));
  const icmp = openIcmpOrReason(config, shared?.targetShare);
  const keyring = shared?.keyring ?? (await createKeyring(config.keysFile, log));
  const metrics = config.metricsListen.length > 0 ? createMetrics() : null;
  const opened = await openServices(config, icmp, log, metrics?.countQueries);
  const { networks, probeSlots } = opened;
  const isAlone = config.nats === null && config.location === null;
  const places = isAlone ? null : await import("../locations/locations.ts");
  const locations = places?.createLocations(config, true, log) ?? null;
  const services = { ...opened, locations };
  locations?.answer(ENDPOINTS, services, log);
  const renewal = config.tls === null ? null : followCertificate(config.tls, log);
  const parts = { ...services, keyring, renewal, shared };
  const app = createApp({ ...parts, pages: PAGES, log, onAnswered: metrics?.answered });
  const manager = serviceManager(environment);
  // Before anything listens, because an unhandled SIGHUP ends the process.
  process.on("SIGHUP", () =>
    manager.reload(() => {
      if (shared === null) void keyring.reload();
      networks?.reload();
      renewal?.reload();
    }),
  );
  // A new instance knows its keys before the first request, if Valkey answers as fast as it should.
  if (shared) await Promise.race([shared.start(), Bun.sleep(VALKEY_GRACE_MS)]);
  const listening = await listen(app, config, renewal?.current ?? null, log);
  const scraped = metrics?.expose(parts);
  const exposed = scraped && (await listen(scraped, { listen: config.metricsListen }, null, log));
  boundConnections(config.trustedProxies.prefixes, log);
  if (shared === null) keyring.watch();
  networks?.watch();
  renewal?.watch((certificate) => listening.renew(certificate));
  const { sentence, risks } = exposureOf(config, keyring.activeCount());
  for (const { text, advice } of risks) log.warn(`${text}; ${advice}`);
  say(`sixscope ${VERSION} listens on ${listening.urls.join(" and ")}`);
  if (exposed) say(`metrics are on ${exposed.urls.join(" and ")}`);
  say(rawSocketProblem(icmp, environment) ?? "raw sockets: ready to probe targets");
  const place = config.valkey === null ? config.keysFile : publicUrl(config.valkey.url);
  const areCurrent = shared?.valkey.isUp ?? true;
  const where = areCurrent ? place : `the copy, because ${place} does not answer`;
  say(`API keys: ${keyring.activeCount()} in ${where}`);
  say(`access: ${sentence}`);
  const statusUrls = [...listening.urls, ...(exposed?.urls ?? [])];
  const valkey = shared?.valkey ?? null;
  const closeStatus = offerStatus(config, { ...parts, urls: statusUrls, valkey }, log);
  say(`next, ${keyProblem(keyring, areCurrent) ?? exampleRequest(listening.urls)}`);
  const urls = listening.urls.join(" ");
  await runUntilStopped(
    { manager, config, log, lines, icmp, locations, exposed, closeStatus, shared },
    "requests",
    () =>
      `${urls}; API keys: ${keyring.activeCount()}; ${readinessOf(parts)}; probes running: ${probeSlots.running}`,
    (graceMs) => listening.stop(graceMs),
  );
}

/** Why no caller has a valid key, and the command to run; null if one has. */
function keyProblem(keyring: Keyring, areCurrent: boolean): string | null {
  if (!keyring.isUsable) {
    return "correct or restore the keys file; doctor says what is wrong with it";
  }
  if (keyring.activeCount() > 0) return null;
  return areCurrent
    ? `create a key to probe targets: ${invocation()} keys add me`
    : `see what is wrong: ${invocation()} doctor`;
}

/** That the service cannot trace, or not even ping, and what to do; null if it can. */
export function rawSocketProblem(
  icmp: IcmpEngine | NoIcmp,
  environment: NodeJS.ProcessEnv,
): string | null {
  const withoutRaw = "unavailable" in icmp ? icmp : icmp.withoutRaw;
  if (withoutRaw === null) return null;
  const remedy = rawSocketRemedy(withoutRaw, environment);
  const what = icmp === withoutRaw ? "all probes answer" : "all probes but pings answer";
  const text = `raw sockets: none (${withoutRaw.unavailable}), so ${what} ICMP_UNAVAILABLE; ${remedy}`;
  return withPriority(text, "warn", STREAM.output, environment);
}

/** A curl command to paste, for the first listener that answers this machine directly. */
function exampleRequest(urls: readonly string[]): string {
  const direct = urls
    .map((url) => url.replace("//[::]:", "//[::1]:").replace("//0.0.0.0:", "//127.0.0.1:"))
    .find((url) => /^(https:|http:..(127\.|\[::1\]))/.test(url));
  if (direct === undefined) return "try a request through your proxy";
  // The certificate is for a name, not for this address.
  const insecure = direct.startsWith("https:") ? "k" : "";
  return `try a request: curl -s${insecure} '${direct}${BASE_PATH}/validate?address=2001:0db8::0001'`;
}

/** The parts of a process that have something to do at its end. Files, sockets and timers end with it. */
interface Running {
  readonly manager: ReturnType<typeof serviceManager>;
  readonly config: Config;
  readonly log: Log;
  readonly lines: LineWriter;
  readonly icmp: IcmpEngine | NoIcmp;
  readonly locations: Locations | null;
  /** The listener for metrics. */
  readonly exposed: Awaited<ReturnType<typeof listen>> | null | undefined;
  readonly closeStatus: () => void;
  /** The part of several instances; null if this one is alone. */
  readonly shared: { stop(): Promise<void> } | null;
}

/**
 * Runs until SIGTERM or SIGINT, and then until those who wait for an answer have it, or there is a second
 * signal.
 *
 * @param running those who may still finish, for the log
 * @param status one line for the service manager
 * @param stop ends the listeners for requests
 */
export async function runUntilStopped(
  { manager, config, log, lines, icmp, locations, exposed, closeStatus, shared }: Running,
  running: string,
  status: () => string,
  stop: (graceMs: number) => Promise<void> = async () => {},
): Promise<void> {
  const { stopGraceMs } = config;
  const finish = (graceMs: number) => Promise.all([stop(graceMs), locations?.leave(graceMs)]);
  manager.ready();
  manager.watch(status);
  await stopSignal();
  manager.stopping(stopGraceMs);
  log.info(`stopping; running ${running} may finish`, { graceSeconds: stopGraceMs / 1000 });
  exposed?.drain();
  await Promise.race([finish(stopGraceMs), stopSignal().then(() => finish(0))]);
  await Promise.race([locations?.close(), Bun.sleep(FLUSH_GRACE_MS)]);
  await exposed?.stop(0);
  closeStatus();
  await shared?.stop();
  if (!("unavailable" in icmp)) log.info("probes since the start", { ...icmp.counters });
  await Promise.race([lines.flush(), Bun.sleep(FLUSH_GRACE_MS)]);
}

/** Resolves at the first SIGTERM or SIGINT from now on. */
function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => resolve());
  });
}
