/** Several locations on the page, in a real browser, with a real NATS server and agents. */
import { afterAll, afterEach, beforeAll, beforeEach, expect } from "bun:test";
import type { BrowserContext, Page } from "playwright-core";
import { programMissing, testWith, tunMissing } from "../lab/lab.ts";
import { type LocatedService, startLocatedService } from "./locations-stage.ts";
import {
  ended,
  eventByEvent,
  freshPage,
  MARKUP,
  pageUrl,
  runAt,
  type Stage,
  start,
  startStage,
  visitor,
} from "./stage.ts";

const missing =
  tunMissing ??
  programMissing("chromium") ??
  programMissing("knotd") ??
  programMissing("nats-server");
const pageTest = testWith(missing);

let stage: Stage;
let located: LocatedService;
let url: string;
let context: BrowserContext;
let page: Page;
const complaints: string[] = [];

beforeAll(async () => {
  if (missing !== null) return;
  stage = await startStage({ SIXSCOPE_RATE_ANONYMOUS: "1000" });
  located = await startLocatedService(stage);
  url = pageUrl(located.service);
  context = await visitor(stage, "2001:db8:42:1::7", complaints);
});

afterAll(async () => {
  if (missing !== null) return;
  await located[Symbol.asyncDispose]();
  await stage[Symbol.asyncDispose]();
});

beforeEach(async () => {
  if (missing !== null) return;
  complaints.length = 0;
  page = await freshPage(context);
});

afterEach(() => expect(complaints).toEqual([]));

const runTool = (hash: string) => runAt(page, `${url}${hash}`, located.service.key);
const button = (name: string) => page.getByRole("button", { name, exact: true });
/** The region of the page with a location's results. */
const at = (location: string) => page.getByRole("region", { name: `From ${location}` });
const choice = (name: string) => page.getByRole("checkbox", { name, exact: true });

pageTest("each location shows its hops as they answer, beside the other", async () => {
  await using _ = await eventByEvent(page);
  await page.goto(`${url}#/trace/slow.example.test?from=ams,fra`);
  await page.evaluate(`globalThis.counts = [[], []];
    new MutationObserver(() => {
      for (const [index, location] of document.querySelectorAll(".location").entries()) {
        const answered = location.querySelectorAll(".hop:not(.silent)").length;
        if (answered !== (counts[index].at(-1) ?? 0)) counts[index].push(answered);
      }
    }).observe(document.body, { childList: true, subtree: true });`);
  await start(page, located.service.key);
  await ended(page);
  const everyHop = [1, 2, 3, 4];
  expect(await page.evaluate("counts")).toEqual([everyHop, everyHop]);
  const boxes = await Promise.all(["ams", "fra"].map((name) => at(name).boundingBox()));
  expect(boxes[0]?.y).toBe(boxes[1]?.y as number);
  expect(await page.locator("h1").textContent()).toBe(
    "From both places. The target replied at hop 4.",
  );
  expect(await page.locator(".location .verdict.good").count()).toBe(2);
  // Both are on this machine, so one way stands above the places themselves.
  expect(await page.locator(".way .side").allTextContents()).toEqual(["the same from both"]);
  expect(await page.locator(".site").count()).toBe(1);
  const compared = await page.locator("table").first().locator("tbody tr").allTextContents();
  expect(compared.map((row) => row.slice(0, 10))).toEqual(["amsreached", "frareached"]);
});

pageTest("an error of one location is beside the result of another, also as text", async () => {
  await runTool("#/ping/told.example.test?count=1&from=ams,fra");
  expect(await at("ams").locator(".dot").count()).toBe(1);
  expect(await at("ams").locator(".announce").textContent()).toBe(
    "The target replied to the request.",
  );
  const problem = (await at("fra").locator(".problem").textContent()) ?? "";
  expect(problem).toContain("in the denied prefix");
  expect(await at("fra").locator(".dot").count()).toBe(0);
  expect(await page.locator("form .problem").count()).toBe(0);
  await page.evaluate(`Object.defineProperty(navigator, "clipboard", {
    value: { writeText(text) { globalThis.copied = text; } },
  });`);
  await button("Copy as text").click();
  expect(await page.evaluate("copied")).toMatch(
    new RegExp(
      `^Ping\nFinished: .+\n\nlocation[^]+ams +no loss[^]+fra +target not allowed\n[^]+From ams\nseq[^]+\ntold[^]+\n\nFrom fra\n${RegExp.escape(problem)}\n$`,
    ),
  );
  const command = await page.locator(".shell code").textContent();
  expect(command).toEndWith("/ping/told.example.test?count=1&from=ams,fra'");
});

pageTest("a ping of several locations runs on until it is stopped", async () => {
  await page.goto(`${url}#/ping/www.example.test?from=ams,fra`);
  await start(page, located.service.key, "Keep pinging");
  for (const name of ["ams", "fra"]) await at(name).locator(".dot").nth(1).waitFor();
  await button("Stop").click();
  await ended(page);
});

pageTest("locations are chosen by keyboard, stay in the link, and answers stay text", async () => {
  await page.goto(`${url}#/dns/text.example.test?type=TXT`);
  await button("From this server").press("Enter");
  for (const name of ["ams", "fra"]) await choice(name).press("Space");
  await button("Run").press("Enter");
  await ended(page);
  expect(page.url()).toEndWith("#/dns/text.example.test?type=TXT&from=ams,fra");
  for (const name of ["ams", "fra"]) {
    expect(await at(name).locator(".value .mono").first().textContent()).toBe(`"${MARKUP}"`);
  }
  expect(await page.locator("main img").count()).toBe(0);
  await page.reload();
  await button("From ams, fra").click();
  expect(await choice("ams").isChecked()).toBe(true);
  await choice("every location").check();
  expect(await choice("ams").isChecked()).toBe(false);
  await button("Run").click();
  await at("fra").locator(".reply").nth(2).waitFor();
  expect(page.url()).toEndWith("&from=all");
  expect(await page.locator(".location").count()).toBe(2);
});

pageTest("one location has the view of the service, and says so", async () => {
  await runTool("#/mtu/tunnel.example.test?from=fra");
  expect(await page.locator(".stamp").textContent()).toContain(", from fra, ");
  expect(await at("fra").locator(".facts dd").first().textContent()).toBe("1420 bytes");
});

pageTest("a location that is not there is an error at the field", async () => {
  await runTool("#/mtr/www.example.test?from=%3Cb%3E");
  expect(await page.locator("#from-problem").textContent()).toContain(
    "the name or a tag of locations",
  );
  await choice("<b>").uncheck();
  await runTool("#/mtr/www.example.test?from=zrh");
  expect(await page.locator("#from-problem").textContent()).toContain("There is no location");
  expect(await page.locator("[role=alert]").count()).toBe(1);
});

pageTest("without locations there is nothing to choose", async () => {
  await page.goto(`${stage.url}#/ping/www.example.test`);
  await page.locator("#subject").waitFor();
  expect(await page.locator("#from").count()).toBe(0);
});
