/** The tab of the locations, in a real browser: each place with its verdict, and its steps folded where all is well. */
import { afterAll, afterEach, beforeAll, beforeEach, expect } from "bun:test";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { linkGateway, type Places, startPlaces } from "../here/places.ts";
import { labMissing, programMissing, testWith } from "../lab/lab.ts";
import { type Service, startService } from "../lab/service.ts";
import { ended, freshPage, pageUrl, start, startBrowser, visitor } from "./stage.ts";

const missing = labMissing ?? programMissing("chromium") ?? programMissing("nats-server");
const pageTest = testWith(missing);

const PROXY = { SIXSCOPE_TRUSTED_PROXIES: "::1" };

let places: Places;
let alone: Service;
let browser: Browser;
let context: BrowserContext;
let page: Page;
const complaints: string[] = [];

beforeAll(async () => {
  if (missing !== null) return;
  await linkGateway();
  places = await startPlaces(PROXY);
  alone = await startService({
    ...PROXY,
    SIXSCOPE_RESOLVER_A: "[::1]:1",
    SIXSCOPE_KEYLESS_FROM: "2001:db8:42::/48",
  });
  browser = await startBrowser();
  context = await visitor({ browser, url: pageUrl(alone) }, "2001:db8:42:1::7", complaints);
});

afterAll(async () => {
  if (missing !== null) return;
  await browser.close();
  for (const each of [alone, places]) await each[Symbol.asyncDispose]();
});

const visit = async (service: Service) => {
  page = await freshPage(context);
  await page.goto(pageUrl(service));
};

beforeEach(() => {
  complaints.length = 0;
});

afterEach(() => expect(complaints).toEqual([]));

const button = (name: string) => page.getByRole("button", { name, exact: true });
const tab = (name: string) => page.locator("nav a", { hasText: name });
/** The region of the page with a location's results. */
const at = (location: string) => page.getByRole("region", { name: `From ${location}` });

pageTest("the tab asks every location, and shows each with its verdict", async () => {
  await visit(places.service);
  await tab("Ping").click();
  await page.fill("#subject", "::1");
  await start(page, places.service.key);
  await ended(page);
  await tab("Locations").click();
  await button("From every location").click();
  await page.getByRole("checkbox", { name: "every location", checked: true }).waitFor();
  expect(await page.locator("#subject").count()).toBe(0);
  await button("Run").click();
  await ended(page);
  expect(new URL(page.url()).hash).toBe("#/here?from=all");
  const rows = await page.locator(".rows tbody tr").allTextContents();
  expect(rows).toEqual(["amsworks", "frano route"]);
  expect(await page.locator("h1").textContent()).toMatch(
    /^From one of two places\. From fra: This machine has no way to the Internet/,
  );
  // A mark for each step of each place.
  expect(await page.locator(".tried tbody tr").count()).toBe(2);
  expect(await page.locator(".tried tbody .mark").count()).toBe(20);
  expect(await page.locator(".tried tbody .mark.bad").count()).toBe(1);
  expect(await at("ams").locator(".verdict.good").textContent()).toStartWith("IPv6 works here: ");
  expect(await at("fra").locator(".verdict.bad").textContent()).toContain("no way to the Internet");
  const isOpen = (location: string) =>
    at(location)
      .locator("details")
      .evaluate((list) => (list as HTMLDetailsElement).open);
  expect([await isOpen("ams"), await isOpen("fra")]).toEqual([false, true]);
  expect(await at("fra").locator(".steps li").count()).toBe(10);
  // What was asked last goes along to the other tools still.
  await tab("Trace").click();
  expect(await page.inputValue("#subject")).toBe("::1");
});

pageTest("without locations and without a key, the service looks at itself", async () => {
  await visit(alone);
  await tab("Locations").click();
  expect(await page.getByRole("group", { name: "From" }).count()).toBe(0);
  expect(await page.locator("#key").count()).toBe(0);
  await button("Run").click();
  // A step is there before the verdict.
  await page.locator(".steps li").first().waitFor();
  await ended(page);
  expect(await page.locator(".verdict").count()).toBe(1);
});
