import { type Config, parseConfig, RESOLVER_NAMES, type ResolverName } from "../config/settings.ts";
import { createDnsClient, type DnsClient } from "../dns/client.ts";
import { createApp } from "../http/app.ts";
import { BASE_PATH } from "../http/endpoint.ts";
import { type IcmpEngine, type NoIcmp, openIcmp } from "../icmp/engine.ts";
import { RawSocket } from "../icmp/socket.ts";
import { Keyring } from "../keys/keyring.ts";
import { ProbeSlots } from "../limits/probe-slots.ts";
import { dropCapabilities, inheritedRawSocket } from "../platform/capabilities.ts";
import { SystemError } from "../platform/libc.ts";
import { isJournal, STREAM, serviceManager, withPriority } from "../platform/systemd.ts";
import { CertificateRenewal } from "../server/certificate.ts";
import { listen } from "../server/server.ts";
import { createLog, LineWriter } from "../util/log.ts";
import { VERSION } from "../util/version.ts";
import { invocation, say } from "./terminal.ts";

/** Lower ports need a capability. */
const FIRST_UNPRIVILEGED_PORT = 1024;

/** How long running requests may take to finish after the signal to stop. */
const STOP_GRACE_MS = 20_000;

/**
 * `sixscope serve`: runs the service until SIGTERM or SIGINT; SIGHUP makes it read the keys and the
 * certificate again.
 *
 * @throws ConfigError, KeyFileError, CertificateError, ListenError
 */
export async function runServe(environment: NodeJS.ProcessEnv): Promise<void> {
  const config = parseConfig(environment);
  const lines = new LineWriter(Bun.stderr.writer());
  const log = createLog({
    level: config.logLevel,
    format: config.logFormat,
    priorities: isJournal(STREAM.error, environment),
    write: (line) => lines.write(line),
  });
  const icmp = openIcmpOrReason(config);
  const keyring = new Keyring(config.keysFile, log);
  const probeSlots = new ProbeSlots(config.maxProbes);
  const app = createApp({
    config,
    log,
    keyring,
    resolvers: createResolvers(config),
    icmp,
    probeSlots,
  });
  const renewal = config.tls === null ? null : new CertificateRenewal(config.tls, log);
  const manager = serviceManager(environment);
  // Before anything listens, because an unhandled SIGHUP ends the process.
  process.on("SIGHUP", () =>
    manager.reload(() => {
      keyring.reload();
      renewal?.reload();
    }),
  );
  const listening = await listen(app, config, renewal?.current ?? null, log);
  keyring.watch();
  renewal?.watch((certificate) => listening.renew(certificate));
  for (const line of startLines(config, listening.urls, icmp, keyring.activeCount(), environment))
    say(line);
  manager.ready();
  manager.watch(
    () =>
      `${listening.urls.join(" ")}; API keys: ${keyring.activeCount()}; probes running: ${probeSlots.running}`,
  );

  await stopSignal();
  manager.stopping();
  log.info("stopping; running requests may finish", { graceSeconds: STOP_GRACE_MS / 1000 });
  const secondSignal = stopSignal().then(() => listening.stop(0));
  await Promise.race([listening.stop(STOP_GRACE_MS), secondSignal]);
  keyring.close();
  renewal?.close();
  if (!("unavailable" in icmp)) {
    icmp.close();
    log.info("probes since the start", { ...icmp.counters });
  }
  await lines.flush();
}

function openIcmpOrReason({ listen }: Config): IcmpEngine | NoIcmp {
  try {
    dropCapabilities(
      listen.some((address) => address.kind === "tcp" && address.port < FIRST_UNPRIVILEGED_PORT),
    );
    const fd = inheritedRawSocket();
    return openIcmp({ openSocket: (tag) => new RawSocket(tag, fd) });
  } catch (error) {
    if (error instanceof SystemError) return { unavailable: error.message };
    throw error;
  }
}

function createResolvers(config: Config): Readonly<Record<ResolverName, DnsClient>> {
  const client = (name: ResolverName) => createDnsClient({ servers: config.resolvers[name] });
  const [a, b, c] = RESOLVER_NAMES;
  return { [a]: client(a), [b]: client(b), [c]: client(c) };
}

/** Where it listens, whether it can probe, its keys, and what to type next. */
function startLines(
  { keysFile }: Config,
  urls: readonly string[],
  icmp: IcmpEngine | NoIcmp,
  keys: number,
  environment: NodeJS.ProcessEnv,
): string[] {
  return [
    `sixscope ${VERSION} listens on ${urls.join(" and ")}`,
    "unavailable" in icmp
      ? withPriority(noRawSockets(icmp.unavailable), "warn", STREAM.output, environment)
      : "raw sockets: ready for ping and traceroute",
    `API keys: ${keys} in ${keysFile}`,
    keys === 0
      ? `next, create a key for ping and traceroute: ${invocation()} keys add me`
      : `next, try a request: ${exampleRequest(urls[0] ?? "")}`,
  ];
}

function noRawSockets(reason: string): string {
  return `raw sockets: none (${reason}), so ping and traceroute answer ICMP_UNAVAILABLE; grant CAP_NET_RAW`;
}

/** A curl command to paste. */
function exampleRequest(url: string): string {
  const path = `${BASE_PATH}/validate?address=2001:0db8::0001`;
  return url.startsWith("unix:")
    ? `curl -s --unix-socket ${url.slice("unix:".length)} -H 'X-Forwarded-Proto: https' 'http://localhost${path}'`
    : `curl -s '${url}${path}'`;
}

function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => resolve());
  });
}
