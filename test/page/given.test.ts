/** Results that come with a link or a file: what is in them, and what is refused. */
import { expect, test } from "bun:test";
import type { BrowserContext, Page } from "playwright-core";
import { packed, unpacked } from "../../src/page/browser/packed.ts";
import { summaryRow } from "../../src/tools/summary.ts";
import { PATHS, TRACE } from "../tools/documents.ts";
import { testOnStage } from "./on-stage.ts";
import { drop, ended, freshPage, headersOf, MARKUP, runAt, type Stage, start } from "./stage.ts";

let stage: Stage;
let context: BrowserContext;
let page: Page;
let calls: string[] = [];

const pageTest = testOnStage((visit) => {
  ({ stage, context, page } = visit);
});

test("a text of any kind is the same after packing and unpacking", async () => {
  for (const text of ["", "a", "ä€😀", "x".repeat(100_000), JSON.stringify(TRACE)]) {
    const short = await packed(text);
    expect(short).toMatch(/^[\w-]*$/);
    expect(await unpacked(short, 400_000)).toBe(text);
  }
});

test.each([
  ["what grows without end", () => packed("x".repeat(5_000_000)), /too long/],
  ["what is cut", async () => (await packed(JSON.stringify(TRACE))).slice(0, -40), /./],
  ["what is not packed", async () => "AAAA", /./],
  ["what is not base64", async () => "%%%", /./],
])("%s is not read", async (_, make, message) => {
  await expect(unpacked(await make(), 4_000_000)).rejects.toThrow(message);
});

/** The link that a button copies. */
async function copiedLink(): Promise<string> {
  await page.getByRole("button", { name: "Copy link with result" }).click();
  await page.getByText("Copied", { exact: true }).waitFor();
  return await page.evaluate<string>("navigator.clipboard.readText()");
}

/** Opens a link as somebody else, who has no key, and notes the calls of the API. */
async function openElsewhere(link: string): Promise<void> {
  await context.setExtraHTTPHeaders(headersOf("2001:db8:42:9::1"));
  page = await freshPage(context);
  calls = [];
  page.on("request", (request) => {
    const [, path] = request.url().split("/api/v1/");
    if (path !== undefined) calls.push(path);
  });
  await page.goto(link);
}

const textOf = async (selector: string) => (await page.locator(selector).textContent()) ?? "";

const linkOf = async (said: object) =>
  `${stage.url}#/result/${await packed(JSON.stringify({ options: {}, ...said }))}`;

/** All that a result shows, without what differs because it came with a link, which has no rounds of an mtr. */
const shown = async () => ({
  stamp: (await textOf(".stamp")).replace(", from this server", ""),
  result: await page.evaluate<string>(`{
    const result = document.querySelector(".alone").cloneNode(true);
    for (const strip of result.querySelectorAll(".strip")) strip.remove();
    result.textContent;
  }`),
});

