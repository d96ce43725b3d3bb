/** The forms in which a result can be exported: text, link, JSON, the line for a shell, and paper. */
import { expect } from "bun:test";
import type { BrowserContext, Page } from "playwright-core";
import { NUMBER_FORMATS } from "../../src/tools/numbers.ts";
import type { Cell, Column, Host } from "../../src/tools/report.ts";
import { reporterOf } from "../../src/tools/reports.ts";
import { parseEvents } from "../lab/events.ts";
import { run } from "../lab/run.ts";
import { testOnStage } from "./on-stage.ts";
import { CALLER, ended, runAt, type Stage } from "./stage.ts";

let stage: Stage;
let context: BrowserContext;
let page: Page;

const pageTest = testOnStage(
  (visit) => {
    ({ stage, context, page } = visit);
  },
  { programs: ["curl"] },
);

const open = (hash: string) => runAt(page, `${stage.url}${hash}`, stage.service.key);

/** Presses a button that copies, and returns what it has copied. */
async function copied(name: string | RegExp): Promise<string> {
  await page.getByRole("button", { name, exact: true }).click();
  await page.getByText("Copied", { exact: true }).waitFor();
  return await page.evaluate<string>("navigator.clipboard.readText()");
}

const STAMP = /^Finished: \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC, sixscope [\d.]+ at \S+$/;

pageTest("a trace is copied as text, as the terminal shows it", async () => {
  await open("#/trace/told.example.test?maxHops=4");
  // Behind the limit nothing was asked, which is no break.
  expect(await page.locator(".result").textContent()).toBe("not asked");
  expect(await page.locator(".break").count()).toBe(0);
  const text = await copied("Copy as text");
  const alike = text
    .replace(/ +\d+\.\d{3} ms/g, (time) => "1.000 ms".padStart(time.length))
    .replace(/flow label \d+/, "flow label 7");
  expect(alike.split("\n")).toEqual([
    "Trace",
    expect.stringMatching(STAMP),
    "",
    "hop         time hop limit  address",
    "  1     1.000 ms        64  2001:db8:108::1",
    "  2     1.000 ms        63  2001:db8:108:2::1",
    "  3     1.000 ms        62  2001:db8:108:3::1  MPLS 24015, class 0, TTL 10  MPLS 99999, class 0, TTL 1  came in on xe-0/0/1.100 #519 MTU 9000  leaves by 2001:db8:108::2 MTU 1500",
    "  4                         no reply",
    "",
    "told.example.test (2001:db8:8::1)",
    "No reply from the target within 4 hops (the limit you set).",
    "Probed  2001:db8:8::1 from 2001:db8:1::10, flow label 7",
    "",
  ]);
});

pageTest("a ping is copied as text with its losses and statistics", async () => {
  await open("#/ping/lossy.example.test?count=2");
  const lines = (await copied("Copy as text")).split("\n");
  expect(lines).toEqual([
    "Ping",
    expect.stringMatching(STAMP),
    "",
    expect.stringMatching(/^seq +time +hop limit$/),
    expect.stringMatching(/^ +1 +\d+\.\d{3} ms +\d+$/),
    expect.stringMatching(/^ +2 +no reply within 2000 ms$/),
    "",
    "lossy.example.test (2001:db8:3::1)",
    "The target did not reply to 1 of 2 requests (50 %).",
    "Replies  1 of 2, 50 % lost",
    expect.stringMatching(/^Times {4}min [\d.]+, mean [\d.]+, max [\d.]+ ms$/),
    "Probed   2001:db8:3::1 from 2001:db8:1::10",
    "",
  ]);
});

pageTest("the answers of the resolvers are copied as text", async () => {
  await open("#/dns/same.example.test");
  const text = await copied("Copy as text");
  expect(text.match(/^resolver_[abc]$/gm)).toHaveLength(3);
  expect(text.match(/^AAAA +300 {2}2001:db8:2::1$/gm)).toHaveLength(3);
});

