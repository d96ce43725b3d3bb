/**
 * The page in a real Chromium on the stage of its tests: how soon the address and the first hop are
 * visible, the bytes of each file, and the requests a second of the page beside `/myip`. `bun run bench
 * page`. It needs chromium, knotd and wrk.
 */
import "../test/lab/enter.ts";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { bundlePage } from "../src/page/bundle.ts";
import { run } from "../test/lab/run.ts";
import { PROXY_HEADERS, startStage } from "../test/page/stage.ts";
import { median } from "./measure.ts";

const ROUNDS = 7;
const SECONDS = 3;

/** Each request comes from one of 4,096 addresses, so that none reaches the page's limit. */
const CLIENTS = `local n = 0
request = function()
  n = (n + 1) % 4096
  wrk.headers["X-Forwarded-For"] = string.format("2001:db8:%x::7", n)
  return wrk.format()
end`;

await using stage = await startStage({
  SIXSCOPE_LOG_LEVEL: "warn",
  SIXSCOPE_RATE_ANONYMOUS: "1000000",
  SIXSCOPE_RATE_PREFIX: "0",
});

/** Milliseconds from the navigation to the first paint, which has the address. */
async function paintMs(page: Page): Promise<number> {
  await page.goto(stage.url);
  const script = `new Promise((resolve) => new PerformanceObserver((list) => resolve(list.getEntries()[0].startTime))
    .observe({ type: "paint", buffered: true }))`;
  return await page.evaluate<number>(script);
}

/** Milliseconds from the press of the button to the first hop in the page. */
async function hopMs(page: Page): Promise<number> {
  await page.goto(`${stage.url}#/trace/www.example.test`);
  await page.reload();
  if (await page.locator("#key").isVisible()) await page.fill("#key", stage.service.key);
  return await page.evaluate<number>(`new Promise((resolve) => {
    const startMs = performance.now();
    new MutationObserver((_, observer) => {
      if (document.querySelector(".hop") === null) return;
      observer.disconnect();
      requestAnimationFrame(() => resolve(performance.now() - startMs));
    }).observe(document.body, { childList: true, subtree: true });
    document.querySelector("button.main").click();
  })`);
}

const figures = { cold: [] as number[], warm: [] as number[], hop: [] as number[] };
for (let round = 0; round < ROUNDS; round++) {
  const context = await stage.browser.newContext({ extraHTTPHeaders: PROXY_HEADERS });
  const page = await context.newPage();
  figures.cold.push(await paintMs(page));
  figures.warm.push(await paintMs(page));
  figures.hop.push(await hopMs(page));
  await context.close();
}
console.log(`median of ${ROUNDS} rounds`);
for (const [name, values] of [
  ["navigation to the address, nothing cached", figures.cold],
  ["navigation to the address, files cached", figures.warm],
  ["button to the first hop", figures.hop],
] as const) {
  console.log(`${name.padEnd(44)} ${median(values).toFixed(0).padStart(6)} ms`);
}

console.log("\nbytes, and compressed");
for (const [path, { text }] of Object.entries(await bundlePage())) {
  const zipped = Bun.gzipSync(text, { level: 9 }).length;
  const bytes = Buffer.byteLength(text);
  console.log(`${path.padEnd(44)} ${String(bytes).padStart(6)} ${String(zipped).padStart(6)}`);
}

const folder = mkdtempSync(join(tmpdir(), "sixscope-bench-"));
const script = join(folder, "clients.lua");
writeFileSync(script, CLIENTS);
const rates = new Map<string, number[]>();
for (let round = 0; round <= ROUNDS; round++) {
  for (const [path, accept] of [
    ["api/v1/myip", "application/json"],
    ["", "text/html"],
  ] as const) {
    const options = ["-t1", "-c32", `-d${SECONDS}s`, "-s", script, "-H", `Accept: ${accept}`];
    const forwarded = ["-H", `X-Forwarded-Proto: ${PROXY_HEADERS["X-Forwarded-Proto"]}`];
    const report = await run(["wrk", ...options, ...forwarded, `${stage.url}${path}`]);
    if (report.includes("Non-2xx")) throw new Error(report);
    const rate = Number(/Requests\/sec:\s+([\d.]+)/.exec(report)?.[1]);
    // The first round warms up.
    if (round > 0) rates.set(`/${path}`, [...(rates.get(`/${path}`) ?? []), rate]);
  }
}
rmSync(folder, { recursive: true });
console.log(`\nrequests a second over 32 connections, median of ${ROUNDS} rounds of ${SECONDS} s`);
for (const [path, values] of rates) {
  console.log(`${path.padEnd(44)} ${median(values).toFixed(0).padStart(6)}`);
}
process.exit(0);
