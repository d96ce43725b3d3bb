import type { Ipv6Address } from "./ipv6.ts";
import { parsePrefix, prefixContains } from "./prefix.ts";

/** Prefixes with precedence and label, the longest first; RFC 6724 section 2.1. Mapped addresses are no targets. */
const POLICIES = [
  [parsePrefix("::1/128"), 50, 0],
  [parsePrefix("::/96"), 1, 3],
  [parsePrefix("2001::/32"), 5, 5],
  [parsePrefix("2002::/16"), 30, 2],
  [parsePrefix("3ffe::/16"), 1, 12],
  [parsePrefix("fec0::/10"), 1, 11],
  [parsePrefix("fc00::/7"), 3, 13],
  [parsePrefix("::/0"), 40, 1],
] as const;

const policyOf = (address: Ipv6Address) =>
  POLICIES.find(([prefix]) => prefixContains(prefix, address)) ?? POLICIES[7];

/**
 * The numbers by which destinations are preferred, the greatest first: RFC 6724 section 6, rules 1, 5, 6 and 9.
 * Those about scopes decide nothing between destinations that need no zone.
 *
 * @param source the address with which this machine would send there; null if it cannot
 */
export function preferenceOf(address: Ipv6Address, source: Ipv6Address | null): number {
  const [, precedence, label] = policyOf(address);
  if (source === null) return precedence;
  const isSameLabel = policyOf(source)[2] === label;
  const first = Math.clz32(address.word0 ^ source.word0);
  const commonBits = first < 32 ? first : 32 + Math.clz32(address.word1 ^ source.word1);
  return ((isSameLabel ? 128 : 64) + precedence) * 128 + commonBits;
}
