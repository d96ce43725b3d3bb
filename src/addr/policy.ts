import { type AddressType, classifyIpv6, typeEntry } from "./classify.ts";
import {
  carriedAddresses,
  type EmbeddedIpv4,
  embeddedIpv4,
  localNat64Candidates,
} from "./embedded.ts";
import { formatIp, type IpAddress } from "./ip.ts";
import type { Ipv4Address } from "./ipv4.ts";
import type { Ipv6Address } from "./ipv6.ts";
import { formatPrefix } from "./prefix.ts";
import { longestMatch, type PrefixList } from "./prefix-table.ts";
import { specialPurposeBlock } from "./registry.ts";

/**
 * Which targets an operator lets be probed. An IPv6 prefix judges the target itself, an IPv4 prefix
 * the IPv4 addresses that a target embeds, or may embed where it is one of a local translator.
 */
export interface TargetPolicy {
  /** `any`: every unicast address. `global`: globally reachable ones, the embedded IPv4 addresses included. */
  readonly mode: "any" | "global";
  /** Wins over `mode`. An IPv4 prefix speaks for the embedded address only, not for the IPv6 address around it. */
  readonly allow: PrefixList;
  /** Wins over `allow` and `mode`. */
  readonly deny: PrefixList;
}

/** Whether a target may be probed, and if not, which rule refused which address. */
export type TargetVerdict =
  | { readonly allowed: true }
  | {
      readonly allowed: false;
      /** `unicast`: multicast, unspecified and mapped addresses are no targets. `deny`: a denied prefix. `global`: not globally reachable. */
      readonly rule: "unicast" | "deny" | "global";
      /** The address that was refused: the target, or one that it embeds. */
      readonly ip: IpAddress;
      /** A clause to put behind the target: `it embeds 10.0.0.1 (Nat64), which is Private-Use (10.0.0.0/8, RFC 1918)`. */
      readonly why: string;
    };

/** Multicast reaches many, `::` nobody, and a mapped address would be sent to over IPv4. */
const NEVER_TARGETS: ReadonlySet<AddressType> = new Set(["Multicast", "Unspecified", "IPv4Mapped"]);

/** An address on trial: the target itself, or an IPv4 address that it embeds. */
interface Subject {
  readonly ip: IpAddress;
  /** How a clause about it begins. */
  readonly clause: string;
}

/**
 * The whole decision on a target: multicast, unspecified and mapped ones never, then deny over allow over mode.
 * Low bits that look like an embedded address can be chosen by anybody, so an allowed IPv4 prefix
 * lifts only the objection to that IPv4 address.
 */
export function judgeTarget(target: Ipv6Address, policy: TargetPolicy): TargetVerdict {
  const type = classifyIpv6(target);
  if (NEVER_TARGETS.has(type)) {
    return refuse("unicast", target, `no IPv6 host has an address of type ${type}`);
  }
  const self: Subject = { ip: target, clause: "it" };
  const embedded = embeddedIpv4(target).flatMap(subjectsOf);
  const subjects = [self, ...embedded, ...localNat64Candidates(target).map(candidateSubject)];
  for (const { ip, clause } of subjects) {
    const denied = longestMatch(policy.deny, ip);
    if (denied !== null) {
      return refuse("deny", ip, `${clause} lies in the denied ${formatPrefix(denied.prefix)}`);
    }
  }
  if (policy.mode === "any" || longestMatch(policy.allow, target) !== null) {
    return { allowed: true };
  }
  for (const { ip, clause } of subjects) {
    const obstacle = longestMatch(policy.allow, ip) === null ? obstacleTo(ip) : null;
    if (obstacle !== null) return refuse("global", ip, `${clause} is ${obstacle}`);
  }
  return { allowed: true };
}

function refuse(rule: "unicast" | "deny" | "global", ip: IpAddress, why: string): TargetVerdict {
  return { allowed: false, rule, ip, why };
}

function subjectsOf(embedded: EmbeddedIpv4): readonly Subject[] {
  return carriedAddresses(embedded).map((ip) => ({
    ip,
    clause: `it embeds ${formatIp(ip)} (${embedded.mechanism}), which`,
  }));
}

function candidateSubject(ip: Ipv4Address): Subject {
  return { ip, clause: `it may embed ${formatIp(ip)} (Nat64Local), which` };
}

/** What keeps the address itself from being reached globally, whatever it embeds; null for nothing. */
function obstacleTo(ip: IpAddress): string | null {
  const row = specialPurposeBlock(ip);
  if (row !== null) {
    // N/A stands at Teredo and 6to4: whether they are reachable is decided by what they embed.
    if (row.flags !== null && row.flags.globallyReachable !== false) return null;
    return `${row.name} (${row.block}, RFC ${row.rfcs[0]})`;
  }
  if (ip.version === 4) return isIpv4Multicast(ip) ? "Multicast (224.0.0.0/4, RFC 5771)" : null;
  const { type, block, rfc } = typeEntry(ip);
  return type === "GlobalUnicast" ? null : `${type} (${block}, RFC ${rfc})`;
}

/** Multicast has a registry of its own: 224.0.0.0/4, RFC 5771 section 3. */
function isIpv4Multicast({ word }: Ipv4Address): boolean {
  return word >>> 28 === 0xe;
}
