/** Sites with faults that one look does not show, and the truth about each. */
import type { Backend, Resolvers, Site } from "../tools/check/stage.ts";
import type { Truth } from "./truth.ts";

/** A site, the truth about it, and words of the verdict. */
export interface KnownSite {
  readonly site: Site;
  readonly truth: Truth;
  /** Words of the verdict; those of a number are what was counted. */
  readonly says?: RegExp;
  /** Words that its headline must not have. */
  readonly never?: RegExp;
  readonly resolvers?: Resolvers;
  /** True if a second check would find another state. */
  readonly isOnce?: boolean;
}

/** What nobody may read in the first sentence about a site that works. */
const BROKEN = /does not work|cannot|refuse|fails|vanish|loses|only sometimes|stopped/;

type More = Omit<KnownSite, "site" | "truth">;

const works = (site: Site, more: More = {}): KnownSite => ({
  ...{
    site,
    truth: { code: "works", answer: "yes", fault: null, at: null },
    never: BROKEN,
    ...more,
  },
});

/** A site that does not work by its own fault. */
const broken = (code: Truth["code"], site: Site, more: More = {}): KnownSite => ({
  ...{ site, truth: { code, answer: "no", fault: "site" }, ...more },
});

const other = (truth: Truth, site: Site, more: More = {}): KnownSite => ({ site, truth, ...more });

const OVER_IPV6 = { says: /over IPv4 it works/ };

/** One of several servers behind an address is bad, in a way that the evidence counts. */
const sometimes = (...backends: Backend[]) =>
  other(
    { code: "sometimes", answer: "sometimes", fault: "site" },
    { backends },
    { says: /\d+ of \d+/ },
  );

const STOPPED = { code: "stopped", answer: ["sometimes", "no"], fault: ["site", "unknown"] };

const PARTLY = { code: "partly", answer: "partly", fault: ["site", "dns"] };

const syns = (ip: string) => `ip6 daddr ${ip} tcp dport 443 tcp flags & (syn | ack) == syn`;

/** The second router loses three in ten of the packets with an address. */
const lossy = (address: "saddr" | "daddr") =>
  other(
    { code: ["path-loss", "sometimes"], answer: ["yes", "sometimes"], fault: ["path", "unknown"] },
    { rules: (ip) => ({ 2: [`ip6 ${address} ${ip} numgen random mod 100 < 30 drop`] }) },
  );

const onGet = (status: number) => `if ($request_method = GET) { return ${status}; } return 200 ok;`;

const onHead = (status: number) =>
  `if ($request_method = HEAD) { return ${status}; } return 200 ok;`;

/** A redirect to a name and path. */
const to = (place: string): Site => ({ answer: `return 301 https://${place};` });

/** A router refuses what goes to the port, or the site itself does. */
const refusing = (node: number, how: string): Site => ({
  rules: (ip) => ({
    [node]: [`ip6 daddr ${ip} tcp dport 443 reject with icmpv6 type ${how}`],
  }),
});

const ofRouter = (code: string, ...at: number[]): Truth => ({
  code,
  answer: "no",
  fault: "path",
  at,
});

/** A prefix of nobody. */
const DEAD = "2001:db8:5:fff0";

const AT_COMMAND_LINE: More = { resolvers: "any-target" };

