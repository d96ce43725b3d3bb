/** A check on the page, in a real browser: the answer as a headline, the way with its break, and what was tried. */
import { expect } from "bun:test";
import type { Page } from "playwright-core";
import { packed } from "../../src/page/browser/packed.ts";
import { LEFT } from "../../src/page/browser/pictures/way-layout.ts";
import { STEPS } from "../../src/tools/here/codes.ts";
import { summaryRow } from "../../src/tools/summary.ts";
import { CHECKS } from "./check-documents.ts";
import { testOnStage } from "./on-stage.ts";
import { drop, eventByEvent, runAt, type Stage } from "./stage.ts";

let stage: Stage;
let page: Page;

const pageTest = testOnStage((visit) => {
  ({ stage, page } = visit);
});

/** Shows one of the invented checks, as a link does. */
async function show(name: string): Promise<void> {
  const document = CHECKS[name];
  const said = { tool: "check", subject: document?.name, options: {}, document };
  await page.goto(`${stage.url}#/result/${await packed(JSON.stringify(said))}`);
  await page.locator(".given").waitFor();
}

const count = (selector: string) => page.locator(selector).count();

const textOf = async (selector: string) => (await page.locator(selector).textContent()) ?? "";

pageTest("a check fills its list and its way, and at the end folds what is well", async () => {
  await using _ = await eventByEvent(page);
  await using _seen = await page.addInitScript(`globalThis.seen = new Set();
    new MutationObserver(() => {
      for (const step of document.querySelectorAll(".steps li")) seen.add(step.textContent.slice(0, 2));
      if (document.querySelector(".head")) seen.add("head");
    }).observe(document, { childList: true, characterData: true, subtree: true });`);
  await runAt(page, `${stage.url}#/check/www.example.test`, stage.service.key);
  // The simulated internet answers echo requests, and no TCP. One of its resolvers has another address.
  expect(await textOf(".verdict.bad")).toMatch(
    /^No\. www\.example\.test does not work over IPv6: neither of its two addresses works, and 2001:db8:2::8[01] does not answer on port 443\. /,
  );
  // Every step was shown while it ran, and the hops as they answered.
  const seen = await page.evaluate<string[]>("[...seen]");
  for (const step of ["…n", "…e", "…t", "…m", "head"]) expect(seen).toContain(step);
  await page.getByText(/^All \d+ steps$/).click();
  const groups = await page.evaluate<
    [string, boolean][]
  >(`[...document.querySelectorAll(".steps details")]
    .map((one) => [one.querySelector("summary").textContent, one.open])`);
  // Whoever does not see the marks hears the worst of each group.
  expect(groups.map(([text]) => / (failed|warning|fine|not tested)$/.test(text))).toEqual(
    Array(groups.length).fill(true),
  );
  expect(groups).toEqual([
    // No link leads out of the namespace of the test, which does not explain what the verdict says.
    [expect.stringMatching(/^This machine [✗–]/), false],
    // The servers of its zone are nobody's here.
    [expect.stringMatching(/^Name [✓!]–/), expect.any(Boolean)],
    [expect.stringMatching(/^2001:db8:2::80 !✓✗/), true],
    [expect.stringMatching(/^2001:db8:2::81 !✓✗/), true],
    // On a slow machine, the time of the check may end before that of a step.
    [expect.stringMatching(/^Path to 2001:db8:2::8[01] [✓–]{2}[!–]/), false],
  ]);
  // Of twelve routers, ten answer, and neither address of the site was reached.
  expect(await count(".ring:not(.silent)")).toBe(10);
  expect(await count(".ring.silent")).toBeGreaterThanOrEqual(2);
  expect([await count(".break"), await count(".site.open")]).toEqual([1, 1]);
  expect(await textOf(".result")).toBe("silent");
  expect(await page.locator('nav a[aria-current="page"]').textContent()).toBe("Check");
});

/** How often each shape is there: rings, breaks, threads, crosses of threads, sites that were not reached. */
const SHAPES = [".ring", ".break", ".thread", ".cross.small", ".site.open", ".band"] as const;

