import { z } from "zod";
import { VERDICTS } from "../dns/dnssec/chain.ts";
import { TRANSPORTS } from "../dns/transport.ts";
import {
  extendedError,
  flag,
  ipv4Text,
  ipv6Text,
  list,
  named,
  once,
  oneOf,
  record,
  resolverName,
  text,
  type ValueOf,
  whole,
} from "./schemas.ts";

/** The claims of a resolver about DNSSEC. */
const CLAIMS = ["secure", "none", "bogus", "no-answer"] as const;

/** The kinds of difference between the replies of resolvers. */
export const DIFFERENCES = ["records", "chain", "ttl", "rcode", "dnssec"] as const;

/** The kinds of hints at why the replies of resolvers differ. */
const FINDINGS = ["filtered", "perhaps-filtered", "stale", "place"] as const;

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
  named("DnsRecord", "A record of a name.", {
    type: text("The record's type."),
    value: text("The data in presentation form, as `dig` prints it."),
    ttl: whole("Seconds that it may be cached.", 0, 0xffff_ffff),
  }),
);

const dnsAttempt = once(() =>
  named("DnsAttempt", "One attempt at a server of a resolver.", {
    server: text("The server's address and port."),
    transport: oneOf(TRANSPORTS, "The transport that was tried last."),
    ms: milliseconds().describe("Milliseconds that it took."),
    outcome: text(
      "The response code's name, `timeout`, `malformed`, `referral`, or an errno name such as `ECONNREFUSED over TCP`.",
    ),
  }),
);

/** An address that leads to a translator. */
export const translation = once(() =>
  named(
    "Translation",
    "An IPv6 address that leads to a translator (NAT64), and the IPv4 address inside.",
    {
      ip: ipv6Text("The address."),
      prefix: text("The translator's prefix, in CIDR notation."),
      ipv4: ipv4Text("The IPv4 address inside, RFC 6052."),
    },
  ),
);

/** The fields of one resolver's reply, in the details of answers and errors. */
export function dnsDetails() {
  return {
    question: record("What the resolver was asked.", {
      name: text("The name as it was asked for, in presentation form."),
      type: text("The type that was asked for."),
      class: z.literal("CH").exactOptional().describe("The class, unless it is IN."),
    }),
    server: text("Address and port of the server that answered.").exactOptional(),
    transport: oneOf(TRANSPORTS, "The transport of the answer.").exactOptional(),
    rcode: text("The response code's name, or what came instead.").exactOptional(),
    authenticated: flag(
      "Whether the server says that it validated the answer with DNSSEC.",
    ).exactOptional(),
    extendedErrors: list(extendedError(), "The server's extended errors.").exactOptional(),
    nsid: text("With `nsid=yes`: the name of the server that answered, RFC 5001.").exactOptional(),
    clientSubnet: text(
      "The network of clients that the answer is for, and how much of it was used, RFC 7871.",
    ).exactOptional(),
    incomplete: z
      .literal(true)
      .exactOptional()
      .describe("The server followed the CNAME chain only so far; its end may have records."),
    soa: record("The SOA record that came with a negative answer.", {
      name: text("The zone."),
      value: text("The data of its SOA record."),
      ttl: whole("Seconds that the answer may be cached.", 0, 0xffff_ffff),
    }).exactOptional(),
    dns64: list(
      translation(),
      "The addresses that lead to a translator; absent if there are none.",
    ).exactOptional(),
    attempts: list(dnsAttempt(), "Every attempt at a server, in order."),
  };
}

const keyFields = () => ({
  keyTag: whole("The key's tag.", 0, 65_535),
  algorithm: text("The signature algorithm's name."),
});

const dnssecSet = once(() =>
  named("DnssecSet", "A record set, or the proof that there is none, which was checked.", {
    name: text("Its name."),
    type: text("Its type."),
    signature: record("The signature that counts; of a proof, the first to expire.", {
      ...keyFields(),
      inception: z.iso.datetime().describe("When the signature begins to be valid."),
      expires: z.iso.datetime().describe("When it ceases to be valid."),
      daysLeft: z.number().describe("Days until then, with one decimal; negative if it is over."),
    }).exactOptional(),
    proof: list(
      z.strictObject({
        record: text("The NSEC or NSEC3 record."),
        proves: text("What it proves."),
      }),
      "The records of a proof.",
    ).exactOptional(),
    fault: text("What is wrong with it.").exactOptional(),
  }),
);

