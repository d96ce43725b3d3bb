import {
  type FactRow,
  factsOf,
  type Report,
  type Reporter,
  type Table,
  tonedVerdict,
  translatorFact,
} from "../report.ts";
import { chainTables, dnssecFacts } from "./dnssec-report.ts";
import type { DnsResult } from "./endpoint.ts";

type Reply = NonNullable<DnsResult["details"]["resolvers"]>[number];

/** An answer, or the details of an error, which have the replies of all resolvers too. */
export interface DnsDocument {
  readonly hostname: string;
  readonly records?: DnsResult["records"];
  readonly queryTime?: number;
  readonly details: Pick<DnsResult["details"], "question" | "attempts"> &
    Partial<DnsResult["details"]>;
}

/** The records of a name, from one resolver or from each of three. */
export const dnsReport: Reporter<DnsDocument, Reply> = {
  draft(subject, replies): DnsDocument {
    const resolvers = replies.toSorted((a, b) => (a.resolver < b.resolver ? -1 : 1));
    const question = resolvers[0]?.question ?? { name: subject, type: "" };
    return { hostname: subject, details: { question, resolvers, attempts: [] } };
  },
  report({ hostname, records = [], queryTime, details }): Report {
    const { question, resolvers } = details;
    const isThere = records.some(({ type }) => type === question.type);
    const verdict = tonedVerdict(details.verdict);
    return {
      title: hostname,
      verdict: verdict && details.agree === false ? { ...verdict, tone: "warn" } : verdict,
      facts: factsOf(
        ["Question", [question.name, question.class, question.type].filter(Boolean).join(" ")],
        ...(resolvers === undefined ? replyFacts({ ...details, queryTime }) : []),
        ["Location", details.location],
      ),
      tables: resolvers?.flatMap((reply) => [
        replyTable(reply, resolvers),
        ...chainTables(reply.dnssec, `, as ${reply.resolver} answers`),
      ]) ?? [recordTable(records), ...chainTables(details.dnssec)],
      isAnswered: isThere,
    };
  },
  explain: (details) =>
    "question" in details ? ({ ...details, details } as unknown as DnsDocument) : undefined,
};

type DnsRecord = DnsResult["records"][number];

/** @param isEverywhere false for a record to mark, which other resolvers do not have */
function recordTable(records: readonly DnsRecord[], isEverywhere = (_: DnsRecord) => true): Table {
  return {
    columns: [
      { name: "type", kind: "text" },
      { name: "TTL", kind: "count" },
      { name: "value", kind: "value" },
      { name: "", kind: "text", isToned: true },
    ],
    rows: records.map((record) => {
      const cells = [record.type, record.ttl, record.value];
      if (isEverywhere(record)) return { cells: [...cells, null] };
      return { cells: [...cells, "not in every answer"], tone: "warn" };
    }),
  };
}

const OUTCOMES: Readonly<Record<Reply["outcome"], string | null>> = {
  answer: null,
  "no-data": "the name exists, but has no record of this type",
  "name-error": "the name does not exist",
  failure: "the resolver failed",
  malformed: "the resolver sent a malformed answer",
  unreachable: "the resolver could not be reached",
  timeout: "the resolver did not answer in time",
};

/** Outcomes whose records can be compared. */
const ANSWERS: readonly Reply["outcome"][] = ["answer", "no-data", "name-error"];

/** Near enough for a mark; the comparison is exact. */
const isSame = (one: string, other: string) => one.toLowerCase() === other.toLowerCase();

/** The reply of one of several resolvers; a record that others do not have is marked. */
function replyTable(reply: Reply, replies: readonly Reply[]): Table {
  const answers = replies.filter(({ outcome }) => ANSWERS.includes(outcome));
  const isEverywhere = ({ type, value }: DnsRecord) =>
    answers.every(({ records }) =>
      records.some((other) => other.type === type && isSame(other.value, value)),
    );
  return {
    heading: reply.resolver,
    ...recordTable(reply.records, isEverywhere),
    facts: factsOf(...replyFacts(reply, OUTCOMES[reply.outcome])),
  };
}

/** Everything else that a resolver said. */
function replyFacts(
  reply: Partial<DnsResult["details"]> & { readonly queryTime?: number | undefined },
  outcome: string | null = null,
): FactRow[] {
  const { server, transport, rcode, queryTime, extendedErrors = [], dns64 = [] } = reply;
  const { authenticated, dnssec, soa, incomplete, attempts = [], nsid, clientSubnet } = reply;
  const time = queryTime === undefined ? "" : `, ${queryTime} ms`;
  const asked =
    attempts.length > 1 || attempts.some((each) => each.outcome !== rcode) ? attempts : [];
  return [
    ["Outcome", outcome, "warn"],
    server === undefined
      ? ["Server", `none answered${time}`, "bad"]
      : [
          "Server",
          `${server} over ${transport?.toUpperCase()}, ${rcode}${time}`,
          rcode !== "NOERROR" && "warn",
        ],
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
    ...asked.map(
      ({ server: at, transport: over, outcome: end, ms }, index): FactRow => [
        `Attempt ${index + 1}`,
        `${at} over ${over.toUpperCase()}: ${end} after ${ms} ms`,
      ],
    ),
  ];
}
