/** The page in a real browser, on the stage: each tool once well; errors.test.ts has the errors. */
import { describe, expect } from "bun:test";
import type { BrowserContext, Page } from "playwright-core";
import type { CheckResult } from "../../src/tools/check/result.ts";
import { TOOLS } from "../../src/tools/table.ts";
import example from "../../src/tools/trace/example.json" with { type: "json" };
import { interfaceDocument } from "../lab/conformance.ts";
import { until } from "../lab/metrics.ts";
import { testOnStage } from "./on-stage.ts";
import {
  CALLER,
  drop,
  ended,
  eventByEvent,
  MARKUP,
  PROXY_HEADERS,
  runAt,
  type Stage,
  start,
  TARGETS,
} from "./stage.ts";

let stage: Stage;
let context: BrowserContext;
let page: Page;
let complaints: string[];

const pageTest = testOnStage(
  (visit) => {
    ({ stage, context, page, complaints } = visit);
  },
  {
    settings: { SIXSCOPE_RATE_KEY: "100000" },
    // Each test is another client, so that none uses up the limit of another.
    addressOf: (visits) => (visits === 0 ? CALLER : `2001:db8:42:${visits.toString(16)}::7`),
  },
);

const open = async (hash = "") => void (await page.goto(`${stage.url}${hash}`));

const button = (name: string) => page.getByRole("button", { name, exact: true });

/** Opens a tool, gives it the key if it asks for one, and runs it to its end. */
async function runTool(hash: string, key = stage.service.key): Promise<void> {
  await runAt(page, `${stage.url}${hash}`, key);
}

const textOf = async (selector: string) => (await page.locator(selector).textContent()) ?? "";

describe("The first page", () => {
  pageTest("asks for a name, and shows whose address came", async () => {
    await open();
    expect(await textOf("h1")).toBe("Does a name work over IPv6?");
    expect(await textOf("main")).toContain("You come over IPv6, from Example office");
    expect(await textOf(".address")).toBe(CALLER);
    expect(await textOf(".address .prefix")).toBe("2001:db8:42:7:");
    await page.getByRole("link", { name: "What this address says" }).click();
    await page.locator(".facts", { hasText: "MAC address" }).waitFor();
    expect(await textOf(".legend")).toContain("Network prefix 2001:0db8:0042");
    expect(await textOf(".facts")).toMatch(/MAC address 00:1b:44:11:3a:b7/);
    expect(await textOf(".facts")).toContain(
      "Example office, 2001:db8:42::/48, by the operator's own list",
    );
  });

  pageTest("keeps the focus, and the field, from the question to the answer", async () => {
    await open();
    const active = () =>
      page.evaluate<string>("document.activeElement.id || document.activeElement.textContent");
    await page.keyboard.press("/");
    expect(await active()).toBe("subject");
    await page.keyboard.type("missing.example.test");
    await page.keyboard.press("Enter");
    await page.locator("#key").waitFor();
    expect(await active()).toBe("key");
    await page.keyboard.type(stage.service.key);
    await page.keyboard.press("Enter");
    await ended(page);
    expect(page.url()).toEndWith("#/check/missing.example.test");
    expect(await page.inputValue("#subject")).toBe("missing.example.test");
    await page.fill("#subject", "missing.example.test");
    await page.keyboard.press("Enter");
    await ended(page);
    expect(await active()).toBe("subject");
    for (const name of ["Check", "Ping", "mtr", "Path MTU"]) {
      if (name !== "Check") await page.locator("nav a", { hasText: name }).click();
      const run = button(name === "Check" ? "Check" : "Run");
      await run.press("Enter");
      await ended(page);
      expect(await active()).toBe(name === "Check" ? "Check" : "Run");
    }
  });

  pageTest("is one file of each kind, small, and costs nothing of the limit", async () => {
    let requests = 0;
    page.on("request", () => requests++);
    await open();
    await page.waitForLoadState("networkidle");
    expect(requests).toBeLessThanOrEqual(6);
    expect(await page.locator(".limit").count()).toBe(0);
  });

  pageTest("is there without JavaScript", async () => {
    const plain = await stage.browser.newContext({
      javaScriptEnabled: false,
      extraHTTPHeaders: PROXY_HEADERS,
    });
    const view = await plain.newPage();
    await view.goto(stage.url);
    expect(await view.locator("h1").textContent()).toBe(CALLER);
    expect(await view.locator("noscript").textContent()).toContain("need JavaScript");
    await plain.close();
  });
});

