import type { Call } from "../../api/endpoint.ts";
import type { ResolverName } from "../../config/settings.ts";
import type { QueryOptions } from "../../dns/client.ts";
import { learnTranslators, translationsIn } from "../../dns/dns64.ts";
import type { RecordType } from "../../dns/message/record.ts";
import type { Services } from "../services.ts";
import { isAnswer } from "./comparison.ts";
import { checkDnssec } from "./dnssec.ts";
import { replyOf } from "./reply.ts";
import type { DnsReply } from "./result.ts";

/** A question to resolvers. */
export interface DnsQuestion {
  readonly name: string;
  readonly type: RecordType;
  /** With `dnssec`, the answer is validated. */
  readonly options: QueryOptions & Pick<Call, "signal" | "client">;
}

/** Asks one resolver. */
export async function askResolver(
  resolver: ResolverName,
  { name, type, options }: DnsQuestion,
  { config, resolvers, resolverTitle }: Services,
): Promise<DnsReply> {
  const dnsClient = resolvers[resolver];
  const query = (flags?: QueryOptions) => dnsClient.query(name, type, { ...options, ...flags });
  // An answer without recursion, or about the server itself, says nothing of translators.
  const mayHaveTranslations = type === "AAAA" && !options.isIterative && options.class !== "CH";
  if (mayHaveTranslations) learnTranslators(dnsClient);
  // The title of a server that a command has chosen is its text.
  const title = (resolverTitle as ResolverName | undefined) ?? resolver;
  const asked = await query();
  const { trustAnchors: anchors, unsignedZones } = config;
  const check = { ...options, name: title, dnsClient, query, anchors, unsignedZones };
  const isChecked = options.dnssec && options.class !== "CH";
  const { outcome, dnssec } = isChecked ? await checkDnssec(asked, check) : { outcome: asked };
  return replyOf(title, outcome, translationsIn(dnsClient, outcome), dnssec);
}

/** The reply that counts: the first with records, or else the first that is an answer. */
export function firstAnswer(replies: readonly DnsReply[]): DnsReply {
  const answer = replies.find(({ outcome }) => outcome === "answer") ?? replies.find(isAnswer);
  return answer ?? (replies[0] as DnsReply);
}
