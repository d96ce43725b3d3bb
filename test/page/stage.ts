/** The environment of the page tests: a browser, the service, resolvers, and a simulated internet with odd names. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { reverseName } from "../../src/addr/format.ts";
import { parseIpv6 } from "../addr/parse.ts";
import { startKnot } from "../lab/dns-server.ts";
import { type Internet, startInternet } from "../lab/internet.ts";
import type { Router } from "../lab/internet-description.ts";
import { encodeMmdb } from "../lab/mmdb.ts";
import { findProgram } from "../lab/run.ts";
import { type Service, startService } from "../lab/service.ts";
import { PATH_TARGETS, pathDestinations, pathNames } from "./path-targets.ts";

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
  /** Routers that report labels and interfaces. */
  told: "2001:db8:8::1",
  /** A link that is too narrow. */
  narrow: "2001:db8:9::1",
  /** Behind a translator, by its well-known prefix. */
  nat64: "64:ff9b::c000:207",
  /** A target in a prefix that the operator denies. */
  forbidden: "2001:db8:bad::1",
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

/** An extension structure without a checksum, RFC 4884: an interface by index, name and MTU, the next one by address and MTU (RFC 5837), and two labels (RFC 4950). */
const EXTENSIONS = Uint8Array.fromHex(
  [
    "20000000",
    `001c020b0000020710${Buffer.from("xe-0/0/1.100").toString("hex").padEnd(30, "0")}00002328`,
    "001c0285000200002001 0db8 0108 0000 0000 0000 0000 0002 000005dc",
    "000c010105dcf00a1869f101",
  ]
    .join("")
    .replaceAll(" ", ""),
);

const toldRouters: readonly Router[] = [
  { address: "2001:db8:108::1", rttMs: 0.4 },
  { address: "2001:db8:108:2::1", rttMs: 1.5 },
  { address: "2001:db8:108:3::1", rttMs: 2, extensions: EXTENSIONS },
  { address: "2001:db8:108:4::1", silent: true },
];

