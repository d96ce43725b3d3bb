import { z } from "zod";
import { RESOLVER_NAMES, type ResolverName } from "../config/settings.ts";
import type { DnsClient } from "../dns/client.ts";
import { parseHostname } from "../dns/hostname.ts";
import { RECORD_TYPES } from "../dns/record.ts";
import { endpoint } from "../http/endpoint.ts";
import { refusedHostname } from "../http/errors.ts";
import { choiceParameter, pathParameter } from "../http/parameters.ts";
import { extendedError, resolverName } from "../http/schemas.ts";
import { requireAnswer } from "./resolver-errors.ts";

export interface DnsDependencies {
  readonly resolvers: Readonly<Record<ResolverName, DnsClient>>;
}

/** `GET /dns/{hostname}`: the records of a name, as one resolver gives them. */
export const dns = endpoint(
  {
    path: "/dns/{hostname}",
    operationId: "queryDns",
    summary: "DNS records of a name",
    description:
      "First the CNAME chain in order, then the records asked for. A name that exists without a record of the asked type has an empty list.",
    needsKey: false,
    parameters: {
      hostname: pathParameter({
        // A dot alone is the root, and URL parsers take it away.
        whenEmpty: ".",
        description:
          "The name; beyond ASCII it is converted by UTS 46. With type PTR an IPv4 or IPv6 address may stand for its reverse name.",
        example: "www.example.com",
      }),
      type: choiceParameter(RECORD_TYPES, {
        default: "AAAA",
        description: "The type of the records asked for.",
        example: "AAAA",
      }),
      resolver: choiceParameter(RESOLVER_NAMES, {
        default: "resolver_a",
        description: "The resolver that is asked.",
        example: "resolver_a",
      }),
    },
    response: dnsResult,
    example: {
      hostname: "www.example.com",
      records: [
        { type: "CNAME", value: "web.example.com.", ttl: 300 },
        { type: "AAAA", value: "2001:db8::80", ttl: 300 },
      ],
      resolver: "resolver_a",
      queryTime: 6,
      details: {
        server: "[2001:db8::53]:53",
        transport: "udp",
        rcode: "NOERROR",
        authenticated: false,
        extendedErrors: [],
      },
    },
    errors: [
      "INVALID_ADDRESS",
      "INVALID_HOSTNAME",
      "HOSTNAME_NOT_FOUND",
      "RESOLVER_TIMEOUT",
      "RESOLVER_FAILURE",
    ],
  },
  ({ resolvers }: DnsDependencies) =>
    async ({ hostname, type, resolver }, context) => {
      const parsed = parseHostname(hostname, type);
      if (!parsed.ok) throw refusedHostname(hostname, parsed);
      const { signal } = context.req.raw;
      const outcome = await resolvers[resolver].query(parsed.name, type, { signal });
      const answer = requireAnswer(outcome, hostname, resolver);
      return {
        hostname,
        records: answer.records,
        resolver,
        queryTime: answer.queryTimeMs,
        details: {
          server: answer.server,
          transport: answer.transport,
          rcode: answer.rcode,
          authenticated: answer.authenticated,
          extendedErrors: answer.extendedErrors,
        },
      };
    },
);

function dnsResult() {
  const record = z
    .strictObject({
      type: z.enum(RECORD_TYPES).describe("The record's type."),
      value: z.string().describe("The data in the presentation form of RFC 1035."),
      ttl: z.int().min(0).max(0xffff_ffff).describe("Seconds that it may be kept."),
    })
    .meta({ id: "DnsRecord", description: "A record of a name." });
  return z
    .strictObject({
      hostname: z.string().describe("The name as it was sent."),
      records: z.array(record).describe("The CNAME chain in order, then the records asked for."),
      resolver: resolverName(),
      queryTime: z.int().min(0).describe("Milliseconds from the question to the answer."),
      details: z.strictObject({
        server: z.string().describe("Address and port of the server that answered."),
        transport: z.enum(["udp", "tcp"]).describe("What the answer came over."),
        rcode: z.string().describe("The response code's name."),
        authenticated: z
          .boolean()
          .describe("Whether the server claims to have checked the answer by DNSSEC."),
        extendedErrors: z.array(extendedError()).describe("What the server says about the answer."),
      }),
    })
    .meta({ id: "DnsResult", description: "The records of a name, as one resolver gives them." });
}
