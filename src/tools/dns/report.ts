import { inWords, listText } from "../../util/text.ts";
import {
  type Draft,
  type FactRow,
  factsOf,
  type Reporter,
  type Table,
  tonedVerdict,
  translatorFact,
} from "../report.ts";
import { chainTable, dnssecFacts } from "./dnssec-report.ts";
import type { DnsRecord, DnsReply, DnsResult, ZoneServer } from "./result.ts";

/** An answer, or the details of an error, which have the replies of all resolvers too. */
type DnsDocument = Draft<DnsResult, "hostname">;

/** The records of a name, from one resolver or from each of three. */
export const dnsReport: Reporter<DnsDocument, DnsReply> = {
  draft(subject, replies): DnsDocument {
    const resolvers = replies.toSorted((a, b) => (a.resolver < b.resolver ? -1 : 1));
    const question = resolvers[0]?.question ?? { name: subject, type: "" };
    return { hostname: subject, details: { question, resolvers } };
  },
  report({ hostname, records = [], queryTime, details }) {
    const { question, resolvers, servers, findings = [] } = details;
    const isThere = records.some(({ type }) => type === question?.type);
    const verdict = tonedVerdict(details.verdict);
    const isOdd = details.agree === false || (servers !== undefined && findings.length > 0);
    return {
      title: hostname,
      verdict: verdict && isOdd ? { ...verdict, tone: "warn" } : verdict,
      facts: factsOf(
        ["Question", [question?.name, question?.class, question?.type].filter(Boolean).join(" ")],
        ...(resolvers === undefined ? replyFacts({ ...details, queryTime }) : []),
        ["Location", details.location],
      ),
      tables: (resolvers && repliesTables(resolvers)) ?? [
        recordTable(records),
        ...(servers ? [serversTable(servers)] : []),
        ...(details.dnssec ? [chainTable(details.dnssec)] : []),
      ],
      isAnswered: isThere && details.dnssec?.verdict !== "bogus",
    };
  },
  explain: (details) =>
    "question" in details ? ({ ...details, details } as unknown as DnsDocument) : undefined,
};

function serversTable(servers: readonly ZoneServer[]): Table {
  return {
    heading: "Servers of the zone",
    columns: [
      { name: "server", kind: "value" },
      { name: "address", kind: "value" },
      { name: "serial", kind: "count" },
      { name: "", kind: "notes", isToned: true },
    ],
    rows: servers.map(({ name, ip, serial, signed, ms, outcome }) => {
      const isFine = outcome === "answer";
      const notes = [!isFine && inWords(outcome), signed && "signed", ms !== null && `${ms} ms`];
      const cells = [name, ip, serial, notes.filter((note) => typeof note === "string")];
      return { cells, ...(!isFine && { tone: "warn" }) };
    }),
  };
}

/** @param markOf the note on a record that not all resolvers have; null for other records */
function recordTable(
  records: readonly DnsRecord[],
  markOf = (_: DnsRecord): string | null => null,
): Table {
  return {
    columns: [
      { name: "type", kind: "text" },
      { name: "TTL", kind: "count" },
      { name: "value", kind: "value" },
      { name: "", kind: "text", isToned: true },
    ],
    rows: records.map((record) => {
      const mark = markOf(record);
      const cells = [record.type, record.ttl, record.value, mark];
      return mark === null ? { cells } : { cells, tone: "warn" };
    }),
  };
}

const OUTCOMES: Readonly<Record<DnsReply["outcome"], string | null>> = {
  answer: null,
  "no-data": "the name exists, but has no record of this type",
  "name-error": "the name does not exist",
  failure: "the resolver failed",
  malformed: "the resolver sent a malformed answer",
  unreachable: "the resolver could not be reached",
  timeout: "the resolver did not answer in time",
};

/** Outcomes whose records can be compared. */
const ANSWERS: readonly DnsReply["outcome"][] = ["answer", "no-data", "name-error"];

/** Near enough for a mark; `compareReplies` is exact. */
const isSame = (one: string, other: string) => one.toLowerCase() === other.toLowerCase();

/** If a resolver has more records, one table shows the records of all. */
const FEW_RECORDS = 8;

/** The replies of several resolvers; a record that not all have is marked. */
function repliesTables(replies: readonly DnsReply[]): Table[] {
  const answers = replies.filter(({ outcome }) => ANSWERS.includes(outcome));
  const isFew = answers.every(({ records }) => records.length <= FEW_RECORDS);
  const markOf = ({ type, value }: DnsRecord) => {
    const owners = answers.filter(({ records }) =>
      records.some((other) => other.type === type && isSame(other.value, value)),
    );
    if (owners.length === answers.length) return null;
    return isFew ? "not in every answer" : `only ${listText(owners.map((each) => each.resolver))}`;
  };
  const merged = new Map<string, DnsRecord>();
  for (const record of answers.flatMap(({ records }) => records)) {
    const key = `${record.type} ${record.value.toLowerCase()}`;
    const ttl = Math.min(record.ttl, merged.get(key)?.ttl ?? record.ttl);
    merged.set(key, { ...record, ttl });
  }
  const heading = "Records of all resolvers, with the lowest TTL of each";
  return [
    ...(isFew ? [] : [{ heading, ...recordTable([...merged.values()], markOf) }]),
    ...replies.flatMap((reply) => [
      {
        heading: reply.resolver,
        ...recordTable(isFew ? reply.records : [], markOf),
        facts: factsOf(...replyFacts(reply, OUTCOMES[reply.outcome])),
      },
      ...(reply.dnssec ? [chainTable(reply.dnssec, `, as ${reply.resolver} answers`)] : []),
    ]),
  ];
}

/** The facts of a reply beside its records. */
function replyFacts(
  reply: Partial<DnsResult["details"]> & { readonly queryTime?: number | undefined },
  outcome: string | null = null,
): FactRow[] {
  const { server, transport, rcode, queryTime, extendedErrors = [], dns64 = [] } = reply;
  const { authenticated, dnssec, soa, incomplete, attempts = [], nsid, clientSubnet } = reply;
  const time = queryTime === undefined ? "" : `, ${queryTime} ms`;
  const how = `${server} over ${transport?.toUpperCase()}`;
  const asked =
    attempts.length > 1 || attempts.some((each) => each.outcome !== rcode) ? attempts : [];
  return [
    ["Outcome", outcome, "warn"],
    server === undefined
      ? ["Server", `none answered${time}`, "bad"]
      : ["Server", `${how}, ${rcode}${time}`, rcode !== "NOERROR" && "warn"],
    ...(dnssec
      ? dnssecFacts(dnssec)
      : [["DNSSEC", authenticated && "validated, as the resolver says"] as const]),
    ["Server's name", nsid],
    ["For clients in", clientSubnet],
    ...dns64.map(translatorFact),
    ["Incomplete", incomplete && "the CNAME chain goes on", "warn"],
    ...extendedErrors.map(({ code, name, text }): FactRow => {
      const reason = `${name ?? "extended error"} (EDE ${code})`;
      return ["Reason", [reason, text].filter(Boolean).join(": "), "warn"];
    }),
    ["SOA", soa && `${soa.name} ${soa.value}, kept for ${soa.ttl} s`],
    ...asked.map((one, at): FactRow => {
      const over = one.transport.toUpperCase();
      return [`Attempt ${at + 1}`, `${one.server} over ${over}: ${one.outcome} after ${one.ms} ms`];
    }),
  ];
}
