/**
 * Takes pictures of the page, in `dist/screenshots`, and those of the README, in `docs/images`:
 * `bun run screenshots`, or `bun run screenshots trace-phone` for those with that in their names. It runs
 * in its own network namespace, as the tests do, against the stage of the page's tests.
 */
import "../test/lab/enter.ts";
import { mkdir } from "node:fs/promises";
import { join, relative } from "node:path";
import type { Page } from "playwright-core";
import { PROXY_HEADERS, startStage } from "../test/page/stage.ts";
import { ROOT } from "./build/source.ts";

const FOLDER = join(ROOT, "dist/screenshots");

const SCREENS = {
  phone: { width: 360, height: 740 },
  narrow: { width: 320, height: 640 },
  laptop: { width: 1280, height: 800 },
  wall: { width: 2560, height: 1440 },
} as const;

/** What is shown: a place, and whether it has to be told to run. */
const SCENES: Readonly<Record<string, { readonly hash: string; readonly isRun?: true }>> = {
  address: { hash: "" },
  validate: { hash: "#/validate/2001:0:4136:e378:8000:63bf:3fff:fdd2" },
  "validate-wrong": { hash: "#/validate/2001:db8::g" },
  multicast: { hash: "#/validate/ff02::1:ff00:1" },
  dns: { hash: "#/dns/www.example.test", isRun: true },
  "dns-text": { hash: "#/dns/text.example.test?type=TXT", isRun: true },
  "dns-missing": { hash: "#/dns/missing.example.test", isRun: true },
  ping: { hash: "#/ping/www.example.test?count=10", isRun: true },
  "ping-lossy": { hash: "#/ping/lossy.example.test?count=8", isRun: true },
  trace: { hash: "#/trace/www.example.test", isRun: true },
  "trace-unreachable": { hash: "#/trace/unreachable.example.test", isRun: true },
  mtr: { hash: "#/mtr/www.example.test", isRun: true },
  "mtr-loss": { hash: "#/mtr/lossfar.example.test?rounds=20&intervalMs=100", isRun: true },
  "mtr-changing": { hash: "#/mtr/changing.example.test", isRun: true },
  "mtu-narrow": { hash: "#/mtu/narrow.example.test", isRun: true },
  "mtu-blackhole": { hash: "#/mtu/blackhole.example.test", isRun: true },
  "mtu-clear": { hash: "#/mtu/www.example.test", isRun: true },
  docs: { hash: "docs" },
  "key-wrong": { hash: "#/trace/www.example.test", isRun: true },
};

/** The pictures of the README: small, and only what fits in them. */
const README = {
  "page-trace": { scene: "trace", colorScheme: "light" },
  "page-address": { scene: "address", colorScheme: "dark" },
} as const;

const [only = ""] = Bun.argv.slice(2);

await using stage = await startStage({ SIXSCOPE_RATE_ANONYMOUS: "10000" });
await mkdir(FOLDER, { recursive: true });

async function take(page: Page, scene: string, path: string, fullPage: boolean): Promise<void> {
  const { hash, isRun } = SCENES[scene] ?? { hash: "" };
  await page.goto(`${stage.url}${hash}`);
  if (isRun) {
    const key = page.locator("#key");
    const secret = scene === "key-wrong" ? "sx_wrong" : stage.service.key;
    if (await key.isVisible()) await key.fill(secret);
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByRole("button", { name: "Run again" }).waitFor();
  }
  await page.waitForLoadState("networkidle");
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
