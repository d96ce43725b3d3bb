/** The faults of the laboratory: a site for each, and what a check must conclude of it. */
import type { VERDICTS } from "../../../src/tools/check/findings.ts";
import type { CheckResult, Step } from "../../../src/tools/check/result.ts";
import type { Resolvers, Site } from "./stage.ts";

/** A fault, and the verdict on it. */
export interface Fault extends Site {
  /** One, or several with ` or ` between them where chance decides. */
  readonly code:
    | (typeof VERDICTS)[number]
    | "works or path-doubtful or path-loss"
    | "unknown or path-doubtful or sometimes or stopped";
  /** Words of the first sentence of the verdict. */
  readonly says: readonly RegExp[];
  /** Words that it must not have. */
  readonly never?: readonly RegExp[];
  /** Words of the evidence, which is behind it. */
  readonly evidence?: RegExp;
  readonly fault?: CheckResult["details"]["verdict"]["fault"];
  /** Words of steps, by their names. */
  readonly steps?: Readonly<Partial<Record<Step["name"], RegExp>>>;
  readonly port?: number;
  /** The faults that are checked before, as this one changes what they find. */
  readonly after?: readonly string[];
  readonly resolvers?: Resolvers;
  /** An address in place of the name, by its place among those of the site. */
  readonly literal?: number;
}

/** Words of failure. */
const BROKEN = /does not work|not known|cannot|refuse|fails|vanish|loses/;

const IPV4_WORKS = /over IPv4 it works/;
const IPV4_FAILS = /over IPv4 \(192\.0\.2\.\d+\) it does not work either/;

/** The address on the last link where nobody is. */
const NOBODY = "2001:db8:5:fffe::dead";
const NO_ROUTE = "2001:db9::1";

const dropped = (ip: string) => `ip6 daddr ${ip} tcp dport { 80, 443 } drop`;
/** Loses one of some SYNs of probes, which have one option; a kernel's own have more. */
const lossy = (ip: string, every: number) => [
  `ip6 daddr ${ip} tcp flags syn tcp doff 6 numgen inc mod ${every} == 0 drop`,
];
const echo = (ip: string) => `ip6 daddr ${ip} icmpv6 type echo-request`;

const syns = (ip: string, port: number) =>
  `ip6 daddr ${ip} tcp dport ${port} tcp flags & (syn | ack) == syn`;

/** A rule for SYNs behind the first few: 3 of the probes and 5 of connections, and one each for TLS and HTTP. */
const afterSyns = (ip: string, count: number, verdict: string, port = 443) => ({
  1: [`${syns(ip, port)} limit rate over 1/hour burst ${count} packets ${verdict}`],
});

/** Refuses the port at a router. */
const rejected = (reason: string) => (ip: string) => ({
  2: [`ip6 daddr ${ip} tcp dport 443 reject with icmpv6 type ${reason}`],
});