pageTest.each([
  ["works", [9, 0, 0, 0, 0, 4], "Yes."],
  // The way forks to the address that is silent.
  ["half", [9, 1, 0, 0, 1, 5], "Partly."],
  ["hole", [9, 1, 1, 0, 0, 4], "No."],
  ["here", [0, 1, 0, 0, 1, 0], "Not from here."],
  ["sometimes", [9, 0, 20, 4, 0, 5], "Sometimes."],
  ["refused", [4, 1, 0, 0, 1, 2], "No."],
  // The name is the track that breaks, and neither way begins.
  ["dns", [0, 1, 0, 0, 3, 0], "No."],
] as const)("%s: the way has its shapes, and the answer its word", async (name, shapes, word) => {
  await show(name);
  expect(await Promise.all(SHAPES.map(count))).toEqual([...shapes]);
  expect((await textOf(".answer span")).trim()).toBe(word);
  const attempts = CHECKS[name]?.details.attempts ?? [];
  const shown = attempts.filter(({ kind }) => ["connect", "request", "echo"].includes(kind));
  const sum = (of: (row: (typeof shown)[number]) => number) =>
    shown.map(of).reduce((a, b) => a + b, 0);
  expect([await count(".bars .up"), await count(".bars .down")]).toEqual([
    sum(({ worked }) => worked),
    sum(({ made, worked }) => made - worked),
  ]);
  // The second bar of a break does not stand on the site, where there is little room.
  await page.setViewportSize({ width: 768, height: 800 });
  const [bars = [], sites = []] = await Promise.all(
    [".break .bar", ".site.open"].map((selector) =>
      page
        .locator(selector)
        .evaluateAll((all) => all.map((each) => each.getBoundingClientRect().left)),
    ),
  );
  if (sites.length > 0) expect(Math.max(...bars)).toBeLessThan(Math.max(...sites));
});

pageTest.each(["works", "hole"])("%s: both ways have one scale", async (name) => {
  await show(name);
  const [six, four] = await Promise.all(
    [0, 1].map((at) =>
      page
        .locator(".lane")
        .nth(at)
        .evaluate((lane) =>
          [...lane.querySelectorAll("circle.ring"), ...lane.querySelectorAll("rect.site")].map(
            (mark) =>
              Number(
                mark.getAttribute("cx") ??
                  Number(mark.getAttribute("x")) + Number(mark.getAttribute("width")) / 2,
              ),
          ),
        ),
    ),
  );
  const { path, attempts } = CHECKS[name]?.details ?? {};
  const at = path?.hops.findIndex(({ rtt }) => rtt === 9.1) ?? -1;
  const ms = attempts?.find(({ ip, kind }) => kind === "connect" && !ip.includes(":"))?.rtt?.median;
  const perMs = ((four?.[0] ?? 0) - LEFT) / (ms ?? 0);
  expect(six?.[at]).toBeCloseTo(LEFT + 9.1 * perMs, 1);
});

pageTest("the caption names the hops of the break, and the list has it in its place", async () => {
  await show("hole");
  expect(await page.locator("figcaption").first().textContent()).toStartWith(
    "IPv6: 9 hops through Provider Example, Transit Example, Hoster Example. It breaks between hop 7 (r7.example.net) and hop 8: Large packets vanish here.",
  );
  await page.getByText("Hops with addresses").click();
  const rows = await page.locator(".hop-list li").allTextContents();
  expect(rows[7]).toBe("The way breaks behind hop 7.");
  expect(rows.length).toBe(11);
});

pageTest.each([
  ["half", ["2001:db8:5:3b::2silent", "The site2001:db8:5:3b::114.3 ms"]],
  ["sometimes", ["2001:db8:5:3b::26 of 10", "The site2001:db8:5:3b::110 of 10"]],
  ["dns", ["The signature of example.org ended on 2026-11-21", "The siteno address"]],
] as const)("%s: on a phone the way forks or breaks as it does elsewhere", async (name, rows) => {
  await page.setViewportSize({ width: 320, height: 640 });
  await show(name);
  const texts = await page
    .locator(".standing li")
    .evaluateAll((items) =>
      items.map((item) =>
        [...item.querySelectorAll(":scope > :not(svg)")].map((each) => each.textContent).join(""),
      ),
    );
  expect(texts.slice(-2)).toEqual([...rows]);
  expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(320);
});

pageTest(
  "on paper the hops are open, the link is a text, and what can be pressed is gone",
  async () => {
    await show("hole");
    const link = page.getByText(`${stage.url}#/check/black-hole.example.net`, { exact: true });
    expect(await link.isVisible()).toBe(false);
    await page.emulateMedia({ media: "print" });
    expect(await link.isVisible()).toBe(true);
    expect(await page.locator(".hop-list li").last().isVisible()).toBe(true);
    expect(await page.locator("summary:visible").allTextContents()).toEqual([
      "Hops with addresses",
    ]);
  },
);

