import { tryParseIp } from "../../addr/ip.ts";
import { ApiError, type ErrorDetails } from "../../api/errors.ts";
import { blockReason, bogusReason, certificateFault, errorText } from "../../dns/message/codes.ts";
import { withoutFinalDot } from "../../dns/message/name.ts";
import { inWords, quote } from "../../util/text.ts";
import { detailsOf } from "./reply.ts";
import type { DnsReply } from "./result.ts";

/** The details of an error about a name, for its message. */
type Query = Omit<ErrorDetails<"NO_IPV6_ADDRESS">, "resolver"> & { readonly resolver: string };

/**
 * Throws unless a reply is an answer, with or without a record of the requested type.
 *
 * @param hostname the name, or the address of a reverse name, as it was sent
 * @param more further details of an error
 * @param about further sentences for the message; they are all of it if no server was asked
 * @throws ApiError HOSTNAME_NOT_FOUND, RESOLVER_TIMEOUT or RESOLVER_FAILURE
 */
export function requireAnswer(reply: DnsReply, hostname: string, more: object = {}, about = "") {
  const { outcome, resolver, records, rcode, attempts } = reply;
  if (outcome === "answer" || outcome === "no-data") return;
  const details = { hostname, resolver, ...detailsOf(reply), ...more };
  const told = { ...details, resolver: resolver === "zone" ? "the zone" : resolver };
  const say = (own: string) => `${attempts.length > 0 || !about ? `${own} ` : ""}${about}`.trim();
  if (rcode === undefined) throw new ApiError("RESOLVER_TIMEOUT", details, say(timeoutText(told)));
  const failed = { ...details, rcode, ...(records.length > 0 && { records }) };
  if (outcome === "name-error") {
    const link = records.findLast(({ type }) => type === "CNAME");
    const text = nameNotFoundText(told, link && withoutFinalDot(link.value));
    throw new ApiError("HOSTNAME_NOT_FOUND", failed, say(blockedText(told) ?? text));
  }
  const attempt = attempts.find(({ server }) => server === reply.server);
  const unreachable = outcome === "unreachable" ? attempt?.outcome : undefined;
  const text = blockedText(told) ?? failureText({ ...told, rcode }, unreachable);
  throw new ApiError("RESOLVER_FAILURE", failed, say(text));
}

/** Failures of a resolver in words, where the code alone is not clear, and what to do. */
const RESOLVER_FAILURES: Readonly<Record<string, readonly [problem: string, advice?: string]>> = {
  MALFORMED: ["sent a malformed answer"],
  CNAME_LOOP: ["sent a loop of CNAME records", "its owner must correct the CNAME records"],
  UNREACHABLE: ["could not be reached", "try another resolver"],
  REFERRAL: ["only referred to other servers"],
  REFUSED: ["refused to answer", "ask its operator if it serves you, or ask another resolver"],
  TOO_LARGE: ["sent an answer that is too large to show", "ask for another name or type"],
};

/** The failure of a resolver in words, by its response code or one of our own. */
export const problemOf = (rcode: string) => RESOLVER_FAILURES[rcode]?.[0] ?? `failed with ${rcode}`;

/** Attempts that a message lists; the details have all. */
const MAX_ATTEMPTS = 3;

/** The outcome of each attempt at a server. */
function attemptsText(attempts: Query["attempts"]): string {
  const texts = attempts.map(
    ({ server, outcome }) => `${server}: ${certificateFault(outcome)?.fault ?? inWords(outcome)}`,
  );
  const shown = [...new Set(texts)].slice(0, MAX_ATTEMPTS).join(", ");
  return shown || "no server was asked, because too many other questions wait";
}

/** The text for a resolver that says that it blocks the name; undefined if it does not. */
function blockedText({ hostname, resolver, extendedErrors = [] }: Query): string | undefined {
  const reason = blockReason(extendedErrors);
  if (reason === undefined) return undefined;
  return `${resolver} blocks ${quote(hostname)}, as it says (${reason}); ask another resolver, or its operator.`;
}

const proofText = ({ dnssec }: Query) =>
  dnssec ? ` DNSSEC: ${dnssec.verdict}. ${dnssec.text}` : "";

/** The text for a name that does not exist. */
function nameNotFoundText(details: Query, aliasOf?: string): string {
  const { hostname, resolver, dnssec } = details;
  const isAddress = tryParseIp(hostname) !== null;
  const name = `${isAddress ? "The reverse name of " : ""}${quote(hostname)}`;
  const isMisspelt = !isAddress && dnssec?.verdict !== "secure" && "check the spelling";
  const [problem, advice] =
    aliasOf === undefined
      ? ["", isAddress ? "its owner can add a PTR record" : isMisspelt]
      : [`is an alias of ${quote(aliasOf)}, which `, "its owner must correct the CNAME record"];
  const more = advice && dnssec?.verdict !== "bogus" ? `; ${advice}.` : ".";
  return `${name} ${problem}does not exist (NXDOMAIN from ${resolver})${more}${proofText(details)}`;
}

/** The text for a name without an AAAA record. */
export const noAddressText = (details: Query): string =>
  blockedText(details) ??
  `${quote(details.hostname)} exists but has no AAAA record, so it cannot be reached over IPv6; choose another target.`;

/** What to do if the resolver or the zone may be at fault. */
const remedyFor = ({ resolver }: Query) =>
  resolver === "the zone"
    ? "try again"
    : "try again, or see whether the zone's own servers answer (resolver=zone; at the command line, @zone)";

/** The text for a resolver that has not answered in time. */
function timeoutText(details: Query): string {
  const { hostname, resolver, attempts } = details;
  return `${resolver} did not answer in time for ${quote(hostname)} (${attemptsText(attempts)}); ${remedyFor(details)}.`;
}

/** The text for a resolver that refused or failed. */
function failureText(details: Query & { rcode: string }, unreachable?: string): string {
  const { hostname, resolver, rcode, extendedErrors = [], dnssec, attempts } = details;
  const name = quote(hostname);
  if (rcode === "SHORTAGE") {
    return `This service had no socket left (${unreachable}) to ask ${resolver} for ${name}; try again later, or tell its operator.`;
  }
  if (rcode === "UNREACHABLE" && attempts.length === 0) {
    return `/etc/resolv.conf of this machine names no resolver, so ${name} cannot be looked up; name one there, set SIXSCOPE_RESOLVER_A, or ask one with sixscope dns NAME @SERVER.`;
  }
  const reason = bogusReason(extendedErrors);
  const proof = proofText(details);
  if (dnssec !== undefined && dnssec.verdict !== "indeterminate") {
    const why = reason === undefined ? rcode : `${rcode}, ${reason.name}`;
    return `${resolver} does not answer for ${name} (${why}).${proof}`;
  }
  if (reason !== undefined) {
    const more = proof ? `.${proof}` : `; ${reason.advice}.`;
    return `${resolver} says that the DNSSEC data for ${name} is bogus (${reason.name})${more}`;
  }
  const [, advice] = RESOLVER_FAILURES[rcode] ?? [];
  const causes = unreachable ? attemptsText(attempts) : extendedErrors.map(errorText).join(", ");
  const why = causes && ` (${causes})`;
  return `${resolver} ${problemOf(rcode)} for ${name}${why}; ${advice ?? remedyFor(details)}.${proof}`;
}
