/** The tab of watches, in a real browser: the list, the charts of a watch, and both sides of a change. */
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  setSystemTime,
  test,
} from "bun:test";
import { source } from "axe-core";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { aligned } from "../../src/page/browser/watch/aligned.ts";
import { watchHash, watchPlaceOf } from "../../src/page/browser/watch/place.ts";
import { mannerText, sentencesOf, timeText } from "../../src/page/browser/watch/words.ts";
import CHECK from "../../src/tools/check/example.json" with { type: "json" };
import { change, watch, watches } from "../../src/watch/endpoint.ts";
import { labMissing, programMissing, testWith } from "../lab/lab.ts";
import { type Service, startService } from "../lab/service.ts";
import { freshPage, pageUrl, startBrowser, visitor } from "./stage.ts";

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
  ["one replaced", "abc", "axc", "aa bx cc"],
  ["one replaced by two", "abc", "axyc", "aa bx -y cc"],
  ["one more", "ac", "abc", "aa -b cc"],
  ["one fewer", "abc", "ac", "aa b- cc"],
  ["all", "ab", "xy", "ax by"],
  ["one that moved", "abc", "bca", "-b -c aa b- c-"],
])("both sides: %s", (_, before, after, rows) => {
  const text = aligned([...before], [...after], String).map((row) =>
    row.map((cell) => cell ?? "-").join(""),
  );
  expect(text.join(" ")).toBe(rows);
});

test.each<[text: string, first: string, others: string]>([
  ["It works.", "It works", ""],
  ["No loss", "No loss", ""],
  ["2001:db8::1 is slow. It takes 1.5 ms. Wait.", "2001:db8::1 is slow", "It takes 1.5 ms. Wait."],
])("the first sentence of %j", (text, first, others) =>
  expect(sentencesOf(text)).toEqual([first, others]),
);

test.each<[at: string, text: string]>([
  ["2027-02-03T00:00:00.000Z", "00:00"],
  ["2027-02-02T23:59:59.000Z", "Tue 23:59"],
  ["2027-01-28T00:00:00.000Z", "Thu 00:00"],
  ["2027-01-27T23:59:00.000Z", "2027-01-27"],
])("%s on a Wednesday is %s", (at, text) => {
  setSystemTime(new Date("2027-02-03T12:00:00.000Z"));
  expect(timeText(at)).toBe(text);
  setSystemTime();
});

test.each<[line: string, everySeconds: number, text: string]>([
  ["check a.test", 300, "Check, every 5 min"],
  ["check a.test port=25 from=ams,fra", 90, "Check, TCP port 25, from ams and fra, every 90 s"],
  ["mtr a.test", 86_400, "mtr, every 1 d"],
  ["here", 3600, "every 1 h"],
])("%s every %d s is %s", (name, everySeconds, text) => {
  const target = name === "here" ? null : "a.test";
  const watch = { ...{ name, target, everySeconds }, tool: name.split(" ")[0] };
  const label = watch.tool === "check" ? "Check" : `${watch.tool}`;
  const options = [{ name: "port", label: "TCP port" }];
  const [row, tool] = [watch, { label, options }] as unknown as Parameters<typeof mannerText>;
  expect(mannerText(row, tool)).toBe(text);
});

const HOUR_MS = 3_600_000;
const NOW_MS = Date.now();
const at = (agoMs: number) => new Date(NOW_MS - agoMs).toISOString();

const POINTS = 72;
const day = (isBad: boolean) => ({
  rtt: Array.from({ length: POINTS }, (_, part) => (isBad && part > 50 ? null : 14 + (part % 5))),
  loss: Array.from({ length: POINTS }, (_, part) => (isBad && part > 50 ? 100 : 0)),
  bad: Array.from({ length: POINTS }, (_, part) => (part === 30 ? null : isBad && part > 50)),
  changed: isBad ? [51] : [],
});

const CODES = ["works", "port-silent", "unknown", "HOSTNAME_NOT_FOUND"] as const;

