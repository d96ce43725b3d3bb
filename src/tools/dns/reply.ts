import { clientGone } from "../../api/errors.ts";
import type { DnsOutcome } from "../../dns/outcome.ts";
import type { DnsReply } from "./result.ts";

/**
 * The reply of one resolver, as results and events show it.
 *
 * @param dns64 its addresses that lead to a translator
 * @param dnssec our own verdict, if it was asked for
 * @throws ApiError if the client has disconnected
 */
export function replyOf(
  resolver: DnsReply["resolver"],
  outcome: DnsOutcome,
  dns64: NonNullable<DnsReply["dns64"]> = [],
  dnssec?: DnsReply["dnssec"],
): DnsReply {
  const { kind, records, message, reason, queryTimeMs, question, attempts, ...sent } = {
    ...{ records: [], message: undefined, reason: undefined },
    ...outcome,
  };
  if (kind === "aborted") throw clientGone();
  return {
    resolver,
    outcome: kind,
    records,
    queryTime: queryTimeMs,
    question,
    ...sent,
    ...(dns64.length > 0 && { dns64 }),
    ...(dnssec && { dnssec }),
    attempts,
  };
}

/** The details of a reply, in an answer or an error. */
export function detailsOf({ resolver, outcome, records, queryTime, ...details }: DnsReply) {
  return details;
}
