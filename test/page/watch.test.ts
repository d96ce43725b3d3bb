/** The tab of watches, in a real browser: the list, the charts of a watch, and both sides of a change. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { source } from "axe-core";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { aligned } from "../../src/page/browser/watch/aligned.ts";
import { watchHash, watchPlaceOf } from "../../src/page/browser/watch/place.ts";
import CHECK from "../../src/tools/check/example.json" with { type: "json" };
import { change, watch, watches } from "../../src/watch/endpoint.ts";
import { labMissing, programMissing, testWith } from "../lab/lab.ts";
import { type Service, startService } from "../lab/service.ts";
import { pageUrl, startBrowser, visitor } from "./stage.ts";

describe("the place in the address", () => {
  test.each<[hash: string, name: string, hours: number, change: number | null]>([
    ["#/watch", "", 168, null],
    ["#/watch/check%20a.test%20port%3D25", "check a.test port=25", 168, null],
    ["#/watch/ping%20a.test?hours=24&change=17", "ping a.test", 24, 17],
    ["#/watch/ping%20a.test?hours=5&change=x", "ping a.test", 168, null],
    ["#/watch/%", "%", 168, null],
  ])("%s", (hash, name, hours, change) =>
    expect(watchPlaceOf(hash)).toEqual({ name, hours, change }),
  );

  test.each(["", "#/", "#/watched", "#/check/watch"])("%j is elsewhere", (hash) =>
    expect(watchPlaceOf(hash)).toBeNull(),
  );

  test("is written as it is read", () => {
    const place = { name: "dns a.test type=TXT", hours: 720, change: 3 };
    expect(watchPlaceOf(watchHash(place))).toEqual(place);
  });
});

test.each<[about: string, before: string, after: string, rows: string]>([
  ["nothing", "", "", ""],
  ["the same", "ab", "ab", "aa bb"],
  ["one replaced", "abc", "axc", "aa b- -x cc"],
  ["one more", "ac", "abc", "aa -b cc"],
  ["one fewer", "abc", "ac", "aa b- cc"],
  ["all", "ab", "xy", "a- b- -x -y"],
])("both sides: %s", (_, before, after, rows) => {
  const text = aligned([...before], [...after]).map((row) =>
    row.map((cell) => cell ?? "-").join(""),
  );
  expect(text.join(" ")).toBe(rows);
});

const HOUR_MS = 3_600_000;
const NOW_MS = Date.now();
const at = (agoMs: number) => new Date(NOW_MS - agoMs).toISOString();

const POINTS = 72;
const day = (isBad: boolean) => ({
  rtt: Array.from({ length: POINTS }, (_, part) => (isBad && part > 50 ? null : 14 + (part % 5))),
  loss: Array.from({ length: POINTS }, (_, part) => (isBad && part > 50 ? 100 : 0)),
  bad: Array.from({ length: POINTS }, (_, part) => (part === 30 ? null : isBad && part > 50)),
});

const CODES = ["works", "port-silent", "unknown", "HOSTNAME_NOT_FOUND"] as const;

const row = (index: number, code: (typeof CODES)[number] | null) => ({
  name: `check n${index}.example port=25${index === 1 ? " from=ams,fra" : ""}`,
  tool: "check",
  target: `n${index}.example`,
  from: index === 1 ? "ams,fra" : null,
  everySeconds: index === 1 ? 90 : 300,
  verdict: code && { code, text: `It is ${code}.`, since: at(26 * HOUR_MS) },
  last: code && {
    at: at(60_000),
    rtt: code === "works" ? 14.6 : null,
    loss: code === "works" ? 0 : 100,
  },
  changes: { day: index % 2, month: index },
});

const listOf = (rows: readonly ReturnType<typeof row>[], more: object = {}) => ({
  watches: rows,
  details: {
    wrong: [],
    ...more,
    days: Object.fromEntries(
      rows.map(({ name, verdict }) => [name, day(verdict?.code !== "works")]),
    ),
  },
});

const seriesOf = (changes: readonly object[]) => ({
  series: Array.from({ length: 168 }, (_, hour) => {
    const isGap = hour === 60;
    const isBad = hour > 100 && hour < 104;
    const rtt = isGap || isBad ? null : 14 + (hour % 5);
    return {
      ...{ at: at((168 - hour) * HOUR_MS), runs: isGap ? 0 : 12 },
      ...{ loss: isGap ? null : isBad ? 100 : 0, min: rtt, median: rtt, max: rtt && rtt + 4 },
      ...{
        code: isGap ? null : isBad ? "port-silent" : "works",
        gap: isGap ? "it did not run" : null,
      },
    };
  }),
  changes,
});

const CHANGES = [
  { id: 7, at: at(67 * HOUR_MS), kind: "verdict", text: "It is silent.", confirmed: true },
  { id: 8, at: at(64 * HOUR_MS), kind: "verdict", text: "It works.", confirmed: true },
  { id: 12, at: at(20 * HOUR_MS), kind: "path", text: "A flap.", confirmed: false },
  { id: 19, at: at(5 * HOUR_MS), kind: "path", text: "Another router at hop 4.", confirmed: true },
];

const CHANGE = {
  ...{ before: CHECK, after: CHECK },
  diff: [
    {
      ...{ kind: "path", text: "Another router at hop 4.", hop: 4 },
      ...{ before: ["2001:db8::1", "2001:db8::4"], after: ["2001:db8::1", "2001:db8::44"] },
    },
  ],
  evidence: [
    { location: "ams", result: CHECK },
    { location: "fra", error: { message: "No." } },
  ],
};

test.each([
  [
    "the list",
    watches,
    listOf(
      CODES.map((code, index) => row(index, code)),
      { problem: "it is full" },
    ),
  ],
  ["a watch", watch, seriesOf(CHANGES)],
  ["a change", change, CHANGE],
] as const)("the documents of this file are those of the API: %s", (_, endpoint, document) => {
  expect(endpoint.response().safeParse(document).error).toBeUndefined();
});

const missing = labMissing ?? programMissing("chromium");
const pageTest = testWith(missing);

let service: Service;
let browser: Browser;
let context: BrowserContext;
let page: Page;
const complaints: string[] = [];
/** What the API answers below `/watch`, by the rest of the path. */
let answers: Readonly<Record<string, object>> = {};
let asked: string[] = [];

