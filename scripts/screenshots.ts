/**
 * Takes pictures of the page, in `dist/screenshots`: `bun run screenshots`. It runs in its own network
 * namespace, as the tests do, against the stage of the page's tests.
 */
import "../test/lab/enter.ts";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
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
  docs: { hash: "docs" },
  "key-wrong": { hash: "#/trace/www.example.test", isRun: true },
};

const [only = ""] = Bun.argv.slice(2);

await using stage = await startStage({ SIXSCOPE_RATE_ANONYMOUS: "10000" });
await mkdir(FOLDER, { recursive: true });

async function take(page: Page, scene: string, name: string): Promise<void> {
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
  await page.screenshot({ path: join(FOLDER, `${name}.png`), fullPage: true });
}

for (const [screen, viewport] of Object.entries(SCREENS)) {
  for (const colorScheme of ["light", "dark"] as const) {
    for (const scene of Object.keys(SCENES)) {
      const name = `${scene}-${screen}-${colorScheme}`;
      if (!name.includes(only)) continue;
      const context = await stage.browser.newContext({
        viewport,
        colorScheme,
        extraHTTPHeaders: PROXY_HEADERS,
      });
      await take(await context.newPage(), scene, name);
      await context.close();
      console.log(`dist/screenshots/${name}.png`);
    }
  }
}
process.exit(0);