pageTest("no text becomes markup or a script, whatever the page's own code does", async () => {
  await open();
  const refusals = await page.evaluate(`[
    () => (document.body.innerHTML = "<b>x</b>"),
    () => document.body.insertAdjacentHTML("beforeend", "<b>x</b>"),
    () => (document.createElement("script").src = "/x.js"),
    () => new Worker("/x.js"),
    () => document.body.setAttribute("onclick", "1"),
    () => trustedTypes.createPolicy("any", {}),
  ].map((act) => {
    try {
      act();
      return "allowed";
    } catch (error) {
      return error.name;
    }
  })`);
  expect(refusals).toEqual(Array(6).fill("TypeError"));
  await until(async () => complaints.filter((text) => text.startsWith("violation:")).length === 6);
  complaints.length = 0;
});

describe("the tools", () => {
  pageTest("have a link each, with their names", async () => {
    await open();
    const links = page.locator('nav[aria-label="Tools"] a');
    // The first page asks for a check itself.
    const named = TOOLS.filter(({ name }) => name !== "my-ip" && name !== "check");
    expect(await links.allTextContents()).toEqual(named.map(({ label }) => label));
  });

  pageTest.each(TOOLS.filter(({ needsServer }) => !needsServer).map((tool) => [tool.name, tool]))(
    "%s has a field for each parameter with a label, its choices and its default",
    async (name, { endpoint }) => {
      await open(`#/${name}`);
      await page.locator("form").waitFor();
      if (await button("More").isVisible()) await button("More").click();
      const labelled = Object.entries(endpoint.parameters).filter(
        ([, { label, goesWith }]) => label && !goesWith,
      );
      const [[, subject] = [], ...options] = labelled;
      const labels = await page.locator("form label").allTextContents();
      expect(labels.map((label) => label.trim()).slice(0, labelled.length)).toEqual(
        labelled.map(([, { label = "" }]) => label),
      );
      const examples = page.locator("#subject");
      expect(await examples.count()).toBe(subject ? 1 : 0);
      if (subject) {
        expect(await textOf("#subject-hint")).toBe(subject.hint ?? "");
        expect(await examples.getAttribute("placeholder")).toBe(String(subject.example));
      }
      for (const [option, { bounds, default: preset = "" }] of options) {
        const allowed = bounds && "allowed" in bounds ? bounds.allowed : [];
        const field = page.locator(`#${option}`);
        if (allowed.length === 2) expect(await field.isChecked()).toBe(preset === "yes");
        else expect(await field.inputValue()).toBe(String(preset));
        expect(await field.locator("option").allTextContents()).toEqual(
          allowed.length > 2 ? [...allowed] : [],
        );
      }
    },
  );
});

describe("Address", () => {
  pageTest("checks what is typed, and marks embedded addresses in place", async () => {
    await open("#/validate");
    await page.locator("#subject").pressSequentially("2002:c000:0207::1");
    await page.getByText("192.0.2.7 (6to4)").waitFor();
    const marked = page.locator(".digit.part-ipv4 span");
    expect((await marked.allTextContents()).join("")).toBe("c0000207");
    expect(page.url()).toEndWith("#/validate/2002:c000:0207::1");
  });

  pageTest("shows the API's message at the field", async () => {
    await open("#/validate/2001:db8::g");
    const message = await textOf("#subject-problem");
    expect(message).toContain("neither a hex digit nor a colon (at character 11)");
    expect(await page.locator("#subject").getAttribute("aria-invalid")).toBe("true");
  });
});

