import { z } from "zod";
import { formatIp, looksLikeIpv4, tryParseIp } from "../addr/ip.ts";
import type { TargetPolicy } from "../addr/policy.ts";
import { AddressError, type Prefix, parsePrefix, unmapPrefix } from "../addr/prefix.ts";
import { type SocketAddress, tryParseSocketAddress } from "../addr/socket-address.ts";
import { MAX_SERVERS } from "../dns/limits.ts";
import type { Environment } from "../util/environment.ts";
import { LOG_FORMATS, LOG_LEVELS, type LogFormat, type LogLevel } from "../util/log.ts";
import { quote } from "../util/text.ts";

/** The resolvers that a caller of `/dns` can choose from; the first is the default. */
export const RESOLVER_NAMES = ["resolver_a", "resolver_b", "resolver_c"] as const;

export type ResolverName = (typeof RESOLVER_NAMES)[number];

/** Where the service listens: a TCP port or the path of a unix socket. */
export type ListenAddress =
  | { readonly kind: "tcp"; readonly hostname: string; readonly port: number }
  | { readonly kind: "unix"; readonly path: string };

/** All settings of the service, checked and frozen. Units are in the names. */
export interface Config {
  readonly listen: readonly ListenAddress[];
  /** True where SIXSCOPE_LISTEN is not set, so that a machine without IPv6 still starts. */
  readonly listenIsDefault: boolean;
  readonly tls: { readonly certFile: string; readonly keyFile: string } | null;
  readonly trustedProxies: { readonly unix: boolean; readonly prefixes: readonly Prefix[] };
  readonly keysFile: string;
  readonly resolvers: Readonly<Record<ResolverName, readonly SocketAddress[]>>;
  readonly targetResolver: ResolverName;
  /** Requests a minute; `prefix` counts an IPv6 /64 and is 0 for none. */
  readonly rate: { readonly anonymous: number; readonly prefix: number; readonly key: number };
  readonly targets: TargetPolicy;
  readonly pingIntervalMs: number;
  readonly probeTimeoutMs: number;
  readonly maxProbes: number;
  readonly logLevel: LogLevel;
  readonly logFormat: LogFormat;
  /** Whether request lines name the clients' addresses. */
  readonly logClients: boolean;
}

/** Wrong settings: `problems` has one sentence for each, with the variable, its value and what would be right. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join("\n"));
    this.problems = problems;
  }
}

const VARIABLE_PREFIX = "SIXSCOPE_";

const DNS_PORT = 53;

/** More requests a minute than one machine can answer; a larger limit is a typing mistake. */
const MAX_RATE = 10_000_000;

/** Cloudflare, Google, Quad9; IPv6 first. */
const DEFAULT_RESOLVERS = {
  A: "2606:4700:4700::1111,2606:4700:4700::1001,1.1.1.1,1.0.0.1",
  B: "2001:4860:4860::8888,2001:4860:4860::8844,8.8.8.8,8.8.4.4",
  C: "2620:fe::fe,2620:fe::9,9.9.9.9,149.112.112.112",
} as const;

/** So many wrong entries of a list are named; whoever made more mistakes has made one. */
const MAX_NAMED_ENTRIES = 10;

/**
 * A comma-separated list; every entry that does not parse is named, up to a limit.
 *
 * @param parse returns null or throws AddressError for a wrong entry
 */
function list<T>(parse: (entry: string) => T | null, expected: string) {
  return z.string().transform((text, context): readonly T[] => {
    const entries: T[] = [];
    const wrong: string[] = [];
    for (const entry of text.split(",").map((part) => part.trim())) {
      try {
        const value = parse(entry);
        if (value === null) wrong.push(`${quote(entry)} must be ${expected}`);
        else entries.push(value);
      } catch (error) {
        if (!(error instanceof AddressError)) throw error;
        wrong.push(`${quote(entry)} must be ${expected}: ${error.message}`);
      }
    }
    const further = wrong.splice(MAX_NAMED_ENTRIES).length;
    if (further > 0) wrong.push(`${further} further entries are wrong too`);
    for (const message of wrong) context.addIssue(message);
    return entries;
  });
}

