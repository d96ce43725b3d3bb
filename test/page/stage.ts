/** What the page is tried on: a browser, the service, resolvers, and a simulated internet with odd names. */
import { type Browser, chromium } from "playwright-core";
import { reverseName } from "../../src/addr/format.ts";
import { parseIpv6 } from "../addr/parse.ts";
import { startKnot } from "../lab/dns-server.ts";
import { type Internet, startInternet } from "../lab/internet.ts";
import type { Router } from "../lab/internet-description.ts";
import { findProgram } from "../lab/run.ts";
import { type Service, startService } from "../lab/service.ts";

/** Targets of the stage, by what they show. */
export const TARGETS = {
  /** Behind twelve routers; its name is `www.example.test`. */
  far: "2001:db8:2::80",
  /** Loses the second and the fifth request. */
  lossy: "2001:db8:3::1",
  /** A router says that there is no route. */
  unreachable: "2001:db8:4::1",
  /** Three routers, each slower than the one before. */
  slow: "2001:db8:5::1",
  /** Routers whose names are markup. */
  hostile: "2001:db8:6::1",
  silent: "2001:db8:7::1",
  /** Loses a quarter behind the third router; the second limits its answers. */
  lossfar: "2001:db8:8::1",
  /** Loses nothing, but the second router limits its answers. */
  limited: "2001:db8:9::1",
  /** The second router answers from two addresses in turn. */
  changing: "2001:db8:a::1",
  /** The fourth link carries 1420 bytes; the second router claims too little. */
  narrow: "2001:db8:b::1",
  /** A silent router drops what is larger than 1400 bytes. */
  blackhole: "2001:db8:c::1",
  /** A link carries less than every link has to. */
  below1280: "2001:db8:d::1",
} as const;

/** Markup that runs a script if it is shown as markup. */
export const MARKUP = "<img src=x onerror=document.title='hostile'>";

/** The address of the caller, as a proxy on this machine names it. */
export const CALLER = "2001:db8:42:7:21b:44ff:fe11:3ab7";

const LABELS = [{ label: 24_015, trafficClass: 0, bottomOfStack: true, ttl: 1 }];

const farRouters: readonly (Router & { readonly name: string })[] = [
  { address: "2001:db8:100::1", rttMs: 0.4, name: "gateway.office.example.test" },
  { address: "2001:db8:100:2::1", rttMs: 2.1, name: "bng1.ams.access.example.test" },
  {
    address: "2001:db8:100:3::1",
    rttMs: 3.4,
    name: "ae12-0.core-router-2.amsterdam-science-park.backbone.example.test",
  },
  { address: "2001:db8:100:4::1", rttMs: 3.9, name: "", silent: true },
  {
    address: "2001:db8:100:5::1",
    rttMs: 8.7,
    name: "lo0.fra3.mpls.example.test",
    extensions: LABELS,
  },
  {
    address: "2001:db8:100:6::1",
    rttMs: 9.2,
    name: "lo0.fra4.mpls.example.test",
    extensions: LABELS,
  },
  { address: "2001:db8:100:7:89ab:cdef:1234:5678", rttMs: 11.8, name: "" },
  { address: "2001:db8:100:8::1", rttMs: 74.3, name: "te0-0-0.ewr1.transit.example.test" },
  { address: "2001:db8:100:9::1", rttMs: 76.9, name: "be3.jfk2.transit.example.test" },
  { address: "2001:db8:100:a::1", rttMs: 77.5, name: "", silent: true },
  { address: "2001:db8:100:b::1", rttMs: 79.1, name: "spine1.dc4.hosting.example.test" },
  { address: "2001:db8:100:c::1", rttMs: 79.6, name: "leaf17.dc4.hosting.example.test" },
];

const SLOW_MS = [150, 400, 650];

/** Numbers of packets, as many as a whole suite sends, of which some of each `period` are meant. */
const ofEach = (period: number, isMeant: (at: number) => boolean) =>
  Array.from({ length: 20_000 }, (_, at) => at + 1).filter((at) => isMeant(at % period));

/** Five routers in the block of a destination, some of them special. */
const routersOf = (block: string, special: Readonly<Record<number, Partial<Router>>>): Router[] =>
  [0.4, 2.1, 8.7, 9.2, 11.8].map((rttMs, at) => ({
    address: `2001:db8:100:${block}${at + 1}::1`,
    rttMs,
    jitterMs: rttMs / 3,
    ...special[at + 1],
  }));

const LIMITED: Partial<Router> = { rateLimit: { intervalMs: 1000, burst: 3 } };

/** The special routers of a path, by the block of its destination. */
const specialRouters: Readonly<Record<string, Readonly<Record<number, Partial<Router>>>>> = {
  8: { 2: LIMITED, 3: { forwardLoss: ofEach(4, (at) => at === 0) } },
  9: { 2: LIMITED },
  a: { 2: { rules: [{ probes: ofEach(8, (at) => at > 4), change: "source" }] } },
  b: { 2: { mtu: 1480, claimedMtu: 1000 }, 4: { mtu: 1420 } },
  c: { 3: { mtu: 1400, silent: true } },
  d: { 3: { mtu: 1000 } },
};

