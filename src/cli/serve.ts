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
import { createApp } from "../server/app.ts";
import { followCertificate } from "../server/certificate.ts";
import { boundConnections } from "../server/connections.ts";
import { ENDPOINTS } from "../server/endpoints.ts";
import { createMetrics } from "../server/metrics.ts";
import { listen } from "../server/server.ts";
import { offerStatus } from "../server/status.ts";
import type { Log } from "../util/log.ts";
import { VERSION } from "../util/version.ts";
import { openIcmpOrReason, openLog, openServices } from "./services.ts";
import { invocation, rawSocketRemedy, say } from "./terminal.ts";

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
  const locations = await openLocations(config, log);
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
  const stopCounting = boundConnections(config.trustedProxies.prefixes, log);
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
  const example = exampleRequest(listening.urls, config.trustedProxies.unix);
  say(`access: ${sentence}`);
  const statusUrls = [...listening.urls, ...(exposed?.urls ?? [])];
  const valkey = shared?.valkey ?? null;
  const closeStatus = offerStatus(config, { ...parts, urls: statusUrls, valkey }, log);
  say(`next, ${keyProblem(keyring, areCurrent) ?? example}`);
  const urls = listening.urls.join(" ");
  await runUntilStopped(
    manager,
    log,
    config.stopGraceMs,
    "requests",
    () =>
      `${urls}; API keys: ${keyring.activeCount()}; ${"unavailable" in icmp ? `no probes: no raw socket (${icmp.unavailable})` : `probes running: ${probeSlots.running}`}`,
    (graceMs) => {
      exposed?.drain();
      return Promise.all([listening.stop(graceMs), locations?.leave(graceMs)]);
    },
  );
  await Promise.race([locations?.close(), Bun.sleep(FLUSH_GRACE_MS)]);
  await exposed?.stop(0);
  stopCounting();
  closeStatus();
  await shared?.stop();
  keyring.close();
  networks?.close();
  renewal?.close();
  if (!("unavailable" in icmp)) {
    icmp.close();
    log.info("probes since the start", { ...icmp.counters });
  }
  await Promise.race([lines.flush(), Bun.sleep(FLUSH_GRACE_MS)]);
}

/** The other locations; null, and nothing of it is loaded, without the settings. */
async function openLocations(config: Config, log: Log): Promise<Locations | null> {
  if (config.nats === null && config.location === null) return null;
  const { createLocations } = await import("../locations/locations.ts");
  return createLocations(config, true, log);
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

/**
 * Runs until SIGTERM or SIGINT, then waits for `finish`, which a second signal calls again without grace.
 *
 * @param running who may still finish, for the log
 * @param status one line for the service manager
 */
export async function runUntilStopped(
  manager: ReturnType<typeof serviceManager>,
  log: Log,
  graceMs: number,
  running: string,
  status: () => string,
  finish: (graceMs: number) => Promise<unknown>,
): Promise<void> {
  manager.ready();
  manager.watch(status);
  await stopSignal();
  manager.stopping(graceMs);
  log.info(`stopping; running ${running} may finish`, { graceSeconds: graceMs / 1000 });
  await Promise.race([finish(graceMs), stopSignal().then(() => finish(0))]);
}

/** Resolves at the first SIGTERM or SIGINT from now on. */
function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => resolve());
  });
}
