import { type AddressType, typeEntry } from "./classify.ts";
import { embeddedIpv4, localNat64Candidates, MECHANISM_NAMES } from "./embedded.ts";
import { formatIp, type IpAddress } from "./ip.ts";
import type { Ipv6Address } from "./ipv6.ts";
import { formatPrefix, type Prefix, prefixContains } from "./prefix.ts";
import { SPECIAL_PURPOSE_BLOCKS } from "./registry.ts";

/**
 * The targets that an operator allows. An IPv6 prefix is about the target itself, an IPv4 prefix about the
 * IPv4 addresses that a target embeds, or may embed if there is a local translator.
 */
export interface TargetPolicy {
  /** `any`: every unicast address. `global`: globally reachable ones, including their embedded IPv4 addresses. */
  readonly mode: "any" | "global";
  /** Wins over `mode`. An IPv4 prefix allows only the embedded address, not the IPv6 address around it. */
  readonly allow: readonly Prefix[];
  /** Wins over `allow` and `mode`. */
  readonly deny: readonly Prefix[];
  /** A policy that must allow the target too: that of the service for which an agent works. */
  readonly and?: TargetPolicy;
}

/** The types of addresses that no policy allows, in words. */
export const NEVER_TARGETS: Readonly<Partial<Record<AddressType, string>>> = {
  Multicast: "a multicast address: a group, not one host",
  Unspecified: "the unspecified address: no host has it",
  IPv4Mapped: "an IPv4-mapped address: packets to it would be IPv4",
};

/**
 * The reason why a target must not be probed, or connected to over IPv4; null if it may be. No policy allows multicast,
 * unspecified and mapped addresses; otherwise deny wins over allow, and allow over mode. Anyone can choose low bits that
 * look like an embedded address, so an allowed IPv4 prefix lifts only the objection to that IPv4 address.
 *
 * @returns a clause: `it embeds 10.0.0.1 (NAT64), which is Private-Use (10.0.0.0/8, RFC 1918)`
 */
export function objectionTo(target: IpAddress, policy: TargetPolicy): string | null {
  const never = target.version === 6 ? NEVER_TARGETS[typeEntry(target).type] : undefined;
  if (never !== undefined) return `it is ${never}`;
  const parts = [{ ip: target, subject: "it" }, ...(target.version === 6 ? partsOf(target) : [])];
  for (const { ip, subject } of parts) {
    const denied = policy.deny.find((prefix) => prefixContains(prefix, ip));
    if (denied !== undefined) return `${subject} is in the denied prefix ${formatPrefix(denied)}`;
  }
  const isAllowed = (ip: IpAddress) => policy.allow.some((prefix) => prefixContains(prefix, ip));
  if (policy.mode !== "any" && !isAllowed(target)) {
    for (const { ip, subject } of parts) {
      const special = isAllowed(ip) ? null : notGlobal(ip);
      if (special !== null) return `${subject} is ${special}`;
    }
  }
  return policy.and === undefined ? null : objectionTo(target, policy.and);
}

/** The IPv4 addresses that a target embeds, and those that it may embed. */
function partsOf(target: Ipv6Address) {
  const embedded = embeddedIpv4(target).flatMap((each) =>
    (each.mechanism === "teredo" ? [each.client, each.server] : [each.address]).map((ip) => ({
      ip,
      subject: `it embeds ${formatIp(ip)} (${MECHANISM_NAMES[each.mechanism]}), which`,
    })),
  );
  const candidates = localNat64Candidates(target).map((ip) => ({
    ip,
    subject: `it may embed ${formatIp(ip)} (local-use NAT64), which`,
  }));
  return [...embedded, ...candidates];
}

/** The block that makes an address itself not globally reachable, whatever it embeds; null if none does. */
export function notGlobal(ip: IpAddress): string | null {
  const row = SPECIAL_PURPOSE_BLOCKS.find(ip);
  if (row !== undefined) {
    // Teredo and 6to4 are N/A: their reachability depends on the embedded address.
    if (row.flags !== undefined && row.flags.globallyReachable !== false) return null;
    return `${row.name} (${row.block}, RFC ${row.rfcs[0]})`;
  }
  if (ip.version === 4) {
    // Multicast has a registry of its own; RFC 5771 section 3.
    return ip.word >>> 28 === 0xe ? "Multicast (224.0.0.0/4, RFC 5771)" : null;
  }
  const { type, block, rfc } = typeEntry(ip);
  return type === "GlobalUnicast" ? null : `${type} (${block}, RFC ${rfc})`;
}
