/** Documents with everything that each tool can report; each value occurs once. */

import type { CheckResult } from "../../src/tools/check/result.ts";
import { checkVerdict } from "../../src/tools/check/verdict.ts";
import type { DnsResult, DnssecDetails } from "../../src/tools/dns/result.ts";
import { dnsVerdict } from "../../src/tools/dns/verdict.ts";
import type { HereResult } from "../../src/tools/here/result.ts";
import type { MtrResult } from "../../src/tools/mtr/result.ts";
import { mtrVerdict } from "../../src/tools/mtr/verdict.ts";
import type { MtuResult } from "../../src/tools/mtu/result.ts";
import { mtuText } from "../../src/tools/mtu/verdict.ts";
import type { PingResult } from "../../src/tools/ping/result.ts";
import { pingVerdict } from "../../src/tools/ping/verdict.ts";
import type { TraceResult } from "../../src/tools/trace/result.ts";
import { traceVerdict } from "../../src/tools/trace/verdict.ts";
import { describeAddress } from "../../src/tools/validate/engine.ts";
import type { Validation } from "../../src/tools/validate/result.ts";
import { parseIpv6 } from "../addr/parse.ts";

/** When a document was measured, and by which version. */
export const DATED = { startedAt: "2026-11-22T12:00:00.000Z", version: "1.0.0" };

const HEAD = { target: "www.example.com", ip: "2001:db8::80" };
const SOURCE = "2001:db8::1";
const ADDRESSES: NonNullable<PingResult["details"]["addresses"]> = [
  { ip: "2001:db8::82", use: "no-route" },
  { ip: "2001:db8::80", use: "probed" },
  { ip: "2001:db8::83", use: "spare" },
];
const DNS64 = { ip: "64:ff9b::c000:201", prefix: "64:ff9b::/96", ipv4: "192.0.2.1" };
const CUT = { code: "addresses", text: "More than 99 addresses answered." } as const;
const NETWORK = {
  asn: 64_496,
  name: "Example Networks",
  prefix: "2001:db8::/32",
  source: "asn-file",
} as const;

const LOST: PingResult["details"]["lost"] = [
  { seq: 2, reason: "timeout" },
  { seq: 4, reason: "timeout", rtt: 2033.125 },
  { seq: 5, reason: "unknown" },
  { seq: 6, reason: "not-sent", errno: "EPERM" },
  { seq: 7, reason: "no-route", type: 1, code: 0, from: "2001:db8:7::1", rtt: 3.125 },
];

const STEPS: CheckResult["steps"] = [
  { name: "names", status: "ok", text: "It has 2 IPv6 addresses.", ms: 21 },
  {
    name: "tcp",
    ip: "2001:db8::80",
    status: "ok",
    text: "The port is open.",
    rtt: 11.125,
    rttMost: 12.5,
    ms: 22,
  },
  {
    name: "tls",
    ip: "2001:db8::80",
    status: "ok",
    text: "TLSv1.3, with a certificate.",
    certificate: {
      sha256: "5e".repeat(32),
      notAfter: "2027-01-22T12:00:00.000Z",
      issuer: "Example Authority",
    },
    ms: 25,
  },
  {
    ...{ name: "http", ip: "2001:db8::80", status: "fail", finding: "http-error" },
    ...{ text: "The server answers with status 503.", httpStatus: 503, ms: 23 },
  },
  {
    name: "trace",
    ip: "2001:db8::80",
    status: "skipped",
    text: "The last answer came from hop 3.",
    at: "2001:db8:7::7",
    ms: 26,
  },
  {
    name: "mtr",
    ip: "2001:db8::80",
    status: "skipped",
    text: "Not finished in time.",
    ms: 24,
  },
];

