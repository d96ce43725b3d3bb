import { extractNat64, nat64Prefixes } from "../addr/embedded.ts";
import { formatIpv4 } from "../addr/ipv4.ts";
import { tryParseIpv6 } from "../addr/ipv6.ts";
import { formatPrefix, type Prefix, parsePrefix, prefixContains } from "../addr/prefix.ts";
import { type Clock, systemClock } from "../util/clock.ts";
import { type DnsClient, lookupAddresses } from "./client.ts";
import { type DnsOutcome, isDecisive, valuesIn } from "./outcome.ts";

/** An address that leads to a translator from IPv6 to IPv4. */
export type Translation = NonNullable<ReturnType<typeof translationOf>>;

/** Milliseconds until a resolver is asked for its prefixes again. */
const REMEMBER_MS = 3_600_000;

/** The same for a resolver that did not answer. */
const RETRY_MS = 60_000;

/** A name whose only IPv6 addresses are those that resolvers synthesize; RFC 7050 section 8.2. */
const IPV4_ONLY = "ipv4only.arpa";

/** RFC 6052 section 2.1. */
const WELL_KNOWN = parsePrefix("64:ff9b::/96");

/** The prefixes of each resolver, and when to ask it again. */
const memories = new WeakMap<DnsClient, { prefixes: readonly Prefix[]; dueMs: number }>();

/**
 * Asks a resolver for its prefixes in the background, at most once an hour; call it together with a
 * question that the resolver gets anyway. Its last answer is valid until the next one.
 */
export function learnTranslators(client: DnsClient, clock: Clock = systemClock): void {
  const memory = memories.getOrInsert(client, { prefixes: [], dueMs: Number.NEGATIVE_INFINITY });
  if (clock.nowMs() < memory.dueMs) return;
  memory.dueMs = Number.POSITIVE_INFINITY;
  // An error shows in the other question too.
  void lookupAddresses(client, IPV4_ONLY)
    .catch(() => null)
    .then((found) => {
      const isAnswered = found !== null && isDecisive(found.outcome);
      if (isAnswered) memory.prefixes = nat64Prefixes(found.addresses);
      memory.dueMs = clock.nowMs() + (isAnswered ? REMEMBER_MS : RETRY_MS);
    });
}

/** The IPv4 address in an address with the well-known prefix or a known prefix of the resolver; null for any other. */
export function translationOf(client: DnsClient, ip: string) {
  const address = tryParseIpv6(ip);
  if (address === null) return null;
  const prefixes = [WELL_KNOWN, ...(memories.get(client)?.prefixes ?? [])];
  const prefix = prefixes.find((each) => prefixContains(each, address));
  if (prefix === undefined) return null;
  return {
    ip,
    /** The translator's prefix, in CIDR notation. */
    prefix: formatPrefix(prefix),
    /** The IPv4 address inside. */
    ipv4: formatIpv4(extractNat64(address, prefix.length)),
  };
}

/** The addresses in an answer of a resolver that lead to a translator. */
export function translationsIn(client: DnsClient, outcome: DnsOutcome): readonly Translation[] {
  return valuesIn(outcome, "AAAA").flatMap((value) => translationOf(client, value) ?? []);
}
