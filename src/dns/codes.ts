/** The reason that a resolver gives for its answer; RFC 8914. */
export interface ExtendedError {
  /** The INFO-CODE. */
  readonly code: number;
  /** The code's name; absent if the registry has none. */
  readonly name?: string;
  /** The EXTRA-TEXT, safe to print and cut to 256 characters; absent when it is empty. */
  readonly text?: string;
}

/** Names by number, from the IANA registry of DNS RCODEs. */
const RCODE_NAMES: Readonly<Record<number, string>> = {
  0: "NOERROR",
  1: "FORMERR",
  2: "SERVFAIL",
  3: "NXDOMAIN",
  4: "NOTIMP",
  5: "REFUSED",
  6: "YXDOMAIN",
  7: "YXRRSET",
  8: "NXRRSET",
  9: "NOTAUTH",
  10: "NOTZONE",
  11: "DSOTYPENI",
  16: "BADVERS",
  17: "BADKEY",
  18: "BADTIME",
  19: "BADMODE",
  20: "BADNAME",
  21: "BADALG",
  22: "BADTRUNC",
  23: "BADCOOKIE",
};

/** Names by INFO-CODE: 0 to 24 from RFC 8914 section 4, the rest from its IANA registry. */
const EXTENDED_ERROR_NAMES: readonly string[] = [
  "Other Error",
  "Unsupported DNSKEY Algorithm",
  "Unsupported DS Digest Type",
  "Stale Answer",
  "Forged Answer",
  "DNSSEC Indeterminate",
  "DNSSEC Bogus",
  "Signature Expired",
  "Signature Not Yet Valid",
  "DNSKEY Missing",
  "RRSIGs Missing",
  "No Zone Key Bit Set",
  "NSEC Missing",
  "Cached Error",
  "Not Ready",
  "Blocked",
  "Censored",
  "Filtered",
  "Prohibited",
  "Stale NXDOMAIN Answer",
  "Not Authoritative",
  "Not Supported",
  "No Reachable Authority",
  "Network Error",
  "Invalid Data",
  "Signature Expired before Valid",
  "Too Early",
  "Unsupported NSEC3 Iterations Value",
  "Unable to conform to policy",
  "Synthesized",
  "Invalid Query Type",
];

/** The response code's name in upper case, `RCODE` and the number for one without a name. */
export function rcodeName(rcode: number): string {
  return RCODE_NAMES[rcode] ?? `RCODE${rcode}`;
}

/** The name of an extended error's INFO-CODE; undefined if the registry has none. */
export function extendedErrorName(code: number): string | undefined {
  return EXTENDED_ERROR_NAMES[code];
}

/** INFO-CODEs by which a resolver says that its DNSSEC validation failed; RFC 8914 section 4, and its IANA registry. */
const BOGUS_CODES: readonly number[] = [6, 7, 8, 9, 10, 11, 12, 25];

/** The error by which a resolver says that the answer is bogus: DNSSEC proves it false or incomplete. */
export function bogusReason(errors: readonly ExtendedError[]): ExtendedError | undefined {
  return errors.find(({ code }) => BOGUS_CODES.includes(code));
}
