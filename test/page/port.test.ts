/** Ports on the page, in a real browser on the stage. */
import { expect } from "bun:test";
import type { Page } from "playwright-core";
import { testOnStage } from "./on-stage.ts";
import { type Stage, start } from "./stage.ts";

let stage: Stage;
let page: Page;

const pageTest = testOnStage((visit) => {
  ({ stage, page } = visit);
});

/** Runs the form, and returns the query that it sent. */
async function asked(tool: string): Promise<string> {
  const request = page.waitForRequest((one) => one.url().includes(`/api/v1/${tool}/`));
  await start(page, stage.service.key, "Run");
  return new URL((await request).url()).search;
}

pageTest("the forms of ping, trace and mtr ask a port where TCP or UDP is chosen", async () => {
  for (const [tool, path] of [
    ["ping", "ping"],
    ["trace", "traceroute"],
    ["mtr", "mtr"],
  ] as const) {
    // A new page: the form of the tool before is not filled in its place.
    await page.goto("about:blank");
    await page.goto(`${stage.url}#/${tool}`);
    await page.fill("#subject", "::1");
    await page.getByRole("button", { name: "More" }).click();
    expect(await page.locator("#port").count()).toBe(0);
    await page.selectOption("#protocol", "tcp");
    await page.fill("#port", "443");
    expect(await asked(path)).toBe("?protocol=tcp&port=443");
    await page.getByText("TCP port 443 is closed (RST).").first().waitFor();
    await page.fill("#port", "444");
    expect(await asked(path)).toBe("?protocol=tcp&port=444");
    const problem = page.locator("#port-problem");
    await problem.waitFor();
    expect(await problem.textContent()).toContain("Port: 444 is not one that this service probes");
    // A port that was typed is kept, but not sent without its protocol.
    await page.selectOption("#protocol", "icmp");
    expect(await page.locator("#port").count()).toBe(0);
    await page.selectOption("#protocol", "udp");
    expect(await page.inputValue("#port")).toBe("444");
    await page.selectOption("#protocol", "icmp");
    if (tool !== "ping") continue;
    expect(await asked(path)).toBe("");
    await page.selectOption("#protocol", "udp");
    expect(await asked(path)).toBe("?protocol=udp");
    await page.getByText("UDP port 33434 is closed").first().waitFor();
  }
});

pageTest("what is typed and chosen before the browser draws is kept", async () => {
  await using _ = await page.addInitScript(
    "requestAnimationFrame = (draw) => setTimeout(() => draw(Date.now()), 500)",
  );
  await page.goto("about:blank");
  await page.goto(`${stage.url}#/ping?protocol=udp`);
  await page.fill("#subject", "::1");
  await page.selectOption("#protocol", "tcp");
  const DRAWN_MS = 1000;
  await Bun.sleep(DRAWN_MS);
  expect(await page.inputValue("#subject")).toBe("::1");
  expect(await page.inputValue("#protocol")).toBe("tcp");
});
