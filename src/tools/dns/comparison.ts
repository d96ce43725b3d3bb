import type { z } from "zod";
import type { comparison, DIFFERENCES } from "../../api/dns-schemas.ts";
import { clientGone } from "../../api/errors.ts";
import type { ValueOf } from "../../api/schemas.ts";
import { blockReason, staleReason } from "../../dns/message/codes.ts";
import { comparableValue, type DnsRecord } from "../../dns/message/record.ts";
import { isDecisive } from "../../dns/outcome.ts";
import { listText } from "../../util/text.ts";
import { detailsOf, type Reply } from "./reply.ts";

type Difference = (typeof DIFFERENCES)[number];

/** The reply of one of several resolvers, as its event and the comparison have it. */
export function replyDocument(reply: Reply) {
  const { outcome, resolver } = reply;
  if (outcome.kind === "aborted") throw clientGone();
  return {
    resolver,
    outcome: outcome.kind,
    records: recordsOf(reply),
    queryTime: outcome.queryTimeMs,
    ...detailsOf(reply),
  };
}

/** Replies of several resolvers side by side: how those that are answers differ, and what is to say of each. */
export function compareReplies(replies: readonly Reply[]) {
  const answered = replies.filter(({ outcome }) => isDecisive(outcome));
  const differences = differencesOf(answered);
  const findings = replies.flatMap((reply) => findingsOf(reply, answered));
  const isAboutPlace = differences.includes("records");
  return {
    ...(answered.length > 1 && { agree: differences.every((each) => each === "ttl") }),
    differences,
    unanswered: replies
      .filter((reply) => !answered.includes(reply))
      .map(({ resolver }) => resolver),
    findings: isAboutPlace ? [...findings, ...answered.flatMap(placeOf)] : findings,
    resolvers: replies.map(replyDocument),
  };
}

/** The comparison of several resolvers in a result. */
export type Compared = ValueOf<z.ZodObject<ReturnType<typeof comparison>>>;

const DIFFERENT: Readonly<Record<Difference, string>> = {
  records: "records",
  chain: "CNAME chains",
  ttl: "TTLs",
  rcode: "response codes",
  dnssec: "DNSSEC verdicts",
};

/** A comparison in sentences; empty without one. */
export function comparisonText(compared: Compared): string {
  const { agree, differences = [], unanswered, findings = [], resolvers = [] } = compared;
  if (unanswered === undefined) return "";
  const who = unanswered.length === 0 ? "The three resolvers" : "The two that answered";
  const what = listText(differences.map((each) => DIFFERENT[each]));
  const verdict =
    agree === undefined
      ? "No two resolvers have answered, so nothing is compared."
      : !agree
        ? `${who} differ in their ${what}.`
        : `${who} agree${differences.length > 0 ? "; only TTLs differ" : ""}.`;
  const silent = resolvers
    .filter(({ resolver }) => unanswered.includes(resolver))
    .map((reply) => `${reply.resolver} has not answered (${failureOf(reply)}).`);
  return [verdict, ...silent, ...findings.map(({ text }) => text)].join(" ");
}

/** Why a resolver has not answered: its response code, or what became of the first attempt. */
function failureOf({ rcode, attempts }: NonNullable<Compared["resolvers"]>[number]): string {
  const isCode = rcode !== undefined && !["UNREACHABLE", "SHORTAGE"].includes(rcode);
  return isCode ? rcode : (attempts[0]?.outcome ?? "timeout");
}

/** The parts of a reply that are compared; the order of lists does not matter, nor does how often something is in one. */
const VIEWS: Readonly<Record<Difference, (reply: Reply) => readonly string[]>> = {
  records: (reply) => recordsAsked(reply).map(comparable),
  chain: (reply) =>
    recordsOf(reply)
      .filter(({ type }) => type === "CNAME" && type !== reply.outcome.question.type)
      .map(comparable),
  ttl: (reply) => recordsAsked(reply).map((record) => `${comparable(record)} ${record.ttl}`),
  rcode: ({ outcome }) => ("rcode" in outcome ? [outcome.rcode] : []),
  dnssec: ({ outcome, dnssec }) => [
    dnssec?.verdict ?? String("authenticated" in outcome && outcome.authenticated),
  ],
};

function differencesOf(replies: readonly Reply[]): Difference[] {
  const textOf = (view: Difference) => (reply: Reply) =>
    JSON.stringify([...new Set(VIEWS[view](reply))].toSorted());
  const differs = (view: Difference) => new Set(replies.map(textOf(view))).size > 1;
  const found = (Object.keys(VIEWS) as Difference[]).filter(differs);
  // Other records have other TTLs.
  return found.includes("records") ? found.filter((difference) => difference !== "ttl") : found;
}

/** A name with the addresses of nowhere, which filters answer with. */
const NOWHERE: readonly string[] = ["::", "0.0.0.0"];

/** Hints in one reply at why it differs from the others. */
function findingsOf(reply: Reply, answered: readonly Reply[]) {
  const { resolver, outcome } = reply;
  if (!("extendedErrors" in outcome)) return [];
  const isAnswered = (other: Reply) => recordsAsked(other).length > 0 && !isNowhere(other);
  const othersKnow = answered.some((other) => other !== reply && isAnswered(other));
  const blocked = blockReason(outcome.extendedErrors);
  const suspicion = !othersKnow
    ? undefined
    : outcome.kind === "name-error"
      ? "says that the name does not exist, and others have records"
      : isNowhere(reply) && "answers with an address of no host";
  const texts = {
    stale:
      staleReason(outcome.extendedErrors) &&
      "gives an old answer, because it could not get a new one",
    filtered: blocked && `blocks this name, as it says (${blocked})`,
    "perhaps-filtered": !blocked && suspicion && `${suspicion}; it may block the name`,
  };
  return (["stale", "filtered", "perhaps-filtered"] as const).flatMap((code) =>
    texts[code] ? [{ resolver, code, text: `${resolver} ${texts[code]}.` }] : [],
  );
}

/** The server and the network that an answer is for, if the resolver says so. */
function placeOf({ resolver, outcome }: Reply) {
  if (!("nsid" in outcome || "clientSubnet" in outcome)) return [];
  const { nsid, clientSubnet } = outcome;
  const parts = [nsid && `from its server ${nsid}`, clientSubnet && `for ${clientSubnet}`];
  const where = parts.filter(Boolean).join(" ");
  const text = `${resolver} answered ${where}; records can depend on the place.`;
  return [{ resolver, code: "place" as const, text }];
}

function recordsOf({ outcome }: Reply): readonly DnsRecord[] {
  return "records" in outcome ? outcome.records : [];
}

/** The records of the requested type, without the chain and signatures. */
function recordsAsked(reply: Reply): readonly DnsRecord[] {
  return recordsOf(reply).filter(({ type }) => type === reply.outcome.question.type);
}

function isNowhere(reply: Reply): boolean {
  const records = recordsAsked(reply);
  return records.length > 0 && records.every(({ value }) => NOWHERE.includes(value));
}

function comparable({ type, value }: DnsRecord): string {
  return `${type} ${comparableValue(type, value)}`;
}