/** All faults by the first label of the site's name. */
export const FAULTS: Readonly<Record<string, Fault>> = {
  healthy: {
    ...{ code: "works", fault: null, says: [/works over IPv6/], never: [BROKEN, /but/] },
    evidence:
      /^ 10 of 10 transactions over IPv6 worked; (\d+) of \1 SYNs and (\d+) of \2 echo requests/,
  },
  "only-ipv6": { ipv4: false, code: "works", says: [/works over IPv6$/], never: [/IPv4/] },
  plain: { port: 80, code: "works", says: [/works over IPv6/], never: [BROKEN] },
  ssh: { server: "ssh", port: 22, code: "works", says: [/works over IPv6/], never: [BROKEN] },
  literal: { literal: 0, code: "works", says: [/^2001:db8:\S+ works/] },
  "literal-plain": { literal: 0, port: 80, code: "works", says: [/^2001:db8:\S+ works/] },
  secure: { zone: "secure.example", code: "works", says: [/works over IPv6/], never: [BROKEN] },
  "no-aaaa": {
    ipv6: 0,
    code: "no-ipv6",
    says: [/has no IPv6 address/, IPV4_WORKS],
    evidence: /^ It has an IPv4 address \(192\.0\.2\.\d+\) and no IPv6 address\. Add/,
  },
  ula: { ipv6: ["fd00::80"], code: "not-public", says: [/outside its network/, IPV4_WORKS] },
  "ula-too": {
    ipv6: ["fd00::80", "2001:db8:5:ffff::80"],
    alive: 0,
    code: "not-public",
    says: [/neither of its two addresses works/],
  },
  dead: { alive: 0, code: "no-answer", says: [/does not answer/, IPV4_WORKS], never: [/port/] },
  "all-silent": {
    ...{ alive: 0, ipv4: "dead", code: "no-answer", says: [/does not answer/, IPV4_FAILS] },
    never: [/port/, /works/],
  },
  "only-ipv4-silent": {
    ipv4: "dead",
    code: "works",
    says: [/works over IPv6; over IPv4 \(192\.0\.2\.\d+\) it does not work$/],
  },
  unreachable: { ipv6: [NOBODY], code: "unreachable", says: [/cannot be reached/, IPV4_WORKS] },
  "half-dead": {
    ipv6: 2,
    alive: 1,
    code: "partly",
    steps: { names: /2 IPv6 addresses \(/ },
    says: [
      /works over IPv6, but/,
      /so about half of new connections are delayed/,
      /does not answer/,
    ],
  },
  "mostly-dead": {
    ipv6: 3,
    alive: 1,
    code: "partly",
    says: [/so about two in three new connections are delayed:/],
  },
  "all-dead": {
    ipv6: 4,
    alive: 0,
    code: "no-answer",
    says: [/none of its four addresses works/],
  },
  "only-for-probes": {
    rules: (ip) => ({ 1: [`ip6 daddr ${ip} tcp flags syn tcp doff > 6 drop`] }),
    code: "port-silent",
    says: [/does not answer on port 443/, IPV4_WORKS],
  },
  "not-for-probes": {
    rules: (ip) => ({ 1: [`ip6 daddr ${ip} tcp flags syn tcp doff 6 drop`] }),
    code: "works",
    says: [/works over IPv6/],
    never: [BROKEN],
    steps: {
      tcp: /0 of \d+ SYNs were answered\. A firewall drops bare SYNs/,
      mtr: /replied to all/,
    },
  },
  "few-connections": {
    rules: (ip) => afterSyns(ip, 6, "drop"),
    code: "stopped",
    fault: "unknown",
    says: [
      /worked over IPv6, and then stopped: \d+ of \d+ (transactions|SYNs) failed, by silence; over IPv4/,
    ],
    evidence: /firewall that may limit/,
  },
  "few-connections-to-ssh": {
    ...{ server: "ssh", port: 22 },
    rules: (ip) => afterSyns(ip, 6, "reject with icmpv6 type port-unreachable", 22),
    code: "stopped",
    fault: "path",
    says: [
      /worked over IPv6, and then stopped: \d+ of \d+ (transactions|SYNs) failed, by port unreachable/,
    ],
  },
  "few-a-second": {
    ...{ server: "ssh", port: 22 },
    rules: (ip) => ({ 4: [`${syns(ip, 22)} limit rate over 1/second burst 9 packets drop`] }),
    // Chance decides which SYNs are above the limit, those of connections among them.
    code: "unknown or path-doubtful or sometimes or stopped",
    fault: "unknown",
    says: [
      /(not known: it may limit new connections; over IPv4|may be behind a path that loses packets|(only sometimes|and then stopped): \d+ of \d+ (transactions|SYNs) failed, by silence; over IPv4)/,
    ],
    evidence: /\d+ of \d+ (SYNs and 0 of \d+ echo requests were lost|connection attempts failed)/,
  },
  "closed-before-tls": {
    rules: (ip) => afterSyns(ip, 8, "reject with tcp reset"),
    code: "stopped",
    says: [/worked over IPv6, and then stopped: \d+ of \d+ (transactions|SYNs) failed, by RST/],
    evidence: /firewall that may limit/,
  },
  "silent-before-http": {
    rules: (ip) => afterSyns(ip, 9, "drop"),
    code: "stopped",
    says: [/worked over IPv6, and then stopped: \d+ of \d+ (transactions|SYNs) failed, by silence/],
    evidence: /firewall that may limit/,
  },
  "closed-before-http": {
    rules: (ip) => afterSyns(ip, 9, "reject with tcp reset"),
    code: "stopped",
    says: [/worked over IPv6, and then stopped: \d+ of \d+ (transactions|SYNs) failed, by RST/],
    evidence: /firewall that may limit/,
  },
  closed: { server: "none", code: "port-closed", says: [/refuses connections to port 443/] },
  dropped: {
    rules: (ip) => ({ 4: [dropped(ip)] }),
    code: "port-silent",
    says: [/does not answer on port 443/, IPV4_WORKS],
    never: [/cannot be reached/],
  },
  "dropped-on-the-way": {
    rules: (ip) => ({ 2: [dropped(ip)] }),
    code: "port-silent",
    says: [/does not answer on port 443/, IPV4_WORKS],
    evidence: /behind hop 1|hop 2/,
  },
  "dropped-with-few-echo-replies": {
    rules: (ip) => ({
      4: [dropped(ip), `${echo(ip)} limit rate over 1/minute burst 3 packets drop`],
    }),
    code: "port-silent",
    says: [/does not answer on port 443/, IPV4_WORKS],
    steps: { tcp: /0 of (\d+) SYNs were answered and [1-3] of \1 echo requests were/ },
  },
  ...Object.fromEntries(
    ["no-route", "addr-unreachable", "port-unreachable", "policy-fail", "reject-route"].map(
      (reason): [string, Fault] => [
        `rejected-with-${reason}`,
        {
          rules: rejected(reason),
          code: "rejected",
          fault: "path",
          says: [/a router that refuses packets to it \(2001:db8:c\d+:2::2\)/, IPV4_WORKS],
        },
      ],
    ),
  ),
  prohibited: {
    rules: rejected("admin-prohibited"),
    code: "rejected",
    fault: "path",
    says: [/a router that refuses packets to it/, IPV4_WORKS],
    never: [/cannot be reached/],
    evidence: /(\d+) of \1 SYNs were answered by 2001:db8:c\d+:2::2 with prohibited/,
  },
  "all-prohibited": {
    rules: (ip) => ({ 2: [`ip6 daddr ${ip} reject with icmpv6 type admin-prohibited`] }),
    code: "rejected",
    fault: "path",
    says: [/a router that refuses packets to it/, IPV4_WORKS],
    evidence: /(\d+) of \1 SYNs were answered by 2001:db8:c\d+:2::2 with prohibited/,
  },
  reset: {
    rules: (ip) => ({ 2: [`ip6 daddr ${ip} tcp dport 443 reject with tcp reset`] }),
    code: "port-closed",
    says: [/refuses connections to port 443/, IPV4_WORKS],
    evidence:
      /a firewall may have answered in its name.* Make the server listen on \S+ port 443, and allow it in the firewalls/,
  },
  expired: {
    certificate: "expired",
    code: "certificate-expired",
    says: [/has expired/, IPV4_FAILS],
  },
  early: { certificate: "early", code: "certificate-not-yet-valid", says: [/not valid yet/] },
  other: { certificate: "other", code: "certificate-name", says: [/for another name/] },
  own: {
    certificate: "own",
    code: "certificate-untrusted",
    says: [/no known authority has signed/],
  },
  soon: {
    certificate: "soon",
    code: "certificate-expires",
    says: [/works over IPv6, but/, /expires soon/],
    never: [BROKEN],
  },
  "no-tls": { server: "plain", code: "not-tls", says: [/does not speak TLS on port 443/] },
  "ssh-on-443": { server: "ssh", code: "not-tls", says: [/does not speak TLS on port 443/] },
  "ssh-on-80": {
    ...{ server: "ssh", port: 80, code: "not-http" },
    says: [/does not answer HTTP requests with HTTP/],
    evidence: /SSH-2\.0/,
  },
  alert: {
    more: "ssl_reject_handshake on;",
    code: "tls-failed",
    says: [/does not complete the TLS handshake/],
    never: [/does not speak/],
  },
  closer: { server: "closer", code: "tls-failed", says: [/does not complete the TLS handshake/] },
  "http-closed": {
    answer: "return 444;",
    code: "http-silent",
    says: [/does not answer HTTP requests/],
    evidence: /closes the connection/,
  },
  tarpit: {
    server: "tarpit",
    code: "tls-silent",
    says: [/does not answer the TLS handshake/],
    never: [/large packets/],
  },
  "http-silent": {
    answer: "proxy_pass http://127.0.0.1:9;",
    code: "http-silent",
    says: [/does not answer HTTP requests/],
  },
  "error-over-ipv6": {
    answer6: "return 503;",
    code: "http-error",
    says: [/answers HTTP requests with an error/, IPV4_WORKS],
    evidence: /503/,
  },
  error: {
    answer: "return 503;",
    code: "http-error",
    says: [/with an error/, IPV4_FAILS],
  },
  "not-found-over-ipv6": {
    answer6: "return 404;",
    code: "http-differs",
    says: [/works over IPv6, but/, /otherwise than over IPv4/],
    evidence: /404.*200/,
  },
  "not-found-at-the-second": {
    ipv6: 2,
    answer6: "if ($server_addr ~ ::2$) { return 404; } return 200 ok;",
    code: "http-differs",
    says: [/works over IPv6, but/, /otherwise than over IPv4/],
    evidence: /::2 answers with status 404, and 192.* with 200/,
  },
  "without-head": {
    answer: "if ($request_method = HEAD) { return 501; } return 200 ok;",
    code: "works",
    says: [/works over IPv6/],
    never: [BROKEN],
  },
  "redirect-to-nowhere": {
    answer: "return 301 https://nothing.check.example/;",
    code: "redirect-without-ipv6",
    says: [/redirects to what has no IPv6 address/],
  },
  "redirect-to-ipv4": {
    answer: "return 301 https://no-aaaa.check.example/;",
    code: "redirect-without-ipv6",
    says: [/redirects to what has no IPv6 address/],
    evidence: /no-aaaa\.check\.example/,
  },
  redirect: {
    answer: "return 301 https://healthy.check.example/;",
    code: "works",
    says: [/works over IPv6/],
    never: [BROKEN],
  },
  "black-hole": {
    certificate: "large",
    narrow: { at: 3, bytes: 1300 },
    code: "mtu-black-hole",
    says: [/large packets vanish/, IPV4_WORKS],
    evidence: /1300/,
  },
  "black-hole-for-http": {
    ...{ port: 80, more: `add_header X "${"x".repeat(2500)}";`, narrow: { at: 3, bytes: 1300 } },
    code: "mtu-black-hole",
    says: [/large packets vanish/, IPV4_WORKS],
    evidence: /1300/,
  },
  // The first message of a handshake is large too: its Packet Too Big teaches this machine a size that it tells the
  // server from the second connection on.
  "black-hole-on-the-way-back": {
    certificate: "large",
    narrow: { at: 2, bytes: 1300 },
    rules: (ip) => ({ 4: [`ip6 daddr ${ip} icmpv6 type packet-too-big drop`] }),
    code: "sometimes",
    says: [/only sometimes: \d+ of \d+ (transactions|SYNs) failed, by silence/, IPV4_WORKS],
  },
  "no-large-echo": {
    rules: (ip) => ({ 4: [`${echo(ip)} meta length > 1400 drop`] }),
    code: "large-doubtful",
    says: [/works over IPv6, but may be behind a path where large packets vanish/],
    evidence: /or the target answers no larger ones/,
  },
  // Twenty rounds meet a tenth between not at all and often enough.
  "lossy-10": {
    rules: (ip) => ({ 2: lossy(ip, 10) }),
    code: "works or path-doubtful or path-loss",
    says: [/works over IPv6/],
    never: [/does not work/],
  },
  // SYNs alone are lost, and too few of them to tell a limit from a path.
  "lossy-20": {
    rules: (ip) => ({ 2: lossy(ip, 5) }),
    code: "path-doubtful",
    fault: "unknown",
    says: [/works over IPv6, but/, /may be behind a path that loses packets/],
  },
  far: {
    isFar: true,
    code: "slower",
    says: [/works over IPv6, but/, /slower over IPv6 than over IPv4$/],
    evidence: /^ IPv4 connects \d{3,4} ms faster\.$/,
  },
  bogus: {
    zone: "bogus.example",
    code: "dnssec-bogus",
    says: [/fails DNSSEC validation/],
    never: [/IPv4/],
    evidence: /expired/,
  },
  differ: {
    third: ["differ.check.example. 60 IN A 192.0.2.1"],
    code: "resolvers-differ",
    says: [/works over IPv6, but/, /has no IPv6 address at one of the resolvers/],
  },
  "no-echo": {
    rules: (ip) => ({ 4: [`${echo(ip)} drop`] }),
    steps: { trace: /reached|replied/, mtr: /open/ },
    code: "no-echo",
    says: [/works over IPv6, but does not answer echo/],
    never: [BROKEN],
  },
  "echo-limit": {
    rules: (ip) => ({ 4: [`${echo(ip)} limit rate over 1/second burst 2 packets drop`] }),
    code: "works",
    says: [/works over IPv6/],
    never: [BROKEN, /but/],
  },
  "no-route": {
    ipv6: [NO_ROUTE],
    code: "not-sent",
    fault: "here",
    says: [/cannot be told from here/, IPV4_WORKS],
    evidence: /no way to the Internet/,
  },
  "one-resolver-silent": {
    resolvers: "one-silent",
    code: "resolver-silent",
    says: [/works over IPv6, but/, /could not be looked up at all resolvers/],
  },
  "resolvers-silent": {
    resolvers: "all-silent",
    code: "names-unknown",
    fault: "here",
    says: [/cannot be told from here/],
  },
  translated: {
    ipv6: 0,
    resolvers: "dns64",
    code: "translator-only",
    says: [/works over IPv6, but/, /translator \(NAT64\)/],
    never: [BROKEN],
  },
  narrow: {
    // The server remembers the size for all that it sends here.
    after: ["black-hole", "black-hole-for-http", "black-hole-on-the-way-back"],
    certificate: "large",
    narrow: { at: 2, bytes: 1300 },
    code: "works",
    says: [/works over IPv6/],
    never: [BROKEN],
  },
  "only-ipv4-again": { ipv6: 0, resolvers: "well", code: "no-ipv6", says: [/has no IPv6 address/] },
};

/** Checks without a site of their own. */
export const MORE: Readonly<Record<string, Fault & { readonly site: string }>> = {
  "no such name": {
    site: "nothing",
    code: "no-such-name",
    says: [/does not exist/],
    never: [/IPv4/],
  },
  "healthy, without a raw socket": {
    ...{
      site: "healthy",
      resolvers: "no-raw",
      code: "works",
      says: [/works over IPv6/],
    },
    never: [BROKEN],
  },
  "closed, without a raw socket": {
    ...{ site: "closed", resolvers: "no-raw", code: "not-opened" },
    says: [/does not accept connections to port 443/],
  },
  "unreachable, without a raw socket": {
    ...{ site: "unreachable", resolvers: "no-raw", code: "not-opened" },
    says: [/does not accept connections to port 443; over IPv4 it works/],
  },
  "no route, without a raw socket": {
    ...{ site: "no-route", resolvers: "no-raw", code: "not-sent" },
    fault: "here",
    says: [/cannot be told from here; over IPv4 it works/],
  },
  "a dead address": {
    ...{ site: "dead", literal: 0, code: "no-answer", says: [/^2001:db8:\S+ does not answer$/] },
  },
  "dropped, without a raw socket": {
    ...{ site: "dropped", resolvers: "no-raw", code: "port-silent" },
    says: [/does not answer on port 443; over IPv4 it works/],
  },
  "a tarpit, without a raw socket": {
    ...{ site: "tarpit", resolvers: "no-raw", code: "tls-silent" },
    says: [/does not answer the TLS handshake/],
  },
};