/** All sites by the first label of their names. */
export const SITES: Readonly<Record<string, KnownSite>> = {
  healthy: works({}),
  dead: other({ code: "no-answer", answer: "no", fault: ["site", "unknown"] }, { alive: 0 }),
  closed: broken("port-closed", { server: "none" }),

  // Transactions that fail after others have worked.
  "dies-by-reset": other(
    STOPPED,
    {
      rules: (ip) => ({
        4: [`${syns(ip)} limit rate over 1/hour burst 12 packets reject with tcp reset`],
      }),
    },
    { says: /\d+ of \d+/, isOnce: true },
  ),
  "dies-altogether": other(
    STOPPED,
    { rules: (ip) => ({ 4: [`ip6 daddr ${ip} quota over 16 kbytes drop`] }) },
    { isOnce: true },
  ),
  "fails-after-five": other(
    STOPPED,
    {
      more: "limit_req zone=few burst=4 nodelay; location @ok { return 200 ok; }",
      // A plain "return" comes before the limit.
      answer: "try_files /none @ok;",
    },
    { says: /503/, isOnce: true },
  ),

  // Methods, bodies and versions.
  "only-get-fails": broken("http-error", { answer: onGet(500) }),
  "only-get-is-closed": broken("http-silent", { answer: onGet(444) }),
  "only-get-fails-over-ipv6": broken("http-error", { answer6: onGet(502) }, OVER_IPV6),
  "only-head-fails": works({ answer: onHead(500) }),
  "only-head-is-closed": works({ answer: onHead(444) }),
  "body-stalls": broken("response-incomplete", { answer: "proxy_pass http://127.0.0.1:10;" }),
  "body-is-cut": broken("response-incomplete", { answer: "proxy_pass http://127.0.0.1:11;" }),
  "body-stalls-over-ipv6": broken(
    "response-incomplete",
    { answer6: "proxy_pass http://127.0.0.1:10;" },
    OVER_IPV6,
  ),
  "no-content": works({ answer: "return 204;" }),
  "not-found-everywhere": works({ answer: "return 404;" }),
  "only-http-2": works({ server: "h2" }),
  "only-tls-12": works({ more: "ssl_protocols TLSv1.2;" }),
  "forbidden-over-ipv6": other(
    { code: "http-differs", answer: "yes", fault: "site" },
    { answer6: "return 403;" },
  ),
  "error-over-ipv4": works(
    { answer: "return 500;", answer6: "return 200 ok;" },
    { never: /over IPv6 it/ },
  ),

  // Redirects.
  "redirect-to-dead": broken("redirect-broken", to("dead.check.example/")),
  "redirect-to-closed": broken("redirect-broken", to("closed.check.example/")),
  "redirect-to-error": broken("redirect-broken", to("only-get-fails.check.example/")),
  "redirect-to-expired": broken("redirect-broken", to("expired-over-ipv6.check.example/")),
  "redirect-to-a-port": broken("redirect-broken", to("healthy.check.example:8443/"), {
    ...{ resolvers: "few-ports", says: /8443/ },
  }),
  "redirect-to-ula": broken("redirect-broken", to("ula.check.example/")),
  "redirect-to-itself": broken("redirect-loop", to("redirect-to-itself.check.example/")),
  "redirect-there": broken("redirect-loop", to("redirect-back.check.example/")),
  "redirect-back": broken("redirect-loop", to("redirect-there.check.example/")),
  "redirect-once": works(to("healthy.check.example/")),
  "redirect-twice": works(to("redirect-once.check.example/")),
  "redirect-to-plain": works({ answer: "return 301 http://healthy.check.example/;" }),
  "redirect-within": works({
    answer: "if ($request_uri = /) { return 302 /next; } return 200 ok;",
  }),

  // Addresses that not all resolvers have.
  "stale-at-first": other(PARTLY, {
    first: [`stale-at-first.check.example. 60 IN AAAA ${DEAD}::1`],
  }),
  "stale-at-third": other(PARTLY, {
    third: [`stale-at-third.check.example. 60 IN AAAA ${DEAD}::2`],
  }),
  "good-at-third-alone": other(PARTLY, {
    // That of `healthy`.
    ...{ alive: 0, third: ["good-at-third-alone.check.example. 60 IN AAAA 2001:db8:5:1::1"] },
  }),
  "none-at-first": other(
    { code: "resolvers-differ", answer: "yes", fault: "dns" },
    { first: ["none-at-first.check.example. 60 IN A 192.0.2.1"] },
  ),
  "twelve-addresses": works({ ipv6: 12 }, { says: /8 of 12/ }),
  "twelve-dead": other(
    { code: "no-answer", answer: "no", fault: ["site", "unknown"] },
    { ipv6: 12, alive: 0 },
    { says: /8 of 12/ },
  ),

  // Several servers behind one address.
  "one-of-four-refuses": sometimes("well", "well", "refuses", "well"),
  // Nothing tells it from a limit of new connections.
  "one-of-four-is-silent": other(
    { code: ["sometimes", "unknown"], fault: ["site", "unknown"] },
    { backends: ["well", "well", "silent", "well"] },
    { says: /\d+ of \d+/, never: /path/ },
  ),
  "one-of-four-fails": sometimes("well", "well", "fails", "well"),
  "one-of-four-has-another-certificate": sometimes("well", "well", "other", "well"),
  "one-of-four-has-expired": sometimes("well", "well", "expired", "well"),
  "half-refuse": sometimes("well", "refuses"),

  // Loss, and what looks like it.
  "lossy-on-the-way-back": lossy("saddr"),
  "lossy-on-the-way-there": lossy("daddr"),
  "limits-new-connections": other(
    { code: "unknown", fault: "unknown" },
    { rules: (ip) => ({ 4: [`${syns(ip)} limit rate over 2/second burst 4 packets drop`] }) },
    { never: /path/ },
  ),

  // Routers.
  loop: other(ofRouter("path-loop", 1, 2), { loopAt: 2 }),
  "late-loop": other(ofRouter("path-loop", 2, 3), { loopAt: 3 }),
  "refused-by-the-first": other(ofRouter("rejected", 1), refusing(1, "admin-prohibited")),
  "refused-by-the-third": other(ofRouter("rejected", 3), refusing(3, "no-route")),
  "refused-by-the-site": broken(["port-closed", "rejected"], refusing(4, "admin-prohibited")),

  // Addresses that lead nowhere.
  ula: broken("not-public", { ipv6: ["fd00::80"] }),
  "ula-at-the-command-line": broken("not-public", { ipv6: ["fd00::81"] }, AT_COMMAND_LINE),
  "for-documentation": broken("not-public", { ipv6: ["3fff::80"] }, AT_COMMAND_LINE),
  "this-very-machine": broken("not-public", { ipv6: ["::1"] }, AT_COMMAND_LINE),

  // Certificates.
  "expired-over-ipv6": broken("certificate-expired", { certificate6: "expired" }, OVER_IPV6),
  chain: works({ certificate: "chain" }),
  "chain-missing": broken("certificate-chain", { certificate: "chain-missing" }),
  "chain-missing-over-ipv6": broken(
    "certificate-chain",
    { certificate: "chain", certificate6: "chain-missing" },
    OVER_IPV6,
  ),
  "chain-expired": broken(
    "certificate-chain",
    { certificate: "chain-expired" },
    { says: /expired/ },
  ),
};
