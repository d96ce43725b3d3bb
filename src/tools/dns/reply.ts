import type { DnssecDetails } from "../../api/dns-schemas.ts";
import { ApiError, clientGone } from "../../api/errors.ts";
import type { ResolverName } from "../../config/settings.ts";
import type { Translation } from "../../dns/dns64.ts";
import { withoutFinalDot } from "../../dns/message/name.ts";
import type { DnsRecord } from "../../dns/message/record.ts";
import type { DnsOutcome } from "../../dns/outcome.ts";
import { failureText, nameNotFoundText, timeoutText } from "./failure.ts";

/** The reply of one resolver about a name. */
export interface Reply {
  readonly resolver: ResolverName;
  readonly outcome: DnsOutcome;
  /** Our verdict about DNSSEC, if it was asked for. */
  readonly dnssec?: DnssecDetails;
  /** Its addresses that lead to a translator. */
  readonly translations?: readonly Translation[];
}

type Answered = Extract<DnsOutcome, { readonly rcode: string }>;

/** The details of a reply, in an answer or an error. */
export function detailsOf({ outcome, dnssec: checked, translations = [] }: Reply) {
  const { question, attempts } = outcome;
  const dnssec = checked && { dnssec: checked };
  if (!("server" in outcome)) return { question, attempts, ...dnssec };
  const { server, transport, rcode, authenticated, extendedErrors, soa, incomplete } = outcome;
  const { nsid, clientSubnet } = outcome;
  return {
    question,
    server,
    transport,
    rcode,
    authenticated,
    extendedErrors,
    ...(nsid !== undefined && { nsid }),
    ...(clientSubnet !== undefined && { clientSubnet }),
    ...(incomplete && { incomplete: true as const }),
    ...(soa !== null && { soa: { name: soa.owner, value: soa.value, ttl: soa.ttl } }),
    ...(translations.length > 0 && { dns64: translations }),
    ...dnssec,
    attempts,
  };
}

/**
 * Passes through an answer, with or without a record of the requested type.
 *
 * @param hostname the name, or the address of a reverse name, as it was sent
 * @param more further details of an error
 * @throws ApiError HOSTNAME_NOT_FOUND, RESOLVER_TIMEOUT or RESOLVER_FAILURE
 */
export function requireAnswer(reply: Reply, hostname: string, more: object = {}): Answered {
  const { outcome, resolver } = reply;
  if (outcome.kind === "aborted") throw clientGone();
  const details = { hostname, resolver, ...detailsOf(reply), ...more };
  if (!("rcode" in outcome)) throw new ApiError("RESOLVER_TIMEOUT", details, timeoutText(details));
  if (outcome.kind === "answer" || outcome.kind === "no-data") return outcome;
  const { rcode, records } = outcome;
  const known = { ...details, rcode, ...(records.length > 0 && { records }) };
  if (outcome.kind === "name-error") {
    const text = nameNotFoundText(known, endOfChain(records));
    throw new ApiError("HOSTNAME_NOT_FOUND", known, text);
  }
  const unreachable = outcome.kind === "unreachable" ? outcome.reason : undefined;
  throw new ApiError("RESOLVER_FAILURE", known, failureText(known, unreachable));
}

/** The name that a CNAME chain leads to. */
function endOfChain(chain: readonly DnsRecord[]): string | undefined {
  const last = chain.findLast(({ type }) => type === "CNAME");
  return last && withoutFinalDot(last.value);
}
