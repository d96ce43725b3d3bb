import { classifyIpv6 } from "./addr/classify.ts";
import { formatIpv6 } from "./addr/format.ts";
import { looksLikeIpv4 } from "./addr/ip.ts";
import { type Ipv6Address, tryParseIpv6 } from "./addr/ipv6.ts";
import { judgeTarget } from "./addr/policy.ts";
import { tryParseZoned } from "./addr/zone.ts";
import type { Config, ResolverName } from "./config.ts";
import type { DnsClient } from "./dns/client.ts";
import { parseHostname } from "./dns/hostname.ts";
import { lookupAddresses } from "./dns/lookup.ts";
import { ApiError, invalidAddress, quote, refusedHostname } from "./http/errors.ts";
import { requireAnswer } from "./http/resolver-errors.ts";
import { interfaceIndex } from "./icmp/interfaces.ts";

export interface TargetDependencies {
  readonly config: Pick<Config, "targets" | "targetResolver">;
  readonly resolvers: Readonly<Record<ResolverName, DnsClient>>;
}

/** Where probes go. */
export interface Destination {
  readonly address: Ipv6Address;
  /** Index of the interface that a link-local address is meant on, 0 for any other address. */
  readonly scopeId: number;
}

/** What a target says by itself; no address where it is a name. */
interface ParsedTarget {
  readonly address: Ipv6Address | null;
  /** The name of an interface, behind a link-local address. */
  readonly zone: string | null;
}

/**
 * Turns what a caller wants probed into the one address that may be probed.
 *
 * A name is resolved once; what the policy has judged is what gets probed, so that a name cannot
 * change its address in between.
 *
 * @throws ApiError INVALID_ADDRESS, INVALID_HOSTNAME, INVALID_PARAMETER for a zone, TARGET_NOT_ALLOWED,
 *   NO_IPV6_ADDRESS, or what the resolver's failure calls for
 */
export async function resolveTarget(
  target: string,
  { config, resolvers }: TargetDependencies,
  signal: AbortSignal,
): Promise<Destination> {
  const { address: given, zone } = parseTarget(target);
  const address = given ?? (await lookUp(target, config, resolvers, signal));
  const type = classifyIpv6(address);
  const verdict = judgeTarget(address, config.targets);
  if (!verdict.allowed) {
    const ip = formatIpv6(address);
    throw new ApiError(
      "TARGET_NOT_ALLOWED",
      `${ip} may not be probed here, for ${verdict.why}; choose another target.`,
      { target, ip, type },
    );
  }
  return { address, scopeId: type === "LinkLocal" ? scopeOf(target, zone) : 0 };
}

/** An address that is no IPv6 address is an error; a zone stands behind link-local addresses only. */
export function parseTarget(target: string): ParsedTarget {
  const address = tryParseIpv6(target);
  if (address !== null) return { address, zone: null };
  const zoned = tryParseZoned(target);
  if (zoned !== null) return zoned;
  if (target.includes(":") || looksLikeIpv4(target)) throw invalidAddress(target);
  return { address: null, zone: null };
}

/** A link-local address says nothing without the link: every interface has the same ones. */
function scopeOf(target: string, zone: string | null): number {
  const scopeId = zone === null ? null : interfaceIndex(zone);
  if (scopeId !== null) return scopeId;
  const what =
    zone === null ? "is link-local and names no interface" : `names ${quote(zone)}, which is none`;
  throw new ApiError(
    "INVALID_PARAMETER",
    `${quote(target)} ${what}; add one of this machine's interfaces to the address, as in fe80::1%25eth0.`,
    { parameter: "target", value: target },
  );
}

async function lookUp(
  target: string,
  config: TargetDependencies["config"],
  resolvers: TargetDependencies["resolvers"],
  signal: AbortSignal,
): Promise<Ipv6Address> {
  const resolver = config.targetResolver;
  const parsed = parseHostname(target, "AAAA");
  if (!parsed.ok) throw refusedHostname(target, parsed);
  const { outcome, addresses } = await lookupAddresses(resolvers[resolver], parsed.name, {
    signal,
  });
  requireAnswer(outcome, target, resolver);
  const [address] = addresses;
  if (address !== undefined) return address;
  throw new ApiError(
    "NO_IPV6_ADDRESS",
    `${quote(target)} exists and has no AAAA record, so it cannot be reached over IPv6; choose a target that has one.`,
    { hostname: target, resolver },
  );
}
