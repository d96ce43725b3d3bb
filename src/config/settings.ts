import { dirname, join, resolve } from "node:path";
import { AddressError, formatPrefix, parsePrefix, unmapPrefix } from "../addr/prefix.ts";
import { MAX_SERVERS } from "../dns/client.ts";
import { parseTrustAnchors, ROOT_ANCHORS } from "../dns/dnssec/anchors.ts";
import { parseHostname } from "../dns/hostname.ts";
import { canonicalName } from "../dns/message/name.ts";
import { DNS_SERVER_FORM, tryParseDnsServer } from "../dns/server.ts";
import { readRegularBytes, readRegularFile } from "../platform/regular-file.ts";
import { orThrow } from "../util/errors.ts";
import { LOG_FORMATS, LOG_LEVELS } from "../util/log.ts";
import { quote } from "../util/text.ts";
import type { EnvironmentFile } from "./environment-file.ts";
import { bothFamilies, LISTEN_ADDRESS_FORM, tryParseListenAddress } from "./listen-address.ts";
import { isValkeyUrl, VALKEY_URL_FORM } from "./valkey-address.ts";

/** The resolvers that a caller of `/dns` can choose from; the first is the default. */
export const RESOLVER_NAMES = ["resolver_a", "resolver_b", "resolver_c"] as const;

export type ResolverName = (typeof RESOLVER_NAMES)[number];

/** Settings that are not valid; each of `problems` names a variable, its value and the valid form. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join("\n"));
    this.problems = problems;
  }
}

/** All settings of the service. */
export type Config = ReturnType<typeof parseConfig>;

const CLOUDFLARE = "2606:4700:4700::1111,1.1.1.1,2606:4700:4700::1001,1.0.0.1";
const GOOGLE = "2001:4860:4860::8888,8.8.8.8,2001:4860:4860::8844,8.8.4.4";
const QUAD9 = "2620:fe::fe,9.9.9.9,2620:fe::9,149.112.112.112";

/** More requests a minute than one machine can answer; a larger limit is a typing error. */
const MAX_RATE = 10_000_000;

/** Runs that fit into the unit's 256 MB: the stream of a trace takes up to 25 KiB, and 64 KiB in the kernel while its client does not read. */
const MAX_RUNS = 3_000;

/** Five minutes: Bun closes any connection that waits longer for its answer. */
const MAX_STOP_GRACE_MS = 300_000;

/** More than four years of 5,000 watches every ten seconds. */
const MAX_HISTORY_MB = 1_000_000;

/** Problems of one variable that are reported; further ones have the same cause. */
const MAX_PROBLEMS = 10;

const CERT = "SIXSCOPE_TLS_CERT";
const KEY = "SIXSCOPE_TLS_KEY";
const VALKEY_URL = "SIXSCOPE_VALKEY_URL";
const VALKEY_URL_FILE = "SIXSCOPE_VALKEY_URL_FILE";

const NATS_URL = "SIXSCOPE_NATS_URL";
const NATS_CREDS = "SIXSCOPE_NATS_CREDS";

const NOTIFY_URL = "SIXSCOPE_NOTIFY_URL";
const NOTIFY_SECRET = "SIXSCOPE_NOTIFY_SECRET_FILE";

/** The form of a line of an environment file that systemd and people read alike. */
const LINE_FORM =
  "write NAME=value on one line, without export or backslash, with quotes around the whole value or none";

/** The name of a location, which is a part of NATS subjects. */
export const LOCATION_FORM = /^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$/;

/** Every location; no location and no tag has this name. */
export const ALL_LOCATIONS = "all";

/** Tags of a location, such as its country, continent and network. */
export const MAX_TAGS = 16;

/** Zones that are not validated; one network has a few. */
const MAX_ZONES = 100;

/** Expected locations; each has a metric of its own. */
const MAX_EXPECTED = 1000;

