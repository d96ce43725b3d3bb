/** Names that resolvers disagree about, or whose addresses lead nowhere, seen from here and from another location. */
import { afterAll, beforeAll, expect } from "bun:test";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { VERDICTS } from "../../../src/tools/check/findings.ts";
import type { CheckResult } from "../../../src/tools/check/result.ts";
import { labMissing, programMissing, testWith } from "../../lab/lab.ts";
import { startAgent, startNats } from "../../lab/nats.ts";
import { run, runIp } from "../../lab/run.ts";
import { type Service, startService } from "../../lab/service.ts";
import { startResolver } from "./resolver.ts";

const missing = labMissing ?? programMissing("nats-server") ?? programMissing("nft");
const labTest = testWith(missing);

/** Addresses with a server. */
const [FIRST, SECOND, ULA, IPV4] = ["2001:db8:8::1", "2001:db8:8::2", "fd00::80", "203.0.113.80"];
/** An address with a server, to which this machine's firewall lets no echo request out. */
const NO_ECHO = "2001:db8:8::3";
/** An address with a server that SIXSCOPE_TARGETS_ALLOW does not have. */
const OWN = "2a00::80";
/** Addresses that this machine has no way to. */
const [NO_WAY, NO_WAY_ULA, NO_WAY_IPV4] = ["2001:db9::1", "fd01::1", "198.51.100.1"];

const [SERVFAIL, NXDOMAIN] = [2, 3];

/** A name: its addresses at the first two resolvers and at the third, and the verdict. */
interface Row {
  readonly ips: readonly string[];
  readonly third?: readonly string[];
  /** The code with which all resolvers answer for AAAA. */
  readonly aaaa?: number;
  readonly code: (typeof VERDICTS)[number];
  readonly says: readonly RegExp[];
  readonly never?: RegExp;
}

