/** Loss by hop and the path MTU on the page, in a real browser on the stage. */
import { describe, expect } from "bun:test";
import type { Page } from "playwright-core";
import { testOnStage } from "./on-stage.ts";
import { ended, eventByEvent, MARKUP, runAt, type Stage, start } from "./stage.ts";

let stage: Stage;
let page: Page;

const pageTest = testOnStage((visit) => {
  ({ stage, page } = visit);
});

const open = async (hash: string) => void (await page.goto(`${stage.url}${hash}`));
const runTool = (hash: string) => runAt(page, `${stage.url}${hash}`, stage.service.key);
const button = (name: string) => page.getByRole("button", { name, exact: true });
const textOf = async (selector: string) => (await page.locator(selector).textContent()) ?? "";

/** Collects what the text of a selector becomes, without repeats. */
async function watch(selector: string): Promise<() => Promise<string[]>> {
  await page.evaluate(`globalThis.texts = [];
    new MutationObserver(() => {
      const text = document.querySelector(${JSON.stringify(selector)})?.textContent ?? "";
      if (text !== "" && text !== texts.at(-1)) texts.push(text);
    }).observe(document.body, { childList: true, characterData: true, subtree: true });`);
  return () => page.evaluate("texts");
}

/** The text that a button copies. */
async function copied(name: string): Promise<string> {
  await page.evaluate(`Object.defineProperty(navigator, "clipboard", {
    value: { writeText(text) { globalThis.copied = text; } },
  });`);
  await button(name).click();
  return page.evaluate("copied");
}

const cells = (label: string) => page.locator(`[data-label="${label}"]`).allTextContents();

