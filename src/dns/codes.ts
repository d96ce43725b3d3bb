/** Names of codes, from IANA registries: DNS parameters, extended DNS errors (RFC 8914), types of certificates, DNSSEC algorithms. */
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

/** Names by their codes. */
type Registry = Readonly<Record<string, string>>;

const nameIn = (registry: Registry, code: number, prefix = "") =>
  registry[code] ?? `${prefix}${code}`;

/** The response code's name in upper case, `RCODE` and the number for one without a name. */
export const rcodeName = (rcode: number) => nameIn(registries.rcodes, rcode, "RCODE");

/** The name of the type of a certificate (RFC 4398 section 2.1), or its number. */
export const certificateTypeName = (type: number) => nameIn(registries.certificateTypes, type);

/** The name of a DNSSEC algorithm, or its number. */
export const algorithmName = (algorithm: number) => nameIn(registries.algorithms, algorithm);

/** The name of an extended error's INFO-CODE; undefined if the registry has none. */
export const extendedErrorName = (code: number) => registries.extendedErrors[code];

/** INFO-CODEs by which a resolver says that its DNSSEC validation failed; RFC 8914 section 4, and its IANA registry. */
const BOGUS_CODES: readonly number[] = [6, 7, 8, 9, 10, 11, 12, 25];

/** Those of them that say only that something is missing, which is no surprise if no server of the zone answers. */
const MISSING_CODES: readonly number[] = [6, 9, 10, 12];

/** INFO-CODEs by which a resolver says that it got no answer: No Reachable Authority, Network Error. */
const UNREACHED_CODES: readonly number[] = [22, 23];

/** Why a resolver says that the answer is bogus (DNSSEC proves it false or incomplete), and what to do; undefined if it does not say so. */
export function bogusReason(errors: readonly ExtendedError[]) {
  const isUnreached = errors.some(({ code }) => UNREACHED_CODES.includes(code));
  const bogus = errors.filter(({ code }) => BOGUS_CODES.includes(code));
  const exact = bogus.find(({ code }) => !MISSING_CODES.includes(code));
  if (exact) return { ...exact, advice: "the owner of its zone must repair the signatures" };
  const [vague] = isUnreached ? [] : bogus;
  return vague && { ...vague, advice: "validate DNSSEC to see what is wrong" };
}

/** INFO-CODEs by which a resolver says that it does not give the true answer: Forged Answer, Blocked, Censored, Filtered; RFC 8914 section 4. */
const BLOCK_CODES: readonly number[] = [4, 15, 16, 17];

/** Why a resolver blocks a name, in its words; undefined if it does not say that it does. */
export function blockReason(errors: readonly ExtendedError[]): string | undefined {
  const reason = errors.find(({ code }) => BLOCK_CODES.includes(code));
  return reason && errorText(reason);
}

/** The error by which a resolver says that its answer is older than its TTL; RFC 8767. */
export function staleReason(errors: readonly ExtendedError[]): ExtendedError | undefined {
  return errors.find(({ code }) => code === 3 || code === 19);
}

/** An extended error as messages have it: its name, and its text if it has one. */
export function errorText({ code, name = `extended error ${code}`, text }: ExtendedError): string {
  return text === undefined ? name : `${name}: ${text}`;
}

const CLOCK_OR_OWNER =
  "check the clock of this machine; if it is right, tell the operator of the server";
const TRUST =
  "if you trust the server, set NODE_EXTRA_CA_CERTS to the PEM file of its certificate's authority";

const UNKNOWN_AUTHORITY = [
  "its certificate is from an authority that is not trusted here",
  TRUST,
] as const;

/** Errors of certificates, and what to do about them; RFC 5280 section 6. */
const CERTIFICATE_FAULTS: Readonly<Record<string, readonly [fault: string, advice: string]>> = {
  CERT_HAS_EXPIRED: ["its certificate has expired", CLOCK_OR_OWNER],
  CERT_NOT_YET_VALID: ["its certificate is not valid yet", CLOCK_OR_OWNER],
  ERR_TLS_CERT_ALTNAME_INVALID: [
    "its certificate is for other names",
    "write the name in the certificate behind the address: tls://192.0.2.1#dns.example",
  ],
  DEPTH_ZERO_SELF_SIGNED_CERT: ["its certificate is self-signed", TRUST],
  SELF_SIGNED_CERT_IN_CHAIN: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNKNOWN_AUTHORITY,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: ["its certificate comes without that of its authority", TRUST],
};

/** The fault of a server's certificate by the outcome of an attempt, `CODE over TLS`, and what to do; undefined for other outcomes. */
export function certificateFault(outcome: string) {
  const [code = ""] = outcome.split(" ");
  const [fault, advice] = CERTIFICATE_FAULTS[code] ?? [];
  return fault && advice ? { fault: `${fault} (${outcome})`, advice } : undefined;
}
