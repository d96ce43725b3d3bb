/** A check on the page, in a real browser: a list of steps that fills, then the verdict, and details folded. */
import { expect } from "bun:test";
import type { Page } from "playwright-core";
import { testOnStage } from "./on-stage.ts";
import { eventByEvent, runAt, type Stage } from "./stage.ts";

let stage: Stage;
let page: Page;

const pageTest = testOnStage((visit) => {
  ({ stage, page } = visit);
});

pageTest("a check fills its list, and at the end folds what is well", async () => {
  await eventByEvent(page);
  await page.addInitScript(`globalThis.seen = new Set();
    new MutationObserver(() => {
      for (const step of document.querySelectorAll(".steps li")) seen.add(step.textContent.slice(0, 2));
    }).observe(document, { childList: true, characterData: true, subtree: true });`);
  await runAt(page, `${stage.url}#/check/www.example.test`, stage.service.key);
  // The simulated internet answers echo requests, and no TCP. One of its resolvers has another address.
  const verdict = await page.locator(".verdict.bad").textContent();
  const [ip = ""] = /2001:db8:2::8[01]/.exec(verdict ?? "") ?? [];
  expect(verdict).toStartWith(
    `www.example.test does not work over IPv6: neither of its two addresses works, and ${ip} does not answer on port 443. `,
  );
  const groups = await page.evaluate(`[...document.querySelectorAll(".steps details")]
    .map((one) => [one.querySelector("summary").textContent, one.open])`);
  expect(groups).toEqual([
    // No link leads out of the namespace of the test, which does not explain what the verdict says.
    [expect.stringMatching(/^This machine [✗–]$/), false],
    // The servers of its zone are nobody's here.
    [expect.stringMatching(/^Name [✓!]–$/), expect.any(Boolean)],
    ["2001:db8:2::80 !✓✗", true],
    ["2001:db8:2::81 !✓✗", true],
    [expect.stringMatching(new RegExp(`^Path to ${ip} ✓✓[!–]$`)), false],
  ]);
  // Every step was shown while it ran.
  const seen = await page.evaluate<string[]>("[...seen]");
  for (const step of ["…n", "…e", "…t", "…m"]) expect(seen).toContain(step);
  expect(await page.locator('nav a[aria-current="page"]').textContent()).toContain("Check");
});