pageTest(
  "what is copied for the provider has the sentence, where, what, when, and a link",
  async () => {
    await show("hole");
    const name = "Copy for your provider";
    await page.getByRole("button", { name }).click();
    await page.getByText("Copied", { exact: true }).waitFor();
    const text = await page.evaluate<string>("navigator.clipboard.readText()");
    const lines = text.split("\n");
    const { headline = "" } = CHECKS["hole"]?.details.verdict ?? {};
    expect(lines[0]).toBe(`${headline} Packets over 1300 bytes vanish behind hop 7.`);
    expect(lines[1]).toBe("Where  behind hop 7 (r7.example.net)");
    expect(lines[2]).toStartWith(
      "Tried  2001:db8:5:3b::1: 10 of 10 connections, 0 of 10 TLS handshakes, ",
    );
    expect(lines[3]).toBe("When   2026-11-23 14:01:26 UTC, sixscope 1.0.0");
    expect(lines[4]).toMatch(/^Link {3}http.*#\/result\//);
    // The link shows the same answer.
    await page.goto("about:blank");
    await page.goto((lines[4] ?? "").slice(7));
    await page.locator(".given").waitFor();
    expect(await textOf(".answer")).toBe(`No. ${headline}`);
    // Where the fault is on this side, the text says which, and does not lead to the site.
    await show("here");
    await page.getByRole("button", { name }).click();
    await page.getByText("Copied", { exact: true }).waitFor();
    expect(await page.evaluate<string>("navigator.clipboard.readText()")).toMatch(
      /^Whether .+\. The gateway of this machine, fe80::1 on eth0, is silent\.\nWhere {2}on the side of the machine/,
    );
  },
);

pageTest("a saved check that is dropped on the page keeps its name", async () => {
  const document = CHECKS["works"];
  const locations = ["ams", "fra"].map((location) => ({ location, result: document }));
  const summary = ["ams", "fra"].map((location) => summaryRow(location, document));
  const several = { target: document?.name, details: { summary, matching: 2 }, locations };
  for (const saved of [document, several]) {
    await page.goto("about:blank");
    await page.goto(`${stage.url}#/ping`);
    await page.locator("#subject").waitFor();
    // With addresses as long as they can be.
    await drop(page, JSON.stringify(saved).replaceAll("5:3b::", "5:3b:aaaa:bbbb:cccc:ddd"));
    await page.locator(".given").waitFor();
    expect(await page.title()).toBe("www.example.net · Check · sixscope");
    expect(await page.inputValue("#subject")).toBe("www.example.net");
    expect(await textOf("h1")).toContain("www.example.net works over IPv6");
    for (const width of [721, 768, 1024, 1280]) {
      await page.setViewportSize({ width, height: 800 });
      expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(width);
    }
  }
  // Nor does the address at the end of a way leave the page.
  await page.setViewportSize({ width: 768, height: 800 });
  await drop(page, JSON.stringify(CHECKS["hole"]).replaceAll("5:3b::", "5:3b:aaaa:bbbb:cccc:ddd"));
  await page.locator(".lane text", { hasText: "cccc:ddd1" }).waitFor();
  const ends = await page
    .locator(".lane text.axis")
    .evaluateAll((texts) => texts.map((text) => text.getBoundingClientRect().right));
  expect(Math.max(...ends)).toBeLessThanOrEqual(768 - 32);
});

pageTest("the near side has a mark by place and step, and a line for what is wrong", async () => {
  await showPlaces({ ams: "works", fra: "here" });
  const near = page.locator("#result > section", { hasText: "Near side" });
  expect(await near.locator("thead th").allTextContents()).toEqual(["Place", ...STEPS]);
  const rows = await near
    .locator("tbody tr")
    .evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent)));
  const [fine, failed] = ["✓ fine", "✗ failed"];
  expect(rows[0]).toEqual(["ams", ...STEPS.map(() => fine)]);
  expect(rows[1]?.[1 + STEPS.indexOf("gateway")]).toBe(failed);
  const lines = near.locator("p");
  expect(await lines.allTextContents()).toEqual([
    "fra: The gateway of this machine, fe80::1 on eth0, is silent.",
  ]);
  await page.setViewportSize({ width: 320, height: 640 });
  expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(320);
  // The name of a place and the text of its break do not overlap.
  const way = page.locator("#result > .way", { hasText: "fra" });
  const tops = [way.locator(".side"), way.locator("b.bad")].map(
    async (each) => (await each.boundingBox())?.y ?? 0,
  );
  const [label = 0, text = 0] = await Promise.all(tops);
  expect(text - label).toBeGreaterThan(16);
});

