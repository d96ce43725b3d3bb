/** Names of codes, from IANA registries: DNS parameters, extended DNS errors (RFC 8914), types of certificates, DNSSEC algorithms. */
import faults from "./certificate-faults.json" with { type: "json" };
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

/** The name of a code; without one, the prefix and the code. */
const nameIn = (registry: Readonly<Record<string, string>>, code: number, prefix = "") =>
  registry[code] ?? `${prefix}${code}`;

/** The response code's name in upper case, `RCODE` and the number for one without a name. */
export const rcodeName = (rcode: number) => nameIn(registries.rcodes, rcode, "RCODE");

/** The name of the type of a certificate (RFC 4398 section 2.1), or its number. */
export const certificateTypeName = (type: number) => nameIn(registries.certificateTypes, type);

/** The name of a DNSSEC algorithm, or its number. */
export const algorithmName = (algorithm: number) => nameIn(registries.algorithms, algorithm);

/** The name of an extended error's INFO-CODE; undefined if the registry has none. */
export const extendedErrorName = (code: number) => registries.extendedErrors[code];

const firstOf =
  (...codes: readonly number[]) =>
  (errors: readonly ExtendedError[]) =>
    errors.find(({ code }) => codes.includes(code));

/** Forged Answer, Blocked, Censored, Filtered; RFC 8914 section 4. */
const blocked = firstOf(4, 15, 16, 17);

/** The reason that a resolver gives for blocking a name; undefined if it gives none. */
export function blockReason(errors: readonly ExtendedError[]): string | undefined {
  const reason = blocked(errors);
  return reason && errorText(reason);
}

/** The error that marks an answer as older than its TTL; RFC 8767. */
export const staleReason = firstOf(3, 19);

/** INFO-CODEs for a fault that DNSSEC proves; RFC 8914 section 4, and its IANA registry. */
const wrong = firstOf(7, 8, 11, 25);

/** INFO-CODEs for signatures or keys that are missing, as they are if no server of the zone answers. */
const missing = firstOf(6, 9, 10, 12);

/** No Reachable Authority, Network Error. */
const unreached = firstOf(22, 23);

/** The error that calls an answer bogus (DNSSEC proves it false or incomplete), and advice; undefined if there is none. */
export function bogusReason(errors: readonly ExtendedError[]) {
  const fault = wrong(errors);
  if (fault) return { ...fault, advice: "the owner of its zone must repair the signatures" };
  const gap = unreached(errors) ? undefined : missing(errors);
  return gap && { ...gap, advice: "validate DNSSEC to see what is wrong" };
}

/** An extended error as messages have it: its name, and its text if it has one. */
export function errorText({ code, name = `extended error ${code}`, text }: ExtendedError): string {
  return text === undefined ? name : `${name}: ${text}`;
}

/** Errors of certificates, and what to do about them; RFC 5280 section 6. */
const CERTIFICATE_FAULTS = new Map(Object.entries(faults));

/** The fault of a server's certificate by the outcome of an attempt, `CODE over TLS`, and what to do; undefined for other outcomes. */
export function certificateFault(outcome: string) {
  const [code = ""] = outcome.split(" ");
  const row = CERTIFICATE_FAULTS.get(code);
  return row && { ...row, fault: `${row.fault} (${outcome})` };
}
