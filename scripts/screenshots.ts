/**
 * Takes pictures of the page, in `dist/screenshots`, and those of the README, in `docs/images`:
 * `bun run screenshots`, or `bun run screenshots trace-phone` for those with that in their names. It runs
 * in its own network namespace, as the tests do, against the stage of the page's tests.
 */
import "../test/lab/enter.ts";
import { mkdir } from "node:fs/promises";
import { join, relative } from "node:path";
import type { Page } from "playwright-core";
import { startLocatedService } from "../test/page/locations-stage.ts";
import { PROXY_HEADERS, pageUrl, runAt, startStage } from "../test/page/stage.ts";
import { ROOT } from "./build/source.ts";

const FOLDER = join(ROOT, "dist/screenshots");

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
  "trace-from": "#/trace/www.example.test?from=ams,fra",
  docs: "docs",
  "key-wrong": "#/trace/www.example.test",
};

/** The pictures of the README: small, and only what fits in them. */
const README = {
  "page-trace": { scene: "trace", colorScheme: "light" },
  "page-address": { scene: "address", colorScheme: "dark" },
} as const;

const [only = ""] = Bun.argv.slice(2);

await using stage = await startStage({ SIXSCOPE_RATE_ANONYMOUS: "10000" });
await using located = await startLocatedService(stage);
await mkdir(FOLDER, { recursive: true });

async function take(page: Page, scene: string, path: string, fullPage: boolean): Promise<void> {
  const { service } = SCENES[scene]?.includes("from=") ? located : stage;
  const key = scene === "key-wrong" ? "sx_wrong" : service.key;
  await runAt(page, `${pageUrl(service)}${SCENES[scene]}`, key);
  await page.waitForLoadState("networkidle");
  if (path.includes("-paper-")) await page.emulateMedia({ media: "print" });
  await page.screenshot({ path, fullPage });
  console.log(relative(ROOT, path));
}

async function inContext(
  options: { viewport: { width: number; height: number }; colorScheme: "light" | "dark" },
  work: (page: Page) => Promise<void>,
): Promise<void> {
  const context = await stage.browser.newContext({ ...options, extraHTTPHeaders: PROXY_HEADERS });
  await work(await context.newPage());
  await context.close();
}

for (const [screen, viewport] of Object.entries(SCREENS)) {
  for (const colorScheme of ["light", "dark"] as const) {
    for (const scene of Object.keys(SCENES)) {
      const name = `${scene}-${screen}-${colorScheme}`;
      if (!name.includes(only)) continue;
      await inContext({ viewport, colorScheme }, (page) =>
        take(page, scene, join(FOLDER, `${name}.png`), true),
      );
    }
  }
}
for (const [name, { scene, colorScheme }] of Object.entries(README)) {
  if (!name.includes(only)) continue;
  await inContext({ viewport: { width: 1120, height: 820 }, colorScheme }, (page) =>
    take(page, scene, join(ROOT, `docs/images/${name}.png`), false),
  );
}
process.exit(0);
