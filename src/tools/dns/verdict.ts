import { nameText } from "../../dns/dnssec/wording.ts";
import { blockReason, staleReason } from "../../dns/message/codes.ts";
import { WITHOUT_EDNS } from "../../dns/outcome.ts";
import { inWords, listText, plural } from "../../util/text.ts";
import { problemOf } from "./failure.ts";
import type { Difference, DnsReply, DnsResult } from "./result.ts";

type Details = Pick<DnsResult["details"], "question"> & Partial<DnsResult["details"]>;

/**
 * The conclusion from the records of a resolver, and from the details of them and of the other resolvers.
 *
 * @param more further sentences
 */
export function dnsVerdict(
  from: DnsResult["resolver"],
  records: DnsResult["records"],
  details: Details,
  more?: string,
) {
  const resolver = from === "zone" ? "The zone" : from;
  const { question, extendedErrors = [], resolvers, incomplete, dnssec, attempts = [] } = details;
  const { type } = question;
  const name = nameText(question.name);
  const asked = records.filter((record) => record.type === type).length;
  const code = asked > 0 ? "answer" : incomplete ? "incomplete" : "no-data";
  const blocked = blockReason(extendedErrors);
  const isOld = staleReason(extendedErrors) !== undefined;
  const sentences = [
    code === "answer" && `${resolver} has ${plural(asked, `${type} record`)} for ${name}.`,
    code === "no-data" &&
      !blocked &&
      (isProvenAbsent(details)
        ? `${resolver} has no ${type} record for ${name}, which does not exist, as its zone proves (NXNAME).`
        : `${resolver} says that ${name} exists and has no ${type} record.`),
    code === "incomplete" &&
      `${resolver} follows the CNAME chain of ${name} only so far; its end may have ${type} records.`,
    // With several resolvers, the comparison says this of each.
    blocked && !resolvers && `${resolver} blocks this name, as it says (${blocked}).`,
    isOld && !resolvers && `The answer is old, because ${resolver} could not get a new one.`,
    attempts.some(({ outcome }) => outcome.endsWith(WITHOUT_EDNS)) &&
      `${resolver} answers only without EDNS, which DNSSEC and large answers need.`,
    dnssec && `DNSSEC: ${dnssec.verdict}.`,
    comparisonText(details),
    more,
  ];
  return { code, text: sentences.filter(Boolean).join(" ") } as const;
}

/** True if the proof that there is no record has the type NXNAME, which says that there is no name; RFC 9824. */
function isProvenAbsent({ question, dnssec }: Details): boolean {
  const sets = dnssec?.verdict === "secure" ? dnssec.chain.flatMap((link) => link.sets) : [];
  const own = sets.find(
    ({ name, type }) => name === question.name.toLowerCase() && type === question.type,
  );
  return own?.proof?.some(({ record }) => / NXNAME\b/.test(record)) ?? false;
}

const DIFFERENT: Readonly<Record<Difference, string>> = {
  records: "records",
  chain: "CNAME chains",
  ttl: "TTLs",
  rcode: "response codes",
  dnssec: "DNSSEC verdicts",
};

/** A comparison of several resolvers in sentences; empty without one. */
function comparisonText(details: Details): string {
  const { agree, differences = [], unanswered, findings = [], resolvers = [] } = details;
  if (unanswered === undefined) return "";
  const all = resolvers.length === 2 ? "Both resolvers" : "The three resolvers";
  const answered = unanswered.length === 0 ? all : "The two that answered";
  const parts = listText(differences.map((each) => DIFFERENT[each]));
  const agreed = `agree${differences.length > 0 ? "; only TTLs differ" : ""}`;
  const verdict =
    agree === undefined
      ? "No two resolvers have answered, so nothing is compared."
      : `${answered} ${agree ? agreed : `differ in their ${parts}`}.`;
  const failures = unansweredText({ resolvers, unanswered });
  return [verdict, failures, ...findings.map(({ text }) => text)].filter(Boolean).join(" ");
}

/** Sentences about the resolvers that have not answered. */
export function unansweredText({
  resolvers = [],
  unanswered = [],
}: Pick<Details, "resolvers" | "unanswered">): string {
  return resolvers
    .filter(({ resolver }) => unanswered.includes(resolver))
    .map((reply) => `${reply.resolver} ${failureOf(reply)}.`)
    .join(" ");
}

/** How a resolver failed: its response or, without one, the outcome of the first attempt. */
function failureOf({ rcode = "timeout", attempts }: DnsReply): string {
  const isResponse = !["UNREACHABLE", "SHORTAGE", "timeout"].includes(rcode);
  const outcome = attempts[0]?.outcome ?? rcode;
  return isResponse || outcome === "UNREACHABLE"
    ? problemOf(rcode)
    : `has not answered (${inWords(outcome)})`;
}