function integer(minimum: number, maximum: number) {
  const expected = `must be a whole number from ${minimum} to ${maximum}`;
  return z
    .string()
    .regex(/^[0-9]{1,15}$/, expected)
    .transform(Number)
    .refine((value) => value >= minimum && value <= maximum, expected);
}

function choice<const T extends readonly string[]>(values: T) {
  return z.enum(values, `must be ${values.slice(0, -1).join(", ")} or ${values.at(-1)}`);
}

/** Labels of letters, digits and hyphens; RFC 1123 section 2.1. */
const HOST_NAME_FORM = /^(?!-)[A-Za-z0-9-]{1,63}(?<!-)(?:\.(?!-)[A-Za-z0-9-]{1,63}(?<!-))*$/;

function parseListenAddress(text: string): ListenAddress | null {
  if (text.startsWith("unix:")) {
    const path = text.slice("unix:".length);
    return path.startsWith("/") ? { kind: "unix", path } : null;
  }
  const [, host = "", port = ""] = /^(\[[^\]]+\]|[^:[\]]+):([0-9]{1,5})$/.exec(text) ?? [];
  if (port === "" || Number(port) > 65_535) return null;
  const hostname = host.replace(/^\[|\]$/g, "");
  const address = tryParseIp(hostname);
  if (address?.version === 6 ? !host.startsWith("[") : host.startsWith("[")) return null;
  if (address === null && (!HOST_NAME_FORM.test(hostname) || looksLikeIpv4(hostname))) return null;
  return { kind: "tcp", hostname: address ? formatIp(address) : hostname, port: Number(port) };
}

/** One sentence for each address that another one takes in. */
function overlaps(addresses: readonly ListenAddress[]): string[] {
  return addresses.flatMap((address, index) => {
    const others = addresses.filter((_, other) => other !== index);
    if (addresses.slice(0, index).some((other) => isSame(address, other))) {
      return [`${formatListenAddress(address)} stands twice; leave one out`];
    }
    const whole = others.find((other) => !isSame(address, other) && takesIn(other, address));
    return whole === undefined
      ? []
      : [`${formatListenAddress(whole)} takes in ${formatListenAddress(address)}; leave one out`];
  });
}

function isSame(a: ListenAddress, b: ListenAddress): boolean {
  if (a.kind === "unix" || b.kind === "unix") return Bun.deepEquals(a, b);
  return a.port !== 0 && a.port === b.port && a.hostname.toLowerCase() === b.hostname.toLowerCase();
}

/** `[::]` takes both families. */
function takesIn(whole: ListenAddress, part: ListenAddress): boolean {
  if (whole.kind === "unix" || part.kind === "unix") return false;
  if (whole.port === 0 || whole.port !== part.port) return false;
  const isIpv4 = tryParseIp(part.hostname)?.version === 4;
  return whole.hostname === "::" || (whole.hostname === "0.0.0.0" && isIpv4);
}

/** An address as SIXSCOPE_LISTEN has it: `[::1]:8080`, `unix:/path`. */
export function formatListenAddress(address: ListenAddress): string {
  if (address.kind === "unix") return `unix:${address.path}`;
  const { hostname, port } = address;
  return hostname.includes(":") ? `[${hostname}]:${port}` : `${hostname}:${port}`;
}

/** That one variable is not set without another; reported together with all other problems. */
function needs(
  name: string,
  other: string,
): [
  (env: Readonly<Record<string, unknown>>) => boolean,
  { path: string[]; error: string; when: () => boolean },
] {
  return [
    (env) => env[name] === undefined || env[other] !== undefined,
    { path: [name], error: `needs ${other} beside it; set both or neither`, when: () => true },
  ];
}

const PREFIX_EXPECTED = "an address or a prefix such as 2001:db8::/32 or 10.0.0.0/8";

