/** The replies of several resolvers side by side: how they differ, and possible reasons. */
import { blockReason, bogusReason, staleReason } from "../../dns/message/codes.ts";
import { comparableValue, type RecordType } from "../../dns/message/record.ts";
import { isDecisive } from "../../dns/outcome.ts";
import { listText } from "../../util/text.ts";
import type { Difference, DnsRecord, DnsReply, Finding } from "./result.ts";

/** Compares the replies of several resolvers. */
export function compareReplies(resolvers: readonly DnsReply[]) {
  const answered = resolvers.filter(isAnswer);
  const silent = resolvers.filter((reply) => !isAnswer(reply));
  const differences = differencesOf(answered);
  const suspicions = suspicionsOf(answered);
  const findings = resolvers.flatMap((reply) => [
    ...remarksOn(reply, answered),
    ...suspicions.filter(({ resolver }) => resolver === reply.resolver),
  ]);
  const isAboutPlace = differences.includes("records");
  return {
    ...(answered.length > 1 && { agree: differences.every((each) => each === "ttl") }),
    differences,
    unanswered: silent.map(({ resolver }) => resolver),
    findings: isAboutPlace ? [...findings, ...answered.flatMap(placeOf)] : findings,
    resolvers,
  };
}

/** True for a reply that has records, or says that there are none. */
export const isAnswer = ({ outcome }: DnsReply) => isDecisive({ kind: outcome });

/** The parts of a reply that are compared. Order and duplicates in a list do not matter. */
const VIEWS: Readonly<Record<Difference, (reply: DnsReply) => readonly (string | undefined)[]>> = {
  records: (reply) => recordsAsked(reply).map(comparable),
  chain: ({ records, question }) =>
    records.filter(({ type }) => type === "CNAME" && type !== question.type).map(comparable),
  ttl: (reply) => recordsAsked(reply).map((record) => `${comparable(record)} ${record.ttl}`),
  rcode: ({ rcode }) => [rcode],
  // Not the AD bit: it says whether the resolver validates, and nothing of the name.
  dnssec: ({ dnssec }) => [dnssec?.verdict],
};

const textOf = (view: Difference) => (reply: DnsReply) =>
  JSON.stringify([...new Set(VIEWS[view](reply))].toSorted());

function differencesOf(replies: readonly DnsReply[]): Difference[] {
  const differs = (view: Difference) => new Set(replies.map(textOf(view))).size > 1;
  const found = (Object.keys(VIEWS) as Difference[]).filter(differs);
  // Other records have other TTLs.
  return found.includes("records") ? found.filter((difference) => difference !== "ttl") : found;
}

const finding = ({ resolver }: DnsReply, code: Finding["code"], text: string | undefined) =>
  text === undefined ? [] : [{ resolver, code, text: `${resolver} ${text}.` }];

/** The findings that follow from a reply itself, and from its DNSSEC verdict. */
function remarksOn(reply: DnsReply, answered: readonly DnsReply[]): Finding[] {
  const { rcode, extendedErrors = [], dnssec } = reply;
  const blocked = blockReason(extendedErrors);
  const bogus = bogusReason(extendedErrors);
  const others = answered.filter((other) => other !== reply && other.dnssec?.verdict !== "bogus");
  const named = listText(others.map((other) => other.resolver));
  const isRefused = !isAnswer(reply) && (bogus !== undefined || dnssec?.resolver.claim === "bogus");
  const isWrong = isAnswer(reply) && dnssec?.verdict === "bogus";
  const failure = isRefused
    ? `refuses the answer as bogus (${bogus?.name ?? rcode}), unlike ${named}: they may not validate, or its clock or its trust anchor may be wrong`
    : `gives an answer that DNSSEC proves wrong, unlike ${named}: it may rewrite the answer, or one of the zone's servers may have an old copy`;
  const isFailure = (isRefused || isWrong) && others.length > 0;
  return [
    ...finding(reply, "stale", staleReason(extendedErrors) && STALE),
    ...finding(reply, "filtered", blocked && `blocks this name, as it says (${blocked})`),
    ...finding(reply, "dnssec-failure", isFailure ? failure : undefined),
  ];
}

const STALE = "gives an old answer, because it could not get a new one";