/** The variables with the service that the command-line tools ask, and its key; the service ignores them. */
export const TOOL_SETTINGS = { server: "SIXSCOPE_SERVER", key: "SIXSCOPE_KEY" } as const;

/** Ports that TCP and UDP probes may use, from the first to the last of each range. */
const PROBE_PORTS = "53,80,443,33434-33534";
const PORTS_FORM = "a port or a range such as 33434-33534, or any alone";

/** Milliseconds between two echo requests of a ping. */
export const PING_INTERVAL_MS = { minimum: 10, maximum: 10_000, default: 200 } as const;

/** Milliseconds that a probe may stay unanswered. */
export const PROBE_TIMEOUT_MS = { minimum: 100, maximum: 10_000, default: 2000 } as const;

const PREFIX_FORM = "an address or a prefix such as 2001:db8::/32 or 10.0.0.0/8";

/**
 * Reads the settings from environment variables; an empty value of a known one means the default.
 *
 * @param folder the folder that relative paths of keys and networks start from, by default the current one
 * @param files the files from which systemd has the variables; a line that is not clear is a problem
 * @throws ConfigError with every problem at once
 */
export function parseConfig(
  environment: NodeJS.ProcessEnv,
  folder = "",
  files: readonly EnvironmentFile[] = [],
) {
  const { optional, both, needs, read, report, finish } = settingsReader(environment, files);
  const bounded = (name: string, bounds: typeof PING_INTERVAL_MS | typeof PROBE_TIMEOUT_MS) =>
    read(name, String(bounds.default), integer(bounds.minimum, bounds.maximum));
  const [certFile, keyFile] = both([CERT, KEY], String);
  const [ipv4, ipv6] = both(["SIXSCOPE_IPV4_URL", "SIXSCOPE_IPV6_URL"], parseUrls);
  const absolutePath = (text: string) => resolve(folder, text);
  const natsUrl = optional(NATS_URL, parseNatsUrl);
  const natsCreds = optional(NATS_CREDS, absolutePath);
  needs(NATS_CREDS, NATS_URL);
  const notifyUrl = optional(NOTIFY_URL, parseNotifyUrl);
  const notifySecret = optional(NOTIFY_SECRET, (path) => secretIn(absolutePath(path)));
  needs(NOTIFY_SECRET, NOTIFY_URL);
  const textOf = (path: string) =>
    orRefuse(() => readRegularFile(absolutePath(path)).trim(), "cannot be read");
  const urlFromFile = (path: string) => parseValkeyUrl(textOf(path));
  const urls = [optional(VALKEY_URL, parseValkeyUrl), optional(VALKEY_URL_FILE, urlFromFile)];
  if (environment[VALKEY_URL] && environment[VALKEY_URL_FILE]) {
    report(VALKEY_URL_FILE, [`${VALKEY_URL} is set too; set one of them`]);
  }
  const valkeyUrl = urls.find((url) => url !== null);
  const anchorsFromFile = (path: string) => {
    const text = textOf(path);
    return orRefuse(() => parseTrustAnchors(text), "is not a file of DS or DNSKEY records");
  };
  const valkeyPrefix = read("SIXSCOPE_VALKEY_PREFIX", "sixscope:", parseValkeyPrefix);
  const stateFolder = environment["STATE_DIRECTORY"]?.split(":")[0] ?? "";
  const runtimeFolder = environment["RUNTIME_DIRECTORY"]?.split(":")[0];
  const keysFile = read("SIXSCOPE_KEYS_FILE", join(stateFolder, "keys.json"), absolutePath);
  const ownFolder = stateFolder || dirname(keysFile);
  const config = {
    listen: read("SIXSCOPE_LISTEN", "127.0.0.1:8080,[::1]:8080", parseListen),
    metricsListen: optional("SIXSCOPE_METRICS_LISTEN", parseListen) ?? [],
    tls: certFile && keyFile ? { certFile, keyFile } : null,
    trustedProxies: read("SIXSCOPE_TRUSTED_PROXIES", "unix", parseTrustedProxies),
    plainHttpFrom: optional("SIXSCOPE_PLAIN_HTTP_FROM", parsePrefixes) ?? [],
    /** The service by one address family each, for the page; null if it does not test connections. */
    familyUrls: ipv4 && ipv6 ? { ipv4, ipv6 } : null,
    /** The networks whose clients may ping and trace without a key. */
    keylessFrom: optional("SIXSCOPE_KEYLESS_FROM", parsePrefixes) ?? [],
    keysFile,
    /** The unix socket where `doctor` and `keys` ask the running service; see `offerStatus`. */
    statusSocket: runtimeFolder ? join(runtimeFolder, "status") : `${keysFile}.status`,
    /** The Valkey that counts limits and has the keys for several instances; null if this one is alone. */
    valkey: valkeyUrl === undefined ? null : { url: valkeyUrl, prefix: valkeyPrefix },
    /** The files that say whose network an address belongs to. */
    networkFiles: {
      networksFile: optional("SIXSCOPE_NETWORKS_FILE", absolutePath),
      asnFile: optional("SIXSCOPE_ASN_FILE", absolutePath),
    },
    /** The NATS servers that connect locations; null for none. */
    nats: natsUrl && { ...natsUrl, credsFile: natsCreds },
    /** The name of the place where this process is; null if it has none. */
    location: optional("SIXSCOPE_LOCATION", parseLocation),
    /** Other words for it in `from`. */
    locationTags: optional("SIXSCOPE_LOCATION_TAGS", locationNames(MAX_TAGS)) ?? [],
    /** The locations whose absence is shown. */
    locationsExpected: optional("SIXSCOPE_LOCATIONS_EXPECTED", locationNames(MAX_EXPECTED)) ?? [],
    /** The file of watches, and their history. */
    watchFile: read("SIXSCOPE_WATCH_FILE", join(ownFolder, "watches"), absolutePath),
    historyFile: read("SIXSCOPE_HISTORY_FILE", join(ownFolder, "history.db"), absolutePath),
    historyMaxMb: read("SIXSCOPE_HISTORY_MAX_MB", "256", integer(1, MAX_HISTORY_MB)),
    /** The receiver of confirmed changes, and the secret that signs them; null for none. */
    notify: notifyUrl === null ? null : { url: notifyUrl, secret: notifySecret },
    resolvers: {
      resolver_a: read("SIXSCOPE_RESOLVER_A", CLOUDFLARE, parseServers),
      resolver_b: read("SIXSCOPE_RESOLVER_B", GOOGLE, parseServers),
      resolver_c: read("SIXSCOPE_RESOLVER_C", QUAD9, parseServers),
    },
    /** The trust anchors of DNSSEC. */
    trustAnchors: optional("SIXSCOPE_TRUST_ANCHORS", anchorsFromFile) ?? ROOT_ANCHORS,
    /** Zones that count as not signed, in lower case with the final dot. */
    unsignedZones: optional("SIXSCOPE_UNSIGNED_ZONES", parseZones) ?? [],
    targetResolver: read("SIXSCOPE_TARGET_RESOLVER", "resolver_a", choice(RESOLVER_NAMES)),
    /** Requests a minute; `prefix` is for an IPv6 /64, and 0 means no limit. */
    rate: {
      anonymous: read("SIXSCOPE_RATE_ANONYMOUS", "100", integer(1, MAX_RATE)),
      prefix: read("SIXSCOPE_RATE_PREFIX", "1000", integer(0, MAX_RATE)),
      key: read("SIXSCOPE_RATE_KEY", "1000", integer(1, MAX_RATE)),
    },
    targets: {
      mode: read("SIXSCOPE_TARGETS", "any", choice(["any", "global"])),
      allow: optional("SIXSCOPE_TARGETS_ALLOW", parsePrefixes) ?? [],
      deny: optional("SIXSCOPE_TARGETS_DENY", parsePrefixes) ?? [],
    },
    probePorts: read("SIXSCOPE_PROBE_PORTS", PROBE_PORTS, parsePorts),
    pingIntervalMs: bounded("SIXSCOPE_PING_INTERVAL_MS", PING_INTERVAL_MS),
    probeTimeoutMs: bounded("SIXSCOPE_PROBE_TIMEOUT_MS", PROBE_TIMEOUT_MS),
    maxProbes: read("SIXSCOPE_MAX_PROBES", "64", integer(1, MAX_RUNS)),
    /** The time for running requests to finish after the signal to stop. */
    stopGraceMs: read("SIXSCOPE_STOP_GRACE_MS", "20000", integer(0, MAX_STOP_GRACE_MS)),
    logLevel: read("SIXSCOPE_LOG_LEVEL", "info", choice(LOG_LEVELS)),
    logFormat: read("SIXSCOPE_LOG_FORMAT", "text", choice(LOG_FORMATS)),
    /** True if request lines name the targets. */
    logTargets: read("SIXSCOPE_LOG_TARGETS", "no", choice(["yes", "no"])) === "yes",
    /** True if request lines name the clients' addresses. */
    logClients: read("SIXSCOPE_LOG_CLIENTS", "yes", choice(["yes", "no"])) === "yes",
  };
  for (const name of Object.values(TOOL_SETTINGS)) optional(name, String);
  finish();
  return Object.freeze(config);
}

