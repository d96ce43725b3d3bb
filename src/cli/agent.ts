import { writeFileSync } from "node:fs";
import { packagedFiles } from "../config/environment-file.ts";
import { exposureOf } from "../config/exposure.ts";
import { type Config, ConfigError, parseConfig } from "../config/settings.ts";
import { newKey } from "../locations/link.ts";
import { createLocations } from "../locations/locations.ts";
import { serviceManager } from "../platform/systemd.ts";
import { ENDPOINTS } from "../server/endpoints.ts";
import { createMetrics } from "../server/metrics.ts";
import { listen } from "../server/server.ts";
import { offerStatus } from "../server/status.ts";
import { errorCode, reasonOf } from "../util/errors.ts";
import { VERSION } from "../util/version.ts";
import { rawSocketProblem, runUntilStopped } from "./serve.ts";
import { openIcmpOrReason, openLog, openServices } from "./services.ts";
import { print, say } from "./terminal.ts";

/** Options of `sixscope agent`. */
export interface AgentOptions {
  /** A file for a new NKey, instead of running. */
  readonly newKey?: string;
}

/**
 * `sixscope agent`: measures for instances elsewhere until SIGTERM or SIGINT; SIGHUP makes it read the
 * files of networks again. It reads no API keys, and listens only for `/healthz` and `/metrics`.
 *
 * @throws ConfigError
 */
export async function runAgent(
  { newKey: file }: AgentOptions,
  environment: NodeJS.ProcessEnv,
): Promise<void> {
  if (file !== undefined) {
    const { seed, publicKey } = await newKey();
    try {
      writeFileSync(file, `${seed}\n`, { mode: 0o600, flag: "wx" });
    } catch (error) {
      const exists = errorCode(error) === "EEXIST";
      const why = exists ? "it exists already; name another file" : reasonOf(error);
      throw new Error(`cannot write the new key to ${file}: ${why}`, { cause: error });
    }
    return await print(publicKey);
  }
  const config = parseConfig(environment, "", packagedFiles(environment));
  requireLocation(config);
  const { log, lines } = openLog(config, environment);
  const icmp = openIcmpOrReason({ ...config, listen: [] });
  const metrics = config.metricsListen.length > 0 ? createMetrics() : null;
  const services = await openServices(config, icmp, log, metrics?.countQueries);
  const { networks, probeSlots } = services;
  const manager = serviceManager(environment);
  process.on("SIGHUP", () => manager.reload(() => networks?.reload()));
  networks?.watch();
  const locations = createLocations(config, false, log);
  locations.answer(ENDPOINTS, services, log);
  const parts = { ...services, locations, keyring: null, renewal: null, shared: null };
  const scraped = metrics?.expose(parts);
  const exposed = scraped && (await listen(scraped, { listen: config.metricsListen }, null, log));
  const urls = exposed?.urls ?? [];
  const closeStatus = offerStatus(config, { ...parts, urls, valkey: null }, log);
  say(`sixscope ${VERSION} is the agent of ${config.location}`);
  if (exposed) say(`metrics are on ${exposed.urls.join(" and ")}`);
  say(`access: ${exposureOf(config, null).sentence}`);
  const problem = rawSocketProblem(icmp, environment);
  if (problem !== null) say(problem);
  await runUntilStopped(
    { manager, config, log, lines, icmp, locations, exposed, closeStatus, shared: null },
    "questions",
    () =>
      `${config.location}, ${locations.isConnected ? "connected" : "not connected"} to NATS; probes running: ${probeSlots.running}`,
  );
}

/** @throws ConfigError if it has no location or no way to be asked */
function requireLocation({ nats, location }: Config): void {
  const missing = [
    nats === null ? "SIXSCOPE_NATS_URL is not set; set it to the URL of a NATS server" : [],
    location === null ? "SIXSCOPE_LOCATION is not set; set it to the name of this place" : [],
  ].flat();
  if (missing.length > 0) throw new ConfigError(missing);
}