const SLOW_MS = [150, 400, 650];

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
      { to: "2001:db8:8::/48", routers: toldRouters, end: { rttMs: 3 } },
      {
        to: "2001:db8:9::/48",
        routers: [
          ...near,
          { address: "2001:db8:109::1", rttMs: 5, error: { type: 2, code: 0 }, mtu: 1280 },
        ],
      },
      { to: "64:ff9b::/96", routers: near, end: { rttMs: 15 } },
      ...pathDestinations,
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
    ...pathNames,
  ];
  const www = isThird ? ["2001:db8:2::81"] : [TARGETS.far];
  return {
    "example.test.": [
      start(300),
      "ns AAAA ::1",
      "www CNAME web17.hosting",
      ...www.map((address) => `web17.hosting AAAA ${address}`),
      ...Object.entries({ ...TARGETS, ...PATH_TARGETS }).map(
        ([name, address]) => `${name} AAAA ${address}`,
      ),
      "same AAAA 2001:db8:2::1",
      "same AAAA 2001:db8:2:aaaa:bbbb:cccc:dddd:eeee",
      "ipv4only A 192.0.2.1",
      ...Array.from({ length: 40 }, (_, at) => `many TXT "record=${at}"`),
      `many TXT "${isThird ? "third" : "others"}"`,
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

/** Whose the addresses of the stage are, in both kinds of files. */
async function writeNetworks(folder: string): Promise<Readonly<Record<string, string>>> {
  const [own, all] = [join(folder, "own.csv"), join(folder, "all.mmdb")];
  await Bun.write(own, "2001:db8:42::/48,Example office\n");
  const record = (asn: number, name: string) => ({
    autonomous_system_number: asn,
    autonomous_system_organization: name,
  });
  await Bun.write(
    all,
    encodeMmdb([
      ["2001:db8:100::/46", record(64_500, "Example Access")],
      ["2001:db8:100:5::/64", record(64_501, "Example Long-Haul Transit Networks and Partners")],
      ["2001:db8:2::/48", record(64_502, "Example Hosting")],
      ["2001:db8:106::/48", record(64_503, MARKUP)],
    ]),
  );
  return { SIXSCOPE_NETWORKS_FILE: own, SIXSCOPE_ASN_FILE: all };
}

/** The stage, with a browser in front of it. */
export interface Stage extends AsyncDisposable {
  readonly service: Service;
  /** The settings of the service, for other services on the stage. */
  readonly settings: Readonly<Record<string, string>>;
  /** Where the page is. */
  readonly url: string;
  readonly browser: Browser;
}

/** Where the page of a service on the stage is. */
export function pageUrl({ urls }: Service): string {
  return new URL(
    "/",
    urls.find((url) => url.includes("[::1]")),
  ).href;
}

/** Starts the tool that the page shows, with the key if it asks for one. */
export async function start(page: Page, key: string, name: string | RegExp = /^(Check|Run)$/) {
  const button = page.getByRole("button", { name });
  await button.click();
  const asks = page.locator("#key");
  const begun = page.locator(".stamp, .problem").first();
  await asks.or(begun).first().waitFor();
  if (!(await asks.isVisible())) return;
  await page.fill("#key", key);
  await button.click();
}

/** Waits until the tool that the page shows has ended. */
export async function ended(page: Page): Promise<void> {
  await page
    // A refusal may stand at a field.
    .locator('body:has(#result[aria-busy="false"]) :is(.stamp, .problem)')
    .first()
    .waitFor();
}

/** Opens a place, and runs it to its end, with the key if it asks for one, if it has to be told to. */
export async function runAt(page: Page, place: string, key: string): Promise<void> {
  await page.goto(place);
  const [, tool, subject = ""] = /#\/([a-z-]+)(?:\/([^?]+))?/.exec(place) ?? [];
  // The page shows another place a moment after its address has changed.
  if (!tool) return;
  await page.locator(`nav [aria-current][href^="#/${tool}"]`).waitFor();
  while (!(await page.title()).includes(subject)) await Bun.sleep(20);
  if (!(await page.getByRole("button", { name: /^(Check|Run)$/ }).isVisible())) return;
  await start(page, key);
  await ended(page);
}

/** Drops a file with a text on the page. */
export const drop = (page: Page, text: string) =>
  page.evaluate(`{
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File([${JSON.stringify(text)}], "result.json"));
    dispatchEvent(new DragEvent("drop", { dataTransfer, cancelable: true }));
  }`);

/** Gives the page's next documents each event of a run when what the one before changed is drawn, however slow it is. */
export function eventByEvent(page: Page): Promise<AsyncDisposable> {
  return page.addInitScript(`fetch = ((ask) => async (...asked) => {
    const response = await ask(...asked);
    const type = response.headers.get("content-type") ?? "";
    if (!type.startsWith("text/event-stream")) return response;
    const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    let left = "";
    const oneByOne = new TransformStream({
      async transform(text, controller) {
        const events = (left + text).split(/(?<=\\n\\n)/);
        left = events.at(-1).endsWith("\\n\\n") ? "" : events.pop();
        for (const event of events) {
          controller.enqueue(event);
          for (let frames = 0; frames < 2; frames++) await frame();
        }
      },
    });
    const texts = response.body.pipeThrough(new TextDecoderStream()).pipeThrough(oneByOne);
    return new Response(texts.pipeThrough(new TextEncoderStream()), response);
  })(fetch)`);
}

/** Headers of a proxy on this machine, for a caller with an address of its own. */
export const PROXY_HEADERS = { "X-Forwarded-For": CALLER, "X-Forwarded-Proto": "https" } as const;

/** The headers of a proxy on this machine, for a caller with this address. */
export const headersOf = (address: string) => ({ ...PROXY_HEADERS, "X-Forwarded-For": address });

/**
 * The first page of a visitor, as if nobody had used it: a page that is new takes twice the processor time of one whose
 * process is there.
 */
export async function freshPage(context: BrowserContext): Promise<Page> {
  const [page = await context.newPage(), ...others] = context.pages();
  for (const other of others) await other.close();
  page.removeAllListeners();
  await page.unrouteAll();
  await page.setExtraHTTPHeaders({});
  // The tab's own store is that of the page that it shows.
  await page.evaluate("sessionStorage.clear(), localStorage.clear()").catch(() => {});
  await page.goto("about:blank");
  await page.setViewportSize({ width: 1280, height: 720 });
  await page.emulateMedia({ media: null, colorScheme: null });
  return page;
}

/** How long a busy machine may take to show what a test waits for. */
const BUSY_MS = 100_000;

/** Starts a browser that sends nothing but the requests of its pages. */
export async function startBrowser(
  executablePath = findProgram("chromium") ?? "",
): Promise<Browser> {
  const browser = await chromium.launch({
    executablePath,
    timeout: BUSY_MS,
    args: [
      // Root cannot use the sandbox.
      "--no-sandbox",
      "--disable-gpu",
      "--disable-background-networking",
      "--disable-sync",
      // Takes the place of Playwright's own list. With its windows, Chromium loads two pages for each address bar.
      "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup,HttpsUpgrades,PaintHolding",
    ],
  });
  browser.on("context", (context) => context.setDefaultTimeout(BUSY_MS));
  return browser;
}

/**
 * A new visitor at an address.
 *
 * @param complaints gets what the browser complains about, and each request that goes elsewhere
 */
export async function visitor(
  { browser, url }: Pick<Stage, "browser" | "url">,
  address: string,
  complaints: string[],
): Promise<BrowserContext> {
  const context = await browser.newContext({
    // What is animated is drawn sixty times a second.
    reducedMotion: "reduce",
    permissions: ["clipboard-read", "clipboard-write"],
    extraHTTPHeaders: headersOf(address),
  });
  await context.addInitScript(`addEventListener("securitypolicyviolation", (event) =>
    console.error("violation:", event.violatedDirective, event.blockedURI));`);
  const { hostname } = new URL(url);
  context.on("request", (request) => {
    const asked = new URL(request.url());
    if (asked.hostname !== hostname && asked.protocol !== "blob:") complaints.push(request.url());
  });
  context.on("weberror", (error) => complaints.push(String(error.error())));
  context.on("console", (message) => {
    const isAnswer = message.text().startsWith("Failed to load resource");
    if (message.type() === "error" && !isAnswer) complaints.push(message.text());
  });
  return context;
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
  const folder = await mkdtemp(join(tmpdir(), "sixscope-page-"));
  stack.defer(() => rm(folder, { recursive: true }));
  const [first, third] = knots.map(({ endpoint }) => `[::1]:${endpoint.port}`);
  const settings = {
    SIXSCOPE_RESOLVER_A: first ?? "",
    SIXSCOPE_RESOLVER_B: first ?? "",
    SIXSCOPE_RESOLVER_C: third ?? "",
    SIXSCOPE_TRUSTED_PROXIES: "::1",
    SIXSCOPE_TARGETS_DENY: "2001:db8:bad::/48",
    ...(await writeNetworks(folder)),
    ...environment,
  };
  const service = stack.use(await startService(settings));
  const browser = await startBrowser();
  stack.defer(() => browser.close());
  return {
    service,
    settings,
    url: pageUrl(service),
    browser,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}