export const CHECK = {
  name: "www.example.com",
  port: 8443,
  steps: STEPS,
  details: {
    ...DATED,
    location: "ams",
    waitedMs: 1234,
    verdict: {
      ...checkVerdict("www.example.com", 443, { steps: STEPS, rows: [], addresses: 2 }),
      at: "2001:db8:7::9",
    },
    path: {
      ...{ ip: "2001:db8::80", reached: true, brokenAfter: 1 },
      hops: [
        {
          ...{ hop: 1, ip: "fe80::9", hostname: "router.example.net", rtt: 0.412 },
          details: { zone: "eth7", network: NETWORK, nameLate: true },
        },
        { hop: 2, ip: "2001:db8::80", hostname: "www.example.com", rtt: 11.204 },
      ],
    },
    attempts: [
      {
        ...{ ip: "2001:db8::80", kind: "connect", made: 10, worked: 9, failed: { refused: 1 } },
        rtt: { min: 11.125, median: 12.25, max: 12.5 },
      },
    ],
    here: [{ name: "firewall", status: "warn" }],
  },
} satisfies CheckResult & { details: { location: string } };

const ENDING = "IPv6 on eth0 ends in 77 s, with its default route via fe80::9.";

export const HERE = {
  interfaces: [
    {
      ...{ name: "eth0", mtu: 1492, state: "up", ra: "accepted" },
      addresses: [
        {
          ...{ ip: "2001:db8::1", prefixLength: 64, state: "preferred", origin: "slaac" },
          ...{ preferredSeconds: 3600, validSeconds: 7200 },
        },
      ],
      routers: [
        {
          ...{ ip: "fe80::9", lifetimeSeconds: 1800, preference: "high", managed: false },
          ...{ other: true, hopLimit: 64, mtu: 1480, answers: true },
          prefixes: [
            {
              ...{ prefix: "2001:db8::/64", onLink: true, autonomous: true },
              ...{ preferredSeconds: 3601, validSeconds: 7201 },
            },
          ],
          resolvers: [{ ip: "2001:db8::53", lifetimeSeconds: 1801 }],
          nat64Prefixes: [{ prefix: "64:ff9b::/96", lifetimeSeconds: 1802 }],
        },
      ],
    },
  ],
  routes: [
    {
      ...{ prefix: "::/0", via: "fe80::9", interface: "eth0", metric: 1024, origin: "ra" },
      expiresSeconds: 77,
    },
  ],
  steps: [
    { name: "kernel", status: "ok", text: "The kernel has IPv6.", ms: 11 },
    {
      ...{ name: "route", interface: "eth0", status: "warn", finding: "ending" },
      ...{ text: ENDING, ms: 3612 },
    },
  ],
  details: {
    ...DATED,
    location: "ams",
    waitedMs: 1234,
    verdict: { code: "ending", text: ENDING, inSeconds: 77 },
  },
} satisfies HereResult & { details: { location: string } };

export const PING: PingResult = {
  ...HEAD,
  results: [
    { seq: 1, ttl: 57, rtt: 11.125 },
    { seq: 3, ttl: 56, rtt: 12.375, details: { reason: "other-source", from: "2001:db8::81" } },
  ],
  stats: { transmitted: 7, received: 2, loss: 57.1, min: 11.125, avg: 11.75, max: 12.375 },
  details: {
    ...DATED,
    location: "ams",
    verdict: pingVerdict(2, LOST),
    dns64: DNS64,
    addresses: ADDRESSES,
    port: { protocol: "tcp", port: 443, state: "open", echo: true },
    source: SOURCE,
    timeout: 2000,
    lost: LOST,
    duplicates: 3,
    late: 1,
    waitedMs: 1234,
    cutShort: { code: "events", text: "The events of the run have more than 77 bytes." },
  },
};