describe("DNS", () => {
  pageTest("shows three resolvers side by side, and marks what differs", async () => {
    await runTool("#/dns/www.example.test");
    expect(await page.locator(".reply h2").allTextContents()).toEqual([
      "resolver_a",
      "resolver_b",
      "resolver_c",
    ]);
    expect(await textOf(".verdict.warn")).toEndWith(
      "The three resolvers differ in their records. resolver_c has other records, unlike resolver_a and resolver_b: it may rewrite the answer, or records may depend on the place.",
    );
    expect(await page.locator(".reply tr:has(.warn) .mono").allTextContents()).toEqual([
      "2001:db8:2::80",
      "2001:db8:2::80",
      "2001:db8:2::81",
    ]);
  });

  pageTest("says that they agree", async () => {
    await runTool("#/dns/same.example.test");
    expect(await textOf(".verdict.good")).toEndWith("The three resolvers agree.");
    expect(await page.locator(".reply .warn").count()).toBe(0);
  });

  pageTest(
    "shows a name that does not exist at the field, and what each resolver said",
    async () => {
      await runTool("#/dns/missing.example.test");
      expect(await textOf("#subject-problem")).toContain(
        "does not exist (NXDOMAIN from resolver_a)",
      );
      expect(await page.locator(".reply dd.warn").allTextContents()).toEqual(
        Array(3)
          .fill(["the name does not exist", expect.stringContaining(", NXDOMAIN, ")])
          .flat(),
      );
    },
  );

  pageTest("says which addresses lead to a translator, as a trace does", async () => {
    const text = "64:ff9b::c000:207 leads to 192.0.2.7 through NAT64 (64:ff9b::/96)";
    await runTool("#/dns/nat64.example.test");
    expect(await page.getByText(text).count()).toBe(3);
    await runTool("#/trace/nat64.example.test");
    expect(await page.getByText(text).count()).toBe(1);
  });

  pageTest("shows markup in a record as text", async () => {
    await runTool("#/dns/text.example.test?type=TXT");
    expect(await page.locator(".value .mono").first().textContent()).toBe(`"${MARKUP}"`);
    // No heading is cut where a value takes the room.
    await page.setViewportSize({ width: 360, height: 740 });
    expect((await page.locator(".reply th").first().boundingBox())?.height).toBeLessThan(40);
    expect(await page.locator("main img").count()).toBe(0);
    expect(await page.title()).not.toBe("hostile");
  });
});

describe("Ping", () => {
  pageTest("has a dot for each reply and a cross for each loss, with its reason", async () => {
    await runTool("#/ping/lossy.example.test?count=6");
    expect(await page.locator(".dot").count()).toBe(4);
    expect(await page.locator(".cross").count()).toBe(2);
    // No line ends inside a number.
    expect(await page.locator("dd", { hasText: "mean" }).innerHTML()).not.toContain(".<wbr");
    expect(await page.locator("td.text").allTextContents()).toEqual([
      ...["", "no reply within 2000 ms", "", ""],
      ...["no reply within 2000 ms", ""],
    ]);
    expect(await textOf(".announce")).toBe("The target did not reply to 2 of 6 requests (33.3 %).");
  });

  pageTest("runs on until it is stopped", async () => {
    await open("#/ping/www.example.test");
    await page.setViewportSize({ width: 320, height: 640 });
    await button("Keep pinging").waitFor();
    // The name has room, and the form is no higher for it.
    expect((await page.locator("#subject").boundingBox())?.width).toBeGreaterThan(160);
    expect((await page.locator("form").boundingBox())?.height).toBeLessThanOrEqual(160);
    await start(page, stage.service.key, "Keep pinging");
    await page.locator(".dot").nth(1).waitFor();
    await button("Stop").click();
    await ended(page);
    const dots = await page.locator(".dot").count();
    expect(dots).toBeGreaterThanOrEqual(2);
    expect(await page.locator(".rows tbody tr").count()).toBe(dots);
    expect(await textOf(".facts div:first-child dd")).toBe(`${dots} of ${dots}, 0 % lost`);
    expect(await textOf(".announce")).toContain(`to all ${dots} requests`);
  });
});

