/**
 * The page in a real Chromium on the stage of its tests: how soon the address, the first hop and 500 watches with
 * their last day are visible, the bytes of each file, and the requests a second of the page beside `/myip`.
 * `bun run bench page`. It needs chromium, knotd and wrk.
 */
import "../test/lab/enter.ts";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { bundlePage } from "../src/page/bundle.ts";
import { History } from "../src/watch/history.ts";
import { run } from "../test/lab/run.ts";
import { startService } from "../test/lab/service.ts";
import { PROXY_HEADERS, pageUrl, runAt, startStage } from "../test/page/stage.ts";
import { quietLog, runAt as runOfWatch } from "../test/watch/runs.ts";
import { median } from "./measure.ts";

const ROUNDS = 7;
const WATCHES = 500;
/** The last day of a watch every five minutes. */
const RUNS = 288;
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

/** Milliseconds from the press of the button to the first hop in the page, which knows the key from a run before. */
async function hopMs(page: Page): Promise<number> {
  const place = `${stage.url}#/trace/www.example.test`;
  await runAt(page, place, stage.service.key);
  await page.goto(place);
  await page.reload();
  return await page.evaluate<number>(`new Promise((resolve) => {
    const startMs = performance.now();
    new MutationObserver((_, observer) => {
      if (document.querySelector(".hop, .way circle") === null) return;
      observer.disconnect();
      requestAnimationFrame(() => resolve(performance.now() - startMs));
    }).observe(document.body, { childList: true, subtree: true });
    document.querySelector("button.main").click();
  })`);
}

/** A service whose watches have run for a day, and do not run again soon. */
async function startWatching(folder: string) {
  const [schedule, file] = [join(folder, "watches"), join(folder, "history.db")];
  const names = Array.from({ length: WATCHES }, (_, at) => `ping 2001:db8:2::${at.toString(16)}`);
  writeFileSync(schedule, names.map((name) => `${name} every=1d\n`).join(""));
  using history = new History(file, 256, quietLog);
  const nowMs = Date.now();
  for (let number = 0; number < RUNS; number++) {
    const atMs = nowMs - (RUNS - number) * 300_000;
    for (const name of names) history.addRun(name, runOfWatch(number, { atMs }));
  }
  const standing = { code: "no-loss", text: "All replied.", sinceMs: nowMs, document: null };
  for (const name of names) history.keepStanding(name, standing);
  const files = { SIXSCOPE_WATCH_FILE: schedule, SIXSCOPE_HISTORY_FILE: file };
  return await startService({ ...stage.settings, ...files });
}

/** Milliseconds from the press of the link to so many rows of watches in the page. */
async function listMs(page: Page, rows: number): Promise<number> {
  await page.goto(pageUrl(watching));
  await page.reload();
  return await page.evaluate<number>(`new Promise((resolve) => {
    const startMs = performance.now();
    new MutationObserver((_, observer) => {
      if (document.querySelectorAll(".watches tbody tr").length < ${rows}) return;
      observer.disconnect();
      requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - startMs)));
    }).observe(document.body, { childList: true, subtree: true });
    document.querySelector("a[href='#/watch']").click();
  })`);
}

const watched = mkdtempSync(join(tmpdir(), "sixscope-bench-"));
const watching = await startWatching(watched);
const figures: Record<"cold" | "warm" | "hop" | "sight" | "list", number[]> = {
  cold: [],
  warm: [],
  hop: [],
  sight: [],
  list: [],
};
for (let round = 0; round < ROUNDS; round++) {
  const context = await stage.browser.newContext({ extraHTTPHeaders: PROXY_HEADERS });
  const page = await context.newPage();
  figures.cold.push(await paintMs(page));
  figures.warm.push(await paintMs(page));
  figures.hop.push(await hopMs(page));
  await page.goto(`${pageUrl(watching)}#/watch`);
  await page.fill("#key", watching.key);
  await page.getByRole("button", { name: "Show" }).click();
  await page.locator(".watches").waitFor();
  figures.sight.push(await listMs(page, 1));
  figures.list.push(await listMs(page, WATCHES));
  await context.close();
}
await watching[Symbol.asyncDispose]();
rmSync(watched, { recursive: true });
console.log(`median of ${ROUNDS} rounds`);
for (const [name, values] of [
  ["navigation to the address, nothing cached", figures.cold],
  ["navigation to the address, files cached", figures.warm],
  ["button to the first hop", figures.hop],
  [`link to the list of ${WATCHES} watches, in sight`, figures.sight],
  ["link to its last row", figures.list],
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