const TRACE_HOPS: TraceResult["hops"] = [
  {
    hop: 1,
    ip: "fe80::9",
    hostname: "router.example.net",
    rtt: 0.412,
    details: {
      nameLate: true,
      zone: "eth7",
      network: NETWORK,
      replyHopLimit: 64,
      rtts: [0.412, 0.523],
    },
  },
  { hop: 2, ip: null, hostname: null, rtt: null, details: { unanswered: "rate-limited" } },
  {
    hop: 3,
    ip: "2001:db8:3::1",
    hostname: null,
    rtt: 4.125,
    details: {
      replyHopLimit: 249,
      asymmetry: 4,
      addresses: ["2001:db8:3::1", "2001:db8:3::2"],
      mpls: [{ label: 24_001, trafficClass: 5, bottomOfStack: true, ttl: 1 }],
      interfaces: [
        { role: "incoming", index: 17, address: "2001:db8:3::3", name: "et-0/0/1", mtu: 9192 },
        { role: "next-hop", index: null, address: "2001:db8:3::4", name: null, mtu: null },
      ],
      mtu: 1480,
    },
  },
  { hop: 4, ip: "2001:db8::81", hostname: "web.example.com", rtt: 11.204 },
];

export const TRACE: TraceResult = {
  ...HEAD,
  hops: TRACE_HOPS,
  details: {
    ...DATED,
    location: "ams",
    reached: true,
    reason: "reached",
    otherSource: "2001:db8::81",
    refused: [{ hop: 2, errno: "ENOBUFS" }],
    verdict: traceVerdict(TRACE_HOPS, { reason: "reached", otherSource: "2001:db8::81" }, null),
    dns64: DNS64,
    addresses: ADDRESSES,
    port: { protocol: "tcp", port: 443, state: "open", echo: true },
    source: SOURCE,
    waitedMs: 1234,
    cutShort: CUT,
    flowLabel: 493_374,
  },
};

const ERROR = {
  ...{ type: 1, code: 5, name: "failed-policy", from: "2001:db8:3::1" },
  fromTarget: false,
};

const LOOP = { from: 4, to: 5, addresses: ["2001:db8:4::1", "2001:db8:5::1"], repeats: 6 };
const LOOP_HOPS = [
  ...TRACE_HOPS.slice(0, 3),
  { ...TRACE_HOPS[3], rtt: null, details: { unanswered: "seen-by-others" } },
] as TraceResult["hops"];

/** A trace into a loop. */
export const LOOPING_TRACE: TraceResult = {
  ...HEAD,
  hops: LOOP_HOPS,
  details: {
    ...DATED,
    reached: false,
    reason: "loop",
    loop: LOOP,
    verdict: traceVerdict(LOOP_HOPS, { reason: "loop", loop: LOOP }, null),
    source: SOURCE,
    flowLabel: 493_374,
  },
};

/** A trace that an error ended. */
export const STOPPED_TRACE: TraceResult = {
  ...HEAD,
  hops: TRACE_HOPS.slice(0, 3),
  details: {
    ...DATED,
    reached: false,
    reason: "prohibited",
    error: ERROR,
    verdict: traceVerdict(TRACE_HOPS.slice(0, 3), { reason: "prohibited", error: ERROR }, null),
    source: SOURCE,
    flowLabel: 493_374,
  },
};

const FOUND = {
  complete: true,
  labels: 17,
  perPacket: [2, 3],
  paths: [
    {
      ...{ flowLabel: 493_374, labels: 9, reached: true, reason: "reached" },
      addresses: ["2001:db8:1::1", "2001:db8:2::1", null, "2001:db8::80"],
    },
    {
      ...{ flowLabel: 12_345, labels: 8, reached: false, reason: "gap-limit" },
      addresses: ["2001:db8:1::1", "2001:db8:2::2"],
    },
  ],
} satisfies Partial<TraceResult["details"]>;

const PATH_HOPS: TraceResult["hops"] = [
  { hop: 1, ip: "2001:db8:1::1", hostname: null, rtt: 0.412 },
  { hop: 2, ip: "2001:db8:2::1", hostname: null, rtt: 1.25 },
  { hop: 3, ip: null, hostname: null, rtt: null },
  { hop: 4, ip: "2001:db8::80", hostname: null, rtt: 9.75 },
];

