import type { Call } from "../../api/endpoint.ts";
import type { ResolverName } from "../../config/settings.ts";
import type { QueryOptions } from "../../dns/client.ts";
import { learnTranslators, translationsIn } from "../../dns/dns64.ts";
import { blockReason, staleReason } from "../../dns/message/codes.ts";
import { comparableValue, type RecordType } from "../../dns/message/record.ts";
import { isDecisive } from "../../dns/outcome.ts";
import type { Services } from "../services.ts";
import { checkDnssec } from "./dnssec.ts";
import { replyOf } from "./reply.ts";
import type { Difference, DnsReply } from "./result.ts";

type DnsRecord = DnsReply["records"][number];

/** What to ask resolvers, and how. */
interface DnsQuestion {
  readonly name: string;
  readonly type: RecordType;
  readonly options: QueryOptions & Pick<Call, "signal" | "client">;
  /** True to validate the answer. */
  readonly validates: boolean;
}

/** Asks one resolver. */
export async function askResolver(
  resolver: ResolverName,
  { name, type, options, validates }: DnsQuestion,
  { config, resolvers, resolverTitle }: Services,
): Promise<DnsReply> {
  const dnsClient = resolvers[resolver];
  const query = (flags: QueryOptions) => dnsClient.query(name, type, { ...options, ...flags });
  // An answer without recursion, or about the server itself, says nothing of translators.
  const mayHaveTranslations = type === "AAAA" && !options.isIterative && options.class !== "CH";
  if (mayHaveTranslations) learnTranslators(dnsClient);
  // A server that a command has chosen has its own text in place of the name.
  const title = (resolverTitle as ResolverName | undefined) ?? resolver;
  const asked = await query(validates ? { dnssec: true } : {});
  const check = { ...options, name: title, dnsClient, query };
  const { outcome, dnssec } =
    validates && options.class !== "CH"
      ? await checkDnssec(asked, { ...check, anchors: config.trustAnchors })
      : { outcome: asked };
  return replyOf(title, outcome, translationsIn(dnsClient, outcome), dnssec);
}

/** The reply that counts: the first with records, or else the first that is an answer. */
export function firstAnswer(replies: readonly DnsReply[]): DnsReply {
  const answer = replies.find(({ outcome }) => outcome === "answer") ?? replies.find(isAnswer);
  return answer ?? (replies[0] as DnsReply);
}

/** Replies of several resolvers side by side: how those that are answers differ, and what is to say of each. */
export function compareReplies(resolvers: readonly DnsReply[]) {
  const answered = resolvers.filter(isAnswer);
  const silent = resolvers.filter((reply) => !answered.includes(reply));
  const differences = differencesOf(answered);
  const findings = resolvers.flatMap((reply) => findingsOf(reply, answered));
  const isAboutPlace = differences.includes("records");
  return {
    ...(answered.length > 1 && { agree: differences.every((each) => each === "ttl") }),
    differences,
    unanswered: silent.map(({ resolver }) => resolver),
    findings: isAboutPlace ? [...findings, ...answered.flatMap(placeOf)] : findings,
    resolvers,
  };
}

const isAnswer = ({ outcome }: DnsReply) => isDecisive({ kind: outcome });

/** The parts of a reply that are compared; the order of lists does not matter, nor does how often something is in one. */
const VIEWS: Readonly<Record<Difference, (reply: DnsReply) => readonly (string | undefined)[]>> = {
  records: (reply) => recordsAsked(reply).map(comparable),
  chain: ({ records, question }) =>
    records.filter(({ type }) => type === "CNAME" && type !== question.type).map(comparable),
  ttl: (reply) => recordsAsked(reply).map((record) => `${comparable(record)} ${record.ttl}`),
  rcode: ({ rcode }) => [rcode],
  dnssec: ({ authenticated, dnssec }) => [dnssec?.verdict ?? String(authenticated)],
};

function differencesOf(replies: readonly DnsReply[]): Difference[] {
  const textOf = (view: Difference) => (reply: DnsReply) =>
    JSON.stringify([...new Set(VIEWS[view](reply))].toSorted());
  const differs = (view: Difference) => new Set(replies.map(textOf(view))).size > 1;
  const found = (Object.keys(VIEWS) as Difference[]).filter(differs);
  // Other records have other TTLs.
  return found.includes("records") ? found.filter((difference) => difference !== "ttl") : found;
}

/** A name with the addresses of nowhere, which filters answer with. */
const NOWHERE: readonly string[] = ["::", "0.0.0.0"];

/** Hints in one reply at why it differs from the others. */
function findingsOf(reply: DnsReply, answered: readonly DnsReply[]) {
  const { resolver, outcome, extendedErrors = [] } = reply;
  const isAnswered = (other: DnsReply) => recordsAsked(other).length > 0 && !isNowhere(other);
  const othersKnow = answered.some((other) => other !== reply && isAnswered(other));
  const blocked = blockReason(extendedErrors);
  const suspicion = !othersKnow
    ? undefined
    : outcome === "name-error"
      ? "says that the name does not exist, and others have records"
      : isNowhere(reply) && "answers with an address of no host";
  const texts = {
    stale: staleReason(extendedErrors) && "gives an old answer, because it could not get a new one",
    filtered: blocked && `blocks this name, as it says (${blocked})`,
    "perhaps-filtered": !blocked && suspicion && `${suspicion}; it may block the name`,
  };
  return (["stale", "filtered", "perhaps-filtered"] as const).flatMap((code) =>
    texts[code] ? [{ resolver, code, text: `${resolver} ${texts[code]}.` }] : [],
  );
}

/** The server and the network that an answer is for, if the resolver says so. */
function placeOf({ resolver, nsid, clientSubnet }: DnsReply) {
  const parts = [nsid && `from its server ${nsid}`, clientSubnet && `for ${clientSubnet}`];
  const where = parts.filter(Boolean).join(" ");
  const text = `${resolver} answered ${where}; records can depend on the place.`;
  return where === "" ? [] : [{ resolver, code: "place" as const, text }];
}

/** The records of the requested type, without the chain and signatures. */
function recordsAsked({ records, question }: DnsReply): readonly DnsRecord[] {
  return records.filter(({ type }) => type === question.type);
}

function isNowhere(reply: DnsReply): boolean {
  const records = recordsAsked(reply);
  return records.length > 0 && records.every(({ value }) => NOWHERE.includes(value));
}

function comparable({ type, value }: DnsRecord): string {
  return `${type} ${comparableValue(type as RecordType, value)}`;
}
