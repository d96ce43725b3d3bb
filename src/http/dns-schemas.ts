import { z } from "zod";
import { TRANSPORTS } from "../dns/sockets.ts";
import { extendedError, ipv4Text, ipv6Text, once, resolverName } from "./schemas.ts";

/** What a resolver can say about DNSSEC. */
export const DNSSEC_VERDICTS = ["secure", "insecure", "bogus", "unreachable"] as const;

/** What can differ between the replies of resolvers. */
export const DIFFERENCES = ["records", "ttl", "rcode", "dnssec"] as const;

/** The kinds of outcome that a caller can see. */
const OUTCOMES = [
  "answer",
  "no-data",
  "name-error",
  "failure",
  "malformed",
  "unreachable",
  "timeout",
] as const;

const milliseconds = () => z.int().min(0);

/** A DNS record of an answer. */
export const dnsRecord = once(() =>
  z
    .strictObject({
      type: z.string().describe("The record's type."),
      value: z.string().describe("The data in presentation form, as `dig` prints it."),
      ttl: z.int().min(0).max(0xffff_ffff).describe("Seconds that it may be cached."),
    })
    .meta({ id: "DnsRecord", description: "A record of a name." }),
);

const dnsAttempt = once(() =>
  z
    .strictObject({
      server: z.string().describe("The server's address and port."),
      transport: z.enum(TRANSPORTS).describe("The transport that was tried last."),
      ms: milliseconds().describe("Milliseconds that it took."),
      outcome: z
        .string()
        .describe(
          "The response code's name, `timeout`, `malformed`, `referral`, or an errno name such as `ECONNREFUSED over TCP`.",
        ),
    })
    .meta({ id: "DnsAttempt", description: "One attempt at a server of a resolver." }),
);

/** An address that leads to a translator. */
export const translation = once(() =>
  z
    .strictObject({
      ip: ipv6Text("The address."),
      prefix: z.string().describe("The translator's prefix, in CIDR notation."),
      ipv4: ipv4Text("The IPv4 address inside, RFC 6052."),
    })
    .meta({
      id: "Translation",
      description:
        "An IPv6 address that leads to a translator (NAT64), and the IPv4 address inside.",
    }),
);

/** What one resolver said, as answers and errors have it in their details. */
export function dnsDetails() {
  return {
    question: z
      .strictObject({
        name: z.string().describe("The name as it was asked for, in presentation form."),
        type: z.string().describe("The type that was asked for."),
      })
      .describe("What the resolver was asked."),
    server: z.string().exactOptional().describe("Address and port of the server that answered."),
    transport: z.enum(TRANSPORTS).exactOptional().describe("The transport of the answer."),
    rcode: z.string().exactOptional().describe("The response code's name, or what came instead."),
    authenticated: z
      .boolean()
      .exactOptional()
      .describe("Whether the server says that it validated the answer with DNSSEC."),
    extendedErrors: z
      .array(extendedError())
      .exactOptional()
      .describe("The server's extended errors."),
    incomplete: z
      .literal(true)
      .exactOptional()
      .describe("The server followed the CNAME chain only so far; its end may have records."),
    soa: z
      .strictObject({
        name: z.string().describe("The zone."),
        value: z.string().describe("The data of its SOA record."),
        ttl: z.int().min(0).max(0xffff_ffff).describe("Seconds that the answer may be cached."),
      })
      .exactOptional()
      .describe("The SOA record that came with a negative answer."),
    dns64: z
      .array(translation())
      .exactOptional()
      .describe("The addresses that lead to a translator; absent if there are none."),
    attempts: z.array(dnsAttempt()).describe("Every attempt at a server, in order."),
  };
}

/** What a resolver says about DNSSEC. */
export const dnssecVerdict = once(() =>
  z
    .strictObject({
      verdict: z
        .enum(DNSSEC_VERDICTS)
        .describe(
          "`secure` and `insecure`: an answer with and without the AD flag; `bogus`: an answer only with checking disabled; `unreachable`: no answer.",
        ),
      resolver: resolverName(),
    })
    .meta({
      id: "DnssecVerdict",
      description: "The verdict of a resolver, and which one gave it.",
    }),
);

const dnsReply = once(() =>
  z
    .strictObject({
      resolver: resolverName(),
      outcome: z
        .enum(OUTCOMES)
        .describe("`answer`, `no-data` and `name-error` are answers; the others are failures."),
      records: z.array(dnsRecord()).describe("As for one resolver."),
      queryTime: milliseconds().describe("Milliseconds from the query to the outcome."),
      ...dnsDetails(),
      dnssec: dnssecVerdict().exactOptional(),
    })
    .meta({ id: "DnsReply", description: "What one of several resolvers said." }),
);

/** What the details of `resolver=all` have beyond those of one resolver. */
export function comparison() {
  return {
    resolvers: z
      .array(dnsReply())
      .exactOptional()
      .describe("With `resolver=all`: what each one said."),
    agree: z
      .boolean()
      .exactOptional()
      .describe("With `resolver=all`: whether nothing but TTLs differs."),
    differences: z
      .array(z.enum(DIFFERENCES))
      .exactOptional()
      .describe("With `resolver=all`: what differs; `ttl` if the records differ in nothing else."),
  };
}
