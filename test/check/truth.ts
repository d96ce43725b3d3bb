/** What a check must conclude of a name whose truth is known, as far as the design says it. */
/** The truth about a name: each field one value, or those of which one must be. */
export interface Truth {
  readonly code: string | readonly string[];
  /** Absent where the design leaves it open. */
  readonly answer?: string | readonly string[];
  /** Null if nothing is wrong. */
  readonly fault?: string | null | readonly (string | null)[];
  /** The number of the router that is named, from 1; null if none may be. */
  readonly at?: number | readonly number[] | null;
}

const among = (allowed: unknown, found: unknown): boolean =>
  allowed === undefined || (Array.isArray(allowed) ? allowed.includes(found) : allowed === found);

/**
 * What is wrong with a verdict: the fields that differ from the truth, each with what was found.
 *
 * @param routers the address of each router on the way
 */
export function mistakesIn(
  verdict: object,
  { code, answer, fault, at }: Truth,
  routers: readonly string[],
): readonly string[] {
  const found = verdict as Readonly<Partial<Record<keyof Truth, string | null>>>;
  const wrong = (name: string, value: unknown, allowed: unknown) =>
    among(allowed, value) ? [] : [`${name} ${value}, not ${allowed}`];
  const addresses = (at === null ? [] : [at ?? []].flat()).map((hop) => routers[hop - 1]);
  return [
    ...wrong("code", found.code, code),
    ...wrong("answer", found.answer, answer),
    ...wrong("fault", found.fault, fault),
    ...(at === undefined ? [] : wrong("at", found.at, at === null ? undefined : addresses)),
    ...(at === null && found.at !== undefined ? [`at ${found.at}, not absent`] : []),
  ];
}

const works: Truth = { code: "works", answer: "yes", fault: null, at: null };

/** The truth about an address that fails because of the site. */
const ofSite = (code: string | readonly string[], answer = "no"): Truth => ({
  ...{ code, answer, fault: "site" },
});

/** A router of the way refuses what goes to port 443; it is the second. */
const ofRouter = (code: string | readonly string[] = "rejected"): Truth => ({
  ...{ code, answer: "no", fault: "path", at: 2 },
});

const here: Truth = { code: "not-sent", answer: "not-from-here", fault: "here" };