const dnssecZone = once(() =>
  named("DnssecZone", "A zone of the chain of trust.", {
    zone: text("Its name."),
    status: oneOf(VERDICTS, "Whether its keys are trusted."),
    fault: text("Why they are not.").exactOptional(),
    ds: list(
      z.strictObject({ ...keyFields(), digest: text("The digest's name.") }),
      "Its DS records in the zone above, or its trust anchors.",
    ),
    keys: list(
      z.strictObject({
        ...keyFields(),
        trusted: flag("Whether a DS record or trust anchor is about it."),
      }),
      "Its DNSKEY records.",
    ),
    sets: list(dnssecSet(), "What was checked with its keys."),
  }),
);

/** The schema of our own DNSSEC verdict, and of what the resolver claims. */
export const dnssecVerdict = once(() =>
  named("DnssecVerdict", "The service's own DNSSEC verdict, and what the resolver claims.", {
    verdict: oneOf(
      VERDICTS,
      "`secure`: signed and valid from the trust anchor down; `insecure`: proven not to be signed; `bogus`: a signature or proof is wrong or missing; `indeterminate`: it cannot be found out.",
    ),
    text: text("What was found, and where, in one to three sentences."),
    chain: list(dnssecZone(), "The zones that were checked, each behind the one above it."),
    resolver: record("What the resolver claims, which may differ from the verdict.", {
      name: resolverName(),
      claim: oneOf(
        CLAIMS,
        "`secure`: it answers with the AD flag; `none`: without; `bogus`: it fails twice, and answers if it must not check; `no-answer`: it does not answer.",
      ),
      validates: z
        .boolean()
        .nullable()
        .describe("Whether it validates; null if that does not show."),
      extendedErrors: list(extendedError(), "Its extended errors."),
    }),
  }),
);

/** Our own DNSSEC verdict, and what the resolver claims. */
export type DnssecDetails = ValueOf<ReturnType<typeof dnssecVerdict>>;

/** The schema of the reply of one of several resolvers. */
export const dnsReply = once(() =>
  named("DnsReply", "What one of several resolvers said.", {
    resolver: resolverName(),
    outcome: oneOf(
      OUTCOMES,
      "`answer`, `no-data` and `name-error` are answers; the others are failures.",
    ),
    records: list(dnsRecord(), "As for one resolver."),
    queryTime: milliseconds().describe("Milliseconds from the query to the outcome."),
    ...dnsDetails(),
    dnssec: dnssecVerdict().exactOptional(),
  }),
);

const dnsFinding = once(() =>
  named("DnsFinding", "A hint at why the reply of a resolver differs from others.", {
    resolver: resolverName(),
    code: oneOf(
      FINDINGS,
      "`filtered`: it says that it blocks the name; `perhaps-filtered`: it denies a name that others know; `stale`: its answer is older than its TTL; `place`: where the answer is from.",
    ),
    text: text("The same in a sentence."),
  }),
);

/** The fields that `resolver=all` adds to the details. */
export function comparison() {
  return {
    resolvers: list(dnsReply(), "With `resolver=all`: what each one said.").exactOptional(),
    agree: flag(
      "With `resolver=all`: whether nothing but TTLs differs; absent if fewer than two have answered.",
    ).exactOptional(),
    differences: list(
      z.enum(DIFFERENCES),
      "With `resolver=all`: what differs between those that have answered; `ttl` if the records differ in nothing else, `chain` if their CNAME records do.",
    ).exactOptional(),
    unanswered: list(
      resolverName(),
      "With `resolver=all`: those that have not answered; they are not compared.",
    ).exactOptional(),
    findings: list(
      dnsFinding(),
      "With `resolver=all`: what the resolvers say or show of their answers.",
    ).exactOptional(),
  };
}
