import { z } from "zod";
import { RESOLVER_NAMES, type ResolverName } from "../config/settings.ts";
import type { DnsOutcome } from "../dns/client.ts";
import { parseHostname } from "../dns/hostname.ts";
import { withoutFinalDot } from "../dns/name.ts";
import { type DnsRecord, RECORD_TYPES } from "../dns/record.ts";
import { endpoint } from "../http/endpoint.ts";
import { ApiError, clientGone } from "../http/errors.ts";
import { choiceParameter } from "../http/parameters.ts";
import { extendedError, resolverName, textSchema } from "../http/schemas.ts";

/** `GET /dns/{hostname}`: the records of a name, from one resolver. */
export const dns = endpoint({
  path: "/dns/{hostname}",
  operationId: "queryDns",
  summary: "DNS records of a name",
  description:
    "First the CNAME chain in order, then the records of the requested type. The list is empty if the name exists without such records.",
  needsKey: false,
  parameters: {
    hostname: {
      in: "path",
      schema: textSchema,
      // URL parsers remove a single dot, which is the root.
      whenEmpty: ".",
      description:
        "The name; if it is not ASCII, it is converted by UTS 46. With type PTR, an IPv4 or IPv6 address means its reverse name.",
      example: "www.example.com",
    },
    type: choiceParameter(RECORD_TYPES, {
      default: "AAAA",
      description: "The type of the records.",
      example: "AAAA",
    }),
    resolver: choiceParameter(RESOLVER_NAMES, {
      default: "resolver_a",
      description: "The resolver to query.",
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
  async handle({ hostname, type, resolver }, { request: { signal } }, { resolvers }) {
    const parsed = parseHostname(hostname, type);
    if (!parsed.ok) {
      throw parsed.code === "INVALID_ADDRESS"
        ? new ApiError("INVALID_ADDRESS", { address: hostname }, "IPv4 or IPv6")
        : new ApiError("INVALID_HOSTNAME", { hostname, reason: parsed.reason });
    }
    const outcome = await resolvers[resolver].query(parsed.name, type, { signal });
    const { records, queryTimeMs, server, transport, rcode, authenticated, extendedErrors } =
      requireAnswer(outcome, hostname, resolver);
    return {
      hostname,
      records,
      resolver,
      queryTime: queryTimeMs,
      details: { server, transport, rcode, authenticated, extendedErrors },
    };
  },
});

type WithRecords = Extract<DnsOutcome, { readonly records: unknown }>;

/**
 * Passes through an answer, with or without a record of the requested type.
 *
 * @param hostname the name, or the address of a reverse name, as it was sent
 * @throws ApiError HOSTNAME_NOT_FOUND, RESOLVER_TIMEOUT or RESOLVER_FAILURE
 */
export function requireAnswer(
  outcome: DnsOutcome,
  hostname: string,
  resolver: ResolverName,
): WithRecords {
  const details = { hostname, resolver };
  switch (outcome.kind) {
    case "answer":
    case "no-data":
      return outcome;
    case "name-error":
      throw new ApiError("HOSTNAME_NOT_FOUND", details, endOfChain(outcome.records));
    case "timeout":
      throw new ApiError("RESOLVER_TIMEOUT", details);
    case "failure":
    case "malformed":
    case "unreachable": {
      const { rcode, extendedErrors } = outcome;
      throw new ApiError(
        "RESOLVER_FAILURE",
        { ...details, rcode, ...(extendedErrors.length > 0 && { extendedErrors }) },
        outcome.kind === "unreachable" ? outcome.reason : undefined,
      );
    }
    case "aborted":
      throw clientGone();
  }
}

/** The name that a CNAME chain leads to. */
function endOfChain(chain: readonly DnsRecord[]): string | undefined {
  const last = chain.at(-1);
  if (last?.type !== "CNAME") return undefined;
  return withoutFinalDot(last.value);
}

function dnsResult() {
  const record = z
    .strictObject({
      type: z.enum(RECORD_TYPES).describe("The record's type."),
      value: z.string().describe("The data in the presentation form of RFC 1035."),
      ttl: z.int().min(0).max(0xffff_ffff).describe("Seconds that it may be cached."),
    })
    .meta({ id: "DnsRecord", description: "A record of a name." });
  return z
    .strictObject({
      hostname: z.string().describe("The name as it was sent."),
      records: z
        .array(record)
        .describe("The CNAME chain in order, then the records of the requested type."),
      resolver: resolverName(),
      queryTime: z.int().min(0).describe("Milliseconds from the query to the answer."),
      details: z.strictObject({
        server: z.string().describe("Address and port of the server that answered."),
        transport: z.enum(["udp", "tcp"]).describe("The transport of the answer."),
        rcode: z.string().describe("The response code's name."),
        authenticated: z
          .boolean()
          .describe("Whether the server says that it validated the answer with DNSSEC."),
        extendedErrors: z.array(extendedError()).describe("The server's extended errors."),
      }),
    })
    .meta({ id: "DnsResult", description: "The records of a name, from one resolver." });
}