beforeAll(async () => {
  if (missing !== null) return;
  service = await startService({ SIXSCOPE_TRUSTED_PROXIES: "::1", SIXSCOPE_RESOLVER_A: "[::1]:1" });
  browser = await startBrowser();
});

afterAll(async () => {
  if (missing !== null) return;
  await browser.close();
  await service[Symbol.asyncDispose]();
});

beforeEach(async () => {
  complaints.length = 0;
  asked = [];
  if (missing !== null) return;
  context = await visitor({ browser, url: pageUrl(service) }, "2001:db8:42:1::7", complaints);
  page = await context.newPage();
});

afterEach(async () => {
  if (missing !== null) return;
  await context.close();
  expect(complaints).toEqual([]);
});

/** Opens a place, with these answers of the API in place of the service's. */
async function open(place: string, given: typeof answers) {
  answers = given;
  await page.route("**/api/v1/watch**", (route) => {
    const { pathname, search } = new URL(route.request().url());
    asked.push(`${pathname}${search}`);
    const json = answers[decodeURIComponent(pathname.replace(/.*\/watch\/?/, ""))];
    return json
      ? route.fulfill({ json })
      : route.fulfill({
          status: 404,
          json: {
            error: { code: "NOT_FOUND", message: "There is no watch of this name.", details: {} },
          },
        });
  });
  await page.goto(`${pageUrl(service)}${place}`);
}

const texts = (selector: string) => page.locator(selector).allTextContents();

pageTest("without a key, the tab asks for one", async () => {
  await page.goto(`${pageUrl(service)}#/watch`);
  await page.fill("#key", service.key);
  await page.getByRole("button", { name: "Show" }).click();
  await page.getByText("Nothing is watched.").waitFor();
  expect(await page.locator("nav [aria-current=page]").textContent()).toBe("Watched");
});

pageTest("the list shows the broken first, then the doubtful, then the rest", async () => {
  await open("#/watch", { "": listOf([...CODES, null].map((code, index) => row(index, code))) });
  await page.locator(".watches li").nth(4).waitFor();
  expect(await texts(".watches strong")).toEqual([
    "Broken",
    "Broken",
    "Doubtful",
    "Good",
    "No run yet",
  ]);
  expect(await page.locator("h1").textContent()).toBe("2 broken, 1 doubtful");
  const first = await page.locator(".watches li").first().textContent();
  for (const text of [
    "n1.example",
    "check port=25 from=ams,fra, every 90 s",
    "It is port-silent.",
    "100 % lost",
    "1 change",
  ])
    expect(first).toContain(text);
  expect(await page.locator(".watches li").nth(3).locator(".numbers").textContent()).toContain(
    "14.6 ms",
  );
  // The line is between what is said and the numbers.
  const places = await page
    .locator(".watches li")
    .first()
    .locator("> *")
    .evaluateAll((found) => found.map((each) => each.getBoundingClientRect().left));
  expect(places).toEqual(places.toSorted((a, b) => a - b));
  expect(places).toHaveLength(5);
  // A value for each part, and nothing where no run was.
  const line = (name: string) => page.locator(".day").first().locator(`.${name}`).getAttribute("d");
  expect((await line("none"))?.split("M").length).toBe(2);
  expect((await line("broken"))?.split("M").length).toBe(22);
  expect((await line("line"))?.split("L").length).toBe(51);
  expect(asked).toEqual([`/api/v1/watch?points=${POINTS}`]);
});