pageTest("values are copied one by one, and the address", async () => {
  await open("#/dns/same.example.test?type=A");
  await open("#/validate/2001:db8:0:0::1");
  expect(await copied("Copy 2001:db8::1")).toBe("2001:db8::1");
  await open("#/");
  expect(await copied("Copy")).toBe(CALLER);
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
  await ended(page);
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

/** The text of a cell of a report; a host has its notes beside it. */
function cellText({ kind }: Column, cell: Cell, notes: Cell): string {
  const format = NUMBER_FORMATS[kind];
  if (format) return typeof cell === "number" ? format(cell) : "–";
  if (kind !== "host") return String(cell ?? "");
  const { ip, hostname } = cell as Host;
  return [hostname, ip ?? "no reply", ...((notes ?? []) as readonly string[])].join("");
}

pageTest.each([
  ["validate", "#/validate/2001:0:4136:e378:8000:63bf:3fff:fdd2"],
  ["dns", "#/dns/www.example.test"],
  ["ping", "#/ping/lossy.example.test?count=3"],
  ["trace", "#/trace/told.example.test"],
  ["mtr", "#/mtr/losing.example.test?rounds=3"],
  ["mtu", "#/mtu/tunnel.example.test"],
] as const)(
  "%s: the page shows the report of the document, to the last number",
  async (tool, at) => {
    const { report } = reporterOf(tool);
    const { verdict, facts, tables } = report(JSON.parse(await answerAt(at)));
    const result = page.locator("#result");
    const texts = async (selector: string) =>
      (await result.locator(selector).allTextContents()).map((text) => text.replace(/ Copy$/, ""));
    expect(await texts(`.verdict.${verdict?.tone}`)).toEqual(verdict ? [verdict.text] : []);
    const allFacts = [...facts, ...tables.flatMap((table) => table.facts ?? [])];
    expect(await texts("dt")).toEqual(allFacts.map(({ name }) => name));
    expect(await texts("dd")).toEqual(allFacts.map(({ value }) => value));
    expect(await texts(".replies h2")).toEqual(tables.flatMap(({ heading = [] }) => heading));
    expect(await result.locator("table.rows").count()).toBe(tables.length);
    for (const [index, { columns, rows }] of tables.entries()) {
      const notesAt = columns.findIndex(({ kind }) => kind === "notes");
      for (const [at, column] of columns.entries()) {
        const label = column.name === "" ? "Note" : column.name;
        const wanted = rows.map(({ cells }) =>
          cellText(column, cells[at] ?? null, cells[notesAt] ?? null),
        );
        const cells = result.locator("table.rows").nth(index).locator("td");
        const found = await cells.evaluateAll(
          (all, label) =>
            all
              .filter(
                (cell) => cell.getAttribute("data-label")?.toLowerCase() === label.toLowerCase(),
              )
              .map(({ textContent }) =>
                textContent?.replace(/ Copy$/, "").replace("⋯CopyPingTracemtrDNS", ""),
              ),
          label,
        );
        // A column without a name is left out if it is empty, and notes are beside who they are about.
        const isShown = column.kind !== "notes" && (column.name !== "" || wanted.some(Boolean));
        expect([column.name, found]).toEqual([column.name, isShown ? wanted : []]);
      }
    }
  },
);

/** Values that differ from one run to the next; a hop that was asked twice has a list of times too. */
const CHANGES =
  /,?"(?:queryTime|ms|rtt|rtts|min|avg|max|flowLabel|ttl)":(?:\[[\d.,]*\]|[\d.]+)|"startedAt":"[^"]*"/g;

pageTest.each([...PLACES.map(([place]) => place), "#/dns/it's.example.test", "#/dns/a b$(id)"])(
  "%s: the line for a shell gets the same document",
  async (place) => {
    const document = await answerAt(place);
    await page.getByText("The same from a shell").click();
    const line = await copied(/^Copy curl: /);
    expect(line).toBe((await page.locator(".shell code").textContent()) ?? "");
    expect(line).not.toContain(stage.service.key);
    const command = ["env", `SIXSCOPE_KEY=${stage.service.key}`, "sh", "-c", `${line} -s`];
    expect((await run(command)).replace(CHANGES, "")).toBe(document.replace(CHANGES, ""));
  },
);
