/** What can be taken along from a result: text, link, JSON, the line for a shell, and paper. */
import { afterAll, afterEach, beforeAll, beforeEach, expect } from "bun:test";
import type { BrowserContext, Page } from "playwright-core";
import { parseEvents } from "../lab/events.ts";
import { programMissing, testWith, tunMissing } from "../lab/lab.ts";
import { run } from "../lab/run.ts";
import { CALLER, runAt, type Stage, startStage, visitor } from "./stage.ts";

const missing =
  tunMissing ?? programMissing("chromium") ?? programMissing("knotd") ?? programMissing("curl");
const pageTest = testWith(missing);

let stage: Stage;
let context: BrowserContext;
let page: Page;
const complaints: string[] = [];

beforeAll(async () => {
  if (missing === null) stage = await startStage({ SIXSCOPE_RATE_ANONYMOUS: "1000" });
}, 60_000);

afterAll(async () => {
  if (missing === null) await stage[Symbol.asyncDispose]();
});

beforeEach(async () => {
  if (missing !== null) return;
  complaints.length = 0;
  context = await visitor(stage, CALLER, complaints);
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  page = await context.newPage();
});

afterEach(async () => {
  await context?.close();
  expect(complaints).toEqual([]);
});

const open = (hash: string) => runAt(page, `${stage.url}${hash}`, stage.service.key);

/** Presses a button that copies, and returns what it has copied. */
async function copied(name: string): Promise<string> {
  await page.getByRole("button", { name, exact: true }).click();
  await page.getByText("Copied", { exact: true }).waitFor();
  return await page.evaluate<string>("navigator.clipboard.readText()");
}

pageTest("a trace is copied as text like a report of mtr", async () => {
  await open("#/trace/told.example.test?maxHops=4");
  const text = await copied("Copy as text");
  expect(text.replace(/ +\d+\.\d{3}/g, (time) => "1.000".padStart(time.length))).toBe(
    [
      "Trace: told.example.test (2001:db8:8::1) from 2001:db8:1::10",
      "    Host               ms",
      "1.  2001:db8:108::1      1.000",
      "2.  2001:db8:108:2::1    1.000",
      "3.  2001:db8:108:3::1    1.000  MPLS 24015, MPLS 99999",
      "4.  ???",
      "The trace ended at the most hops that were asked for.",
      "",
    ].join("\n"),
  );
});

pageTest("a ping is copied as text with its losses and statistics", async () => {
  await open("#/ping/lossy.example.test?count=2");
  const lines = (await copied("Copy as text")).split("\n");
  expect(lines).toEqual([
    "Ping: lossy.example.test (2001:db8:3::1) from 2001:db8:1::10",
    expect.stringMatching(/^seq=1 hop limit=\d+ time=\d+\.\d{3} ms$/),
    "seq=2 no reply within 2000 ms",
    expect.stringMatching(
      /^2 sent, 1 received, 50 % lost, min\/mean\/max [\d.]+\/[\d.]+\/[\d.]+ ms$/,
    ),
    "",
  ]);
});

pageTest("the answers of the resolvers are copied as text", async () => {
  await open("#/dns/same.example.test");
  const text = await copied("Copy as text");
  expect(text.match(/^; Resolver [ABC] /gm)).toHaveLength(3);
  expect(text.match(/^300 {2}AAAA {2}2001:db8:2::1$/gm)).toHaveLength(3);
});

pageTest("values are copied one by one, and the address", async () => {
  await open("#/dns/same.example.test?type=A");
  await open("#/validate/2001:db8:0:0::1");
  expect(await copied("Copy 2001:db8::1")).toBe("2001:db8::1");
  await open("#/");
  expect(await copied("Copy the address")).toBe(CALLER);
});

pageTest("a link leads to the same inputs", async () => {
  await open("#/dns/text.example.test?type=TXT&dnssec=yes");
  const link = await copied("Copy link");
  expect(link).toBe(`${stage.url}#/dns/text.example.test?type=TXT&dnssec=yes`);
  page = await context.newPage();
  await page.goto(link);
  expect(await page.inputValue("#subject")).toBe("text.example.test");
  expect(await page.inputValue("#type")).toBe("TXT");
  expect(await page.isChecked("#dnssec")).toBe(true);
});

/** Opens a place and returns what the API answers there: the document, or the last event of a stream. */
async function answerAt(place: string): Promise<string> {
  let answer = "";
  // The browser itself does not keep streams.
  await page.route(/\/api\/v1\//, async (route) => {
    const response = await route.fetch();
    answer = await response.text();
    await route.fulfill({ response, body: answer });
  });
  await open(place);
  while (answer === "") await Bun.sleep(10);
  return answer.startsWith("event:") ? JSON.stringify(parseEvents(answer).at(-1)?.data) : answer;
}

const PLACES = [
  ["#/validate/2001:db8::1", "validate-2001_db8_1.json"],
  ["#/dns/www.example.test", "dns-www.example.test.json"],
  ["#/ping/www.example.test?count=2", "ping-www.example.test.json"],
  ["#/trace/www.example.test", "trace-www.example.test.json"],
] as const;

pageTest.each(PLACES)("%s: the JSON is the document of the API", async (place, name) => {
  const document = await answerAt(place);
  const downloading = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download JSON" }).click();
  const download = await downloading;
  expect(download.suggestedFilename()).toBe(name);
  expect(await Bun.file(await download.path()).text()).toBe(
    `${JSON.stringify(JSON.parse(document), null, 2)}\n`,
  );
});

/** What differs from one run to the next. */
const CHANGES = /"(?:queryTime|ms|rtt|rtts|min|avg|max|flowLabel|ttl)":(?:\[[\d.,]*\]|[\d.]+)/g;

pageTest.each([...PLACES.map(([place]) => place), "#/dns/it's.example.test", "#/dns/a b$(id)"])(
  "%s: the line for a shell gets the same document",
  async (place) => {
    const document = await answerAt(place);
    const line = await copied("Copy The same from a shell");
    expect(line).toBe((await page.locator(".shell code").textContent()) ?? "");
    expect(line).not.toContain(stage.service.key);
    const command = ["env", `SIXSCOPE_KEY=${stage.service.key}`, "sh", "-c", `${line} -s`];
    expect((await run(command)).replace(CHANGES, "")).toBe(document.replace(CHANGES, ""));
  },
);