/** The settings that an agent uses, without those for clients and keys. */
export const settingsOfAgent = (settings: Config): Config => ({
  ...settings,
  ...{ listen: [], tls: null, valkey: null, plainHttpFrom: [], keylessFrom: [] },
  trustedProxies: { unix: false, prefixes: [] },
});

/** A name that begins like our names, in any case, perhaps with a letter of `SIXSCOPE_` missing, wrong or doubled. */
const ALMOST_OURS = /^(six_?sc|.{0,3}x_?s{0,2}c?ope)/i;

/** The value of a setting; throws ConfigError for a text that is not valid. */
type Parse<T> = (text: string) => T;

/** Reads variables and collects their problems, so that one run reports them all. */
function settingsReader(environment: NodeJS.ProcessEnv, files: readonly EnvironmentFile[]) {
  const settings: string[] = [];
  const problems: string[] = [];
  for (const { path, unclear } of files) {
    const problem = `systemd ignores it, or reads it otherwise; ${LINE_FORM}`;
    problems.push(...unclear.map((line) => `line ${line} of ${path}: ${problem}`));
  }

  const report = (name: string, found: readonly string[]) => {
    const value = environment[name] ?? "";
    const isHidden = name === VALKEY_URL || isSecret(value);
    const file = files.findLast(({ variables }) => variables[name] === value);
    const place = file === undefined ? "" : `line ${file.lines[name]} of ${file.path}: `;
    const setting = place + (isHidden ? name : `${name}=${quote(value)}`);
    problems.push(...found.slice(0, MAX_PROBLEMS).map((problem) => `${setting}: ${problem}`));
    const more = found.length - MAX_PROBLEMS;
    if (more > 0) problems.push(`${setting}: ${more} more entries are not valid`);
  };

  /** The value of a variable; null if it is not set, or if it is not valid, which is reported. */
  const optional = <T>(name: string, parse: Parse<T>): T | null => {
    settings.push(name);
    const value = environment[name];
    if (!value) return null;
    try {
      if (value.includes(PEM)) {
        refuse(`contains PEM text; put it into a file and set ${CERT} or ${KEY} to its path`);
      }
      return parse(value);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      report(name, error.problems);
      return null;
    }
  };

  /** Reports a variable that has no effect without another one. */
  const needs = (name: string, other: string, advice = "") => {
    if (environment[name] && !environment[other]) report(name, [`needs ${other}${advice}`]);
  };

  /** The values of two variables that need each other. */
  const both = <T>([a, b]: readonly [string, string], parse: Parse<T>) => {
    needs(a, b, "; set both or neither");
    needs(b, a, "; set both or neither");
    return [optional(a, parse), optional(b, parse)] as const;
  };

  const read = <T>(name: string, fallback: string, parse: Parse<T>): T =>
    optional(name, parse) ?? parse(fallback);

  /** Call it after all settings are read: reports variables that are not settings, and throws if there is a problem. */
  const finish = () => {
    for (const [name, value] of Object.entries(environment)) {
      if (!ALMOST_OURS.test(name) || value === undefined || settings.includes(name)) continue;
      const fixed = name.toUpperCase().replace(/^(SIX_)?[^_]*_/, "SIXSCOPE_");
      const near = settings.find((each) => each.startsWith(fixed) || fixed.startsWith(each));
      const hint = near === undefined ? "see docs/configuration.md" : `did you mean ${near}?`;
      report(name, [`is not a setting; ${hint}`]);
    }
    if (problems.length > 0) throw new ConfigError(problems);
  };

  return { optional, both, needs, read, report, finish };
}

