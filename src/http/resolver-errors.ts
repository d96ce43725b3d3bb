import type { ResolverName } from "../config.ts";
import type { DnsOutcome } from "../dns/outcome.ts";
import { ApiError, clientGone, quote } from "./errors.ts";

type WithRecords<Shown> = Extract<DnsOutcome<Shown>, { readonly records: unknown }>;

/**
 * Passes an answer through, be it without a record of the asked type.
 *
 * @throws ApiError HOSTNAME_NOT_FOUND, RESOLVER_TIMEOUT or RESOLVER_FAILURE
 */
export function requireAnswer<Shown>(
  outcome: DnsOutcome<Shown>,
  hostname: string,
  resolver: ResolverName,
): WithRecords<Shown> {
  const details = { hostname, resolver };
  switch (outcome.kind) {
    case "answer":
    case "no-data":
      return outcome;
    case "name-error":
      throw new ApiError(
        "HOSTNAME_NOT_FOUND",
        `${quote(hostname)} does not exist, says ${resolver} (NXDOMAIN); check its spelling.`,
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
      throw new ApiError(
        "RESOLVER_FAILURE",
        `${resolver} failed with ${rcode} for ${quote(hostname)}; try again or another resolver.`,
        { ...details, rcode, ...(extendedErrors.length > 0 && { extendedErrors }) },
      );
    }
    case "aborted":
      throw clientGone();
  }
}
