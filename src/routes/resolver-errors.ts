import { tryParseIp } from "../addr/ip.ts";
import type { ResolverName } from "../config/settings.ts";
import type { DnsOutcome } from "../dns/client.ts";
import { withoutFinalDot } from "../dns/name.ts";
import type { DnsRecord } from "../dns/record.ts";
import { ApiError, clientGone } from "../http/errors.ts";
import { quote } from "../util/text.ts";

type WithRecords = Extract<DnsOutcome, { readonly records: unknown }>;

type Failure = Extract<DnsOutcome, { readonly kind: "failure" | "malformed" | "unreachable" }>;

/**
 * Passes an answer through, be it without a record of the asked type.
 *
 * @param hostname what was asked for, as the caller wrote it; an address where its name was asked for
 * @throws ApiError HOSTNAME_NOT_FOUND, RESOLVER_TIMEOUT or RESOLVER_FAILURE
 */
export function requireAnswer(
  outcome: DnsOutcome,
  hostname: string,
  resolver: ResolverName,
): WithRecords {
  const details = { hostname, resolver };
  switch (outcome.kind) {
    case "answer":
    case "no-data":
      return outcome;
    case "name-error":
      throw new ApiError(
        "HOSTNAME_NOT_FOUND",
        whatIsMissing(hostname, endOfChain(outcome.records), `says ${resolver} (NXDOMAIN)`),
        details,
      );
    case "timeout":
      throw new ApiError(
        "RESOLVER_TIMEOUT",
        `${resolver} did not answer in time for ${quote(hostname)}; try again or another resolver.`,
        details,
      );
    case "failure":
    case "malformed":
    case "unreachable": {
      const { rcode, extendedErrors } = outcome;
      throw new ApiError("RESOLVER_FAILURE", whatFailed(outcome, hostname, resolver), {
        ...details,
        rcode,
        ...(extendedErrors.length > 0 && { extendedErrors }),
      });
    }
    case "aborted":
      throw clientGone();
  }
}

/** What does not exist: the name itself, or the one that its CNAME records lead to. */
function whatIsMissing(hostname: string, end: string | null, source: string): string {
  const name = quote(hostname);
  const lead = end && `CNAME records lead to ${quote(end)}, which does not exist`;
  if (tryParseIp(hostname) !== null) {
    const why = lead === null ? "" : `, for its ${lead}`;
    return `${name} has no reverse name${why}, ${source}; check the address, or ask its holder for a PTR record.`;
  }
  return lead === null
    ? `${name} does not exist, ${source}; check its spelling.`
    : `${name} exists, but its ${lead}, ${source}; ask its owner to correct them, or try another name.`;
}

/** What happened instead of an answer, with the errno name for the operator who reads it in the log. */
function whatFailed(outcome: Failure, hostname: string, resolver: ResolverName): string {
  const name = quote(hostname);
  const next = "try again or another resolver";
  if (outcome.kind === "unreachable") {
    return `${resolver} could not be reached for ${name} (${outcome.reason}); ${next}.`;
  }
  if (outcome.kind === "malformed") {
    return `${resolver} gave a malformed answer for ${name}, such as a loop of CNAME records; ${next}.`;
  }
  if (outcome.rcode === "REFERRAL") {
    return `${resolver} does not ask other servers for ${name}, it only names some; try another resolver.`;
  }
  if (outcome.rcode === "TOO_LARGE") {
    return `${resolver} gave an answer for ${name} that is too large to show; ask for another type or name.`;
  }
  return `${resolver} failed with ${outcome.rcode} for ${name}; ${next}.`;
}

/** The name that a CNAME chain leads to, null without a chain. */
function endOfChain(chain: readonly DnsRecord[]): string | null {
  const last = chain.at(-1);
  return last?.type === "CNAME" ? withoutFinalDot(last.value) : null;
}
