import { formatPrefix, type Prefix } from "../addr/prefix.ts";
import { listText, plural } from "../util/text.ts";
import { formatListenAddress, isLoopback, type ListenAddress } from "./listen-address.ts";
import { type Config, REFUSING_ADVICE, refusingListeners } from "./settings.ts";

/** A setting that lets others do more, or less, than most operators mean. */
export interface Risk {
  readonly variable: string;
  /** A clause. */
  readonly text: string;
  readonly advice: string;
  /** The value that ends it, an empty text for the default; null if only the operator knows one. */
  readonly instead: string | null;
}

/**
 * One sentence about the rights of everyone by the settings, and the settings that are risks.
 *
 * @param keys how many API keys are valid; null if the process is an agent, which nobody reaches over HTTP
 */
export function exposureOf(config: Config, keys: number | null) {
  const { nats, location, tls, plainHttpFrom, keylessFrom, trustedProxies, targets } = config;
  const but = targets.deny.length > 0 ? ` but ${prefixes(targets.deny)}` : "";
  const also = targets.allow.length > 0 ? ` and ${prefixes(targets.allow)}` : "";
  const whole = `any address${but}, private ones included (SIXSCOPE_TARGETS=any)`;
  const probe = `may probe ${targets.mode === "any" ? whole : `global addresses${also}${but}`}`;
  const asked = nats && location ? [`whoever asks ${location} at NATS ${probe}`] : [];
  const refusing = refusingListeners(config);
  const open = others(config.listen).filter((address) => !refusing.includes(address));
  const scraped = others(config.metricsListen);
  const proxies = trustedProxies.prefixes.map(formatPrefix);
  const through = proxies.length > 0 ? [`anyone behind the proxies at ${listText(proxies)}`] : [];
  const plain = plainHttpFrom.length > 0 ? [`clients in ${prefixes(plainHttpFrom)}`] : [];
  const near = [...through, ...(open.length > 0 ? plain : [])].join(" and ") || "this machine";
  const all = `anyone who reaches ${addresses(open)}, also from the Internet,`;
  const isPublic = open.length > 0 && tls !== null;
  const holders =
    keys === 0 ? "holders of keys (there are none)" : `holders of ${plural(keys ?? 0, "key")}`;
  const clauses = [
    `${isPublic ? all : near} may look up names`,
    `${holders} ${probe}`,
    ...(keylessFrom.length > 0 ? [`so may clients in ${prefixes(keylessFrom)} without a key`] : []),
    ...(scraped.length > 0
      ? [`whoever reaches ${addresses(scraped)} may read metrics and probe without a key`]
      : []),
  ];
  const risks: Risk[] = Object.entries(LISTS).flatMap(([variable, [listOf, what]]) => {
    const [wide, narrow] = [
      listOf(config).filter(isWide),
      listOf(config).filter((one) => !isWide(one)),
    ];
    const text = `${prefixes(wide)} is not a network but the Internet, so ${what}`;
    const advice = `name only your own networks in ${variable}`;
    return wide.length === 0
      ? []
      : [{ variable, text, advice, instead: narrow.map(formatPrefix).join() }];
  });
  const risk = (variable: string, instead: string | null, text: string, advice: string) =>
    risks.push({ variable, instead, text, advice });
  if (isPublic && targets.mode === "any" && targets.deny.length === 0) {
    risk(
      "SIXSCOPE_TARGETS",
      "global",
      `any holder of a key can probe private networks from here, and other machines reach ${addresses(open)}`,
      "set SIXSCOPE_TARGETS=global, or deny your networks",
    );
  }
  for (const address of refusing) {
    const text = `${formatListenAddress(address)} refuses every other machine, because it speaks plain HTTP`;
    risk("SIXSCOPE_LISTEN", null, text, REFUSING_ADVICE);
  }
  if (scraped.length > 0) {
    const local = config.metricsListen.map((address) =>
      address.kind === "tcp" && !isLoopback(address)
        ? `localhost:${address.port}`
        : formatListenAddress(address),
    );
    risk(
      "SIXSCOPE_METRICS_LISTEN",
      local.join(),
      `every machine that reaches ${addresses(scraped)} gets metrics and can probe without a key`,
      "listen on localhost, or let a firewall pass Prometheus alone",
    );
  }
  return { sentence: (keys === null ? asked : [...clauses, ...asked]).join("; "), risks };
}

/** The lists of networks, and what each lets everyone do if it has all of the Internet. */
const LISTS: Readonly<Record<string, readonly [(config: Config) => readonly Prefix[], string]>> = {
  SIXSCOPE_KEYLESS_FROM: [({ keylessFrom }) => keylessFrom, "everyone may probe without a key"],
  SIXSCOPE_PLAIN_HTTP_FROM: [
    ({ plainHttpFrom }) => plainHttpFrom,
    "others can read API keys on their way",
  ],
  SIXSCOPE_TRUSTED_PROXIES: [
    ({ trustedProxies }) => trustedProxies.prefixes,
    "everyone can pass for any client",
  ],
  SIXSCOPE_TARGETS_ALLOW: [
    ({ targets }) => (targets.mode === "any" ? [] : targets.allow),
    "SIXSCOPE_TARGETS=global forbids nothing",
  ],
};

/** True for a prefix wider than a registry gives to one network; private networks begin with `f`. */
function isWide(prefix: Prefix): boolean {
  const isShort = prefix.length < (prefix.network.version === 4 ? 8 : 12);
  return isShort && !formatPrefix(prefix).startsWith("f");
}

const others = (list: readonly ListenAddress[]) => list.filter((address) => !isLoopback(address));
const prefixes = (list: readonly Prefix[]) => listText(list.map(formatPrefix));
const addresses = (list: readonly ListenAddress[]) => listText(list.map(formatListenAddress));
