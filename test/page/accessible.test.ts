/** axe-core finds nothing on any tool with a result, in light, dark and on paper; and no page is too wide. */
import { afterAll, beforeAll, expect } from "bun:test";
import { source } from "axe-core";
import type { Page } from "playwright-core";
import { programMissing, testWith, tunMissing } from "../lab/lab.ts";
import { type LocatedService, startLocatedService } from "./locations-stage.ts";
import { CALLER, pageUrl, runAt, type Stage, startStage, visitor } from "./stage.ts";

const missing =
  tunMissing ??
  programMissing("chromium") ??
  programMissing("knotd") ??
  programMissing("nats-server");
const pageTest = testWith(missing);

let stage: Stage;
let located: LocatedService;
let page: Page;

beforeAll(async () => {
  if (missing !== null) return;
  stage = await startStage({ SIXSCOPE_RATE_ANONYMOUS: "1000" });
  located = await startLocatedService(stage);
  page = await (await visitor(stage, CALLER, [])).newPage();
});

afterAll(async () => {
  if (missing !== null) return;
  await located[Symbol.asyncDispose]();
  await stage[Symbol.asyncDispose]();
});

/** Those of a service share its document. */
const PLACES = [
  "#/",
  "#/validate/2001:0:4136:e378:8000:63bf:3fff:fdd2",
  "#/validate/2001:db8::g",
  "#/dns/www.example.test",
  "#/dns/text.example.test?type=TXT",
  "#/dns/missing.example.test",
  "#/ping/lossy.example.test?count=3",
  "#/ping/unreachable.example.test?count=2",
  "#/trace/www.example.test",
  "#/trace/told.example.test",
  "#/trace/unreachable.example.test",
  "#/trace/equal.example.test?paths=8",
  "#/mtr/losing.example.test?rounds=3",
  "#/mtr/changing.example.test",
  "#/mtr/www.example.test?rounds=0",
  "#/mtu/tunnel.example.test",
  "#/check/www.example.test",
  "#/here",
  "#/mtu/blackhole.example.test",
  "#/here?from=all",
  "#/ping/told.example.test?count=1&from=ams,fra",
  "#/mtr/losing.example.test?rounds=3&from=ams,fra",
  "docs",
] as const;

const COLORS = ["color-contrast", "link-in-text-block"];

/** The media and colour schemes in which a result is checked; on paper it is always light. */
const LOOKS = [
  { media: "screen", colorScheme: "light" },
  { media: "screen", colorScheme: "dark" },
  { media: "print", colorScheme: "dark" },
] as const;

/** Leaves two endpoints in the documentation: all have the same parts, and each takes seconds. */
const KEEP_TWO =
  'document.querySelectorAll(".endpoint ~ .endpoint ~ .endpoint").forEach((each) => each.remove())';

pageTest.each(PLACES)("%s in light and dark and on paper", async (hash) => {
  const { service } = hash.includes("from=") ? located : stage;
  // What is asked without a button is known to be there when a new document has asked it.
  if (/^#\/(validate|$)/.test(hash)) await page.goto("about:blank");
  await runAt(page, `${pageUrl(service)}${hash}`, service.key);
  await page.waitForLoadState("networkidle");
  // The library is not part of the page, so its policy does not concern it.
  if (!(await page.evaluate("'axe' in globalThis"))) await page.evaluate(source);
  await page.evaluate(KEEP_TWO);
  const expectNothing = async (options: object) => {
    const asked = JSON.stringify({ ...options, resultTypes: ["violations"] });
    const { violations } = await page.evaluate<import("axe-core").AxeResults>(`axe.run(${asked})`);
    expect(
      violations.map(({ id, nodes }) => [id, ...nodes.map((node) => `${node.target}`)]),
    ).toEqual([]);
  };
  // What is not a colour is the same in all looks.
  await expectNothing({ rules: Object.fromEntries(COLORS.map((id) => [id, { enabled: false }])) });
  for (const look of LOOKS) {
    await page.emulateMedia(look);
    if (look.media === "print") await expectPaper(hash);
    await expectNothing({ runOnly: COLORS });
  }
  // Nothing is wider than a narrow screen.
  await page.emulateMedia({ media: null, colorScheme: null });
  for (const width of [320, 360, 390, 412]) {
    await page.setViewportSize({ width, height: 640 });
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(width);
  }
  await page.setViewportSize({ width: 1280, height: 720 });
});

/** On paper are the result and what was asked, in light colours, and nothing to press. */
async function expectPaper(hash: string): Promise<void> {
  expect(await page.locator("button:visible, input:visible, select:visible").count()).toBe(0);
  const heading = page.locator("h1");
  expect((await heading.boundingBox())?.height).toBeGreaterThan(10);
  const [, subject = ""] = /^#\/[^/]+\/([^/?]+)/.exec(hash) ?? [];
  expect(await page.locator("main").textContent()).toContain(subject);
  expect(await page.evaluate("getComputedStyle(document.documentElement).backgroundColor")).toBe(
    "rgb(255, 255, 255)",
  );
}
