import { z } from "zod";
import { RESOLVER_NAMES, type ResolverName } from "../config/settings.ts";
import { QUERY_TIMEOUT_MS } from "../dns/client.ts";
import { learnTranslators, translationsIn } from "../dns/dns64.ts";
import { parseHostname } from "../dns/hostname.ts";
import type { QuestionFlags } from "../dns/message.ts";
import { type DnsOutcome, isDecisive } from "../dns/outcome.ts";
import { RECORD_TYPES, tryParseRecordType } from "../dns/record.ts";
import { comparison, dnsDetails, dnsRecord, dnssecVerdict } from "../http/dns-schemas.ts";
import { ApiError } from "../http/errors.ts";
import { choiceParameter } from "../http/parameters.ts";
import { atLocation, once, resolverName, textSchema } from "../http/schemas.ts";
import { locatable } from "../locations/locatable.ts";
import { compareReplies } from "./dns-comparison.ts";
import { detailsOf, type Reply, requireAnswer } from "./dns-reply.ts";

/** URL parsers remove a lone dot from a path, also if it is written as `%2E`. */
const EMPTY = "it is empty, as URLs drop a lone dot (the root is written as %E3%80%82)";

const typeSchema = once(() =>
  z
    .string()
    .transform((text) => tryParseRecordType(text) ?? "")
    .pipe(z.union([z.enum(RECORD_TYPES), z.templateLiteral(["TYPE", z.int().min(1)])]))
    .prefault("AAAA"),
);

/** `GET /dns/{hostname}`: the records of a name, from one resolver. */
export const dns = locatable({
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
      whenEmpty: "",
      description:
        "The name; if it is not ASCII, it is converted by UTS 46. A name that is not a host name is written as answers show it, such as `we\\.ird.example.`. With type PTR, an IPv4 or IPv6 address means its reverse name.",
      example: "www.example.com",
    },
    type: {
      in: "query",
      schema: typeSchema,
      bounds: { allowed: RECORD_TYPES },
      expected: `one of ${RECORD_TYPES.join(", ")}, or TYPE and the number of another type`,
      description: "The type of the records, in upper or lower case.",
      example: "AAAA",
    },
    resolver: choiceParameter([...RESOLVER_NAMES, "all"], {
      default: "resolver_a",
      description:
        "The resolver to query. With `all`, `details` compares all three, and the rest is the answer of `resolver_a`.",
      example: "resolver_a",
    }),
    dnssec: choiceParameter(["no", "yes"], {
      default: "no",
      description: "Whether to ask for signatures and for the resolver's DNSSEC verdict.",
      example: "no",
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
      question: { name: "www.example.com.", type: "AAAA" },
      server: "[2001:db8::53]:53",
      transport: "udp",
      rcode: "NOERROR",
      authenticated: false,
      extendedErrors: [],
      attempts: [{ server: "[2001:db8::53]:53", transport: "udp", ms: 6, outcome: "NOERROR" }],
    },
  },
  errors: [
    "INVALID_ADDRESS",
    "INVALID_HOSTNAME",
    "HOSTNAME_NOT_FOUND",
    "RESOLVER_TIMEOUT",
    "RESOLVER_FAILURE",
  ],
  async handle({ hostname, type, resolver, dnssec }, { signal, allowSeconds }, { resolvers }) {
    const parsed = parseHostname(hostname, type);
    if (!parsed.ok) {
      throw parsed.code === "INVALID_ADDRESS"
        ? new ApiError("INVALID_ADDRESS", { address: hostname }, "IPv4 or IPv6")
        : new ApiError("INVALID_HOSTNAME", { hostname, reason: hostname ? parsed.reason : EMPTY });
    }
    const ask = async (name: ResolverName): Promise<Reply> => {
      const client = resolvers[name];
      const query = (flags: QuestionFlags) => client.query(parsed.name, type, { signal, ...flags });
      if (type === "AAAA") learnTranslators(client);
      if (dnssec === "yes") allowSeconds((2 * QUERY_TIMEOUT_MS) / 1000);
      const outcome = await query(dnssec === "yes" ? { dnssec: true } : {});
      return {
        resolver: name,
        outcome,
        translations: translationsIn(client, outcome),
        ...(dnssec === "yes" && { verdict: await verdictOn(outcome, query) }),
      };
    };
    const asked = resolver === "all" ? RESOLVER_NAMES : ([resolver] as const);
    const replies = await Promise.all(asked.map(ask));
    const [first] = replies as [Reply, ...Reply[]];
    const comparison = resolver === "all" && compareReplies(replies);
    const { records, queryTimeMs } = requireAnswer(first, hostname, comparison || {});
    return {
      hostname,
      records,
      resolver: first.resolver,
      queryTime: queryTimeMs,
      details: { ...detailsOf(first), ...comparison },
    };
  },
});

/** The records of a name. */
export type DnsResult = z.output<ReturnType<typeof dnsResult>>;

/** The resolver's verdict: bogus if it fails, and answers as soon as it must not check. */
async function verdictOn(
  outcome: DnsOutcome,
  query: (flags: QuestionFlags) => Promise<DnsOutcome>,
): Promise<Required<Reply>["verdict"]> {
  if (isDecisive(outcome)) {
    return "authenticated" in outcome && outcome.authenticated ? "secure" : "insecure";
  }
  if (outcome.kind !== "failure") return "unreachable";
  const unchecked = await query({ dnssec: true, checkingDisabled: true });
  return isDecisive(unchecked) ? "bogus" : "unreachable";
}

/** The schema of the result. */
export function dnsResult() {
  return z
    .strictObject({
      hostname: z.string().describe("The name as it was sent."),
      records: z
        .array(dnsRecord())
        .describe("The CNAME chain in order, then the records of the requested type."),
      resolver: resolverName(),
      queryTime: z.int().min(0).describe("Milliseconds from the query to the answer."),
      details: z.strictObject({
        ...atLocation(),
        ...dnsDetails(),
        dnssec: dnssecVerdict().exactOptional(),
        ...comparison(),
      }),
    })
    .meta({ id: "DnsResult", description: "The records of a name, from one resolver." });
}
