/** An nft ruleset that is one rule. */
export function nftRule(hook: "forward" | "input" | "output", rule: string): string {
  return [
    "flush ruleset",
    "table ip6 lab {",
    `chain ${hook} {`,
    `type filter hook ${hook} priority 0`,
    rule,
    "}",
    "}",
  ].join("\n");
}
