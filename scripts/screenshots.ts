/**
 * Takes pictures of the page, in `dist/screenshots`: `bun run screenshots`, or `bun run screenshots trace-phone menu`
 * for those with one of that in their names. Those of the README are written again too (`readme`). It runs in its own network namespace, as the tests do, against the stage
 * of the page's tests.
 */
import "../test/lab/enter.ts";
import { mkdir } from "node:fs/promises";
import { join, relative } from "node:path";
import type { Page } from "playwright-core";
import { startService } from "../test/lab/service.ts";
import { CHECKS } from "../test/page/check-documents.ts";
import { startLocatedService } from "../test/page/locations-stage.ts";
import { drop, PROXY_HEADERS, pageUrl, runAt, start, startStage } from "../test/page/stage.ts";
import { LOOPING_TRACE, TRACE } from "../test/tools/documents.ts";
import { ROOT } from "./build/source.ts";
import { withText } from "./png-text.ts";

const FOLDER = join(ROOT, "dist/screenshots");

const README_PICTURE = join(ROOT, "docs/images/page-check.png");

const SCREENS = {
  phone: { width: 360, height: 740 },
  narrow: { width: 320, height: 640 },
  laptop: { width: 1280, height: 800 },
  wall: { width: 2560, height: 1440 },
  /** A4 at 96 pixels an inch, without margins. */
  paper: { width: 718, height: 1046 },
} as const;

/** The places that are shown. */
const SCENES: Readonly<Record<string, string>> = {
  address: "",
  validate: "#/validate/2001:0:4136:e378:8000:63bf:3fff:fdd2",
  "validate-wrong": "#/validate/2001:db8::g",
  multicast: "#/validate/ff02::1:ff00:1",
  dns: "#/dns/www.example.test",
  "dns-text": "#/dns/text.example.test?type=TXT",
  "dns-missing": "#/dns/missing.example.test",
  ping: "#/ping/www.example.test?count=10",
  "ping-lossy": "#/ping/lossy.example.test?count=8",
  "ping-unreachable": "#/ping/unreachable.example.test?count=2",
  trace: "#/trace/www.example.test",
  "trace-told": "#/trace/told.example.test",
  "trace-unreachable": "#/trace/unreachable.example.test",
  "trace-paths": "#/trace/equal.example.test?paths=8",
  "trace-wide": "#/trace/wide.example.test?paths=16",
  mtr: "#/mtr/www.example.test",
  "mtr-loss": "#/mtr/losing.example.test?rounds=20&intervalMs=100",
  "mtr-changing": "#/mtr/changing.example.test",
  "mtr-wrong": "#/mtr/www.example.test?rounds=0",
  "mtu-narrow": "#/mtu/tunnel.example.test",
  "mtu-blackhole": "#/mtu/blackhole.example.test",
  "mtu-clear": "#/mtu/www.example.test",
  check: "#/check/www.example.test",
  here: "#/here",
  "here-from": "#/here?from=all",
  "trace-from": "#/trace/www.example.test?from=ams,fra",
  docs: "docs",
  "key-wrong": "#/trace/www.example.test",
};

/** Scenes that need more than a place: its hash, and the steps there. */
const STEPS: Readonly<Record<string, readonly [hash: string, act: (page: Page) => Promise<void>]>> =
  {
    "run-stopped": ["#/mtr/www.example.test?rounds=60", stopAfterThree],
    "run-broken": [
      "#/mtr/www.example.test?rounds=60",
      async (page) => {
        await untilThree(page);
        await broken[Symbol.asyncDispose]();
        await page.getByText(/, broken off after/).waitFor();
        broken = await startService(stage.settings);
      },
    ],
    "run-left": [
      "#/mtr/www.example.test?rounds=60",
      async (page) => {
        await untilThree(page);
        await page.locator("nav a", { hasText: "DNS" }).click();
        await page.locator("nav a", { hasText: "mtr" }).click();
        await page.getByText(/, stopped after/).waitFor();
      },
    ],
    "result-link": [
      "#/mtr/www.example.test?rounds=3",
      async (page) => {
        await start(page, broken.key);
        await page.evaluate(`Object.defineProperty(navigator, "clipboard", {
        value: { writeText(text) { globalThis.copied = text; } },
      });`);
        await page.getByRole("button", { name: "Copy link with result" }).click();
        await page.getByText("Copied", { exact: true }).waitFor();
        await page.goto(await page.evaluate("copied"));
        await page.locator(".given").waitFor();
      },
    ],
    "result-file": ["#/ping", (page) => dropped(page, TRACE)],
    "result-refused": ["#/ping", (page) => dropped(page, {})],
    ...Object.fromEntries(
      Object.entries(CHECKS).map(([name, document]) => [
        `check-${name}`,
        ["#/check", (page: Page) => dropped(page, document)],
      ]),
    ),
    loop: ["#/ping", (page) => dropped(page, LOOPING_TRACE)],
    menu: [
      "#/ping",
      async (page) => {
        await dropped(page, TRACE);
        await page.locator("tr.hop .menu summary").first().click();
      },
    ],
    "dns-many": ["#/dns/many.example.test?type=TXT", (page) => start(page, stage.service.key)],
    connection: ["", (page) => connectBy(page, "answer")],
    "connection-broken": ["", (page) => connectBy(page, "silence")],
  };