const row = (index: number, code: (typeof CODES)[number] | null) => ({
  name: `check n${index}.example port=25${index === 1 ? " from=ams,fra" : ""}`,
  tool: "check",
  target: `n${index}.example`,
  from: index === 1 ? "ams,fra" : null,
  everySeconds: index === 1 ? 90 : 300,
  verdict: code && { code, text: `n${index}.example is ${code}. It was.`, since: at(0) },
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
    flaps: 1,
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

const { path: _, ...details } = CHECK.details;
const PATHLESS = { ...CHECK, details };

const CHANGE = {
  ...{ before: PATHLESS, after: PATHLESS },
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

/** A change of a trace from some routers to others. */
const pathChange = (...sides: readonly (readonly string[])[]) => {
  const [before, after] = sides.map((names) => ({
    ip: "2001:db8::80",
    hops: names.map((name, index) => {
      const isSilent = name === "*";
      return {
        hop: index + 1,
        ip: isSilent ? null : name,
        hostname: isSilent ? null : name,
        rtt: isSilent ? null : 9,
      };
    }),
    details: { startedAt: at(0), verdict: { code: "reached", text: "" } },
  }));
  return { before, after, diff: CHANGE.diff, evidence: null };
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
  context = await visitor({ browser, url: pageUrl(service) }, "2001:db8:42:1::7", complaints);
});

afterAll(async () => {
  if (missing !== null) return;
  await browser.close();
  await service[Symbol.asyncDispose]();
});

beforeEach(async () => {
  if (missing !== null) return;
  page = await freshPage(context);
  complaints.length = 0;
  asked = [];
});

afterEach(() => expect(complaints).toEqual([]));

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
  expect(await page.locator("nav [aria-current=page]").textContent()).toBe("Watch");
});

pageTest("the list shows the broken first, then the doubtful, then the rest", async () => {
  await open("#/watch", { "": listOf([...CODES, null].map((code, index) => row(index, code))) });
  const rows = page.locator(".watches tbody tr");
  await rows.nth(4).waitFor();
  expect(await texts(".watches td:first-child")).toEqual([
    ...["No", "No", "Not known", "Yes", "No run yet"],
  ]);
  expect(await page.locator("h1").textContent()).toBe("2 are broken. n1.example and n3.example.");
  expect(await page.locator("h1 .bad").textContent()).toBe("2 are broken.");
  expect(await page.locator(".evidence").textContent()).toBe(
    "1 other may need a look. 2 confirmed changes in the last day; 1 more did not come again.",
  );
  const headings = await texts(".watches th");
  expect(headings.toSpliced(3, 1)).toEqual([
    ...["Works", "Target", "Now", "Median", "Loss", "Changes"],
  ]);
  expect(headings[3]).toMatch(/^(\d\d:\d\d){2}now$/);
  const cells = (at: number) => rows.nth(at).locator("td").allTextContents();
  const since = `since ${at(0).slice(11, 16)}`;
  expect(await cells(0)).toEqual([
    ...["No", "n1.exampleCheck, port 25, from ams and fra, every 90 s", `Is port-silent${since}`],
    ...["", "–", "100 %", "1"],
  ]);
  expect((await cells(3)).slice(4)).toEqual(["14.6 ms", "0 %", "0"]);
  // Each cell is below its heading.
  const lefts = (of: string) =>
    page.locator(of).evaluateAll((all) => all.map((each) => each.getBoundingClientRect().left));
  expect(await lefts(".watches tbody tr:first-child td")).toEqual(await lefts(".watches th"));
  // A value for each part, and nothing where no run was.
  const line = (name: string) => page.locator(".day").first().locator(`.${name}`).getAttribute("d");
  expect((await line("soft"))?.split("M").length).toBe(2);
  expect((await line("thick"))?.split("M").length).toBe(22);
  expect((await line("line"))?.split("L").length).toBe(51);
  // The change of each but the one that works.
  expect(await page.locator(".day svg[x]").count()).toBe(4);
  expect(await page.locator(".day svg[x]").first().getAttribute("x")).toBe(
    `${(100 * 51) / POINTS}%`,
  );
  expect(asked).toEqual([`/api/v1/watch?points=${POINTS}`]);
});