const ROWS: Readonly<Record<string, Row>> = {
  works: {
    ips: [FIRST, IPV4],
    code: "works",
    says: [/works over IPv6.*\. 10 of 10 transactions/],
  },
  "works-without-echo-requests": {
    ips: [NO_ECHO],
    code: "works",
    says: [
      /works over IPv6\. 10 of 10 transactions over IPv6 worked; (\d+) of \1 SYNs were answered/,
    ],
  },
  "fails-for-aaaa": {
    ...{ ips: [IPV4], aaaa: SERVFAIL, code: "ipv6-unknown" },
    says: [/has IPv4 addresses, but its IPv6 addresses cannot be looked up; over IPv4 it works/],
  },
  "denies-itself-for-aaaa": {
    ...{ ips: [IPV4], aaaa: NXDOMAIN, code: "ipv6-unknown" },
    says: [/over IPv4 it works/],
  },
  "without-ipv4-here": {
    ...{ ips: [NO_WAY_IPV4], code: "no-ipv6", says: [/has no IPv6 address\./] },
    never: /IPv4 .*does not work/,
  },
  "works-and-ipv4-does-not": {
    ...{ ips: [FIRST, "203.0.113.81"], code: "works" },
    says: [/works over IPv6; over IPv4 \(203\.0\.113\.81\) it does not work\. 10 of/],
  },
  "has-no-way": {
    ...{ ips: [NO_WAY, "203.0.113.81"], code: "not-sent" },
    says: [/cannot be told from here\. This machine has no interface but loopback/],
  },
  "one-has-no-way": {
    ...{
      ips: [FIRST, NO_WAY],
      code: "partly",
      says: [/not at one of its two addresses: 2001:db9::1/],
    },
    never: /new connections/,
  },
  "is-local": {
    ...{ ips: [ULA], code: "special-address" },
    says: [
      /works over IPv6, but has an address that not every network reaches/,
      /fd00::80 is Unique-Local/,
    ],
  },
  "is-local-elsewhere": {
    ...{ ips: [NO_WAY_ULA], code: "not-public" },
    says: [/cannot be reached from outside its network\. fd01::1 is Unique-Local \(fc00::\/7/],
  },
  "is-translated-to-nowhere": {
    ...{ ips: ["64:ff9b::c000:250", IPV4], code: "not-sent" },
    says: [/a translator \(NAT64\) makes its addresses of IPv4, and 64:ff9b::c000:250 cannot/],
  },
  "is-this-machine": { ips: ["::1"], code: "not-public", says: [/::1 is Loopback Address/] },
  "is-served-here": {
    ...{ ips: [OWN], code: "own-machine" },
    says: [
      /belongs to the machine that tests, which opens no connection to itself/,
      /Test it from another machine\.$/,
    ],
  },
  "is-stale-at-the-first-resolvers": {
    ...{ ips: [NO_WAY], third: [FIRST], code: "partly" },
    says: [/works over IPv6, but not at one of its two addresses: 2001:db9::1/],
  },
  "is-stale-at-the-last-resolver": {
    ...{ ips: [FIRST], third: [NO_WAY], code: "partly" },
    says: [
      /works over IPv6, but not at one of its two addresses: 2001:db9::1/,
      / resolver_c alone has 2001:db9::1\./,
    ],
  },
  "is-filtered-by-the-last-resolver": {
    ...{ ips: [FIRST], third: ["::"], code: "resolvers-differ" },
    says: [
      /works over IPv6, but resolver_c alone has ::, which cannot be reached .*may filter/,
      /^(?!.*half of).*$/,
    ],
  },
  "differs-between-resolvers": {
    ...{ ips: [FIRST], third: [SECOND], code: "works", says: [/20 of 20 transactions/] },
  },
};

const nameOf = (row: string) => `${row}.odd.example`;

const stack = new AsyncDisposableStack();
let service: Service;

const check = async (row: string, from = "") => {
  const response = await fetch(`${service.url}/check/${nameOf(row)}?port=80${from}`, {
    headers: { "X-API-Key": service.key },
  });
  return await response.json();
};

beforeAll(async () => {
  if (missing !== null) return;
  const folder = await mkdtemp(join(tmpdir(), "sixscope-names-"));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const ips = [FIRST, SECOND, ULA, NO_ECHO, OWN];
  const noEcho = `ip6 daddr ${NO_ECHO} icmpv6 type echo-request drop`;
  const chain = `type filter hook output priority 0; ${noEcho};`;
  await run(["nft", "-f", "-"], `table ip6 odd {\nchain out {\n${chain}\n}\n}\n`);
  stack.defer(async () => void (await run(["nft", "delete", "table", "ip6", "odd"])));
  await runIp([
    ...ips.map((ip) => `addr add ${ip}/128 dev lo nodad`),
    `addr add ${IPV4}/31 dev lo`,
  ]);
  for (const hostname of [...ips, IPV4]) {
    const server = Bun.serve({ hostname, port: 80, fetch: () => new Response("ok") });
    stack.defer(() => server.stop(true));
  }
  const codes = Object.fromEntries(
    Object.entries(ROWS).flatMap(([row, { aaaa }]) =>
      aaaa ? [[`${nameOf(row)} AAAA`, aaaa]] : [],
    ),
  );
  const resolver = async (ipsOf: (row: Row) => readonly string[]) => {
    const names = Object.entries(ROWS).map(([row, each]) => [nameOf(row), ipsOf(each)]);
    return stack.use(await startResolver(Object.fromEntries(names), { codes })).server;
  };
  const [usual, third, empty] = await Promise.all([
    resolver(({ ips }) => ips),
    resolver(({ ips, third }) => third ?? ips),
    resolver(() => []),
  ]);
  const anchors = join(folder, "anchors");
  await writeFile(anchors, `elsewhere.example. DS 1 13 2 ${"00".repeat(32)}\n`);
  const nats = stack.use(await startNats());
  const settings = {
    SIXSCOPE_TRUST_ANCHORS: anchors,
    SIXSCOPE_NATS_URL: nats.url,
    SIXSCOPE_TARGETS_ALLOW: "2001:db8::/32,203.0.113.0/24",
    SIXSCOPE_RATE_KEY: "100000",
    SIXSCOPE_RESOLVER_A: usual,
    SIXSCOPE_RESOLVER_B: usual,
    SIXSCOPE_RESOLVER_C: third,
  };
  const without = {
    SIXSCOPE_RESOLVER_A: empty,
    SIXSCOPE_RESOLVER_B: empty,
    SIXSCOPE_RESOLVER_C: empty,
  };
  service = stack.use(await startService({ ...settings }));
  stack.use(await startAgent({ ...settings, SIXSCOPE_LOCATION: "ams" }));
  stack.use(await startAgent({ ...settings, ...without, SIXSCOPE_LOCATION: "fra" }));
  const known = async () => (await fetch(`${service.url}/locations`)).text();
  while (!/"ams".*"fra"/.test(await known())) await Bun.sleep(50);
});

afterAll(() => stack.disposeAsync());

labTest.each(Object.entries(ROWS))("a name that %s", async (row, { code, says, never }) => {
  const { steps, details } = (await check(row)) as CheckResult;
  for (const words of says) expect(details.verdict.text).toMatch(words);
  if (never) expect(details.verdict.text).not.toMatch(never);
  expect(details.verdict.code).toBe(code);
  // The addresses that are tried are named.
  const names = steps.find(({ name }) => name === "names");
  for (const { ip = "" } of steps) expect(names?.text).toContain(ip);
});

labTest("a check at other locations has the verdict of each", async () => {
  const { details, locations } = (await check("works", "&from=ams,fra")) as unknown as {
    readonly details: { readonly summary: readonly object[] };
    readonly locations: readonly { readonly location: string; readonly result: CheckResult }[];
  };
  const verdicts: object[] = [
    { location: "ams", verdict: "works" },
    { location: "fra", verdict: "no-ipv6" },
  ];
  expect(details.summary).toMatchObject(verdicts);
  expect(
    locations.map(({ location, result }) => ({ location, verdict: result.details.verdict.code })),
  ).toEqual(verdicts as never);
});
