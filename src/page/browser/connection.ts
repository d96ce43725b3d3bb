import { factsOf, type Report, type Tone } from "../../tools/report.ts";

/** The end of a request: `failed` at once or after a while, `silent` until the page gave up. */
export type Outcome = "answered" | "failed" | "silent";

/** Seconds after which a request is silent: TCP has sent its first packet three times by then. */
export const PATIENCE_SECONDS = 5;

/** The answer over one address family. */
export interface Family {
  readonly outcome: Outcome;
  /** The caller's address and its family as the service saw them; null if it did not say. */
  readonly seen: { readonly ip: string; readonly version: 4 | 6 } | null;
}

/** The measurements of the caller's connection. */
export interface Measured {
  /** The family that the page itself came over, under a name with both; null if its name may have one only. */
  readonly page: 4 | 6 | null;
  readonly ipv4: Family;
  /** The answer under a name without an IPv4 address. */
  readonly ipv6: Family;
  /** A large answer over IPv6; null if there was none to try. */
  readonly large: Outcome | null;
  /** The answer over IPv4 where DNS64 does not help; null if the service has no URL for it. */
  readonly direct: Outcome | null;
}

/** The sentence of each conclusion, and below it the advice. */
const SENTENCES = {
  "not-one-family":
    "Nothing can be said: the names for this test do not lead to one address family each.\nThe operator of this service can correct SIXSCOPE_IPV4_URL and SIXSCOPE_IPV6_URL.",
  inconclusive:
    "Nothing can be said: no name for this test could be reached over the family of this page.\nAn extension of the browser, a proxy or the resolver may block the names. Try another browser or network.",
  "name-without-ipv4":
    "IPv6 works, but not under a name without an IPv4 address.\nYour resolver probably does not give out such names. Try another resolver.",
  "ipv6-silent": `IPv6 is broken: there was no answer over it within ${PATIENCE_SECONDS} s.\nYour router offers IPv6, but packets do not come back. Restart the router; if that does not help, send your provider this sentence.`,
  "no-ipv6":
    "IPv6 does not work: its connection failed.\nProbably your device has no IPv6 address, or a firewall or VPN refuses IPv6. Turn IPv6 on in the router, or ask your provider for it.",
  "large-answers":
    "IPv6 works for small answers only: a large one did not arrive.\nProbably a link on the way is too narrow, and the ICMPv6 messages that say so are lost (a path MTU black hole). Let ICMPv6 through the firewall, or lower the MTU of the router to 1280. Path MTU to your address may show where.",
  "ipv6-only":
    "IPv6 works; IPv4 does not.\nServices that have IPv4 only cannot be reached. The network needs NAT64 with DNS64, or IPv4.",
  dns64: "IPv6 works, and names with IPv4 only are probably reached over it too (DNS64 and NAT64).",
  "not-preferred":
    "IPv6 works, although your browser chose IPv4 for this page.\nBrowsers use IPv4 if the first answer over IPv6 is late, or if the only IPv6 address is a local one (fc00::/7). Load the page again; if it stays so, look for lost packets with Ping.",
  preferred: "IPv6 works and is preferred.",
  both: "IPv6 works, as does IPv4.",
};

type Code = keyof typeof SENTENCES;

/** The conclusions that are bad news. */
const BAD: readonly Code[] = ["ipv6-silent", "no-ipv6", "large-answers"];

/** See `conclude`. */
export type Conclusion = ReturnType<typeof conclude>;

/** Concludes from measurements whether a connection is ready for IPv6; the advice is empty if all is well. */
export function conclude(measured: Measured) {
  const code = codeOf(measured);
  const [text = "", advice = ""] = SENTENCES[code].split("\n");
  const tone: Tone = BAD.includes(code) ? "bad" : advice === "" ? "good" : "warn";
  return { code, verdict: { tone, text }, advice, facts: factsAbout(measured) };
}

function codeOf({ page, ipv4, ipv6, large, direct }: Measured): Code {
  const [has4, has6] = [ipv4, ipv6].map(({ outcome }) => outcome === "answered");
  if (ipv4.seen?.version === 6 || ipv6.seen?.version === 4) return "not-one-family";
  if (!has4 && (!has6 || page === 4)) return "inconclusive";
  if (!has6 && page === 6) return "name-without-ipv4";
  if (!has6) return ipv6.outcome === "silent" ? "ipv6-silent" : "no-ipv6";
  if (large !== null && large !== "answered") return "large-answers";
  if (!has4) return "ipv6-only";
  if (direct !== null && direct !== "answered") return "dns64";
  return page === 6 ? "preferred" : page === 4 ? "not-preferred" : "both";
}

function factsAbout({ page, ipv4, ipv6, large, direct }: Measured): Report["facts"] {
  const textOf = (outcome: Outcome | null) =>
    outcome === "silent" ? `no answer within ${PATIENCE_SECONDS} s` : outcome;
  const isBad = (outcome: Outcome | null) => outcome !== "answered" && "bad";
  const about = ({ outcome, seen }: Family) => seen?.ip ?? textOf(outcome);
  return factsOf(
    ["IPv4", about(ipv4), isBad(ipv4.outcome)],
    ["IPv6, by a name without IPv4", about(ipv6), isBad(ipv6.outcome)],
    ["This page", page && `came over IPv${page}`],
    ["Large answer over IPv6", textOf(large), isBad(large)],
    ["IPv4 without DNS64", textOf(direct)],
  );
}
