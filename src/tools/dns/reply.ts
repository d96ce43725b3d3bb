import { clientGone } from "../../api/errors.ts";
import type { DnsOutcome } from "../../dns/outcome.ts";
import type { DnsReply } from "./result.ts";

/**
 * The reply of one resolver, as results and events have it.
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
  const { kind, question, attempts, queryTimeMs } = outcome;
  if (kind === "aborted") throw clientGone();
  const sent = "server" in outcome ? outcome : undefined;
  return {
    resolver,
    outcome: kind,
    records: sent?.records ?? [],
    queryTime: queryTimeMs,
    question,
    ...(sent && fieldsOf(sent)),
    ...(dns64.length > 0 && { dns64 }),
    ...(dnssec && { dnssec }),
    attempts,
  };
}

/** The fields that a reply has if a server sent it. */
function fieldsOf(sent: Extract<DnsOutcome, { readonly server: string }>) {
  const { server, transport, rcode, authenticated, extendedErrors } = sent;
  const { nsid, clientSubnet, incomplete, soa } = sent;
  return {
    server,
    transport,
    rcode,
    authenticated,
    extendedErrors,
    ...(nsid !== undefined && { nsid }),
    ...(clientSubnet !== undefined && { clientSubnet }),
    ...(incomplete && { incomplete }),
    ...(soa !== null && { soa: { name: soa.owner, value: soa.value, ttl: soa.ttl } }),
  };
}

/** The details of a reply, in an answer or an error. */
export function detailsOf({ resolver, outcome, records, queryTime, ...details }: DnsReply) {
  return details;
}