/** The kinds of replies by content, and how much each has. */
const KINDS = {
  absent: { amount: 0, text: "says that the name does not exist" },
  none: { amount: 0, text: "has no such record" },
  nowhere: { amount: 1, text: "answers with an address of no other host" },
  records: { amount: 2, text: "has records" },
} as const;

/** Possible reasons why a reply has more than others, less, or other records. */
const MORE =
  "it may rewrite the answer, or the others may filter the name, or not know of a change yet";
const LESS = "it may filter the name, or not know of a change yet";
const ELSE = "it may rewrite the answer, or records may depend on the place";

/** The unspecified and the loopback addresses, with which filters answer. */
export const NOWHERE = /^(::1?|(0|127)(\.\d+){3})$/;

function kindOf(reply: DnsReply): keyof typeof KINDS {
  if (reply.outcome === "name-error") return "absent";
  // Addresses that a resolver makes (DNS64) are not the name's.
  const isMade = ({ value }: DnsRecord) => reply.dns64?.some(({ ip }) => ip === value);
  const records = recordsAsked(reply).filter((record) => !isMade(record));
  if (records.length === 0) return "none";
  return records.every(({ value }) => NOWHERE.test(value)) ? "nowhere" : "records";
}

/** The replies with the key that more than half of all have; none without such a key. */
function mostOf(replies: readonly DnsReply[], keyOf: (reply: DnsReply) => string) {
  const groups = [...Map.groupBy(replies, keyOf).values()];
  return groups.find(({ length }) => 2 * length > replies.length) ?? [];
}

/**
 * The replies that differ from the proven ones or, without any, from most. A reply that says that it is filtered is
 * left out, and so is one that DNSSEC proves wrong.
 */
function suspicionsOf(answered: readonly DnsReply[]): Finding[] {
  const heard = answered.filter(
    ({ extendedErrors = [], dnssec }) =>
      blockReason(extendedErrors) === undefined && dnssec?.verdict !== "bogus",
  );
  const proven = heard.filter(({ dnssec }) => dnssec?.verdict === "secure");
  const most = mostOf(heard, kindOf);
  const alike = most.length === heard.length ? mostOf(heard, textOf("records")) : most;
  const believed = proven.length > 0 ? proven : alike;
  const [first] = believed;
  if (first === undefined) return [];
  const known = new Set(believed.flatMap(VIEWS.records));
  const named = listText(believed.map(({ resolver }) => resolver));
  const others = proven.length > 0 ? `${named}, as DNSSEC proves` : named;
  return heard.flatMap((reply) => {
    const kind = kindOf(reply);
    const isAlike = believed.some((each) => kindOf(each) === kind);
    const more = KINDS[kind].amount - KINDS[kindOf(first)].amount;
    const hasKnown = VIEWS.records(reply).some((one) => known.has(one));
    const isOther = kind === "records" && !hasKnown && placeOf(reply).length === 0;
    if (believed.includes(reply) || (isAlike ? !isOther : more === 0)) return [];
    const content = isAlike ? "has other records" : KINDS[kind].text;
    const reason = isAlike ? ELSE : more > 0 ? MORE : LESS;
    const code = reason === LESS ? "perhaps-filtered" : "rewritten";
    return finding(reply, code, `${content}, unlike ${others}: ${reason}`);
  });
}

/** The server that an answer is from and the network that it is for, if the resolver says so; a scope of 0 means all networks, RFC 7871 section 7.2.1. */
function placeOf(reply: DnsReply): Finding[] {
  const { nsid, clientSubnet } = reply;
  const subnet = clientSubnet?.endsWith("/0") ? undefined : clientSubnet;
  const where = [nsid && `from its server ${nsid}`, subnet && `for ${subnet}`].filter(Boolean);
  const text = `answered ${where.join(" ")}; records can depend on the place`;
  return finding(reply, "place", where.length > 0 ? text : undefined);
}

/** The records of the requested type, without the chain and signatures. */
export function recordsAsked({ records, question }: DnsReply): readonly DnsRecord[] {
  return records.filter(({ type }) => type === question.type);
}

/** The text by which a record is compared. */
export function comparable({ type, value }: DnsRecord): string {
  return `${type} ${comparableValue(type as RecordType, value)}`;
}