describe("A run", () => {
  pageTest("that is stopped sends nothing more, and says how far it came", async () => {
    let requests = 0;
    page.on("request", (request) => {
      if (new URL(request.url()).pathname.startsWith("/api/v1/mtr/")) requests++;
    });
    await open("#/mtr/www.example.test?rounds=90");
    for (let run = 1; run <= 2; run++) {
      await start(page, stage.service.key);
      await page.getByText(/, [1-9]\d* of 90 rounds$/).waitFor();
      await page.locator(".announce", { hasText: /^So far, the target replied to/ }).waitFor();
      await button("Stop").click();
      await page.getByText(/, stopped after [1-9]\d* of 90 rounds, /).waitFor();
      expect(await textOf(".announce")).toStartWith("The target replied to");
      // Long enough for a click to have had a second effect.
      await page.evaluate("new Promise((done) => setTimeout(done, 100))");
      expect(requests).toBe(run);
      expect(await button("Run").isVisible()).toBe(true);
    }
    await button("Run").dblclick();
    await page.getByText(/, [1-9]\d* of 90 rounds$/).waitFor();
    expect(requests).toBe(3);
  });

  pageTest("that was left is stopped, and is shown again with what it found", async () => {
    await open("#/mtr/www.example.test?rounds=90");
    await start(page, stage.service.key);
    await page.getByText(/, ([2-9]|\d\d) of 90 rounds$/).waitFor();
    await page.locator("nav a", { hasText: "Ping" }).first().click();
    await button("Keep pinging").waitFor();
    await page.goBack();
    await page.getByText(/, stopped after ([2-9]|\d\d) of 90 rounds, /).waitFor();
    expect(await page.locator(".rows tbody tr").count()).toBeGreaterThan(3);
    expect(await button("Copy as text").isVisible()).toBe(true);
    await button("Run").click();
    await page.getByText(/, ([2-9]|\d\d) of 90 rounds$/).waitFor();
    const stopped = page.waitForEvent("requestfailed");
    await open("#/watch");
    expect((await stopped).url()).toContain("/mtr/");
  });

  pageTest("comes back with its tool, and its target goes along to the others", async () => {
    await runTool("#/ping/www.example.test?count=1");
    const nav = (name: string) => page.locator("nav a", { hasText: name }).first();
    await nav("Trace").click();
    expect(await page.inputValue("#subject")).toBe("www.example.test");
    expect(await page.locator(".hop").count()).toBe(0);
    await page.locator(".brand").click();
    await nav("Address").click();
    expect(await page.inputValue("#subject")).toBe("");
    // What is typed and was not asked goes along too.
    await page.fill("#subject", "https://typed.example.test/");
    await nav("mtr").click();
    expect(await page.inputValue("#subject")).toBe("typed.example.test");
    await page.fill("#subject", "www.example.test");
    await nav("Ping").click();
    expect(page.url()).toEndWith("#/ping/www.example.test?count=1");
    expect(await textOf(".stamp")).toMatch(/^www.example.test, from this server, .* UTC$/);
    await runTool(`#/ping/${TARGETS.far}?count=1`);
    await nav("DNS").click();
    expect(page.url()).toEndWith(`#/dns/${TARGETS.far}?type=PTR`);
  });

  pageTest("of a broken connection keeps its rows", async () => {
    await open("#/trace/www.example.test");
    await page.route(/api.v1.traceroute/, async (route) => {
      const response = await route.fetch();
      const events = (await response.text()).split("\n\n");
      await route.fulfill({ response, body: `${events.slice(0, 3).join("\n\n")}\n\n` });
    });
    await start(page, stage.service.key);
    await page.getByText(/, broken off, /).waitFor();
    expect(await textOf("#form-problem")).toContain("ended before the result came");
    // Nothing is asked any more, and nothing is known of the rest.
    expect(await textOf("figcaption")).toMatch(/^IPv6: \d hops? through Example Access\.$/);
    expect(await page.locator(".head, .break").count()).toBe(0);
    await page.evaluate(`Object.defineProperty(navigator, "clipboard", {
      value: { writeText(text) { globalThis.copied = text; } },
    });`);
    await button("Copy as text").click();
    expect(await page.evaluate("copied")).toMatch(
      /^Trace\nBroken off: .+\n\nhop +time +hop limit +address\n(?: +\d .+\n)+\nwww.example.test\n/,
    );
  });

  pageTest("takes the target out of what was pasted, and says so", async () => {
    await open("#/ping");
    await page.fill("#subject", `https://[${TARGETS.far}]:8443/path`);
    await button("More").click();
    await page.fill("#count", "1");
    await start(page, stage.service.key);
    await page.locator(".verdict").waitFor();
    expect(page.url()).toEndWith(`#/ping/${TARGETS.far}?count=1`);
    expect(await page.inputValue("#subject")).toBe(TARGETS.far);
    expect(await textOf("#subject-hint")).toContain(`“${TARGETS.far}” was taken out of “https://[`);
  });

  pageTest("forgets only the key that was refused", async () => {
    await open("#/ping/www.example.test");
    await page.evaluate(`sessionStorage.setItem("sixscope-key", "sx_wrong")`);
    await page.reload();
    await page.route(/api.v1.ping/, async (route) => {
      const response = await route.fetch();
      // Another tab stores the right one meanwhile.
      await page.evaluate(`sessionStorage.setItem("sixscope-key", "${stage.service.key}")`);
      await route.fulfill({ response });
    });
    await start(page, stage.service.key);
    await page.getByText(/does not accept this key/).waitFor();
    expect(await page.evaluate<string>(`sessionStorage.getItem("sixscope-key")`)).toBe(
      stage.service.key,
    );
    await page.unroute(/api.v1.ping/);
    await button("Run").click();
    await ended(page);
    expect(await textOf(".verdict")).toContain("replied to all");
  });
});