/** Drops a saved check of several places. */
async function showPlaces(places: Readonly<Record<string, string>>): Promise<void> {
  const locations = Object.entries(places).map(([location, name]) => ({
    ...{ location, result: CHECKS[name] },
  }));
  const summary = locations.map(({ location, result }) => summaryRow(location, result));
  const [{ result } = {}] = locations;
  await page.goto(`${stage.url}#/ping`);
  await page.locator("#subject").waitFor();
  const details = { summary, matching: locations.length };
  await drop(page, JSON.stringify({ target: result?.name, details, locations }));
  await page.locator(".given").waitFor();
}

const waysOfPlaces = () => page.locator("#result > .way .side").allTextContents();

/** The rows of the table of the places, without the bars. */
const rowsOfPlaces = () =>
  page
    .locator("#result > section", { hasText: "By place" })
    .locator("tbody tr")
    .evaluateAll((rows) =>
      rows.map((row) => [...row.querySelectorAll("th, td")].map((cell) => cell.textContent)),
    );

pageTest("places that agree have one way, and a row each", async () => {
  await showPlaces({ ams: "works", fra: "works", lax: "works" });
  expect(await waysOfPlaces()).toEqual([expect.stringMatching(/^the same from all three/)]);
  const rows = await rowsOfPlaces();
  expect(rows.map(([place]) => place)).toEqual(["ams", "fra", "lax"]);
  expect(new Set(rows.map(([, ...rest]) => rest.join())).size).toBe(1);
  // The names of many places leave the answer on the first screen of a phone.
  await page.setViewportSize({ width: 390, height: 844 });
  await showPlaces(
    Object.fromEntries(Array.from({ length: 16 }, (_, at) => [`place-${at}`, "works"])),
  );
  expect((await page.locator("form").boundingBox())?.height).toBeLessThanOrEqual(160);
  expect(await textOf(".openers")).toStartWith("From place-0 and 15 more");
});

pageTest("places that differ have a way each, and what each has tried", async () => {
  await showPlaces({ ams: "works", fra: "hole" });
  expect(await waysOfPlaces()).toEqual([
    expect.stringMatching(/^ams/),
    expect.stringMatching(/^fra/),
  ]);
  const tried = (name: string, kind: string) => {
    const rows = CHECKS[name]?.details.attempts.filter((row) => row.kind === kind) ?? [];
    const six = rows.filter(({ ip }) => ip.includes(":"));
    const sum = (key: "made" | "worked") => six.reduce((sum, row) => sum + row[key], 0);
    return six.length === 0 ? "not tried" : `${sum("worked")} / ${sum("made")}`;
  };
  expect((await rowsOfPlaces()).map((cells) => cells.slice(0, 3))).toEqual([
    ["ams", tried("works", "connect"), tried("works", "request")],
    ["fra", tried("hole", "connect"), tried("hole", "request")],
  ]);
  // What to do is about the place that differs, and the page is no wider when each is open.
  expect(await textOf("#result > section .advice p")).toBe(
    CHECKS["hole"]?.details.verdict.advice ?? "",
  );
  await page.getByText("Each place by itself").click();
  expect(await page.locator(".location").count()).toBe(2);
  expect(await page.evaluate("document.documentElement.scrollWidth - innerWidth")).toBe(0);
});

pageTest.each([
  ["a wide screen", { width: 1280, height: 800 }],
  ["a phone", { width: 390, height: 844 }],
])("on %s the form is low, and the verdict on the first screen", async (_, viewport) => {
  await page.setViewportSize(viewport);
  for (const name of Object.keys(CHECKS)) {
    await page.goto("about:blank");
    await show(name);
    const verdict = await page.locator(".verdict").boundingBox();
    expect((verdict?.y ?? 0) + (verdict?.height ?? 9999)).toBeLessThan(viewport.height);
    const form = await page.locator("form").boundingBox();
    expect(form?.height ?? 9999).toBeLessThanOrEqual(160);
  }
});
