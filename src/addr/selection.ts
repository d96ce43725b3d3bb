import policies from "./default-policies.json" with { type: "json" };
import type { Ipv6Address } from "./ipv6.ts";
import { parsePrefix, prefixTable } from "./prefix.ts";

/** Prefixes with precedence and label; RFC 6724 section 2.1. Mapped addresses are no targets. */
const POLICIES = prefixTable(policies.map((row) => ({ ...row, prefix: parsePrefix(row.prefix) })));

/** The last row, ::/0, matches every address. */
const policyOf = (address: Ipv6Address) =>
  POLICIES.find(address) as (typeof POLICIES)["rows"][number];

/**
 * A number for each destination, the preferred one having the greatest: RFC 6724 section 6, rules 1, 5, 6 and 9.
 * The rules about scopes decide nothing between destinations that need no zone.
 *
 * @param source the address from which this machine would send there; null if it cannot
 */
export function preferenceOf(address: Ipv6Address, source: Ipv6Address | null): number {
  const { precedence, label } = policyOf(address);
  if (source === null) return precedence;
  const isSameLabel = policyOf(source).label === label;
  const first = Math.clz32(address.word0 ^ source.word0);
  const commonBits = first < 32 ? first : 32 + Math.clz32(address.word1 ^ source.word1);
  return ((isSameLabel ? 128 : 64) + precedence) * 128 + commonBits;
}