describe("Trace", () => {
  pageTest("has every hop with name, time, silence and labels, and says why it ended", async () => {
    await runTool("#/trace/www.example.test");
    expect(await page.locator("td.position").allTextContents()).toEqual(
      Array.from({ length: 13 }, (_, hop) => String(hop + 1)),
    );
    expect(await page.locator(".hop").nth(0).textContent()).toContain(
      "gateway.office.example.test",
    );
    expect(await page.locator(".hop").nth(3).textContent()).toContain("no reply");
    expect(await page.locator(".hop").nth(4).textContent()).toContain("MPLS 24015");
    expect(await textOf(".verdict")).toBe("The target replied at hop 13.");
  });

  pageTest("shows each hop as soon as it answers, in the order of their delays", async () => {
    await using _ = await eventByEvent(page);
    await open("#/trace/slow.example.test");
    await page.evaluate(`globalThis.counts = [];
      new MutationObserver(() => {
        const answered = document.querySelectorAll(".hop:not(.silent)").length;
        if (answered !== (counts.at(-1) ?? 0)) counts.push(answered);
      }).observe(document.body, { childList: true, subtree: true });`);
    await start(page, stage.service.key);
    await ended(page);
    expect(await page.evaluate("counts")).toEqual([1, 2, 3, 4]);
  });

  pageTest("draws hops that come together at once", async () => {
    await page.route("**/traceroute/*", async (route) =>
      route.fulfill({ response: await route.fetch() }),
    );
    await open("#/trace/www.example.test");
    await page.evaluate(`globalThis.counts = [];
      new MutationObserver(() => {
        const hops = document.querySelectorAll(".hop").length;
        if (hops !== (counts.at(-1) ?? 0)) counts.push(hops);
      }).observe(document.body, { childList: true, subtree: true });`);
    await start(page, stage.service.key);
    await ended(page);
    const counts = await page.evaluate<number[]>("counts");
    expect(counts.at(-1)).toBe(13);
    // What comes may be cut in two.
    expect(counts.length).toBeLessThan(4);
  });

  pageTest("says which router ended it", async () => {
    await runTool("#/trace/unreachable.example.test");
    expect(await textOf(".verdict")).toBe(
      "2001:db8:100:44::1 answered no route at hop 5, and the path ends there.",
    );
    // The break says so too, and not that nothing answers.
    expect(await textOf(".break .told")).toBe("No route");
    // A tool for a hop leads elsewhere, and the focus with it.
    await page.locator("tr .menu summary").first().press("Enter");
    await page.locator(".menu[open] a", { hasText: "Ping" }).press("Enter");
    await page.locator("#subject:focus").waitFor();
    expect(await page.inputValue("#subject")).toBe("2001:db8:100::1");
  });

  pageTest("shows markup in the name of a router and of its network as text", async () => {
    await runTool("#/trace/hostile.example.test");
    const name = await page.locator(".hop .name").first().textContent();
    expect(name).toContain("<img\\032src=x\\032onerror=");
    expect(await page.locator(".hop .tag").first().textContent()).toBe(`AS64503 ${MARKUP}`);
    expect(await page.locator("main img").count()).toBe(0);
  });

  pageTest("shows further addresses of one hop, labels, interfaces, and networks", async () => {
    const hop = (position: number) => page.locator(".hop").nth(position - 1);
    await runTool("#/trace/told.example.test");
    expect(await hop(3).locator(".tag").allTextContents()).toEqual([
      "MPLS 24015, class 0, TTL 10",
      "MPLS 99999, class 0, TTL 1",
      "came in on xe-0/0/1.100 #519 MTU 9000",
      "leaves by 2001:db8:108::2 MTU 1500",
    ]);
    // A hop that is asked again may answer from another address; of a result in a file that is certain.
    const other = [
      { ...example.hops[0], details: { addresses: ["2001:db8:1::1", "2001:db8:1::fe"] } },
    ];
    await drop(page, JSON.stringify({ ...example, hops: [...other, ...example.hops.slice(1)] }));
    await page.locator(".given").waitFor();
    expect(await hop(1).locator(".tag").first().textContent()).toBe("also 2001:db8:1::fe");
    await runTool("#/trace/www.example.test");
    // The site stands in its own network, and not in that of the hop before it.
    const fills = await page
      .locator(".lane .band")
      .evaluateAll((bands) => bands.map((band) => band.getAttribute("fill")));
    const networks = ["Here", "Access", "Long-Haul", "Hosting"];
    expect(new Set(fills).size).toBe(networks.length);
    expect(await hop(1).locator(".tag").allTextContents()).toEqual(["AS64500 Example Access"]);
    // On a busy machine the target may be asked twice, and then "also" has its second time.
    expect(await hop(13).locator(".tag").first().textContent()).toBe("AS64502 Example Hosting");
  });

  pageTest("says which link was too narrow, and for how many bytes", async () => {
    await runTool("#/trace/narrow.example.test");
    expect(await textOf(".verdict")).toContain("answered packet too big at hop");
    expect(await page.locator(".hop").last().locator(".tag").textContent()).toBe(
      "next link MTU 1280",
    );
  });

  pageTest("frees its probe slot when its page is left", async () => {
    await open("#/trace/silent.example.test");
    await start(page, stage.service.key);
    await page.locator(".hop").nth(2).waitFor();
    await page.close();
    // The log has 499 for a client that left.
    await stage.service.says("status=499");
  });
});

