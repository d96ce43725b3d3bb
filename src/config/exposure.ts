import { formatPrefix, type Prefix } from "../addr/prefix.ts";
import { listText } from "../util/text.ts";
import { formatListenAddress, isLoopback, type ListenAddress } from "./listen-address.ts";
import type { Config } from "./settings.ts";

/**
 * One sentence about everyone's rights by the settings, and the risks: settings that let others do more, or less, than
 * most operators intend, each with a clause and advice.
 *
 * @param keys the number of valid API keys, if it is known; null for an agent, which serves no HTTP API
 */
export function exposureOf(config: Config, keys: number | null | undefined) {
  const { nats, location, tls, plainHttpFrom, keylessFrom, trustedProxies, targets } = config;
  const except = targets.deny.length > 0 ? ` but ${prefixes(targets.deny)}` : "";
  const plus = targets.allow.length > 0 ? ` and ${prefixes(targets.allow)}` : "";
  const anyAddress = `any address${except}, private ones included (SIXSCOPE_TARGETS=any)`;
  const probes = `probes of ${targets.mode === "any" ? anyAddress : `global addresses${plus}${except}`}`;
  const atNats = nats && location ? [`through ${location} at NATS, ${probes}`] : [];
  const reached = others(config.listen);
  // The service has only plain HTTP, and neither a proxy nor a client may use it.
  const isRefusing = tls === null && trustedProxies.prefixes.length + plainHttpFrom.length === 0;
  const [open, refusing] = isRefusing ? [[], reached] : [reached, []];
  const scraped = others(config.metricsListen);
  const through = of(trustedProxies.prefixes, (list) => `anyone behind the proxies at ${list}`);
  const plain = open.length > 0 ? of(plainHttpFrom, (list) => `clients in ${list}`) : [];
  const isPublic = open.length > 0 && tls !== null;
  const visitors = isPublic
    ? `anyone who reaches ${addresses(open)}, also from the Internet`
    : [...through, ...plain].join(" and ") || "this machine";
  const counted = keys ? ` (${keys} valid)` : keys === 0 ? " (there are none)" : "";
  const clauses = [
    `without a key, lookups from ${visitors}`,
    `with a key${counted}, ${probes}`,
    ...of(keylessFrom, (list) => `without a key, the same from clients in ${list}`),
  ];
  const byOthers = [
    ...(scraped.length > 0
      ? [`without a key, metrics and probes for whoever reaches ${addresses(scraped)}`]
      : []),
    ...atNats,
  ];
  const allowed = targets.mode === "any" ? [] : targets.allow;
  const lists: readonly (readonly [string, readonly Prefix[], string])[] = [
    ["SIXSCOPE_KEYLESS_FROM", keylessFrom, "everyone may probe without a key"],
    ["SIXSCOPE_PLAIN_HTTP_FROM", plainHttpFrom, "others can read API keys on their way"],
    ["SIXSCOPE_TRUSTED_PROXIES", trustedProxies.prefixes, "everyone can pass for any client"],
    ["SIXSCOPE_TARGETS_ALLOW", allowed, "any target is allowed"],
  ];
  const risks = lists.flatMap(([variable, list, consequence]) =>
    of(list.filter(isWide), (wide) => {
      const text = `${wide} is not a network but the Internet, so ${consequence}`;
      return { variable, text, advice: "name only your own networks" };
    }),
  );
  if (isPublic && targets.mode === "any" && targets.deny.length === 0) {
    const text = `other machines reach ${addresses(open)}, and holders of keys may probe private networks from here`;
    const advice = "set SIXSCOPE_TARGETS=global, or deny your networks";
    risks.push({ variable: "SIXSCOPE_TARGETS", text, advice });
  }
  if (refusing.length > 0) {
    const text = `${addresses(refusing)} refuses every other machine, because it speaks plain HTTP`;
    const advice =
      "set SIXSCOPE_TLS_CERT and SIXSCOPE_TLS_KEY, or name your proxy in SIXSCOPE_TRUSTED_PROXIES, or a closed network in SIXSCOPE_PLAIN_HTTP_FROM";
    risks.push({ variable: "SIXSCOPE_LISTEN", text, advice });
  }
  if (scraped.length > 0) {
    const text = `every machine that reaches ${addresses(scraped)} may read metrics and probe without a key`;
    const advice = "listen on localhost, or let a firewall pass Prometheus alone";
    risks.push({ variable: "SIXSCOPE_METRICS_LISTEN", text, advice });
  }
  return { sentence: [...(keys === null ? [] : clauses), ...byOthers].join("; "), risks };
}

/** True for a prefix wider than a registry gives to one network; private networks begin with `f`. */
function isWide(prefix: Prefix): boolean {
  const isShort = prefix.length < (prefix.network.version === 4 ? 8 : 12);
  return isShort && !formatPrefix(prefix).startsWith("f");
}

const others = (list: readonly ListenAddress[]) => list.filter((address) => !isLoopback(address));
/** A list with a value about some networks, empty without networks. */
const of = <T>(list: readonly Prefix[], about: (text: string) => T): T[] =>
  list.length > 0 ? [about(prefixes(list))] : [];
const prefixes = (list: readonly Prefix[]) => listText(list.map(formatPrefix));
const addresses = (list: readonly ListenAddress[]) => listText(list.map(formatListenAddress));