pageTest("lines of the file that are wrong, and a history that is not kept, are told", async () => {
  const more = { wrong: [{ line: 3, text: "every is too short" }], problem: "the disk is full" };
  await open("#/watch", { "": listOf([row(0, "works")], more) });
  await page.getByText("Line 3 of the file: every is too short").waitFor();
  await page.getByText("No history is kept now: the disk is full").waitFor();
  expect(await page.locator("h1").textContent()).toBe("None is broken.");
});

const NAME = "check n1.example port=25 from=ams,fra";
const ALL = listOf([row(1, "works")]);

pageTest(
  "a watch has its charts, with each change marked, and those close to each other as one",
  async () => {
    await open("#/watch", { "": ALL, [NAME]: seriesOf(CHANGES) });
    await page.getByRole("link", { name: "n1.example" }).click();
    await page.locator(".timeline").waitFor();
    expect(await texts(".mark text")).toEqual(["1–2", "3"]);
    expect(await texts(".gap")).toEqual(["no runs: it did not run"]);
    expect(await texts(".changes li > a")).toEqual(["3", "2", "1"]);
    expect(await page.locator("figcaption").textContent()).toBe(
      "2004 runs, broken in 3 of 168 parts of the time, loss in 3",
    );
    // Neither the gap nor what did not work is bridged.
    const path = (name: string) => page.locator(`.timeline .${name}`).first().getAttribute("d");
    expect((await path("line"))?.split("M").length).toBe(4);
    expect((await path("broken"))?.split("M").length).toBe(4);
    await page.getByRole("link", { name: "Day" }).click();
    await page.waitForURL(/hours=24/);
    expect(asked.some((path) => path.includes("since=24h"))).toBe(true);
  },
);

pageTest("a change that is open has both sides beside each other, and its evidence", async () => {
  await open(watchHash({ name: NAME, hours: 168, change: 19 }), {
    "": ALL,
    [NAME]: seriesOf(CHANGES),
    [`${NAME}/changes/19`]: CHANGE,
  });
  await page.locator(".sides").waitFor();
  const rows = await page
    .locator(".sides tbody tr")
    .evaluateAll((found) =>
      found.map((each) => [...each.children].map(({ textContent }) => textContent)),
    );
  expect(rows).toEqual([
    ["2001:db8::1", "2001:db8::1"],
    ["− 2001:db8::4", ""],
    ["", "+ 2001:db8::44"],
  ]);
  expect(await texts(".evidence li")).toEqual([`ams: ${CHECK.details.verdict.text}`, "fra: No."]);
  expect(await texts(".mark.open text")).toEqual(["3"]);
  await page.locator(".changes [aria-expanded=true]").click();
  await page.locator(".sides").waitFor({ state: "detached" });
});

pageTest("a watch that is gone is said to be", async () => {
  await open("#/watch/ping%20gone.example", { "": ALL });
  await page.getByText("There is no watch of this name.").waitFor();
});

pageTest("from a watch, a tool is one press away, and the way back too", async () => {
  await open("#/watch", { "": ALL });
  await page.locator(".watches li").waitFor();
  await page.locator("nav a", { hasText: "Ping" }).click();
  await page.locator("#subject").waitFor();
  expect(await page.locator(".watches").count()).toBe(0);
  await page.goBack();
  await page.locator(".watches li").waitFor();
});

pageTest.each([
  ["the list", "#/watch"],
  ["a change", watchHash({ name: NAME, hours: 168, change: 19 })],
] as const)("%s is accessible, and not too wide on a phone", async (_, place) => {
  await page.setViewportSize({ width: 390, height: 800 });
  await open(place, {
    "": listOf([...CODES, null].map((code, index) => row(index, code))),
    [NAME]: seriesOf(CHANGES),
    [`${NAME}/changes/19`]: CHANGE,
  });
  await page
    .locator(place === "#/watch" ? ".watches li" : ".sides")
    .first()
    .waitFor();
  const isTooWide = "document.documentElement.scrollWidth > document.documentElement.clientWidth";
  expect(await page.evaluate(isTooWide)).toBe(false);
  // The policy of the page rules a script element out.
  await page.evaluate(source);
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    const { violations } = (await page.evaluate("axe.run()")) as import("axe-core").AxeResults;
    expect(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])).toEqual([]);
  }
});