describe("mtr", () => {
  pageTest(
    "says where loss begins, and that a hop that limits its answers loses nothing",
    async () => {
      await runTool("#/mtr/losing.example.test?rounds=40&intervalMs=100");
      expect(await textOf(".announce")).toMatch(
        /^The target did not reply to \d+ of 40 probes \([\d.]+ %\): the loss is between \d+ and \d+ %\. The loss begins between hop 3 \(core3\.example\.test\) and hop 4 \(core4\.example\.test\)\. Hop 2 ignores some probes; that is not loss, as later hops lose less\.$/,
      );
      const limited = page.locator(".hop", { hasText: "does not answer every probe" });
      expect(await limited.locator(".position").allTextContents()).toEqual(["2"]);
      expect(await page.locator(".number.bad").count()).toBe(3);
      expect(await cells("Sent")).toEqual(Array(6).fill("40"));
      expect(await page.locator(".heat tbody tr").count()).toBe(6);
    },
  );

  pageTest("has each round as it ends, and the whole afterwards", async () => {
    await using _ = await eventByEvent(page);
    await open("#/mtr/limited.example.test?rounds=4&intervalMs=300");
    const rounds = await watch(".stamp");
    await start(page, stage.service.key);
    await ended(page);
    const told = (await rounds()).flatMap((text) => /([1-4]) of 4 rounds/.exec(text)?.[1] ?? []);
    expect([...new Set(told)]).toEqual(["1", "2", "3", "4"]);
    expect(await textOf(".announce")).toStartWith("The target replied to all 4 probes.");
  });

  pageTest("lists the paths and the shares of the addresses if the path changes", async () => {
    await runTool("#/mtr/changing.example.test?rounds=16&intervalMs=100");
    expect(await textOf(".facts dd.warn")).toMatch(
      /^2 were taken, by \d+ rounds? and \d+ rounds?; they differ at hop 2$/,
    );
    const hop = page.locator(".hop").nth(1);
    const first = (await hop.locator(".ip").textContent()) ?? "";
    const [second = ""] = await hop.locator(".tag").allTextContents();
    expect(second).toMatch(/^also 2001:db8:100:222::(1|fe) \(\d+ of 16\)$/);
    expect(second).not.toContain(`${first} `);
    expect(await textOf(".verdict")).toStartWith("The target replied to all");
  });

  pageTest("says so if the target does not reply", async () => {
    await runTool("#/mtr/silent.example.test?rounds=1&maxHops=4");
    expect(await textOf(".verdict")).toBe(
      "The target did not reply; the last answers came from hop 3 (ae12-0.core-router-2.amsterdam-science-park.backbone.example.test).",
    );
    expect(await page.locator(".verdict.bad").count()).toBe(1);
  });

  pageTest("is copied as mtr prints it, and as the JSON of the API", async () => {
    await runTool("#/mtr/hostile.example.test?rounds=2&intervalMs=100");
    const lines = (await copied("Copy as text")).split("\n");
    expect(lines[0]).toBe("mtr");
    expect(lines[3]).toMatch(/^hop +loss +sent +rcvd +last +avg +best +worst +stdev .* address$/);
    expect(lines[4]).toMatch(/^ +1 +0% +2 +2( +\d+\.\d+){8} +2001:db8:106::1 .*<img/);
    expect(lines).toContain("hostile.example.test (2001:db8:6::1)");
    // Its network has markup in its name too.
    expect(await page.locator(".hop .tag").first().textContent()).toBe(`AS64503 ${MARKUP}`);
    expect(await page.locator("main img").count()).toBe(0);
    const download = page.waitForEvent("download");
    await button("Download JSON").click();
    const file = await (await download).path();
    expect(await Bun.file(file).json()).toMatchObject({ rounds: 2, ip: "2001:db8:6::1" });
    expect(await textOf(".shell")).toContain(
      "/api/v1/mtr/hostile.example.test?rounds=2&intervalMs=100'",
    );
  });

  pageTest.each([
    ["mtr/www.example.test?rounds=101", "Rounds", "from 1 to 100"],
    ["mtr/www.example.test?intervalMs=99", "Interval in ms", "from 100 to 1000"],
    ["mtr/www.example.test?maxHops=65", "Max hops", "from 1 to 64"],
    ["mtr/192.0.2.1", "192.0.2.1", "is an IPv4 address"],
    ["mtu/ff02::1", "ff02::1", "is a multicast address"],
    ["mtu/missing.example.test", "missing.example.test", "does not exist"],
  ])("%s: the error names %s", async (place, cause, message) => {
    await runTool(`#/${place}`);
    expect(await textOf(".problem")).toContain(cause);
    expect(await textOf(".problem")).toContain(message);
  });
});

describe("Path MTU", () => {
  pageTest("says who narrows the path, and which message is not believed", async () => {
    await runTool("#/mtu/tunnel.example.test");
    expect(await textOf(".facts div:first-child dd")).toBe("1420 bytes");
    expect(await textOf(".verdict")).toBe(
      "The path MTU is 1420 bytes: the link behind hop 4 (2001:db8:100:234::1) is the narrowest.",
    );
    expect(await page.locator(".hop .number").allTextContents()).toEqual(
      [1500, 1500, 1480, 1480, 1420, 1420].map((bytes) => `${bytes} bytes`),
    );
    expect(await page.locator(".hop").nth(1).textContent()).toContain(
      "not believed: every link of IPv6 carries 1280 bytes",
    );
    expect(await page.locator(".hop").nth(3).textContent()).toContain("Packet Too Big: 1420");
  });

  pageTest("finds the hops that a black hole is between", async () => {
    await runTool("#/mtu/blackhole.example.test");
    expect(await textOf(".verdict")).toMatch(
      /^Packets of more than 1400 bytes vanish, .* between hop 2 \(core2\.example\.test\) and hop 4 \(core4\.example\.test\)\.$/,
    );
    expect(await textOf(".facts div:first-child dd")).toBe("1400 bytes");
  });

  pageTest.each([
    ["www", "good", "the largest that this machine can send."],
    [
      "below1280",
      "bad",
      "every link of IPv6 must carry 1280, so larger transfers over this path fail.",
    ],
    ["silent", "warn", "The target answers neither echo requests nor UDP packets."],
  ])("%s: %s, %s", async (name, kind, text) => {
    await runTool(`#/mtu/${name}.example.test`);
    expect(await textOf(`.verdict.${kind}`)).toContain(text);
  });

  pageTest("shows each hop as soon as it is measured", async () => {
    await using _ = await eventByEvent(page);
    await open("#/mtu/blackhole.example.test");
    const said = await watch(".waiting, .verdict");
    await page.evaluate(`globalThis.hops = [];
      new MutationObserver(() => {
        const count = document.querySelectorAll(".hop").length;
        if (count !== (hops.at(-1) ?? 0)) hops.push(count);
      }).observe(document.body, { childList: true, subtree: true });`);
    await start(page, stage.service.key);
    await ended(page);
    expect(await said()).toEqual(["Waiting for the first answer", await textOf(".verdict")]);
    expect(await page.evaluate("hops")).toEqual([1, 2, 3, 4, 5, 6]);
  });
});