function refuse(problem: string): never {
  throw new ConfigError([problem]);
}

/** @throws ConfigError with the problem and the reason if the action fails */
function orRefuse<T>(action: () => T, problem: string): T {
  return orThrow(action, (reason) => new ConfigError([`${problem}: ${reason}`]));
}

const PEM = "-----BEGIN";

/** True for a text that may be a URL with a user or password. */
function hasPassword(text: string): boolean {
  const at = text.indexOf("://");
  return at >= 0 && text.includes("@", at);
}

/** True for a value that must not appear in a log: a certificate, a private key, an API key, or a URL with a password. */
export function isSecret(value: string): boolean {
  return value.includes(PEM) || hasPassword(value) || value.startsWith("sx_");
}

function integer(minimum: number, maximum: number): Parse<number> {
  return (text) => {
    const value = /^[0-9]{1,15}$/.test(text) ? Number(text) : Number.NaN;
    return value >= minimum && value <= maximum
      ? value
      : refuse(`must be a whole number from ${minimum} to ${maximum}`);
  };
}

/** @param form the form of a valid text, for messages */
function matching(isRight: (text: string) => boolean, form: string): Parse<string> {
  return (text) => (isRight(text) ? text : refuse(`must be ${form}`));
}

function choice<const T extends string>(values: readonly T[]): Parse<T> {
  return (text) =>
    values.find((value) => value === text) ??
    refuse(`must be ${values.slice(0, -1).join(", ")} or ${values.at(-1)}`);
}