pageTest.each<[about: string, codes: (typeof CODES)[number][], answer: string]>([
  ["one is broken", ["works", "port-silent"], `One is broken. n1.example is port-silent since`],
  ["one is doubtful", ["works", "unknown"], "One needs a look. n1.example is unknown since"],
  [
    "many are",
    Array(5).fill("unknown"),
    "5 need a look. n0.example, n1.example, n2.example and others.",
  ],
  ["all work", ["works", "works"], "All work."],
])("the headline says that %s", async (_, codes, answer) => {
  await open("#/watch", { "": listOf(codes.map((code, index) => row(index, code))) });
  expect(await page.locator("h1").textContent()).toStartWith(answer);
});

pageTest("lines of the file that are wrong, and a history that is not kept, are told", async () => {
  const more = { wrong: [{ line: 3, text: "every is too short" }], problem: "the disk is full" };
  await open("#/watch", { "": listOf([row(1, "works")], more) });
  await page.getByText("Line 3 of the file: every is too short").waitFor();
  await page.getByText("No history is kept now: the disk is full").waitFor();
  await page.getByText("The file of watches").click();
  await page.getByText("check n1.example port=25 from=ams,fra every=90s").waitFor();
});

const NAME = "check n1.example port=25 from=ams,fra";
const ALL = listOf([row(1, "works")]);

pageTest(
  "a watch has its charts, with each change marked, and those close to each other as one",
  async () => {
    await open("#/watch", { "": ALL, [NAME]: seriesOf(CHANGES) });
    await page.getByRole("link", { name: "n1.example" }).click();
    await page.locator(".timeline").waitFor();
    expect(await page.locator("h1").textContent()).toBe(
      `Yes. n1.example is works since ${at(0).slice(11, 16)}.`,
    );
    expect(await page.locator(".evidence").textContent()).toBe("It was.");
    expect(await texts(".timeline .mark")).toEqual(["1–2", "3"]);
    expect(await texts(".gap")).toEqual(["no runs: it did not run"]);
    expect(await texts(".timeline .name")).toEqual(["Round trip", "Loss", "Verdict"]);
    expect(await texts(".timeline .end")).toEqual(["30 ms", "15", "0", "100 %", "0"]);
    expect(await texts(".change .mark")).toEqual(["3", "2", "1"]);
    expect(await page.locator("figcaption").textContent()).toBe(
      "Broken in 3 of 168 parts of the time, loss in 3",
    );
    // Neither the gap nor what did not work is bridged.
    const path = (name: string) => page.locator(`.timeline .${name}`).first().getAttribute("d");
    expect((await path("line"))?.split("M").length).toBe(4);
    expect((await path("thick"))?.split("M").length).toBe(4);
    // The time that is shown is underlined, and the marks of an axis are small.
    const styleOf = (selector: string, property: string) =>
      page
        .locator(selector)
        .first()
        .evaluate((each, of) => getComputedStyle(each)[of as "top"], property);
    const edges = ["Week", "Day"].map((name) => styleOf(`.tools a:text("${name}")`, "borderColor"));
    expect(await edges[0]).not.toBe(`${await edges[1]}`);
    expect(await styleOf(".timeline .end", "fontSize")).toBe("12px");
    // The address changes before the page asks.
    const asked = page.waitForRequest(/since=24h/);
    await page.getByRole("link", { name: "Day" }).click();
    await asked;
  },
);

/** The rows of both sides, without the numbers and times of hops. */
const sides = () =>
  page
    .locator(".sides tbody tr")
    .evaluateAll((rows) =>
      rows.map(({ children }) =>
        [...children].map(({ children }) =>
          `${children[1]?.textContent}${children[2]?.textContent}`.trim(),
        ),
      ),
    );

const openChange = async (detail: object) => {
  await open(watchHash({ name: NAME, hours: 168, change: 19 }), {
    ...{ "": ALL, [NAME]: seriesOf(CHANGES), [`${NAME}/changes/19`]: detail },
  });
  await page.locator(".sides").waitFor();
};

