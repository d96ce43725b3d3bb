import { formatPrefix } from "../../addr/prefix.ts";
import { type Config, RESOLVER_NAMES } from "../../config/settings.ts";
import { createDnsClient } from "../../dns/client.ts";
import { askTranslators } from "../../dns/dns64.ts";
import { type Finding, trying } from "./finding.ts";
import { RESOLVER_TIMEOUT_MS } from "./machine.ts";

/** The DNS64 prefixes of each resolver that answers. */
export async function checkDns64(resolvers: Config["resolvers"]): Promise<readonly Finding[]> {
  const findings = await Promise.all(
    RESOLVER_NAMES.map(async (name) => {
      const client = createDnsClient({ servers: resolvers[name] });
      const prefixes = await askTranslators(client, { timeoutMs: RESOLVER_TIMEOUT_MS });
      // Another check reports a resolver that does not answer.
      if (prefixes === null) return [];
      const found = prefixes.map(formatPrefix).join(", ");
      const outcome = found ? `${found}, which leads to a translator (NAT64)` : "it has none";
      return [trying(`ask ${name} for its DNS64 prefix (RFC 7050)`).ok(outcome)];
    }),
  );
  return findings.flat();
}