/** A trace of several paths. */
export const PATHS: TraceResult = {
  ...HEAD,
  hops: PATH_HOPS,
  details: {
    ...DATED,
    reached: true,
    reason: "reached",
    verdict: traceVerdict(PATH_HOPS, { reason: "reached" }, FOUND),
    source: SOURCE,
    flowLabel: 493_374,
    ...FOUND,
    graph: {
      nodes: [
        ...PATH_HOPS.slice(0, 2),
        {
          ...{ hop: 2, ip: "2001:db8:2::2", hostname: "r2.example.net", rtt: 1.625 },
          details: {
            ...{ ...TRACE_HOPS[0]?.details, ...TRACE_HOPS[2]?.details },
            unanswered: "rate-limited",
          },
        },
        ...PATH_HOPS.slice(2),
      ],
      edges: [
        { from: 0, to: 1, labels: 9 },
        { from: 0, to: 2, labels: 8 },
      ],
    },
  },
};

const MTR_HOPS: MtrResult["hops"] = [
  {
    ...{ hop: 1, ip: "2001:db8:1::1", hostname: "router.example.net" },
    ...{ sent: 11, received: 8, late: 3, errors: 0, unknown: 1, loss: 20, cause: "replies" },
    ...{ last: 0.45, min: 0.31, avg: 0.42, max: 0.53 },
    ...{ stdDev: 0.07, jitter: 0.11, p50: 0.43, p95: 0.52 },
    addresses: [
      { ip: "2001:db8:1::1", hostname: "router.example.net", received: 5, share: 62.5 },
      { ip: "2001:db8:1::2", hostname: "other.example.net", received: 2, share: 25 },
    ],
    others: 1,
    details: { nameLate: true, zone: "eth7", network: NETWORK },
  },
  {
    ...{ hop: 2, ip: null, hostname: null, sent: 10, received: 0 },
    ...{ late: 0, errors: 0, unknown: 0, loss: 100, cause: "unclear" },
    ...{ last: null, min: null, avg: null, max: null },
    ...{ stdDev: null, jitter: null, p50: null, p95: null },
    addresses: [],
    others: 0,
  },
  {
    ...{ hop: 3, ip: "2001:db8:3::1", hostname: "far.example.net" },
    ...{ sent: 10, received: 6, late: 0, errors: 4, unknown: 0, loss: 40, cause: "path" },
    ...{ last: 11.25, min: 11.13, avg: 12.31, max: 14.44 },
    ...{ stdDev: 1.12, jitter: 2.17, p50: 11.26, p95: 14.41 },
    addresses: [{ ip: "2001:db8:3::1", hostname: "far.example.net", received: 6, share: 100 }],
    others: 0,
  },
];

const MTR_END = {
  ...{ reached: true, error: ERROR },
  toTarget: {
    ...{ sent: 10, received: 5, late: 0, errors: 4, unknown: 0, loss: 50 },
    retransmitted: 1,
  },
};

export const MTR: MtrResult = {
  ...HEAD,
  rounds: 10,
  hops: MTR_HOPS,
  details: {
    ...DATED,
    location: "ams",
    ...MTR_END,
    paths: [
      { rounds: 7, reached: false, addresses: ["2001:db8:1::1", null, "2001:db8:3::1"] },
      { rounds: 3, reached: true, addresses: ["2001:db8:1::2", null, "2001:db8:3::1"] },
    ],
    otherRounds: 1,
    verdict: mtrVerdict(MTR_HOPS, MTR_END, {
      ...{ begin: { from: 1, to: 3 }, inARow: 0 },
      lossPath: MTR_HOPS.map(({ ip }) => ip),
    }),
    dns64: DNS64,
    addresses: ADDRESSES,
    port: { protocol: "tcp", port: 443, state: "open", echo: true },
    source: SOURCE,
    waitedMs: 1234,
    cutShort: CUT,
    flowLabel: 493_374,
  },
};

const MTU_HOPS: MtuResult["hops"] = [
  {
    ...{ hop: 1, ip: "fe80::9", hostname: "router.example.net", mtu: 9000, atMost: 9000 },
    details: { nameLate: true, zone: "eth7", network: NETWORK },
  },
  { hop: 2, ip: "2001:db8:2::1", hostname: null, mtu: 8000, atMost: 8500 },
  { hop: 3, ip: null, hostname: null, mtu: null, atMost: null },
  { hop: 4, ip: "2001:db8::80", hostname: "web.example.com", mtu: 1420, atMost: 1420 },
];