const endpoints = list((text) => {
  const endpoint = tryParseSocketAddress(text, DNS_PORT);
  return endpoint?.port === 0 ? null : endpoint;
}, "an address, [IPv6]:port or IPv4:port").refine(
  (servers) => servers.length <= MAX_SERVERS,
  `must be at most ${MAX_SERVERS} addresses`,
);
const prefixes = list(parsePrefix, PREFIX_EXPECTED);

/** Whether a value is a key or certificate itself, which no log shall have. */
function holdsPem(value: string): boolean {
  return value.includes("-----BEGIN");
}

const PEM_REFUSED =
  "holds PEM text, which is not repeated here; put it into a file, and set SIXSCOPE_TLS_CERT or SIXSCOPE_TLS_KEY to the file's path";

const pemFile = z.string().refine((value) => !holdsPem(value), PEM_REFUSED);

/** The table of `SIXSCOPE_` variables: default, form and bounds of each. */
const environmentSchema = z
  .strictObject({
    SIXSCOPE_LISTEN: list(
      parseListenAddress,
      "an address or a host name and a port, such as 127.0.0.1:8080, [::1]:8080 or localhost:8080, or unix: and an absolute path",
    )
      .superRefine((addresses, context) => {
        for (const problem of overlaps(addresses)) context.addIssue(problem);
      })
      .prefault("127.0.0.1:8080,[::1]:8080"),
    SIXSCOPE_TLS_CERT: pemFile.optional(),
    SIXSCOPE_TLS_KEY: pemFile.optional(),
    SIXSCOPE_TRUSTED_PROXIES: list(
      // Peers are never mapped, so a prefix shall not be either.
      (text) => (text === "unix" ? ("unix" as const) : unmapPrefix(parsePrefix(text))),
      `unix, ${PREFIX_EXPECTED}`,
    ).prefault("unix"),
    SIXSCOPE_KEYS_FILE: z.string().optional(),
    SIXSCOPE_RESOLVER_A: endpoints.prefault(DEFAULT_RESOLVERS.A),
    SIXSCOPE_RESOLVER_B: endpoints.prefault(DEFAULT_RESOLVERS.B),
    SIXSCOPE_RESOLVER_C: endpoints.prefault(DEFAULT_RESOLVERS.C),
    SIXSCOPE_TARGET_RESOLVER: choice(RESOLVER_NAMES).default("resolver_a"),
    SIXSCOPE_RATE_ANONYMOUS: integer(1, MAX_RATE).prefault("100"),
    SIXSCOPE_RATE_PREFIX: integer(0, MAX_RATE).prefault("1000"),
    SIXSCOPE_RATE_KEY: integer(1, MAX_RATE).prefault("1000"),
    SIXSCOPE_TARGETS: choice(["any", "global"]).default("any"),
    SIXSCOPE_TARGETS_ALLOW: prefixes.optional(),
    SIXSCOPE_TARGETS_DENY: prefixes.optional(),
    SIXSCOPE_PING_INTERVAL_MS: integer(10, 10_000).prefault("200"),
    SIXSCOPE_PROBE_TIMEOUT_MS: integer(100, 10_000).prefault("2000"),
    SIXSCOPE_MAX_PROBES: integer(1, 10_000).prefault("64"),
    SIXSCOPE_LOG_LEVEL: choice(LOG_LEVELS).default("info"),
    SIXSCOPE_LOG_FORMAT: choice(LOG_FORMATS).default("text"),
    SIXSCOPE_LOG_CLIENTS: choice(["yes", "no"]).default("yes"),
  })
  .refine(...needs("SIXSCOPE_TLS_CERT", "SIXSCOPE_TLS_KEY"))
  .refine(...needs("SIXSCOPE_TLS_KEY", "SIXSCOPE_TLS_CERT"));

/**
 * Reads the settings from environment variables; an empty value of a known one counts as not set.
 *
 * @throws ConfigError with every problem at once
 */