pageTest("a change that is open has both sides beside each other, and its evidence", async () => {
  await openChange(CHANGE);
  expect(await sides()).toEqual([
    ["2001:db8::1", "2001:db8::1"],
    ["− 2001:db8::4", "+ 2001:db8::44"],
  ]);
  await page.getByText("Unchanged: verdict, addresses and certificate.").waitFor();
  await page.getByText(`ams: ${CHECK.details.verdict.text}`).waitFor();
  await page.getByText("fra: No.").waitFor();
  expect(await texts(".timeline .open")).toEqual(["3"]);
  await page.locator(".change [aria-expanded=true]").click();
  await page.locator(".sides").waitFor({ state: "detached" });
});

pageTest("a change of a path has all hops, those that did not change in one row", async () => {
  await openChange(pathChange(["a", "*", "b", "z"], ["a", "*", "c", "d", "z"]));
  expect(await sides()).toEqual([
    ["a", "a"],
    ["no reply", "no reply"],
    ["− b", "+ c"],
    ["undefinedundefined", "+ d"],
    ["z", "z"],
  ]);
  expect(await texts(".sides tbody tr:last-child td")).toEqual(["4  z 9.00 ms ", "5  z 9.00 ms "]);
  await page.getByText("Unchanged: verdict and addresses.").waitFor();
  // Both ways lie, on one scale: what is faster ends sooner.
  const site = (at: number) => page.locator(".sides .site").nth(at).boundingBox();
  expect((await site(0))?.y).toBe((await site(1))?.y as number);
  // On a phone, one side is below the other one.
  await page.setViewportSize({ width: 390, height: 844 });
  const box = async (name: string) => {
    const { x, y } = (await page.getByRole("heading", { name }).boundingBox()) ?? { x: 0, y: 0 };
    return { x, y };
  };
  const [before, after] = [await box("Before"), await box("After")];
  expect(after.x).toBe(before.x);
  expect((await page.locator(".sides tr:last-child td").first().boundingBox())?.y).toBeLessThan(
    after.y,
  );
});

pageTest("a change can be copied for a provider, in five lines", async () => {
  await openChange(CHANGE);
  await page.getByRole("button", { name: "Copy for your provider" }).click();
  await page.getByText("Copied").waitFor();
  expect(`${await page.evaluate("navigator.clipboard.readText()")}`.split("\n")).toEqual([
    "Another router at hop 4.",
    "Where  hop 4 on the way to n1.example",
    "Tried  Check, port 25, from ams and fra, every 90 s",
    `When   since ${at(5 * HOUR_MS)
      .slice(0, 16)
      .replace("T", " ")} UTC`,
    `Link   ${page.url()}`,
  ]);
});

pageTest(
  "the same can be measured by hand: the tool has what the line of the watch has",
  async () => {
    await openChange(CHANGE);
    await page.getByRole("link", { name: "Open in Check" }).click();
    await page.locator("#port").waitFor();
    expect(await page.inputValue("#subject")).toBe("n1.example");
    expect(await page.inputValue("#port")).toBe("25");
  },
);

pageTest("a watch that is gone is said to be", async () => {
  await open("#/watch/ping%20gone.example", { "": ALL });
  await page.getByText("There is no watch of this name.").waitFor();
});

pageTest("from a watch, a check is one press away, and the way back too", async () => {
  await open("#/watch", { "": ALL });
  await page.locator(".watches tbody tr").waitFor();
  await page.getByRole("link", { name: "sixscope" }).click();
  await page.locator("#subject").waitFor();
  expect(await page.locator(".watches").count()).toBe(0);
  await page.goBack();
  await page.locator(".watches tbody tr").waitFor();
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
    .locator(place === "#/watch" ? ".watches tbody tr" : ".sides")
    .first()
    .waitFor();
  // The headings are those of columns, which a phone does not have.
  expect(await page.locator(".watches thead").isVisible()).toBe(false);
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

pageTest("on a phone, no text below a chart lies over another", async () => {
  await page.setViewportSize({ width: 320, height: 640 });
  await openChange(CHANGE);
  const boxes = await page
    .locator(".timeline .tick:visible")
    .evaluateAll((ticks) => ticks.map((tick) => tick.getBoundingClientRect().toJSON()));
  expect(boxes.length).toBeGreaterThan(2);
  for (const [at, { right }] of boxes.entries())
    expect(boxes[at + 1]?.left ?? Infinity).toBeGreaterThan(right);
});
