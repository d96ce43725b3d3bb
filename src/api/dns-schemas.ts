import { z } from "zod";
import { mapValues } from "../util/objects.ts";
import {
  extendedError,
  flag,
  ipText,
  ipv4Text,
  ipv6Text,
  list,
  oneOf,
  record,
  resolverName,
  shape,
  text,
  whole,
} from "./schemas.ts";

/** The transports of questions, and the verdicts of DNSSEC; the results of the DNS client must fit them. */
const TRANSPORTS = ["udp", "tcp", "tls", "https"] as const;
const VERDICTS = ["secure", "insecure", "indeterminate", "bogus"] as const;

/** Makes each field optional, independently of the others. */
const optional = <Fields extends Readonly<Record<string, z.ZodType>>>(fields: Fields) =>
  mapValues(fields, (schema) => schema.exactOptional()) as {
    [Name in keyof Fields]: z.ZodExactOptional<Fields[Name]>;
  };

const seconds = (description: string) => whole(description, 0, 0xffff_ffff);

/** A DNS record of an answer. */
export const dnsRecord = shape("DnsRecord", "A record of a name.", () => ({
  type: text("The record's type."),
  value: text("The data in presentation form, as `dig` prints it."),
  ttl: seconds("Seconds that it may be cached."),
}));

const dnsAttempt = shape("DnsAttempt", "One attempt at a server of a resolver.", () => ({
  server: text("The server's address and port."),
  transport: oneOf(TRANSPORTS, "The transport that was tried last."),
  ms: whole("Milliseconds that it took.", 0),
  outcome: text(
    "The response code, `timeout`, `malformed`, `referral`, `no-connection`, or an errno name.",
  ),
}));

/** An address that leads to a translator. */
export const translation = shape("Translation", "An address that leads to a NAT64.", () => ({
  ip: ipv6Text("The address."),
  prefix: text("The translator's prefix, in CIDR notation."),
  ipv4: ipv4Text("The IPv4 address inside, RFC 6052."),
}));

/** The fields of the reply of each resolver, and of the details of answers and errors. */
const replyFields = () => ({
  question: record("What the resolver was asked.", {
    name: text("The name as it was asked for, in presentation form."),
    type: text("The type that was asked for."),
    ...optional({ class: z.literal("CH").describe("The class, unless it is IN.") }),
  }),
  ...optional({
    server: text("Address and port of the server that answered."),
    transport: oneOf(TRANSPORTS, "The transport of the answer."),
    rcode: text("The response code's name, or what came instead."),
    authenticated: flag("Whether the server says that it validated the answer with DNSSEC."),
    extendedErrors: list(extendedError(), "The server's extended errors."),
    nsid: text("With `nsid=yes`: the name of the server that answered, RFC 5001."),
    clientSubnet: text("The clients' network, and how much of it was used, RFC 7871."),
    incomplete: z.literal(true).describe("The server left the end of the CNAME chain open."),
    soa: record("The SOA record that came with a negative answer.", {
      name: text("The zone."),
      value: text("The data of its SOA record."),
      ttl: seconds("Seconds that the answer may be cached."),
    }),
    dns64: list(translation(), "The addresses that lead to a translator, if any."),
    dnssec: dnssecVerdict(),
  }),
  attempts: list(dnsAttempt(), "Every attempt at a server, in order."),
});

const keyFields = () => ({
  keyTag: whole("The key's tag.", 0, 65_535),
  algorithm: text("The signature algorithm's name."),
});

const dnssecProof = () =>
  z.strictObject({ record: text("The record."), proves: text("What it proves.") });

const dnssecSet = shape("DnssecSet", "A record set or a proof that was checked.", () => ({
  name: text("Its name."),
  type: text("Its type."),
  ...optional({
    signature: record("The signature that counts; of a proof, the first to expire.", {
      ...keyFields(),
      inception: z.iso.datetime().describe("When the signature begins to be valid."),
      expires: z.iso.datetime().describe("When it ceases to be valid."),
      daysLeft: z.number().describe("Days until then, with one decimal; negative if it is over."),
    }),
    proof: list(dnssecProof(), "The NSEC or NSEC3 records of a proof."),
    fault: text("What is wrong with it."),
  }),
}));

const dnssecZone = shape("DnssecZone", "A zone of the chain of trust.", () => ({
  zone: text("Its name."),
  status: oneOf(VERDICTS, "Whether its keys are trusted."),
  ...optional({ fault: text("Why they are not.") }),
  ds: list(
    z.strictObject({ ...keyFields(), digest: text("The digest's name.") }),
    "Its DS records in the zone above, or its trust anchors.",
  ),
  keys: list(
    z.strictObject({ ...keyFields(), trusted: flag("Whether a DS or an anchor is about it.") }),
    "Its DNSKEY records.",
  ),
  sets: list(dnssecSet(), "What was checked with its keys."),
}));

const dnssecNote = shape("DnssecNote", "What the owner of a zone should know.", () => ({
  code: oneOf(
    ["expires", "unused-algorithm", "sha1-ds", "nsec3-iterations", "nsec3-salt"],
    "`expires`: its first signature to expire; `unused-algorithm`: keys or DS records of an algorithm that signs nothing; `sha1-ds`: a DS record with SHA-1; `nsec3-iterations`, `nsec3-salt`: NSEC3 as RFC 9276 advises against.",
  ),
  zone: text("The zone."),
  text: text("The same in a sentence."),
}));

