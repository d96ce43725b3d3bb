import { classifyIpv6 } from "../addr/classify.ts";
import { formatIpv6 } from "../addr/format.ts";
import { type Ipv6Address, tryParseIpv6, tryParseZoned } from "../addr/ipv6.ts";
import { objectionTo } from "../addr/policy.ts";
import type { Config, ResolverName } from "../config/settings.ts";
import type { DnsClient } from "../dns/client.ts";
import { parseHostname } from "../dns/hostname.ts";
import { lookupAddresses } from "../dns/lookup.ts";
import { ApiError, invalidAddress, refusedHostname } from "../http/errors.ts";
import { interfaceIndex } from "../icmp/interfaces.ts";
import { quote } from "../util/text.ts";
import { requireAnswer } from "./resolver-errors.ts";

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

/** What a caller wants probed, as far as its text alone tells. */
export type Target =
  | {
      readonly text: string;
      readonly address: Ipv6Address;
      /** The name of an interface, behind a link-local address. */
      readonly zone: string | null;
    }
  | {
      readonly text: string;
      /** What to ask the resolver for. */
      readonly name: string;
    };

/**
 * Reads an IPv6 address, with a zone where it is link-local, or a host name.
 *
 * @throws ApiError INVALID_ADDRESS, also for what looks like an address of any kind, INVALID_HOSTNAME
 */
export function parseTarget(text: string): Target {
  const address = tryParseIpv6(text);
  if (address !== null) return { text, address, zone: null };
  const zoned = tryParseZoned(text);
  if (zoned !== null) return { text, ...zoned };
  if (text.includes(":")) throw invalidAddress(text);
  const parsed = parseHostname(text, "AAAA");
  if (!parsed.ok) throw parsed.isAddress ? invalidAddress(text) : refusedHostname(text, parsed);
  return { text, name: parsed.name };
}

/**
 * Turns what a caller wants probed into the one address that may be probed.
 *
 * A name is resolved once; what the policy has judged is what gets probed, so that a name cannot
 * change its address in between.
 *
 * @throws ApiError INVALID_PARAMETER for a zone, TARGET_NOT_ALLOWED, NO_IPV6_ADDRESS, or what the
 *   resolver's failure calls for
 */
export async function resolveTarget(
  target: Target,
  dependencies: TargetDependencies,
  signal: AbortSignal,
): Promise<Destination> {
  const { address, zone } = "name" in target ? await lookUp(target, dependencies, signal) : target;
  const type = classifyIpv6(address);
  const objection = objectionTo(address, dependencies.config.targets);
  if (objection !== null) {
    const ip = formatIpv6(address);
    throw new ApiError(
      "TARGET_NOT_ALLOWED",
      `${ip} cannot be probed: ${objection}; choose another target.`,
      { target: target.text, ip, type },
    );
  }
  return { address, scopeId: type === "LinkLocal" ? scopeOf(target, address, zone) : 0 };
}

/** A link-local address says nothing without the link: every interface has the same ones. */
function scopeOf(target: Target, address: Ipv6Address, zone: string | null): number {
  const scopeId = zone === null ? null : interfaceIndex(zone);
  if (scopeId !== null) return scopeId;
  throw new ApiError(
    "INVALID_PARAMETER",
    `${quote(target.text)} ${whyNoScope(target, address, zone)}, as in fe80::1%25eth0.`,
    { parameter: "target", value: target.text },
  );
}

function whyNoScope(target: Target, address: Ipv6Address, zone: string | null): string {
  if (zone !== null) {
    return `names the zone ${quote(zone)}, which is no interface of this machine; name one that is`;
  }
  return "name" in target
    ? `has the link-local address ${formatIpv6(address)}, and a host name cannot say on which interface; give the address with one of this machine's interfaces`
    : "is link-local and names no interface; add one of this machine's to the address";
}

async function lookUp(
  { text, name }: Extract<Target, { name: string }>,
  { config, resolvers }: TargetDependencies,
  signal: AbortSignal,
): Promise<{ readonly address: Ipv6Address; readonly zone: null }> {
  const resolver = config.targetResolver;
  const { outcome, addresses } = await lookupAddresses(resolvers[resolver], name, { signal });
  requireAnswer(outcome, text, resolver);
  const [address] = addresses;
  if (address !== undefined) return { address, zone: null };
  throw new ApiError(
    "NO_IPV6_ADDRESS",
    `${quote(text)} exists and has no AAAA record, so it cannot be reached over IPv6; choose a target that has one.`,
    { hostname: text, resolver },
  );
}
