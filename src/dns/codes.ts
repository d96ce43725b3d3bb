/** Names of codes, from the IANA registries of DNS RCODEs and of extended DNS errors (RFC 8914). */
import registries from "./registries.json" with { type: "json" };

/** The reason that a resolver gives for its answer; RFC 8914. */
export interface ExtendedError {
  /** The INFO-CODE. */
  readonly code: number;
  /** The code's name; absent if the registry has none. */
  readonly name?: string;
  /** The EXTRA-TEXT, safe to print and cut to 256 characters; absent when it is empty. */
  readonly text?: string;
}

/** The response code's name in upper case, `RCODE` and the number for one without a name. */
export function rcodeName(rcode: number): string {
  return (registries.rcodes as Readonly<Record<string, string>>)[rcode] ?? `RCODE${rcode}`;
}

/** The name of an extended error's INFO-CODE; undefined if the registry has none. */
export function extendedErrorName(code: number): string | undefined {
  return registries.extendedErrors[code];
}

/** INFO-CODEs by which a resolver says that its DNSSEC validation failed; RFC 8914 section 4, and its IANA registry. */
const BOGUS_CODES: readonly number[] = [6, 7, 8, 9, 10, 11, 12, 25];

/** The error by which a resolver says that the answer is bogus: DNSSEC proves it false or incomplete. */
export function bogusReason(errors: readonly ExtendedError[]): ExtendedError | undefined {
  return errors.find(({ code }) => BOGUS_CODES.includes(code));
}
