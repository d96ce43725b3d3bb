/** The steps of a check, and all that they can find. */

/** The steps, in the order in which people read them. */
export const STEPS = [
  "names",
  "policy",
  "echo",
  "tcp",
  "tls",
  "http",
  "compare",
  "mtu",
  "mtr",
  "trace",
] as const;

type StepName = (typeof STEPS)[number];

/** Steps that are taken with each address. */
export const WITH_ADDRESS: readonly StepName[] = ["policy", "echo", "tcp", "tls", "http"];

interface Placed {
  readonly name: StepName;
  readonly ip?: string | undefined;
}

/** Steps in the order in which people read them: those of an address together, IPv4 behind IPv6. */
export function inOrder<Step extends Placed>(steps: readonly Step[]): Step[] {
  const ips = [...new Set(steps.flatMap(({ ip }) => ip ?? []))];
  const placeOf = ({ name, ip = "" }: Step) => [
    WITH_ADDRESS.includes(name) ? 1 : name === "names" ? 0 : 2,
    ...(WITH_ADDRESS.includes(name) ? [ip.includes(":") ? 0 : 1, ips.indexOf(ip)] : []),
    STEPS.indexOf(name),
  ];
  const compare = (a: readonly number[], b: readonly number[]) =>
    a.map((place, at) => place - (b[at] ?? 0)).find((difference) => difference !== 0) ?? 0;
  return steps.toSorted((a, b) => compare(placeOf(a), placeOf(b)));
}

/**
 * All that a step can find, the worst first: a failure if no connection over IPv6 comes about, or a browser shows
 * an error; a warning if it works worse than it could. The words go on after the name or the address.
 */
export const FINDINGS = {
  "no-such-name": ["fail", "does not exist"],
  "names-unknown": ["fail", "could not be looked up"],
  "ipv6-unknown": ["fail", "has IPv4 addresses, but its IPv6 addresses cannot be looked up"],
  "dnssec-bogus": ["fail", "fails DNSSEC validation, so resolvers that validate do not resolve it"],
  "no-ipv6": ["fail", "has no IPv6 address"],
  "not-public": ["fail", "cannot be reached from outside its network"],
  "not-allowed": ["fail", "may not be probed by this service"],
  "not-sent": ["fail", "cannot be reached from this machine"],
  unreachable: ["fail", "cannot be reached"],
  "no-answer": ["fail", "does not answer"],
  "port-silent": ["fail", "does not answer on port {port}"],
  "port-closed": ["fail", "refuses connections to port {port}"],
  "not-opened": ["fail", "does not accept connections to port {port}"],
  "mtu-black-hole": ["fail", "accepts connections and goes silent, because large packets vanish"],
  "tls-silent": ["fail", "accepts connections and does not answer the TLS handshake"],
  "tls-failed": ["fail", "does not complete the TLS handshake"],
  "not-tls": ["fail", "does not speak TLS on port {port}"],
  "certificate-expired": ["fail", "shows a certificate that has expired"],
  "certificate-not-yet-valid": ["fail", "shows a certificate that is not valid yet"],
  "certificate-name": ["fail", "shows a certificate for another name"],
  "certificate-untrusted": ["fail", "shows a certificate that no known authority has signed"],
  "http-silent": ["fail", "accepts connections and does not answer HTTP requests"],
  "not-http": ["fail", "does not answer HTTP requests with HTTP"],
  "http-error": ["fail", "answers HTTP requests with an error"],
  "redirect-without-ipv6": ["fail", "redirects to a name without an IPv6 address"],
  "http-differs": ["warn", "answers HTTP requests otherwise than over IPv4"],
  "large-packets": ["warn", "is behind a path where large packets vanish"],
  "large-doubtful": ["warn", "may be behind a path where large packets vanish"],
  "path-loss": ["warn", "is behind a path that loses packets"],
  "path-doubtful": ["warn", "may be behind a path that loses packets"],
  "own-machine": ["warn", "belongs to the machine that tests, so the way to it is not tested"],
  "translator-only": ["warn", "has only addresses that a translator (NAT64) makes of IPv4"],
  "special-address": ["warn", "has an address that not every network reaches"],
  slower: ["warn", "is slower over IPv6 than over IPv4"],
  "resolvers-differ": ["warn", "has no IPv6 address at one of the resolvers"],
  "resolver-silent": ["warn", "could not be looked up at all resolvers"],
  "certificate-expires": ["warn", "shows a certificate that expires soon"],
  "no-echo": ["warn", "does not answer echo requests (ping)"],
} as const satisfies Readonly<Record<string, readonly ["fail" | "warn", string]>>;

export type Finding = keyof typeof FINDINGS;

const ALLOW = "Allow TCP port {port} over IPv6 at the firewalls, as over IPv4.";
const LISTEN = "Let the server listen on this address too, and the firewalls allow it.";
const TOO_BIG =
  "Let ICMPv6 Packet Too Big through all firewalls, or lower the MSS at the narrow link.";
const CERTIFICATE = "Install a certificate that is valid, for this address too.";

/** The usual way to mend a finding, for those who run the name; absent where the evidence says it, or there are many. */
export const ADVICE: Readonly<Partial<Record<Finding, string>>> = {
  "dnssec-bogus": "Sign the zone again, or withdraw its DS record.",
  "no-ipv6": "Add an AAAA record when its server can be reached over IPv6.",
  "not-public": "Publish a global address in its place, or none.",
  unreachable: "Ask whoever runs the router or firewall that says so.",
  "no-answer": "Look whether the server has this address, and for firewalls that drop IPv6.",
  "port-silent": ALLOW,
  "port-closed": LISTEN,
  "not-opened": LISTEN,
  "mtu-black-hole": TOO_BIG,
  "tls-silent":
    "Look for a server that is overloaded, or for large packets that vanish on the return path.",
  "certificate-expired": CERTIFICATE,
  "certificate-not-yet-valid": CERTIFICATE,
  "certificate-name": CERTIFICATE,
  "certificate-untrusted": CERTIFICATE,
  "redirect-without-ipv6": "Give that name an AAAA record too.",
  "http-differs": "Compare the settings of the server for both addresses.",
  "large-packets": TOO_BIG,
  "own-machine": "Test it from another machine too.",
  "certificate-expires": "Renew it.",
};

export const CODES = Object.keys(FINDINGS) as Finding[];

/** The findings that are failures. */
export const FAILURES = CODES.filter((code) => FINDINGS[code][0] === "fail");

/** The codes of the verdict: the worst finding, or that there is none. */
export const VERDICTS = ["works", "partly", "unknown", ...CODES] as const;