/** Starts an mtr, and waits for its third round. */
async function untilThree(page: Page): Promise<void> {
  await start(page, broken.key);
  await page.getByText(/, [3-9] of 60 rounds$/).waitFor();
}

async function stopAfterThree(page: Page): Promise<void> {
  await untilThree(page);
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByText(/, stopped after/).waitFor();
}

/** Drops a file with a document on the page, and waits until it is shown or refused. */
async function dropped(page: Page, document: object): Promise<void> {
  await page.locator("#subject").waitFor();
  await drop(page, JSON.stringify(document));
  await page.locator(".given, .notice:not(:text('Reading'))").first().waitFor();
}

/** Answers for the names with one family each, and loads the page again. */
async function connectBy(page: Page, how: "answer" | "silence"): Promise<void> {
  await page.route(/^http:\/\/ipv[46]\.test\//, async (route) => {
    const is6 = route.request().url().includes("ipv6");
    if (is6 && how === "silence") return;
    if (!is6) await Bun.sleep(20);
    const body = is6
      ? { ip: PROXY_HEADERS["X-Forwarded-For"], version: 6 }
      : { ip: "192.0.2.7", version: 4 };
    await route.fulfill({ json: body, headers: { "Access-Control-Allow-Origin": "*" } });
  });
  await page.reload();
  await page.locator(".connection .verdict").waitFor();
}

const wanted = Bun.argv.slice(2);
const isWanted = (name: string) =>
  wanted.length === 0 || wanted.some((part) => name.includes(part));

await using stage = await startStage({ SIXSCOPE_RATE_ANONYMOUS: "10000" });
const families = {
  SIXSCOPE_IPV4_URL: "http://ipv4.test",
  SIXSCOPE_IPV6_URL: "http://ipv6.test",
};
await using tested = await startService({ ...stage.settings, ...families });
let broken = await startService(stage.settings);
await using located = await startLocatedService(stage);
await mkdir(FOLDER, { recursive: true });

async function take(page: Page, scene: string, path: string): Promise<void> {
  const [hash, act] = STEPS[scene] ?? [];
  if (act) {
    await page.goto(`${pageUrl(hash === "" ? tested : broken)}${hash}`);
    await act(page);
  } else await run(page, scene);
  await page.waitForLoadState("networkidle");
  if (path.includes("-paper-")) await page.emulateMedia({ media: "print" });
  await page.screenshot({ path, fullPage: true });
  console.log(relative(ROOT, path));
}

async function run(page: Page, scene: string): Promise<void> {
  const { service } = SCENES[scene]?.includes("from=") ? located : stage;
  const key = scene === "key-wrong" ? "sx_wrong" : service.key;
  await runAt(page, `${pageUrl(service)}${SCENES[scene]}`, key);
}

async function inContext(
  options: {
    viewport: { width: number; height: number };
    colorScheme: "light" | "dark";
    forcedColors?: "active" | "none";
  },
  work: (page: Page) => Promise<void>,
): Promise<void> {
  const context = await stage.browser.newContext({ ...options, extraHTTPHeaders: PROXY_HEADERS });
  await work(await context.newPage());
  await context.close();
}

for (const [screen, viewport] of Object.entries(SCREENS)) {
  for (const look of ["light", "dark", "forced"] as const) {
    for (const scene of [...Object.keys(SCENES), ...Object.keys(STEPS)]) {
      const name = `${scene}-${screen}-${look}`;
      if (!isWanted(name)) continue;
      const colorScheme = look === "forced" ? "dark" : look;
      const forcedColors = look === "forced" ? "active" : "none";
      await inContext({ viewport, colorScheme, forcedColors }, (page) =>
        take(page, scene, join(FOLDER, `${name}.png`)),
      );
    }
  }
}
if (isWanted("readme")) {
  await inContext({ viewport: SCREENS.laptop, colorScheme: "light" }, async (page) => {
    await page.goto(`${pageUrl(stage.service)}#/check`);
    await dropped(page, CHECKS["hole"] as object);
    // What somebody sees who has made the check.
    await page.locator(".given").evaluate((given) => given.remove());
    const tabs = await page.locator('nav[aria-label="Tools"] a').allTextContents();
    const picture = await page.screenshot({ fullPage: true });
    await Bun.write(README_PICTURE, withText(picture, tabs.join(", ")));
    console.log(relative(ROOT, README_PICTURE));
  });
}
process.exit(0);
