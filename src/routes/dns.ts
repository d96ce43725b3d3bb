import type { Handler } from "hono";
import { RESOLVER_NAMES, type ResolverName } from "../config.ts";
import type { DnsClient } from "../dns/client.ts";
import { parseHostname } from "../dns/hostname.ts";
import { RECORD_TYPES } from "../dns/record.ts";
import type { AppEnv } from "../http/environment.ts";
import { invalidHostname } from "../http/errors.ts";
import { choiceParameter, readParameters } from "../http/parameters.ts";
import { requireAnswer } from "../http/resolver-errors.ts";

/** The query parameters of `/dns/{hostname}`. */
const parameters = {
  type: choiceParameter(RECORD_TYPES, "AAAA"),
  resolver: choiceParameter(RESOLVER_NAMES, "resolver_a"),
};

export interface DnsDependencies {
  readonly resolvers: Readonly<Record<ResolverName, DnsClient>>;
}

/** `GET /dns/{hostname}`: the records of a name, as one resolver gives them. */
export function dnsRoute({ resolvers }: DnsDependencies): Handler<AppEnv> {
  return async (context) => {
    const hostname = context.req.param("hostname") ?? "";
    const { type, resolver } = readParameters(context, parameters);
    const parsed = parseHostname(hostname, type);
    if (!parsed.ok) throw invalidHostname(hostname, parsed.reason);
    const { signal } = context.req.raw;
    const outcome = await resolvers[resolver].query(parsed.name, type, { signal });
    const answer = requireAnswer(outcome, hostname, resolver);
    return context.json({
      hostname,
      records: answer.records.map(({ type, value, ttl }) => ({ type, value, ttl })),
      resolver,
      queryTime: answer.queryTimeMs,
      details: {
        server: answer.server,
        transport: answer.transport,
        rcode: answer.rcode,
        authenticated: answer.authenticated,
        extendedErrors: answer.extendedErrors,
      },
    });
  };
}
