import { classifyIpv6 } from "./addr/classify.ts";
import { formatIpv6 } from "./addr/format.ts";
import { looksLikeIpv4 } from "./addr/ip.ts";
import { type Ipv6Address, tryParseIpv6 } from "./addr/ipv6.ts";
import { judgeTarget } from "./addr/policy.ts";
import type { Config, ResolverName } from "./config.ts";
import type { DnsClient } from "./dns/client.ts";
import { parseHostname } from "./dns/hostname.ts";
import { lookupAddresses } from "./dns/lookup.ts";
import { ApiError, invalidAddress, invalidHostname, quote } from "./http/errors.ts";
import { requireAnswer } from "./http/resolver-errors.ts";

export interface TargetDependencies {
  readonly config: Pick<Config, "targets" | "targetResolver">;
  readonly resolvers: Readonly<Record<ResolverName, DnsClient>>;
}

/**
 * Turns what a caller wants probed into the one address that may be probed.
 *
 * A name is resolved once; what the policy has judged is what gets probed, so that a name cannot
 * change its address in between.
 *
 * @throws ApiError INVALID_ADDRESS, INVALID_HOSTNAME, TARGET_NOT_ALLOWED, NO_IPV6_ADDRESS, or what
 *   the resolver's failure calls for
 */
export async function resolveTarget(
  target: string,
  { config, resolvers }: TargetDependencies,
  signal: AbortSignal,
): Promise<Ipv6Address> {
  const address = parseTarget(target) ?? (await lookUp(target, config, resolvers, signal));
  const verdict = judgeTarget(address, config.targets);
  if (!verdict.allowed) {
    const ip = formatIpv6(address);
    const type = classifyIpv6(address);
    throw new ApiError(
      "TARGET_NOT_ALLOWED",
      `${ip} may not be probed here, for ${verdict.why}; choose another target.`,
      { target, ip, type },
    );
  }
  return address;
}

/** Null where the target is a name; an address that is no IPv6 address is an error. */
function parseTarget(target: string): Ipv6Address | null {
  const address = tryParseIpv6(target);
  if (address === null && (target.includes(":") || looksLikeIpv4(target))) {
    throw invalidAddress(target);
  }
  return address;
}

async function lookUp(
  target: string,
  config: TargetDependencies["config"],
  resolvers: TargetDependencies["resolvers"],
  signal: AbortSignal,
): Promise<Ipv6Address> {
  const resolver = config.targetResolver;
  const parsed = parseHostname(target, "AAAA");
  if (!parsed.ok) throw invalidHostname(target, parsed.reason);
  const { outcome, addresses } = await lookupAddresses(resolvers[resolver], parsed.name, {
    signal,
  });
  requireAnswer(outcome, target, resolver);
  const [address] = addresses;
  if (address !== undefined) return address;
  throw new ApiError(
    "NO_IPV6_ADDRESS",
    `${quote(target)} exists and has no AAAA record, so it cannot be reached over IPv6.`,
    { hostname: target, resolver },
  );
}