export function parseConfig(environment: Environment): Config {
  const given = Object.fromEntries(
    Object.entries(environment).filter(
      ([name, value]) =>
        name.startsWith(VARIABLE_PREFIX) &&
        value !== undefined &&
        (value !== "" || !(name in environmentSchema.shape)),
    ),
  );
  const parsed = environmentSchema.safeParse(given);
  if (!parsed.success) throw new ConfigError(parsed.error.issues.flatMap(describe(given)));
  const env = parsed.data;
  const stateDirectory = environment["STATE_DIRECTORY"]?.split(":")[0];
  const trusted = env.SIXSCOPE_TRUSTED_PROXIES;
  return Object.freeze({
    listen: env.SIXSCOPE_LISTEN,
    listenIsDefault: given["SIXSCOPE_LISTEN"] === undefined,
    tls:
      env.SIXSCOPE_TLS_CERT !== undefined && env.SIXSCOPE_TLS_KEY !== undefined
        ? { certFile: env.SIXSCOPE_TLS_CERT, keyFile: env.SIXSCOPE_TLS_KEY }
        : null,
    trustedProxies: {
      unix: trusted.includes("unix"),
      prefixes: trusted.filter((entry) => entry !== "unix"),
    },
    keysFile:
      env.SIXSCOPE_KEYS_FILE ?? (stateDirectory ? `${stateDirectory}/keys.json` : "keys.json"),
    resolvers: {
      resolver_a: env.SIXSCOPE_RESOLVER_A,
      resolver_b: env.SIXSCOPE_RESOLVER_B,
      resolver_c: env.SIXSCOPE_RESOLVER_C,
    },
    targetResolver: env.SIXSCOPE_TARGET_RESOLVER,
    rate: {
      anonymous: env.SIXSCOPE_RATE_ANONYMOUS,
      prefix: env.SIXSCOPE_RATE_PREFIX,
      key: env.SIXSCOPE_RATE_KEY,
    },
    targets: {
      mode: env.SIXSCOPE_TARGETS,
      allow: env.SIXSCOPE_TARGETS_ALLOW ?? [],
      deny: env.SIXSCOPE_TARGETS_DENY ?? [],
    },
    pingIntervalMs: env.SIXSCOPE_PING_INTERVAL_MS,
    probeTimeoutMs: env.SIXSCOPE_PROBE_TIMEOUT_MS,
    maxProbes: env.SIXSCOPE_MAX_PROBES,
    logLevel: env.SIXSCOPE_LOG_LEVEL,
    logFormat: env.SIXSCOPE_LOG_FORMAT,
    logClients: env.SIXSCOPE_LOG_CLIENTS === "yes",
  });
}

/** One sentence for each problem that zod found. */
function describe(given: Environment) {
  const assignment = (name: string) => {
    const value = given[name];
    return value === undefined || holdsPem(value) ? name : `${name}=${quote(value)}`;
  };
  return (issue: z.core.$ZodIssue): string[] => {
    if (issue.code === "unrecognized_keys") {
      return issue.keys.map((name) => {
        const similar = nearestName(name);
        const hint = similar === null ? "see the README's table" : `did you mean ${similar}?`;
        return `${assignment(name)}: there is no such setting; ${hint}`;
      });
    }
    const name = String(issue.path[0]);
    return [`${assignment(name)}: ${holdsPem(given[name] ?? "") ? PEM_REFUSED : issue.message}`];
  };
}

/** The setting whose name differs in the fewest letters, or null where none is near. */
function nearestName(name: string): string | null {
  const MOST_DIFFERENT = 3;
  const ranked = Object.keys(environmentSchema.shape)
    .map((known) => ({ known, distance: editDistance(name, known) }))
    .sort((a, b) => a.distance - b.distance);
  const best = ranked[0];
  return best !== undefined && best.distance <= MOST_DIFFERENT ? best.known : null;
}

/** Levenshtein distance; names are short. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...b].entries()) {
      const substituted = (row[j] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(substituted, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
