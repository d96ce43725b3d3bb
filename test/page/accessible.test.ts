/** What axe-core finds on each tool with a result, in light and dark. */
import { afterAll, beforeAll, expect } from "bun:test";
import { source } from "axe-core";
import { programMissing, testWith, tunMissing } from "../lab/lab.ts";
import { PROXY_HEADERS, type Stage, startStage } from "./stage.ts";

const missing = tunMissing ?? programMissing("chromium") ?? programMissing("knotd");
const pageTest = testWith(missing);

let stage: Stage;

beforeAll(async () => {
  if (missing === null) stage = await startStage({ SIXSCOPE_RATE_ANONYMOUS: "1000" });
}, 60_000);

afterAll(async () => {
  if (missing === null) await stage[Symbol.asyncDispose]();
});

const PLACES = [
  ["#/", null],
  ["#/validate/2001:0:4136:e378:8000:63bf:3fff:fdd2", null],
  ["#/validate/2001:db8::g", null],
  ["#/dns/www.example.test", "Run"],
  ["#/dns/missing.example.test", "Run"],
  ["#/ping/lossy.example.test?count=3", "Run"],
  ["#/trace/www.example.test", "Run"],
  ["#/trace/unreachable.example.test", "Run"],
  ["#/mtr/lossfar.example.test?rounds=3", "Run"],
  ["#/mtr/changing.example.test", "Run"],
  ["#/mtr/www.example.test?rounds=0", "Run"],
  ["#/mtu/narrow.example.test", "Run"],
  ["#/mtu/blackhole.example.test", "Run"],
  ["docs", null],
] as const;

const rows = (["light", "dark"] as const).flatMap((scheme) =>
  PLACES.map(([hash, run]) => [hash, scheme, run] as const),
);

pageTest.each(rows)("%s in %s", async (hash, colorScheme, run) => {
  const context = await stage.browser.newContext({
    colorScheme,
    reducedMotion: "reduce",
    extraHTTPHeaders: PROXY_HEADERS,
  });
  const page = await context.newPage();
  await page.goto(`${stage.url}${hash}`);
  if (run !== null) {
    if (await page.locator("#key").isVisible()) await page.fill("#key", stage.service.key);
    await page.getByRole("button", { name: run, exact: true }).click();
    await page.getByRole("button", { name: "Run again" }).waitFor();
  }
  await page.waitForLoadState("networkidle");
  // The library is not part of the page, so its policy does not concern it.
  const found = await page.evaluate(`${source}; axe.run()`);
  const { violations } = found as import("axe-core").AxeResults;
  expect(
    violations.map(({ id, nodes }) => [id, ...nodes.map(({ target }) => String(target))]),
  ).toEqual([]);
  // Nothing is wider than the narrowest screen.
  await page.setViewportSize({ width: 320, height: 640 });
  expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(320);
  await context.close();
});