function startSimulation(): Promise<Internet> {
  const near = farRouters.slice(0, 3);
  return startInternet({
    source: "2001:db8:1::10",
    destinations: [
      {
        to: "2001:db8:2::/48",
        routers: farRouters,
        end: { rttMs: 80.2, jitterMs: 4, hopLimit: 64 },
      },
      { to: "2001:db8:3::/48", routers: near, end: { rttMs: 21, jitterMs: 9, loss: [2, 5] } },
      {
        to: "2001:db8:4::/48",
        routers: [
          ...near,
          { address: "2001:db8:100:44::1", rttMs: 6, error: { type: 1, code: 0 } },
        ],
      },
      {
        to: "2001:db8:5::/48",
        routers: SLOW_MS.map((rttMs, index) => ({
          address: `2001:db8:105:${index + 1}::1`,
          rttMs,
        })),
        end: { rttMs: 900 },
      },
      {
        to: "2001:db8:6::/48",
        routers: [{ address: "2001:db8:106::1", rttMs: 1 }],
        end: { rttMs: 2 },
      },
      { to: "2001:db8:7::/48", routers: near, end: "blackhole" },
      ...Object.entries(specialRouters).map(([block, special]) => ({
        to: `2001:db8:${block}::/48`,
        routers: routersOf(block, special),
        end: { rttMs: 12, jitterMs: 2 },
      })),
    ],
  });
}

/** A text in a zone file, with each special character as its number. */
const escaped = (text: string) =>
  text.replace(/[^\w-]/g, (character) => `\\${String(character.charCodeAt(0)).padStart(3, "0")}`);

/** The zones of the stage; the third resolver has another address for www and other TTLs. */
function zones(isThird: boolean): Record<string, string> {
  const start = (ttl: number) =>
    `$TTL ${ttl}\n@ SOA ns.example.test. hostmaster.example.test. 1 60 60 60 60\n@ NS ns.example.test.\n`;
  const pointers: readonly (readonly [address: string, name: string])[] = [
    ...farRouters.flatMap(({ address, name }) => (name ? [[address, name] as const] : [])),
    [TARGETS.far, "web17.hosting.example.test"],
    [CALLER, "laptop.office.example.test"],
    ["2001:db8:106::1", escaped(MARKUP)],
    ...Object.keys(specialRouters).flatMap((block) =>
      routersOf(block, {}).map(
        ({ address }, at) => [address, `core${at + 1}.example.test`] as const,
      ),
    ),
  ];
  const www = isThird ? ["2001:db8:2::81"] : [TARGETS.far];
  return {
    "example.test.": [
      start(300),
      "ns AAAA ::1",
      "www CNAME web17.hosting",
      ...www.map((address) => `web17.hosting AAAA ${address}`),
      ...Object.entries(TARGETS).map(([name, address]) => `${name} AAAA ${address}`),
      "same AAAA 2001:db8:2::1",
      "same AAAA 2001:db8:2:aaaa:bbbb:cccc:dddd:eeee",
      "ipv4only A 192.0.2.1",
      `text TXT "${escaped(MARKUP)}"`,
      `text TXT "v=spf1 include:_spf.example.test ip6:2001:db8:2::/48 ${"ip6:2001:db8:aaaa:bbbb::/64 ".repeat(5)}-all"`,
      "",
    ].join("\n"),
    "8.b.d.0.1.0.0.2.ip6.arpa.": [
      start(60),
      ...pointers.map(
        ([address, name]) =>
          `${reverseName(parseIpv6(address))}. PTR ${name.includes("example") ? `${name}.` : `${name}.example.test.`}`,
      ),
      "",
    ].join("\n"),
  };
}

/** The stage, with a browser in front of it. */
export interface Stage extends AsyncDisposable {
  readonly service: Service;
  /** Where the page is. */
  readonly url: string;
  readonly browser: Browser;
}

/** Headers of a proxy on this machine, for a caller with an address of its own. */
export const PROXY_HEADERS = { "X-Forwarded-For": CALLER, "X-Forwarded-Proto": "https" } as const;

/** Starts a browser that sends nothing but the requests of its pages. */
export function startBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: findProgram("chromium") ?? "",
    // Root cannot use the sandbox.
    args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"],
  });
}

/** Starts everything. */
export async function startStage(
  environment: Readonly<Record<string, string>> = {},
): Promise<Stage> {
  const stack = new AsyncDisposableStack();
  const internet = await startSimulation();
  stack.defer(async () => void (await internet.stop()));
  const knots = await Promise.all(
    [false, true].map((isThird) => startKnot({ zones: zones(isThird) })),
  );
  for (const knot of knots) stack.defer(() => knot.stop());
  const [first, third] = knots.map(({ endpoint }) => `[::1]:${endpoint.port}`);
  const service = await startService({
    SIXSCOPE_RESOLVER_A: first ?? "",
    SIXSCOPE_RESOLVER_B: first ?? "",
    SIXSCOPE_RESOLVER_C: third ?? "",
    SIXSCOPE_TRUSTED_PROXIES: "::1",
    ...environment,
  });
  stack.use(service);
  const browser = await startBrowser();
  stack.defer(() => browser.close());
  const url = new URL("/", service.urls.find((url) => url.includes("[::1]")) ?? service.url).href;
  return { service, url, browser, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}
