import type { Call } from "../api/endpoint.ts";
import { ApiError } from "../api/errors.ts";
import { alone, readTexts } from "../api/parameters.ts";
import { type Config, parseConfig, RESOLVER_NAMES, type ResolverName } from "../config/settings.ts";
import { MAX_SERVERS } from "../dns/client.ts";
import { parseResolvConf } from "../dns/server.ts";
import { openIcmpIfAllowed } from "../icmp/icmp.ts";
import { tryRead } from "../platform/regular-file.ts";
import type { Question } from "../tools/services.ts";
import { createLog } from "../util/log.ts";
import { openServices } from "./services.ts";
import { rawSocketRemedy } from "./terminal.ts";

/** The answer as the API gives it. */
export interface ApiAnswer {
  /** The document of the result or of the error. */
  readonly document: Record<string, unknown>;
  /** The error; null if there is a result. */
  readonly error: { readonly code: string; readonly message: string } | null;
}

/**
 * Calls an endpoint, and passes on each event until the answer comes. `enough` and `mayGoOn` are those of `Call`. A call
 * to a service cannot pass them on: there, `enough` ends the call as the signal does, and rounds do not wait.
 *
 * @throws AbortError if the signal aborts
 */
export type CallEndpoint = (
  question: Question,
  signal: AbortSignal,
  onEvent: NonNullable<Call["onEvent"]>,
  enough?: AbortSignal,
  mayGoOn?: Call["mayGoOn"],
) => Promise<ApiAnswer>;

/** The choices for a tool that runs here; a service has settings for them. */
export interface OwnChoices {
  readonly config?: Partial<Pick<Config, "pingIntervalMs" | "probeTimeoutMs" | "resolvers">>;
  /** The text of the one server that is asked. */
  readonly resolverTitle?: string | undefined;
}

/** Does the work in this process, with the resolvers of this machine as `resolver_a`. */
export function callHere(environment: NodeJS.ProcessEnv, choices: OwnChoices): CallEndpoint {
  return async (question, ...call) => {
    using here = await openHere(environment, choices, "resolver" in question.parameters);
    return await here.call(question, ...call);
  };
}

/**
 * Opens the parts that several calls in this process share: the prober, and the one way out to targets with its bounds.
 *
 * @param isChosen as for `configHere`
 */
export async function openHere(
  environment: NodeJS.ProcessEnv,
  { config, resolverTitle }: OwnChoices,
  isChosen = false,
): Promise<Disposable & { readonly call: CallEndpoint }> {
  const settings = { ...configHere(environment, isChosen), ...config };
  const { logLevel: level, logFormat: format } = settings;
  const write = (line: string) => process.stderr.write(line);
  const log = createLog({ level, format, priorities: false, write });
  const { icmp, ...others } = await openServices(settings, openIcmpIfAllowed(), log);
  return {
    async call({ endpoint, parameters }, signal, onEvent, enough, mayGoOn) {
      const of = { signal, onEvent, enough, mayGoOn };
      const call = { ...of, address: null, client: "", allowSeconds: () => {} };
      try {
        const read = readTexts(alone(endpoint.parameters), parameters);
        const result = await endpoint.handle(read, call, { icmp, ...others, resolverTitle });
        return { document: result as ApiAnswer["document"], error: null };
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        const message = withoutRights(error, environment) ?? error.message;
        return { document: { ...error.body }, error: { code: error.code, message } };
      }
    },
    [Symbol.dispose]() {
      if (!("unavailable" in icmp)) icmp.close();
    },
  };
}

/** The advice without a raw socket: the user of a command is its operator too. */
function withoutRights({ code, details }: ApiError, environment: NodeJS.ProcessEnv): string | null {
  if (code !== "ICMP_UNAVAILABLE" || !("reason" in details)) return null;
  const remedy = rawSocketRemedy({ unavailable: details.reason }, environment);
  return `no raw socket (${details.reason}); ${remedy}, or let a service do it with --server URL`;
}

/** A user of this machine may connect to it, unless the settings allow global targets alone. */
const OWN_MACHINE = { SIXSCOPE_TARGETS_ALLOW: "::/0,0.0.0.0/0" };

/**
 * The settings for work in this process. The resolvers are those of this machine, and those that the environment names.
 *
 * @param isChosen true if the user has chosen a resolver, which may be one of the others too
 * @throws ConfigError
 */
export function configHere(environment: NodeJS.ProcessEnv, isChosen = false): Config {
  const own = environment["SIXSCOPE_TARGETS"] === "global" ? {} : OWN_MACHINE;
  const config = parseConfig({ SIXSCOPE_PROBE_PORTS: "any", ...own, ...environment });
  const [a, b, c] = RESOLVER_NAMES;
  const serversOf = (name: ResolverName) => {
    if (environment[`SIXSCOPE_${name.toUpperCase()}`]) return config.resolvers[name];
    // The name servers of this machine.
    if (name === a) return parseResolvConf(tryRead("/etc/resolv.conf") ?? "").slice(0, MAX_SERVERS);
    return isChosen || name === config.targetResolver ? config.resolvers[name] : [];
  };
  return { ...config, resolvers: { [a]: serversOf(a), [b]: serversOf(b), [c]: serversOf(c) } };
}