const SIZES = {
  mtu: 1420,
  atMost: 1420,
  packetTooBig: { from: "2001:db8:2::1", hop: 2, mtu: 1420, sent: 1500 },
  lastLarge: 1,
  firstSmall: 4,
};

export const MTU: MtuResult = {
  ...HEAD,
  ...SIZES,
  hops: MTU_HOPS,
  details: {
    ...DATED,
    cause: "echo",
    location: "ams",
    verdict: {
      code: "narrowed",
      text: mtuText("narrowed", SIZES, MTU_HOPS, { cause: "echo", error: ERROR, doubtful: [] }),
    },
    error: ERROR,
    doubtful: [
      { from: "2001:db8:2::1", hop: 2, mtu: 68, sent: 1501, doubt: "below-1280" },
      { from: "2001:db8:6::6", hop: null, mtu: 1502, sent: 1492, doubt: "not-smaller" },
    ],
    dns64: DNS64,
    addresses: ADDRESSES,
    source: SOURCE,
    waitedMs: 1234,
    cutShort: CUT,
    flowLabel: 493_374,
  },
};

const EDE = [{ code: 22, name: "No Reachable Authority", text: "at delegation example.com." }];
const SOA = { name: "example.com.", value: "ns.example.com. host.example.com. 7 60", ttl: 901 };
const ATTEMPTS: DnsResult["details"]["attempts"] = [
  { server: "[2001:db8::52]:53", transport: "udp", ms: 1001, outcome: "timeout" },
  { server: "[2001:db8::53]:853", transport: "tls", ms: 17, outcome: "NOERROR" },
];
const QUESTION = { name: "xn--bcher-kva.example.", type: "AAAA", class: "CH" as const };
const RECORDS = [
  { type: "CNAME", value: "web.example.com.", ttl: 300 },
  { type: "AAAA", value: "64:ff9b::c000:201", ttl: 299 },
];

const ZSK = { keyTag: 46_024, algorithm: "ECDSAP256SHA256" };
const KSK = { keyTag: 51_928, algorithm: "RSASHA256" };

/** A verdict with all that one can have. */
const dnssecOf = (
  name: "resolver_a" | "resolver_b",
  verdict: "secure" | "bogus",
): DnssecDetails => ({
  verdict,
  evidence: verdict === "bogus" ? "signature" : null,
  text: `The signature of web.example.com AAAA is ${verdict}.`,
  notes: [
    { code: "sha1-ds", zone: "example.com.", text: "example.com has a DS record with SHA-1." },
  ],
  chain: [
    {
      ...{ zone: "example.com.", status: "bogus", fault: "No key of example.com matches." },
      ds: [{ ...KSK, digest: "SHA-256" }],
      keys: [
        { ...KSK, trusted: true },
        { ...ZSK, trusted: false },
      ],
      sets: [
        {
          ...{ name: "web.example.com.", type: "AAAA", fault: "It expired." },
          signature: {
            ...ZSK,
            ...{
              inception: "2026-11-01T00:00:00Z",
              expires: "2026-12-01T00:00:00Z",
              daysLeft: 8.7,
            },
          },
        },
        {
          ...{ name: "x.example.com.", type: "TXT" },
          proof: [{ record: "a.example.com. NSEC z.example.com. A", proves: "x does not exist" }],
        },
      ],
    },
  ],
  resolver: { name, claim: verdict, validates: true, extendedErrors: EDE },
});

const SAID = {
  question: QUESTION,
  server: "[2001:db8::53]:853",
  transport: "tls",
  rcode: "NOERROR",
  authenticated: true,
  extendedErrors: EDE,
  nsid: "fra1",
  clientSubnet: "2001:db8::/56/48",
  incomplete: true,
  soa: SOA,
  dns64: [DNS64],
  dnssec: dnssecOf("resolver_b", "secure"),
  attempts: ATTEMPTS,
} satisfies Partial<DnsResult["details"]>;