/**
 * A comma-separated list.
 *
 * @param parse returns null or throws AddressError for an entry that is not valid
 * @param form the form of an entry, for messages
 * @param most entries, with their noun
 */
function list<T>(
  parse: (entry: string) => T | null,
  form: string,
  most = Number.POSITIVE_INFINITY,
): Parse<readonly T[]> {
  return (text) => {
    const entries: T[] = [];
    const wrong: string[] = [];
    for (const entry of text.split(",").map((part) => part.trim())) {
      try {
        const value = parse(entry);
        if (value === null) wrong.push(`${quote(entry)} must be ${form}`);
        else entries.push(value);
      } catch (error) {
        if (!(error instanceof AddressError)) throw error;
        wrong.push(`${quote(entry)} must be ${form}: ${error.message}`);
      }
    }
    if (wrong.length > 0) throw new ConfigError(wrong);
    return entries.length <= most ? entries : refuse(`must be at most ${most} entries`);
  };
}

function parsePorts(text: string) {
  const range = (entry: string) => {
    const [, from = "", to = from] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(entry) ?? [];
    const [least, most] = [Number(from), Number(to)];
    return from && least >= 1 && most <= 65_535 && least <= most ? ([least, most] as const) : null;
  };
  return text === "any" ? ([[1, 65_535]] as const) : list(range, PORTS_FORM)(text);
}