pageTest("a server without IPv4 has not tested it, which is no failure of the site", async () => {
  await runTool("#/check/ipv4only.example.test");
  expect(await textOf(".tried tbody .note")).toBe("this server has no IPv4");
  expect(await page.locator(".bars .down").count()).toBe(0);
  expect(await textOf(".thin .result")).toBe("not tested");
  const { url, key } = stage.service;
  const response = await fetch(`${url}/check/ipv4only.example.test`, {
    headers: { "X-API-Key": key },
  });
  const { steps } = (await response.json()) as CheckResult;
  const names = steps.map(({ name, ip }) => `${name} ${ip}`);
  expect(names).toContain("tcp 192.0.2.1");
  expect(names.toSorted()).toEqual([...new Set(names)].sort());
});

pageTest.each(["check", "dns", "ping"])("%s: white space alone asks nothing", async (tool) => {
  let requests = 0;
  page.on("request", () => requests++);
  await open(`#/${tool}`);
  await page.fill("#subject", "   ");
  const before = requests;
  await page.keyboard.press("Enter");
  await page.evaluate("new Promise((done) => setTimeout(done, 100))");
  expect(requests).toBe(before);
  expect(await page.locator(".problem").allTextContents()).toEqual([]);
});

describe("the key", () => {
  pageTest("leaves the focus where one goes on", async () => {
    const active = () => page.evaluate<string>("document.activeElement.id");
    await open("#/ping/www.example.test?count=1");
    await button("Run").click();
    await page.fill("#key", "wrong");
    await page.keyboard.press("Enter");
    await page.locator("#key-problem", { hasText: "key" }).waitFor();
    // A moment after the problem is shown.
    await page.locator("#key:focus").waitFor();
    await page.fill("#key", stage.service.key);
    await page.keyboard.press("Enter");
    await ended(page);
    expect(await active()).toBe("subject");
    await button("More").click();
    await button("Remove key").click();
    expect(await active()).toBe("subject");
  });

  pageTest("is asked for once, stays in the tab, and can be forgotten", async () => {
    await runTool("#/ping/www.example.test?count=1");
    await button("More").click();
    expect(await textOf(".kept")).toContain("kept until this tab closes");
    await page.reload();
    expect(await page.locator("#key").count()).toBe(0);
    page = await context.newPage();
    await open("#/ping");
    await button("More").click();
    expect(await page.locator("#key").count()).toBe(1);
    await runTool("#/ping/www.example.test?count=1");
    await button("Remove key").click();
    expect(await page.locator("#key").count()).toBe(1);
    expect(await page.evaluate(() => sessionStorage.length + localStorage.length)).toBe(0);
  });

  pageTest("stays on the device if one ticks that", async () => {
    await open("#/ping/www.example.test?count=1");
    await button("Run").click();
    await page.fill("#key", stage.service.key);
    await page.getByLabel("Keep it on this device").check();
    await button("Run").click();
    await ended(page);
    page = await context.newPage();
    await open("#/trace/www.example.test");
    await button("More").click();
    expect(await textOf(".kept")).toContain("kept on this device");
    expect(page.url()).not.toContain("sx_");
  });

  pageTest("that is wrong is refused at its field, and not kept", async () => {
    await runTool("#/ping/www.example.test", "sx_wrong");
    expect(await textOf("#key-problem")).toContain("mistyped, revoked or expired");
    expect(await page.evaluate(() => sessionStorage.length)).toBe(0);
  });
});

