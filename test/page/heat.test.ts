/** mtr as a heat strip: what its cells are made of, and what a browser shows of a run; and the way that stands. */
import { describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { packed } from "../../src/page/browser/packed.ts";
import { cellsOf, roundsPerCell, timesOf } from "../../src/page/browser/pictures/heat-cells.ts";
import { segmentsOf, tintsOf } from "../../src/page/browser/pictures/segments.ts";
import { callerOf } from "../../src/page/caller.ts";
import type { MtrHop, MtrRound } from "../../src/tools/mtr/result.ts";
import { foldOf } from "../../src/util/fold.ts";
import { parseIpv6 } from "../addr/parse.ts";
import { MTR } from "../tools/documents.ts";
import { testOnStage } from "./on-stage.ts";
import { eventByEvent, runAt, type Stage } from "./stage.ts";

/** A row after some rounds; `last` is the time of the last one, null if it was lost. */
const row = (hop: number, sent: number, received: number, last: number | null) =>
  ({
    hop,
    ip: `2001:db8::${hop}`,
    sent,
    received,
    unknown: 0,
    last,
    addresses: [],
  }) as unknown as MtrHop;

const round = (number: number, ...hops: MtrHop[]): MtrRound => ({ round: number, length: 9, hops });

describe("the times of rounds", () => {
  const rounds = () => [
    // The answers to the trace are no round.
    round(0, row(1, 0, 0, 3), row(2, 0, 0, 5)),
    round(1, row(1, 1, 1, 2), row(2, 1, 1, 4)),
    round(2, row(1, 2, 1, 2), row(2, 2, 2, 6)),
    // The event of the third did not come.
    round(4, row(1, 4, 2, 7), { ...row(2, 3, 2, 6), unknown: 1 }),
  ];

  test("have a number where the hop answered, null where it did not, and nothing where nothing is known", () => {
    const { times } = timesOf(rounds());
    expect(times.get(1)).toEqual([2, null, undefined, 7]);
    expect(times.get(2)).toEqual([4, 6]);
  });

  test("are the same when they come one by one", () => {
    const events = rounds();
    for (const at of events.keys()) timesOf(events.slice(0, at + 1));
    expect(timesOf([...events]).times).toEqual(timesOf(rounds()).times);
  });

  test("of a thousand rounds are each looked at once", () => {
    let steps = 0;
    const count = foldOf(
      () => 0,
      (sum: number, { value }: { value: number }) => {
        steps++;
        return sum + value;
      },
    );
    const list = Array.from({ length: 1000 }, () => ({ value: 1 }));
    for (const at of list.keys()) expect(count(list.slice(0, at + 1))).toBe(at + 1);
    expect(steps).toBe(1000);
    expect([count([]), count(list.slice(0, 2))]).toEqual([0, 2]);
  });
});

describe("the cells of a hop", () => {
  const hop = (about: Partial<MtrHop> = {}) => ({ ip: "::1", min: 10, cause: null, ...about });

  test("are darker the longer a round takes above the least time", () => {
    const times = [10, 11, 11.1, 13, 13.1, 18, 18.1, 28, 28.1, 900];
    expect(cellsOf(times, hop(), 10, 10).join(" ")).toBe("h1 h1 h2 h2 h3 h3 h4 h4 h5 h5");
  });

  test.each<[what: string, about: Partial<MtrHop>, cell: string]>([
    ["the path loses it", { cause: "path" }, "lost"],
    ["too few are lost to tell why", { cause: "unclear" }, "lost"],
    ["the router does not answer every probe", { cause: "replies" }, "ignored"],
    ["the hop has never answered", { ip: null, min: null, cause: "path" }, "ignored"],
  ])("without an answer, if %s", (_, about, cell) => {
    expect(cellsOf([null], hop(about), 1, 1)).toEqual([cell] as never);
  });

  test("that are to come are not those of which nothing is known", () => {
    expect(cellsOf([10], hop(), 2, 4)).toEqual(["h1", "unknown", "ahead", "ahead"]);
  });

  test("are the worst of several rounds where there are many, and never more than 105", () => {
    expect([1, 105, 106, 210, 1000].map(roundsPerCell)).toEqual([1, 1, 2, 2, 10]);
    const times = Array.from({ length: 204 }, () => 10 as number | null);
    times[2] = 40;
    times[4] = null;
    times[5] = 40;
    const cells = cellsOf(times, hop({ cause: "path" }), 203, 210);
    expect(cells).toHaveLength(105);
    expect(cells.slice(0, 4)).toEqual(["h1", "h5", "lost", "h1"]);
    // Of the first, one round has ended.
    expect(cells.slice(101)).toEqual(["h1", "ahead", "ahead", "ahead"]);
    expect(cellsOf([], hop(), 0, 0)).toEqual([]);
  });
});

/** Four networks, of which the first is the near side, and a silent hop. */
const hops = [..."-aaaabbb-c"].map((name, at) => ({
  ...{
    hop: at + 1,
    ip: name === "-" && at > 0 ? null : `2001:db8::${at}`,
    hostname: null,
    rtt: at,
  },
  ...(name !== "-" && { details: { network: { asn: 1, name } } }),
}));
const segments = segmentsOf(hops, tintsOf([hops]));

describe("the way that stands", async () => {
  // The page has them from the browser.
  const content = JSON.stringify(
    callerOf(parseIpv6("::1"), true, { config: { familyUrls: null } }),
  );
  const page = {
    document: { querySelector: () => ({ content }) },
    location: { host: "a", hash: "" },
  };
  Object.assign(globalThis, page);
  const { standingRows } = await import("../../src/page/browser/pictures/standing-way.tsx");

  const shown = (open: readonly number[], breakAfter?: number, isReached = true) =>
    standingRows({ segments, isReached }, (network) => open.includes(network), breakAfter).map(
      ({ hop, isFirst, isFolded, mark }) =>
        `${hop?.hop ?? 0} ${mark}${isFirst ? " first" : ""}${isFirst && isFolded ? " folded" : ""}`,
    );

  const near = ["0 here first", "1 hop"];
  const end = ["9 silent first", "10 site first"];

  test("has the ends of each network", () => {
    const middle = ["2 hop first folded", "5 hop", "6 hop first folded", "8 hop"];
    expect(shown([])).toEqual([...near, ...middle, ...end]);
  });

  test("has the hops on both sides of a break too", () => {
    const middle = ["2 hop first", "3 hop", "4 hop", "5 hop", "6 hop first folded", "8 hop"];
    expect(shown([], 3)).toEqual([...near, ...middle, ...end]);
    expect(shown([], 0)).toEqual(shown([]));
  });

  test("has all hops of a network that is open, and ends with a hop where the site was not reached", () => {
    expect(shown([2]).slice(4, 7)).toEqual(["6 hop first", "7 hop", "8 hop"]);
    expect(shown([], undefined, false).at(-1)).toBe("10 hop first");
  });
});

let stage: Stage;
let page: Page;

const pageTest = testOnStage((visit) => {
  ({ stage, page } = visit);
});

/** How many cells of each kind each hop has. */
const COUNT = `[...document.querySelectorAll(".heat tbody tr")].map((row) =>
  Object.fromEntries([...row.querySelectorAll(".strip path[class]")]
    .map((path) => [path.getAttribute("class"), path.getAttribute("d").split("M").length - 1])))`;

type Count = Readonly<Record<string, number>>;

const sum = (count: Count) => Object.values(count).reduce((total, each) => total + each, 0);

pageTest.each([1280, 390])("at %d pixels, a run has a cell for each round", async (width) => {
  await page.setViewportSize({ width, height: 900 });
  await runAt(
    page,
    `${stage.url}#/mtr/losing.example.test?rounds=40&intervalMs=100`,
    stage.service.key,
  );
  const counts = await page.evaluate<Count[]>(COUNT);
  expect(counts.map(sum)).toEqual(Array(6).fill(40));
  const rows = page.locator(".heat tbody tr");
  const texts = await rows.evaluateAll((all) => all.map((each) => each.textContent));
  for (const [at, { lost = 0, ignored = 0, ahead }] of counts.entries()) {
    const [isIgnoring, isLosing] = [at === 1, at > 2];
    expect([lost > 0, ignored > 0, ahead]).toEqual([isLosing, isIgnoring, 0]);
    expect(texts[at]).toContain(isIgnoring ? "ignores" : isLosing ? `${lost} of 40` : "0");
  }
  expect(await page.locator(".heat circle").count()).toBe(5);
  // On a phone, the strip is below the name, and two numbers are beside it.
  const [name, strip] = await Promise.all(
    ["td:nth-child(4)", "svg[viewBox]"].map((each) => rows.first().locator(each).boundingBox()),
  );
  expect((strip?.y ?? 0) > (name?.y ?? 0) + 18).toBe(width === 390);
  expect((strip?.width ?? 0) / 40).toBeGreaterThanOrEqual(3);
  const headings = page.locator(".heat th:visible");
  const all = ["Hop", "Lost", "Best", "Median", "Slow 5 %"];
  expect(await headings.allTextContents()).toEqual(width === 390 ? ["Hop", "Lost", "Median"] : all);
  expect(await page.evaluate<number>("document.documentElement.scrollWidth")).toBe(width);
  expect(await page.locator(".rows").isVisible()).toBe(false);
  await page.getByText("All eleven numbers").click();
  expect(await page.locator(".rows tbody .number").first().isVisible()).toBe(true);
});

pageTest(
  "while it runs, a line is at the round that has ended, and dots are where others come",
  async () => {
    await using _ = await eventByEvent(page);
    await using _seen = await page.addInitScript(`globalThis.seen = [];
    globalThis.gaps = [];
    new MutationObserver(() => {
      const row = document.querySelector(".heat tbody tr");
      if (!row) return;
      const hops = [...document.querySelectorAll(".heat tbody tr > .number:nth-child(3)")].map((each) => Number(each.textContent));
      if (hops.some((hop, at) => hop !== at + 1)) gaps.push(hops.join());
      const [first] = ${COUNT};
      const { ahead, ...ended } = first;
      const told = Object.values(ended).reduce((sum, each) => sum + each, 0);
      const median = row.querySelectorAll(".number")[3].textContent;
      const axis = [...document.querySelectorAll(".heat tfoot text")].map((each) => each.textContent);
      const hasLine = row.querySelector(".strip rect") !== null;
      const text = [told, ahead, hasLine, axis.join("-"), median === "–" ? "no time" : "time"].join(" ");
      if (text !== seen.at(-1)) seen.push(text);
    }).observe(document, { childList: true, attributes: true, characterData: true, subtree: true });`);
    await runAt(
      page,
      `${stage.url}#/mtr/www.example.test?rounds=3&intervalMs=500`,
      stage.service.key,
    );
    expect(await page.evaluate<string[]>("seen")).toEqual([
      // Two silent hops delay the end of the first round, and not the times.
      "0 3 false 1-3 time",
      "1 2 true 1-3 time",
      "2 1 true 1-2-3 time",
      "3 0 true 1-3 time",
      "3 0 false 1-3 time",
    ]);
    expect((await page.evaluate<Count[]>(COUNT))[3]?.["ignored"]).toBe(3);
    // A silent hop has its row before it is known to be silent, so that no row moves.
    expect(await page.evaluate<string[]>("gaps")).toEqual([]);
  },
);

pageTest("a result that came with a link has no cells, and the rest", async () => {
  const text = JSON.stringify({
    tool: "mtr",
    subject: "a",
    options: {},
    startedMs: 0,
    document: MTR,
  });
  await page.goto(`${stage.url}#/result/${await packed(text)}`);
  await page.locator(".heat").waitFor();
  expect(await page.locator(".heat tbody tr").count()).toBe(MTR.hops.length);
  expect(await page.locator(".heat .rail").count()).toBe(MTR.hops.length);
  expect(await page.locator(".strip svg").count()).toBe(0);
  expect(await page.locator(".heat thead").textContent()).toBe("HopLostBestMedianSlow 5 %");
});

pageTest("the way that stands is an ordered list with the break in its place", async () => {
  const entry = new URL(import.meta.resolve("./standing-page.tsx")).pathname;
  const { outputs } = await Bun.build({ entrypoints: [entry], target: "browser" });
  await page.goto(stage.url);
  await page.evaluate((await outputs[0]?.text()) ?? "");
  const items = page.locator(".standing > ol > li");
  const shown = async (way: object) => {
    const ends = [{ text: "", note: "", tone: null, ms: null }];
    await page.evaluate(`show(${JSON.stringify({ segments, ends, unknown: "", ...way })})`);
    return await items.evaluateAll((all) =>
      all.map((item) =>
        [...item.querySelectorAll(":scope > :not(svg)")].map((each) => each.textContent).join(" "),
      ),
    );
  };
  const silent = { after: 9, text: "Nothing answers behind here" };
  const unknown = "not reached, so not known";
  expect((await shown({ break: silent, isReached: false, unknown })).slice(4)).toEqual([
    "b3 hops › 5.00",
    "2001:db8::7 7.00",
    "no answer 8.00",
    "Nothing answers behind here",
    "c 9.00",
    "The sitenot reached, so not known",
  ]);
  const bars = page.locator('.standing rect[fill="var(--bad)"]');
  expect(await bars.count()).toBe(2);
  expect((await items.nth(7).boundingBox())?.height).toBeGreaterThanOrEqual(36);
  const narrow = { after: 0, text: "Packets vanish here", isNarrow: true };
  expect((await shown({ break: narrow, isReached: true })).slice(0, 4)).toEqual([
    "Here",
    "Packets vanish heresmall ones pass",
    "2001:db8::0 0.00",
    "a4 hops › 1.00",
  ]);
  expect(await items.last().locator("b, .soft").allTextContents()).toEqual(["The site", "c"]);
  const button = page.getByRole("button", { name: "4 hops ›" });
  await button.click();
  expect(await page.getByRole("button", { expanded: true }).textContent()).toBe("4 hops ⌄");
  expect(await items.nth(4).textContent()).toContain("2001:db8::2");

  // Others fork off before the site: one that is silent, one that works.
  const end = (ip: string, ms: number | null) => {
    const [text, tone] = ms === null ? ["silent", "bad"] : [`${ms} ms`, null];
    return { ...{ text, tone, ms }, note: ip };
  };
  const ends = [end("::a", 9), end("::b", null), end("::c", 10)];
  expect((await shown({ ends, isReached: true })).slice(-3)).toEqual([
    "::b silent",
    "::c 10 ms",
    "The sitec, ::a 9 ms",
  ]);
  expect(await page.locator('.standing path[stroke="var(--bad)"]').count()).toBe(1);
  // The near side stands alone where the network of the first hop is known.
  const known = segmentsOf(hops.slice(1), tintsOf([hops]));
  expect((await shown({ segments: known, isReached: true })).slice(0, 2)).toEqual([
    "Here",
    "a4 hops › 1.00",
  ]);
  const [first] = await shown({ segments: [], isReached: false });
  expect(first).toBe("Here");
});
