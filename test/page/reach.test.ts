/** Results stay where they are while they come, and do not take more room than they need. */
import { expect } from "bun:test";
import type { Page } from "playwright-core";
import { packed } from "../../src/page/browser/packed.ts";
import { summaryRow } from "../../src/tools/summary.ts";
import { DATED, MTR } from "../tools/documents.ts";
import { testOnStage } from "./on-stage.ts";
import { ended, runAt, type Stage, start } from "./stage.ts";

let stage: Stage;
let page: Page;

const pageTest = testOnStage((visit) => {
  ({ stage, page } = visit);
});

/**
 * The sum of the layout shifts that users see, as in Core Web Vitals: what follows a click within 0.5 s does not
 * count, so a slow machine has more of it while the first rows of mtr come. There, 0.1 is good and more than 0.25 is
 * poor.
 */
const OBSERVE = `globalThis.shift = 0;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (!entry.hadRecentInput) shift += entry.value;
  }).observe({ type: "layout-shift", buffered: true });`;

pageTest.each([
  ["#/check/www.example.test", { width: 1280, height: 800 }, 0.05],
  ["#/check/www.example.test", { width: 390, height: 844 }, 0.05],
  ["#/ping/www.example.test?count=4", { width: 1280, height: 800 }, 0.05],
  ["#/ping/lossy.example.test?count=4", { width: 360, height: 740 }, 0.05],
  ["#/mtu/tunnel.example.test", { width: 360, height: 740 }, 0.05],
  ["#/mtr/www.example.test?rounds=4&intervalMs=100", { width: 1280, height: 800 }, 0.1],
  ["#/mtr/losing.example.test?rounds=4&intervalMs=100", { width: 360, height: 740 }, 0.1],
])("%s in %j shifts by at most %d", async (place, viewport, most) => {
  await page.setViewportSize(viewport);
  await using _ = await page.addInitScript(OBSERVE);
  await page.goto(`${stage.url}${place}`);
  await page.locator("nav [aria-current]").waitFor();
  expect(await page.evaluate("shift")).toBeLessThanOrEqual(0.05);
  await start(page, stage.service.key);
  await page.evaluate("shift = 0");
  await ended(page);
  // Entries come after what they are about is drawn.
  await page.evaluate(
    "new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn, 100)))",
  );
  expect(await page.evaluate("shift")).toBeLessThanOrEqual(most);
});

const COUNTS = { sent: 10, received: 10, late: 0, errors: 0, unknown: 0, loss: 0 };

const CLEAN = { ...COUNTS, cause: null } as const;

const CLEAN_END = {
  ...{ flowLabel: 1, otherRounds: 0, paths: [], reached: true, toTarget: COUNTS },
  verdict: {
    ...MTR.details.verdict,
    code: "no-loss",
    text: "The target replied to all 10 probes.",
  },
};

pageTest("an mtr of four places fits on three screens", async () => {
  const { network } = MTR.hops[0]?.details ?? {};
  const hops = Array.from({ length: 14 }, (_, at) => ({
    ...{ ...MTR.hops[2], ...CLEAN },
    ...{ hop: at + 1, hostname: `ae${at}-0.core-router.amsterdam.backbone.example.net` },
    details: { ...(network && { network }) },
  }));
  const locations = ["ams", "fra", "lhr", "nyc"].map((location) => ({
    location,
    result: { ...MTR, hops, details: { ...DATED, ...CLEAN_END, location, source: "2001:db8::1" } },
  }));
  const summary = locations.map(({ location, result }) => summaryRow(location, result));
  const document = { target: "a", details: { summary, matching: 4 }, locations };
  const text = JSON.stringify({ tool: "mtr", subject: "a", options: {}, startedMs: 0, document });
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.goto(`${stage.url}#/result/${await packed(text)}`);
  await page.locator(".location").nth(3).waitFor();
  const height = await page.evaluate<number>(`{
    const at = (selector) => document.querySelector(selector).getBoundingClientRect();
    at("#result").bottom - at(".stamp").top;
  }`);
  expect(height).toBeLessThanOrEqual(3 * 800);
});

pageTest("forty TXT records stand once, with their differences", async () => {
  await runAt(page, `${stage.url}#/dns/many.example.test?type=TXT`, stage.service.key);
  await page.locator(".reply").nth(3).waitFor();
  const values = await page.locator(".reply .value .mono").allTextContents();
  expect(values.length).toBe(42);
  expect(new Set(values).size).toBe(42);
  const marks = await page.locator("tr", { hasText: "only " }).allTextContents();
  expect(marks.toSorted()).toEqual([
    expect.stringMatching(/"others".*only resolver_a and resolver_b$/),
    expect.stringMatching(/"third".*only resolver_c$/),
  ]);
});