/** That of the faults of `../tools/check/faults.ts`, by name. */
export const KNOWN: Readonly<Record<string, Truth>> = {
  healthy: works,
  "only-ipv6": works,
  plain: works,
  ssh: works,
  literal: works,
  "literal-plain": works,
  secure: works,
  "no-aaaa": ofSite("no-ipv6"),
  ula: ofSite("not-public"),
  "ula-too": { code: "not-public", answer: "no", fault: "site" },
  dead: { code: "no-answer", answer: "no", fault: ["site", "unknown"] },
  "all-silent": { code: "no-answer", answer: "no", fault: ["site", "unknown"] },
  "only-ipv4-silent": works,
  // The last router looks for a neighbour that is not there.
  unreachable: {
    code: ["unreachable", "no-answer"],
    answer: "no",
    fault: ["site", "path", "unknown"],
  },
  "half-dead": ofSite("partly", "partly"),
  "mostly-dead": ofSite("partly", "partly"),
  "all-dead": { code: "no-answer", answer: "no", fault: ["site", "unknown"] },
  "only-for-probes": { code: "port-silent", answer: "no" },
  "not-for-probes": works,
  "few-connections": { code: ["stopped", "unknown"] },
  "few-connections-to-ssh": { code: "stopped", fault: "path", at: 1 },
  // Too few are lost to prove a limit, sometimes.
  "few-a-second": { code: ["unknown", "path-doubtful", "sometimes", "stopped"], fault: "unknown" },
  "closed-before-tls": { code: "stopped", fault: ["site", "unknown"] },
  "silent-before-http": { code: ["stopped", "unknown"] },
  "closed-before-http": { code: "stopped", fault: ["site", "unknown"] },
  closed: ofSite("port-closed"),
  dropped: { code: "port-silent", answer: "no" },
  "dropped-on-the-way": { code: "port-silent", answer: "no" },
  "dropped-with-few-echo-replies": { code: "port-silent", answer: "no" },
  "rejected-with-no-route": ofRouter(),
  "rejected-with-addr-unreachable": ofRouter(),
  "rejected-with-port-unreachable": ofRouter(),
  "rejected-with-policy-fail": ofRouter(),
  "rejected-with-reject-route": ofRouter(),
  prohibited: ofRouter(),
  "all-prohibited": ofRouter(["rejected", "unreachable"]),
  // A router can answer in the name of the site.
  reset: { code: "port-closed", answer: "no" },
  expired: ofSite("certificate-expired"),
  early: ofSite("certificate-not-yet-valid"),
  other: ofSite("certificate-name"),
  own: ofSite("certificate-untrusted"),
  soon: { code: "certificate-expires", answer: "yes", fault: "site" },
  "no-tls": ofSite("not-tls"),
  "ssh-on-443": ofSite("not-tls"),
  "ssh-on-80": ofSite("not-http"),
  alert: ofSite("tls-failed"),
  closer: ofSite("tls-failed"),
  "http-closed": ofSite("http-silent"),
  tarpit: ofSite("tls-silent"),
  "http-silent": ofSite("http-silent"),
  "error-over-ipv6": ofSite("http-error"),
  error: ofSite("http-error"),
  "not-found-over-ipv6": { code: "http-differs", answer: "yes", fault: "site" },
  "not-found-at-the-second": { code: "http-differs", answer: "yes", fault: "site" },
  "without-head": works,
  "redirect-to-nowhere": ofSite(["redirect-without-ipv6", "redirect-broken"]),
  "redirect-to-ipv4": ofSite("redirect-without-ipv6"),
  redirect: works,
  "black-hole": { code: "mtu-black-hole", answer: "no", fault: "path" },
  "black-hole-for-http": { code: "mtu-black-hole", answer: "no", fault: "path" },
  // From the second connection on, this machine tells the server the size that its first message has taught it.
  "black-hole-on-the-way-back": { code: ["tls-silent", "mtu-black-hole", "sometimes"] },
  "no-large-echo": { code: "large-doubtful", answer: "yes", fault: ["unknown", "path", "site"] },
  "lossy-10": { code: ["works", "path-doubtful", "path-loss", "unknown"] },
  // A router loses SYNs, and mtr can see where.
  "lossy-20": { code: ["path-loss", "path-doubtful", "unknown"] },
  far: { code: "slower", answer: "yes", fault: ["unknown", "path"] },
  bogus: { code: "dnssec-bogus", answer: "no", fault: "dns" },
  differ: { code: "resolvers-differ", answer: "yes", fault: "dns" },
  "no-echo": { code: "no-echo", answer: "yes" },
  "echo-limit": { code: "works", answer: "yes", fault: null },
  "no-route": here,
  "one-resolver-silent": { code: "resolver-silent", answer: "yes", fault: ["dns", "here"] },
  "resolvers-silent": {
    code: "names-unknown",
    answer: ["not-known", "not-from-here"],
    fault: ["dns", "here"],
  },
  translated: { code: "translator-only", answer: "yes" },
  narrow: works,
  "only-ipv4-again": ofSite("no-ipv6"),
  "no such name": { code: "no-such-name", answer: "no", fault: ["dns", "site"] },
  "healthy, without a raw socket": works,
  "closed, without a raw socket": { code: ["not-opened", "port-closed"], answer: "no" },
  "unreachable, without a raw socket": { code: ["not-opened", "unreachable"], answer: "no" },
  "no route, without a raw socket": here,
  "a dead address": { code: "no-answer", answer: "no", fault: ["site", "unknown"] },
  "dropped, without a raw socket": { code: "port-silent", answer: "no" },
  // Without one, no large packets are sent.
  "a tarpit, without a raw socket": { ...ofSite("tls-silent"), fault: "unknown" },
};