const dnssecVerdict = shape("DnssecVerdict", "The service's own DNSSEC verdict.", () => ({
  verdict: oneOf(
    VERDICTS,
    "`secure`: signed and valid from the trust anchor down; `insecure`: proven not to be signed; `bogus`: a signature or proof contradicts the answer, in a second one too, or is missing and the resolver refuses the answer; `indeterminate`: it cannot be found out.",
  ),
  evidence: oneOf(
    ["signature", "denial", "missing", "local", "budget"],
    "What it rests on: `signature`: one is not valid, or no key matches a DS record; `denial`: a signed proof shows something else; `missing`: a signature, key, proof or answer is not there; `local`: the zone above proves that the name does not exist, and the resolver knows it; `budget`: the time or work of a verdict is spent; null for `secure` and `insecure`.",
  ).nullable(),
  text: text("What was found, where, and what to do, in one to four sentences."),
  notes: list(dnssecNote(), "For the owner of the zone that signs the answer."),
  chain: list(dnssecZone(), "The zones that were checked, each behind the one above it."),
  resolver: record("What the resolver claims, which may differ from the verdict.", {
    name: resolverName(),
    claim: oneOf(
      ["secure", "none", "bogus", "no-answer"],
      "`secure`: it answers with the AD flag; `none`: without; `bogus`: it fails twice, and answers if it must not check; `no-answer`: it does not answer.",
    ),
    validates: flag("Whether it validates; null if that does not show.").nullable(),
    extendedErrors: list(extendedError(), "Its extended errors."),
  }),
}));

/** The schema of the reply of one of several resolvers. */
export const dnsReply = shape("DnsReply", "What one of several resolvers said.", () => ({
  resolver: resolverName(),
  outcome: oneOf(
    ["answer", "no-data", "name-error", "failure", "malformed", "unreachable", "timeout"],
    "`answer`, `no-data` and `name-error` are answers; the others are failures.",
  ),
  records: list(dnsRecord(), "As for one resolver."),
  queryTime: whole("Milliseconds from the query to the outcome.", 0),
  ...replyFields(),
}));

const zoneServer = shape("ZoneServer", "A name server of a zone at one address.", () => ({
  name: text("Its name."),
  ip: ipText("The address; null if it has none, or none is known.").nullable(),
  outcome: oneOf(
    [
      ...["answer", "lame", "silent", "not-allowed", "no-route"],
      ...["not-asked", "no-address", "not-known"],
    ] as const,
    "`answer`: it answers for the zone; `lame`: it does not, or only from what it has heard; `silent`: nothing comes back; `not-allowed`: the policy refuses the address; `no-route`: this machine cannot send to it; `not-asked`: enough packets had left; `no-address`: the name has none; `not-known`: its addresses could not be looked up.",
  ),
  serial: whole("That of its SOA record; null without one.", 0, 0xffff_ffff).nullable(),
  authoritative: flag("Whether it answers as an authority (the AA bit).").nullable(),
  signed: flag("Whether it signs its SOA record.").nullable(),
  ms: whole("Milliseconds to its answer.", 0).nullable(),
}));

const dnsFinding = shape("DnsFinding", "What explains a difference, or is wrong.", () => ({
  ...optional({
    resolver: resolverName(),
    servers: list(z.string(), "The names of the servers that it is about."),
  }),
  code: oneOf(
    [
      ...["filtered", "perhaps-filtered", "rewritten", "dnssec-failure", "stale", "place"],
      ...["lame", "serials-differ", "answers-differ", "unsigned-server", "silent", "no-ipv6"],
    ] as const,
    "Of a resolver: `filtered`: it says that it blocks the name; `perhaps-filtered`: it lacks what others have; `rewritten`: it has what others lack, or has it otherwise; `dnssec-failure`: it refuses the answer as bogus, or its own is; `stale`: its answer is older than its TTL; `place`: where the answer is from. Of servers of a zone: `lame`, `silent`: as their outcome; `serials-differ`, `answers-differ`: the fewer have another copy; `unsigned-server`: it does not sign, and others do; `no-ipv6`: it has no IPv6 address.",
  ),
  text: text("The same in a sentence."),
}));

/** The fields of the details of answers and errors, with the comparison of several resolvers. */
export const answerDetails = () => ({
  ...replyFields(),
  ...optional({
    resolvers: list(dnsReply(), "With `resolver=all`: what each one said."),
    agree: flag("Whether nothing but TTLs differs; absent if fewer than two have answered."),
    differences: list(
      z.enum(["records", "chain", "ttl", "rcode", "dnssec"]),
      "What differs between those that have answered; `ttl` if the records differ in nothing else, `chain` if their CNAME records do.",
    ),
    unanswered: list(resolverName(), "Those that have not answered; they are not compared."),
    servers: list(zoneServer(), "With `resolver=zone`: the zone's name servers."),
    findings: list(dnsFinding(), "What explains differences, and what is wrong."),
  }),
});