describe("a bookmark", () => {
  pageTest("has a URL that shows the same inputs, and runs with one click", async () => {
    await open("#/trace/www.example.test?maxHops=3");
    expect(await page.inputValue("#subject")).toBe("www.example.test");
    expect(await page.inputValue("#maxHops")).toBe("3");
    expect(await page.locator(".hop").count()).toBe(0);
    await runTool("#/trace/www.example.test?maxHops=3");
    expect(await page.locator(".hop").count()).toBe(3);
    expect(page.url()).toEndWith("#/trace/www.example.test?maxHops=3");
  });

  pageTest("comes back with its result by the back button", async () => {
    await runTool("#/dns/same.example.test");
    await page.fill("#subject", "www.example.test");
    await button("Run").click();
    await page.locator(".reply .warn").first().waitFor();
    await page.goBack();
    await page.getByText("The three resolvers agree.").waitFor();
    expect(await page.inputValue("#subject")).toBe("same.example.test");
    await page.goForward();
    await page.locator(".reply .warn").first().waitFor();
  });

  pageTest("keeps its inputs over a reload", async () => {
    await runTool("#/dns/same.example.test?type=A");
    await page.reload();
    expect(await page.inputValue("#subject")).toBe("same.example.test");
    expect(await page.inputValue("#type")).toBe("A");
  });
});

describe("/docs", () => {
  pageTest("describes every endpoint, with the line for a shell", async () => {
    await open("docs");
    await page.locator(".endpoint").first().waitFor();
    const paths = await page.locator(".endpoint h2 .mono").allTextContents();
    expect(paths).toEqual(Object.keys(interfaceDocument.paths).map((path) => `GET ${path}`));
    const api = `${stage.url}api/v1`;
    expect(await textOf("#validateAddress .shell code")).toBe(
      `curl '${api}/validate?address=2001:0db8::0001'`,
    );
    expect(await textOf("#ping .shell code")).toBe(
      `curl -H "X-API-Key: $SIXSCOPE_KEY" '${api}/ping/www.example.com'`,
    );
  });

  pageTest("shows the fields of an answer, and of what is in them", async () => {
    await open("docs");
    const answer = page.locator("#ping details").first();
    await answer.locator("summary").first().click();
    await answer.getByText("stats", { exact: true }).click();
    await answer.getByText("transmitted", { exact: true }).waitFor();
  });
});

pageTest("a caller over its limit reads when to try again", async () => {
  await open("#/dns/same.example.test");
  await page.evaluate(async () => {
    for (let request = 0; request < 100; request++) await fetch("api/v1/myip");
  });
  await button("Run").click();
  await page.locator("#form-problem").waitFor();
  expect(await textOf("#form-problem")).toMatch(/is used up; try again in \d+ seconds\.$/);
  // Nothing is wrong with what was asked.
  expect(await page.locator("[aria-invalid]").count()).toBe(0);
  expect(await textOf(".limit")).toBe("0 of 100 requests left");
  // A key has a limit of its own.
  await page.locator("nav a", { hasText: "Trace" }).first().click();
  await start(page, stage.service.key);
  await page.locator(".verdict").waitFor();
  expect(await page.locator("#form-problem").count()).toBe(0);
});
