import { type Config, RESOLVER_NAMES, type ResolverName } from "../config/settings.ts";
import { createDnsClient, MAX_QUESTIONS } from "../dns/client.ts";
import { FairSlots } from "../gate/fair-slots.ts";
import { Gate } from "../gate/gate.ts";
import { openIcmpIfAllowed } from "../icmp/icmp.ts";
import type { Prober } from "../icmp/prober/prober.ts";
import type { NoIcmp } from "../icmp/unavailable.ts";
import { openNetworks } from "../networks/networks.ts";
import { dropCapabilities, inheritedSocket } from "../platform/capabilities.ts";
import { SystemError } from "../platform/libc.ts";
import { isJournal } from "../platform/systemd.ts";
import type { createMetrics } from "../server/metrics.ts";
import { lookHere } from "../tools/here/engine.ts";
import type { Services } from "../tools/services.ts";
import { createLog, LineWriter, type Log } from "../util/log.ts";

/** Lower ports need a capability. */
const FIRST_UNPRIVILEGED_PORT = 1024;

/** The log on standard error, and the writer that keeps its lines until they are read. */
export function openLog(config: Config, environment: NodeJS.ProcessEnv) {
  const lines = new LineWriter(Bun.stderr.writer());
  const log = createLog({
    level: config.logLevel,
    format: config.logFormat,
    priorities: isJournal(environment),
    write: (line) => lines.write(line),
  });
  return { log, lines };
}

/**
 * Opens the services that handlers use, for the service, an agent and a command alike.
 *
 * @param metrics counts the questions and notes the looks; empty if nobody reads it
 */
export async function openServices(
  config: Config,
  icmp: Services["icmp"],
  log: Log,
  metrics: Partial<Pick<ReturnType<typeof createMetrics>, "countQueries" | "noteLooks">> = {},
) {
  const client = (name: ResolverName) => {
    const client = createDnsClient({ servers: config.resolvers[name] });
    return metrics.countQueries?.(name, client) ?? client;
  };
  const [a, b, c] = RESOLVER_NAMES;
  const resolvers = { [a]: client(a), [b]: client(b), [c]: client(c) };
  const networks = await openNetworks(config.networkFiles, log);
  const probeSlots = new FairSlots(config.maxProbes);
  // As many as a resolver is asked at once, so that no query waits behind those of another client.
  const querySlots = new FairSlots(MAX_QUESTIONS);
  const gate = "unavailable" in icmp ? new Gate() : icmp.gate;
  const look = metrics.noteLooks?.(lookHere) ?? lookHere;
  return { config, icmp, gate, resolvers, networks, probeSlots, querySlots, look };
}

/** Opens the prober, and drops the capabilities that it no longer needs; or returns why there is none. */
export function openIcmpOrReason({ listen, metricsListen }: Config): Prober | NoIcmp {
  const hasLowPort = [...listen, ...metricsListen].some(
    (address) => address.kind === "tcp" && address.port < FIRST_UNPRIVILEGED_PORT,
  );
  try {
    dropCapabilities(hasLowPort);
    return openIcmpIfAllowed(inheritedSocket("echo"));
  } catch (error) {
    if (error instanceof SystemError) return { unavailable: error.message };
    throw error;
  }
}