function parseListen(text: string) {
  return list(tryParseListenAddress, LISTEN_ADDRESS_FORM)(text).flatMap(bothFamilies);
}

function parseTrustedProxies(text: string) {
  const entries = list(
    // Peers are never IPv4-mapped, so prefixes must not be either.
    (entry) => (entry === "unix" ? entry : unmapPrefix(parsePrefix(entry))),
    `unix, ${PREFIX_FORM}`,
  )(text);
  return { unix: entries.includes("unix"), prefixes: entries.filter((entry) => entry !== "unix") };
}

const parseValkeyUrl = matching(
  isValkeyUrl,
  `${VALKEY_URL_FORM}; in a password, write / ? # @ as %2F %3F %23 %40`,
);

const parseValkeyPrefix = matching(
  (text) => /^[!-~]{1,64}$/.test(text),
  "1 to 64 printable ASCII characters without spaces",
);

/** No client and no target is IPv4-mapped, so a mapped block would match nothing. */
const parsePrefixes = list((entry) => {
  const prefix = parsePrefix(entry);
  const plain = unmapPrefix(prefix);
  // Many lists of prefixes have the block of all mapped addresses.
  if (plain === prefix || plain.length === 0) return prefix;
  throw new AddressError(`write ${formatPrefix(plain)}`);
}, PREFIX_FORM);

function parseNatsUrl(text: string) {
  if (hasPassword(text)) refuse(`must not have a user or password; put them into ${NATS_CREDS}`);
  const servers = list(
    (entry) => (/^(nats|tls):\/\/[^/?#]+\/?$/.test(entry) && URL.canParse(entry) ? entry : null),
    "a URL such as nats://nats.example.com:4222 or tls://nats.example.com:4222",
  )(text);
  // The client itself would let an unencrypted server decide about TLS.
  return { servers, tls: servers.some((server) => server.startsWith("tls:")) };
}

function parseNotifyUrl(text: string): string {
  const url = URL.parse(text);
  if (url?.username || url?.password) refuse("must not have a user or password");
  const form = "must be a URL such as https://hooks.example.com/sixscope";
  return url && /^https?:$/.test(url.protocol) ? url.href : refuse(form);
}

/** A file, and its bytes without the last line end. */
function secretIn(file: string) {
  const text = orRefuse(() => readRegularBytes(file), "cannot be read").toString("latin1");
  const bytes = Buffer.from(text.replace(/\r?\n$/, ""), "latin1");
  return bytes.length > 0 ? { file, bytes } : refuse("is empty");
}

/** The URLs of one family: a name with that family alone, and for IPv4 another that DNS64 does not translate. */
const MAX_URLS = 2;

/** A host with a name, alone in its URL. */
const NAMED_HOST = /^https?:\/\/(?![\d.]+[:/])[a-z\d.-]+(:\d+)?\/$/;

const parseUrls = list(
  (entry) => URL.parse(entry)?.href.match(NAMED_HOST)?.[0] ?? null,
  "a URL with a name, such as https://ipv6.example.com",
  MAX_URLS,
);

const LOCATION_WORDS = "1 to 32 of a-z, 0-9 and -, with no - at its ends, and not all";

const isLocation = (text: string) => LOCATION_FORM.test(text) && text !== ALL_LOCATIONS;

const parseLocation = matching(isLocation, LOCATION_WORDS);

/** A list of names or tags of locations, each once. */
function locationNames(most: number): Parse<readonly string[]> {
  const parse = list((entry) => (isLocation(entry) ? entry : null), LOCATION_WORDS, most);
  return (text) => [...new Set(parse(text))];
}

const parseZones = list(
  (entry) => {
    const parsed = parseHostname(entry, "SOA");
    return parsed.ok ? canonicalName(parsed.name).toLowerCase() : null;
  },
  "a name such as corp.example",
  MAX_ZONES,
);

const parseServers = list(tryParseDnsServer, DNS_SERVER_FORM, MAX_SERVERS);
