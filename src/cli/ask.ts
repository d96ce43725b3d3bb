import { readFileSync } from "node:fs";
import { type Config, parseConfig, RESOLVER_NAMES } from "../config/settings.ts";
import { createDnsClient, MAX_SERVERS } from "../dns/client.ts";
import { tryParseDnsServer } from "../dns/server.ts";
import type { Call, Question, Tools } from "../http/endpoint.ts";
import { ApiError } from "../http/errors.ts";
import { readParameters, sentTexts } from "../http/parameters.ts";
import { openIcmpIfAllowed } from "../icmp/engine.ts";
import { ProbeSlots } from "../limits/probe-slots.ts";
import { openNetworks } from "../networks/networks.ts";
import { createLog } from "../util/log.ts";
import { rawSocketRemedy } from "./terminal.ts";

/** The answer as the API gives it. */
export interface Answer {
  /** The JSON document of the result or of the error. */
  readonly json: string;
  /** The error; null if there is a result. */
  readonly error: { readonly code: string; readonly message: string } | null;
}

/**
 * Asks, and tells of each event until the answer comes.
 *
 * @throws AbortError if the signal aborts
 */
export type Ask = (
  question: Question,
  signal: AbortSignal,
  onEvent: NonNullable<Call["onEvent"]>,
) => Promise<Answer>;

/** What a tool may do here and a service decides by its settings. */
export interface OwnChoices {
  readonly config?: Partial<Pick<Config, "pingIntervalMs" | "probeTimeoutMs" | "resolvers">>;
  /** Values beyond the bounds of a parameter. */
  readonly values?: Readonly<Record<string, unknown>>;
}

/** Does the work in this process, with the resolvers of this machine as `resolver_a`. */
export function askHere(environment: NodeJS.ProcessEnv, { config, values }: OwnChoices): Ask {
  return async ({ endpoint, parameters }, signal, onEvent) => {
    const tools = await openTools({ ...configHere(environment), ...config });
    const call = { signal, address: null, owner: "", allowSeconds: () => {}, onEvent };
    try {
      const read = readParameters(endpoint.parameters, sentTexts(parameters));
      const result = await endpoint.handle({ ...read, ...values }, call, tools);
      return { json: typeof result === "string" ? result : JSON.stringify(result), error: null };
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const message = withoutRights(error, environment) ?? error.message;
      return { json: JSON.stringify(error.body), error: { code: error.code, message } };
    } finally {
      if (!("unavailable" in tools.icmp)) tools.icmp.close();
    }
  };
}

/** What to do without a raw socket: the user of a command is its operator too. */
function withoutRights({ code, details }: ApiError, environment: NodeJS.ProcessEnv): string | null {
  if (code !== "ICMP_UNAVAILABLE" || !("reason" in details)) return null;
  const remedy = rawSocketRemedy({ unavailable: details.reason }, environment);
  return `no raw socket (${details.reason}); ${remedy}, or let a service do it with --server URL`;
}

async function openTools(config: Config): Promise<Tools> {
  const [a, b, c] = RESOLVER_NAMES;
  const client = (name: typeof a | typeof b | typeof c) =>
    createDnsClient({ servers: config.resolvers[name] });
  const log = createLog({
    level: config.logLevel,
    format: config.logFormat,
    priorities: false,
    write: (line) => process.stderr.write(line),
  });
  return {
    config,
    resolvers: { [a]: client(a), [b]: client(b), [c]: client(c) },
    icmp: openIcmpIfAllowed(),
    probeSlots: new ProbeSlots(1),
    networks: await openNetworks(config.networkFiles, log),
  };
}

/**
 * The settings for work in this process.
 *
 * @throws ConfigError
 */
export function configHere(environment: NodeJS.ProcessEnv): Config {
  const servers = systemResolvers();
  const ours = servers.length > 0 ? { SIXSCOPE_RESOLVER_A: servers.join() } : {};
  return parseConfig({ ...ours, ...environment });
}

/** The name servers of this machine; resolv.conf(5). */
function systemResolvers(path = "/etc/resolv.conf"): string[] {
  try {
    const lines = readFileSync(path, "utf8").matchAll(/^nameserver[ \t]+(\S+)/gm);
    return [...lines]
      .map(([, server = ""]) => server)
      .filter((server) => tryParseDnsServer(server) !== null)
      .slice(0, MAX_SERVERS);
  } catch {
    return [];
  }
}