pageTest.each([
  "#/validate/2001:db8::1",
  "#/dns/www.example.test",
  "#/ping/lossy.example.test?count=2",
  "#/trace/told.example.test?maxHops=4",
  "#/mtr/losing.example.test?rounds=3",
  "#/mtu/tunnel.example.test",
])("%s: a link shows the same result to somebody without a key", async (place) => {
  await runAt(page, `${stage.url}${place}`, stage.service.key);
  // Only a whole result has a link.
  const link = await copiedLink();
  const before = await shown();
  expect(link).toMatch(/#\/result\/[\w-]+$/);
  await openElsewhere(link);
  await page.locator(".given").waitFor();
  const after = await shown();
  expect(after.result).toBe(before.result);
  // The facts about an address have no date.
  expect(after.stamp).toBe(place.includes("validate") ? "2001:db8::1" : before.stamp);
  expect(await textOf(".given")).toStartWith("This result came with the link.");
  // Nothing of the result is sent anywhere.
  expect(calls).toEqual(["openapi.json"]);
  await page.reload();
  await page.locator(".given").waitFor();
  expect(await shown()).toEqual(after);
});

pageTest("a result from a link can be run again", async () => {
  await page.goto(await linkOf({ tool: "trace", subject: "::1", document: TRACE }));
  await page.locator(".given").waitFor();
  await start(page, stage.service.key);
  await page.locator(".stamp", { hasText: "from this server" }).waitFor();
  await ended(page);
  expect(await page.locator(".given").count()).toBe(0);
  expect(page.url()).toEndWith("#/trace/::1");
});

pageTest("a run that was stopped has no link with its result", async () => {
  await page.goto(`${stage.url}#/mtr/www.example.test?rounds=90`);
  await start(page, stage.service.key);
  await page.getByText(/, [1-9]\d* of 90 rounds$/).waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByText(/, stopped after [1-9]\d* of 90 rounds, /).waitFor();
  const buttons = await page.locator(".more button").allTextContents();
  expect(buttons).toContain("Copy as text");
  expect(buttons).not.toContain("Copy link with result");
});

const HOP = { hop: 1, ip: "2001:db8::1", hostname: null, rtt: 1 };

pageTest.each<[what: string, said: object, notice: RegExp]>([
  [
    "another shape",
    { tool: "trace", subject: "a", document: { hops: 1 } },
    /not one of this version/,
  ],
  ["another tool's", { tool: "mtu", subject: "a", document: TRACE }, /not one of this version/],
  ["no tool", { tool: "constructor", subject: "a", document: TRACE }, /damaged/],
  ["no subject", { tool: "trace", subject: [], document: TRACE }, /damaged/],
  ["more", { tool: "trace", subject: "a", document: { ...TRACE, more: "x" } }, /not one of/],
  [
    "5,000 hops",
    { tool: "trace", subject: "a", document: { ...TRACE, hops: Array(5000).fill(HOP) } },
    /not one of/,
  ],
])("a hostile link is refused: %s", async (_, said, notice) => {
  await page.goto(await linkOf(said));
  await page.locator(".notice", { hasText: notice }).waitFor();
  expect(await page.locator("#result").count()).toBe(0);
});

pageTest("a damaged link says so, and the page goes on", async () => {
  await page.goto(`${stage.url}#/result/%00`);
  await page.locator(".notice", { hasText: "damaged" }).waitFor();
  await page.locator("nav a", { hasText: "Ping" }).first().click();
  await page.locator("#subject").waitFor();
  expect(await page.locator(".notice").count()).toBe(0);
});

pageTest("what a link says stays text, and turns no text around", async () => {
  const document = { ...TRACE, hops: [{ ...HOP, hostname: `${MARKUP}\u202ereversed` }] };
  await page.goto(await linkOf({ tool: "trace", subject: MARKUP, document }));
  expect(await page.locator(".hop .name").textContent()).toBe(`${MARKUP}\ufffdreversed`);
  expect(await page.inputValue("#subject")).toBe(MARKUP);
  expect(await page.locator("main img").count()).toBe(0);
});

pageTest("a hop leads to the other tools", async () => {
  const document = { ...TRACE, hops: [HOP] };
  await page.goto(await linkOf({ tool: "trace", subject: "a", document }));
  await page.locator("tr.hop .menu summary").click();
  expect(await page.locator(".menu a:visible").allTextContents()).toEqual([
    "Ping",
    "Trace",
    "mtr",
    "DNS",
  ]);
  await page.locator(".menu a:visible", { hasText: "DNS" }).click();
  expect(await page.inputValue("#subject")).toBe("2001:db8::1");
  expect(await page.inputValue("#type")).toBe("PTR");
});

pageTest("several locations have one scale", async () => {
  const at = (location: string, rtt: number) => ({
    location,
    result: { ...TRACE, hops: [{ ...HOP, rtt }], details: { ...TRACE.details, location } },
  });
  const locations = [at("ams", 1), at("fra", 90)];
  const summary = locations.map(({ location, result }) => summaryRow(location, result));
  const document = { target: "a", details: { summary, matching: 2 }, locations };
  await page.goto(await linkOf({ tool: "trace", subject: "a", document }));
  await page.locator(".location").nth(1).waitFor();
  const ends = await page
    .locator(".site")
    .evaluateAll((all) => all.map((site) => Number(site.getAttribute("x"))));
  expect(ends[0]).toBeLessThan((ends[1] ?? 0) / 2);
});

test("64 hops and 16 paths fit in a link, if their names and times are all different", async () => {
  const hex = (value: number) => Math.imul(value, 0x9e3779b1).toString(16).replace("-", "");
  const hops = Array.from({ length: 64 }, (_, at) => ({
    ...{ hop: at + 1, ip: `2001:db8:${hex(at + 1).slice(0, 4)}:${at}::1`, rtt: at * 3.137 },
    hostname: `ae${at}.core${hex(at)}.ams.example.net`,
    details: { replyHopLimit: 255 - at, network: { asn: 64_496 + at, name: `Net ${hex(at)}` } },
  }));
  const addresses = (path: number) =>
    hops.map(({ ip, hop }) => (hop % 4 === 0 ? `2001:db8:${hop}:${path}::9` : ip));
  const paths = Array.from({ length: 16 }, (_, at) => ({
    ...{ flowLabel: 1000 * at, labels: 6, reached: true, reason: "reached" },
    addresses: addresses(at),
  }));
  const nodes = paths.flatMap(({ addresses }) => addresses.map((ip, at) => ({ ...hops[at], ip })));
  const graph = {
    nodes: [...new Map(nodes.map((node) => [node.ip, node])).values()],
    edges: Array.from({ length: 600 }, (_, from) => ({ from, to: from + 1 })),
  };
  const document = { ...PATHS, hops, details: { ...PATHS.details, paths, graph } };
  expect((await packed(JSON.stringify(document))).length).toBeLessThan(30_000);
});

pageTest(
  "a result that is too large for a link offers the file, which shows the same",
  async () => {
    await runAt(page, `${stage.url}#/trace/told.example.test?maxHops=4`, stage.service.key);
    const before = await shown();
    const downloading = page.waitForEvent("download");
    await page.getByRole("button", { name: "Download JSON" }).click();
    const text = await Bun.file(await (await downloading).path()).text();
    await openElsewhere(`${stage.url}#/ping`);
    await page.locator("#subject").waitFor();
    await drop(page, "{}");
    await page.locator(".notice", { hasText: "not the whole result" }).waitFor();
    await drop(page, text);
    await page.locator(".given", { hasText: "This result came from a file." }).waitFor();
    expect(await shown()).toEqual(before);
    expect(page.url()).toEndWith("#/trace/told.example.test");
    const hash = (hop: number) => (_: unknown, at: number) => Bun.hash(`${hop} ${at}`).toString(36);
    const random = Array.from({ length: 200 }, (_, hop) => ({
      ...HOP,
      ...{ hop: (hop % 64) + 1, hostname: Array.from({ length: 19 }, hash(hop)).join("") },
    }));
    await drop(page, JSON.stringify({ ...TRACE, hops: random }));
    await page.locator(".hop").nth(150).waitFor();
    await page.getByRole("button", { name: "Copy link with result" }).click();
    await page.getByText(/^Too large for a link \(\d+ of 30 kB\); download it instead$/).waitFor();
  },
);