describe("Paths", () => {
  /** Searches until `count` paths have been found: by design, one search in twenty misses a part. */
  async function search(wanted: number, count: number): Promise<void> {
    await runTool(`#/trace/equal.example.test?paths=${wanted}`);
    while (!(await textOf(".announce")).includes(`${count} paths`)) {
      await button("Run").click();
      await button("Stop").waitFor();
      await ended(page);
    }
  }

  pageTest("draws each node once, marks the branch that loses, and is copied whole", async () => {
    await search(8, 4);
    // On a busy machine the time may be over before it is known that there are no others.
    expect(await textOf(".verdict.bad")).toMatch(
      /^Found (4 paths with \d+ flow labels\. .*Path [1-4] of 4 did not reach the target\.|at least 4 paths with \d+ flow labels; there may be more\. Path [1-4] of 4 did not reach the target\. The run met its budget and ended, so this may not be all\.)$/,
    );
    const nodes = page.locator(".hop-list .hop");
    const addresses = (await nodes.locator(".ip").allTextContents()).map((ip) => ip.slice(-1));
    expect(addresses.slice(0, 1)).toEqual(["a"]);
    expect(addresses.slice(1, 3).sort()).toEqual(["b", "c"]);
    expect(addresses.slice(3, 7).sort()).toEqual(["9", "d", "e", "f"]);
    expect(addresses.slice(7)).toEqual(["1", "7", "1"]);
    const lost = nodes.filter({ hasText: "::9" });
    expect(await lost.textContent()).toMatch(/path [1-4]: no reply from here on/);
    expect(await page.locator(".bundle .lost").count()).toBe(1);
    expect(await page.locator(".ways .bad").allTextContents()).toEqual(["not reached: gap limit"]);
    const text = await copied("Copy as text");
    expect(text.match(/^--flow-label \d+, \d+ of \d+ flow labels, 6 hops$/gm)).toHaveLength(3);
    expect(text).toMatch(/^--flow-label .*, not reached: gap limit$/m);
    expect(text).toContain("2001:db8:100:30::9");
  });

  pageTest("traces one path alone, by its flow label", async () => {
    await search(2, 2);
    expect(await textOf(".announce")).toContain("there may be more.");
    await page.getByText("Hops with addresses").click();
    const link = page.getByRole("link", { name: /^Trace \d+ alone$/ }).nth(1);
    const label = /\d+/.exec((await link.textContent()) ?? "")?.[0] ?? "";
    const position = page.locator(".hop-list .hop", { hasText: "path 2" }).first();
    const second = await position.locator(".ip").textContent();
    await link.click();
    while ((await page.inputValue("#flowLabel")) !== label) await Bun.sleep(20);
    await button("Run").click();
    await ended(page);
    expect(await page.locator(".hop .ip").allTextContents()).toContain(second ?? "");
    expect(await textOf(".facts")).toContain(`flow label ${label}`);
    expect(page.url()).toEndWith(`?flowLabel=${label}`);
  });

  pageTest("are a bundle of threads that opens, and each is shown alone", async () => {
    await runTool("#/trace/wide.example.test?paths=16");
    const threads = page.locator(".bundle .thread");
    const ways = page.getByRole("button", { name: /^\d+ ways ›$/ });
    const count = Number.parseInt((await ways.textContent()) ?? "", 10);
    expect(count).toBeGreaterThan(1);
    expect(await textOf("figcaption")).toMatch(
      new RegExp(`${count} ways between hop \\d \\S+ and hop \\d \\S+\\.`),
    );
    const line = page.locator(".bundle");
    const height = async () => (await line.boundingBox())?.height ?? 0;
    expect(await threads.count()).toBe(count);
    expect(await page.locator(".bundle .ring").count()).toBe(0);
    expect(await height()).toBeLessThanOrEqual(24);
    expect(await ways.getAttribute("aria-expanded")).toBe("false");
    await ways.click();
    expect(await button("Close").getAttribute("aria-expanded")).toBe("true");
    expect(await threads.count()).toBe(count);
    expect(await page.locator(".bundle .ring").count()).toBe(count);
    // The higher band behind it has the colour of its network too.
    expect(await page.locator(".lane .band:not([fill])").count()).toBe(0);
    expect(await height()).toBeGreaterThanOrEqual(9 * (count - 1));
    // A press on a thread shows it alone, and one more shows them all.
    const faint = page.locator(".bundle .faint");
    const [, second] = await page.locator(".bundle .press").all();
    const box = await second?.boundingBox();
    if (!box) throw new Error("no second thread");
    const press = () => page.mouse.click(box.x + box.width / 2, box.y + 4.5);
    await press();
    expect(await faint.count()).toBe(count - 1);
    await press();
    expect(await faint.count()).toBe(0);
    await button("Close").click();
    // So does its button, which opens the bundle.
    await page.getByText("Hops with addresses").click();
    await button("Path 2").click();
    expect(await button("Path 2").getAttribute("aria-pressed")).toBe("true");
    expect(await faint.count()).toBe(count - 1);
    await button("Close").click();
    expect(await faint.count()).toBe(0);
  });

  pageTest("are a row that opens their list on a narrow screen", async () => {
    await runTool("#/trace/wide.example.test?paths=16");
    await page.setViewportSize({ width: 390, height: 800 });
    const ways = page.locator(".standing").getByRole("button", { name: /^\d+ ways/ });
    await ways.waitFor();
    const list = page.getByRole("list", { name: "Paths", exact: true });
    expect(await list.isVisible()).toBe(false);
    await ways.click();
    await list.waitFor();
    expect(await ways.getAttribute("aria-expanded")).toBe("true");
    await page.setViewportSize({ width: 1280, height: 800 });
  });

  pageTest.each([
    ["paths=17", "Paths", "from 1 to 16"],
    ["flowLabel=1048576", "Flow label", "from 0 to 1048575"],
  ])("%s: the error names the parameter", async (query, parameter, message) => {
    await runTool(`#/trace/equal.example.test?${query}`);
    expect(await textOf("form .problem")).toContain(parameter);
    expect(await textOf("form .problem")).toContain(message);
  });
});

pageTest("a result comes back with the back button, and its link runs again", async () => {
  await runTool("#/mtu/tunnel.example.test");
  await page.getByRole("link", { name: "mtr" }).click();
  await page.goBack();
  expect(await textOf(".facts div:first-child dd")).toBe("1420 bytes");
  const link = await copied("Copy link");
  expect(link).toBe(`${stage.url}#/mtu/tunnel.example.test`);
  await page.reload();
  expect(await page.inputValue("#subject")).toBe("tunnel.example.test");
});