export const DNS: DnsResult = {
  hostname: "bücher.example",
  records: RECORDS,
  resolver: "resolver_b",
  queryTime: 1018,
  details: { ...DATED, location: "ams", verdict: dnsVerdict("resolver_b", RECORDS, SAID), ...SAID },
};

const COMPARED = {
  agree: false,
  differences: ["records", "rcode"],
  unanswered: ["resolver_c"],
  findings: [{ resolver: "resolver_b", code: "stale", text: "resolver_b gives an old answer." }],
} satisfies Partial<DnsResult["details"]>;

/** The answers of three resolvers: one has another record, and one has none. */
export const COMPARISON: DnsResult = {
  ...DNS,
  resolver: "resolver_a",
  details: {
    ...DATED,
    ...SAID,
    verdict: dnsVerdict("resolver_a", RECORDS, { ...SAID, ...COMPARED }),
    ...COMPARED,
    resolvers: [
      {
        ...{ resolver: "resolver_a", outcome: "answer", records: RECORDS, queryTime: 1018 },
        ...SAID,
        dnssec: dnssecOf("resolver_a", "secure"),
      },
      {
        ...{ resolver: "resolver_b", outcome: "failure", records: [], queryTime: 41 },
        ...{ question: QUESTION, server: "[2001:db8::54]:53", transport: "tcp" },
        ...{ rcode: "SERVFAIL", authenticated: false },
        extendedErrors: [{ code: 6, name: "DNSSEC Bogus" }],
        dnssec: dnssecOf("resolver_b", "bogus"),
        attempts: [{ server: "[2001:db8::54]:53", transport: "tcp", ms: 41, outcome: "SERVFAIL" }],
      },
      {
        ...{ resolver: "resolver_c", outcome: "timeout", records: [], queryTime: 5000 },
        question: QUESTION,
        attempts: [{ server: "[2001:db8::55]:53", transport: "udp", ms: 4999, outcome: "timeout" }],
      },
    ],
  },
};

const ZONE_FOUND = {
  servers: [
    {
      ...{ name: "ns1.example.com.", ip: "2001:db8::53", outcome: "answer" },
      ...{ serial: 2_026_112_701, authoritative: true, signed: true, ms: 19 },
    },
    {
      ...{ name: "ns2.example.com.", ip: "192.0.2.53", outcome: "lame" },
      ...{ serial: null, authoritative: false, signed: null, ms: 23 },
    },
    {
      ...{ name: "ns3.example.com.", ip: null, outcome: "no-address" },
      ...{ serial: null, authoritative: null, signed: null, ms: null },
    },
  ],
  findings: [{ servers: ["ns2.example.com."], code: "lame", text: "ns2.example.com is lame." }],
} satisfies Partial<DnsResult["details"]>;

/** The answers of a zone's own servers. */
export const ZONE: DnsResult = {
  ...DNS,
  resolver: "zone",
  details: {
    ...{ ...DATED, ...SAID, ...ZONE_FOUND },
    verdict: dnsVerdict("zone", RECORDS, SAID, "ns2.example.com is lame."),
  },
};

/** The entry of an operator's files for every address. */
const NETWORKS = { find: () => NETWORK };

const validation = (text: string) => describeAddress(parseIpv6(text), NETWORKS) as Validation;

/** Addresses that between them have everything that can be said of one. */
export const VALIDATIONS: readonly Validation[] = [
  "2001:db8::1",
  "2a00:1450:4001::80",
  "2001:0:4136:e378:8000:63bf:3fff:fdd2",
  "2002:c000:201:1:0:5efe:10.0.0.1",
  "fe80::211:22ff:fe33:4455",
  "2a00::192.0.2.1",
  "fec0::1",
  "2001:10::1",
  "ff02::1",
  "ff3e::8000:1",
  "ff3e:30:2001:db8::1",
  "ff7e:140:2001:db8::1",
].map(validation);
