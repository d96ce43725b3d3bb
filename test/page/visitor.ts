/** A browser on the stage, a new context and another client for each test. */
import { afterAll, afterEach, beforeAll, beforeEach, expect } from "bun:test";
import type { BrowserContext, Page } from "playwright-core";
import { programMissing, testWith, tunMissing } from "../lab/lab.ts";
import { CALLER, PROXY_HEADERS, type Stage, startStage } from "./stage.ts";

const missing = tunMissing ?? programMissing("chromium") ?? programMissing("knotd");

/** A test that needs the stage and a browser. */
export const pageTest = testWith(missing);

/** Starts a stage for a file of tests, and visits it in each test; the policy must be kept and nobody else asked. */
export function visitStage(environment: () => Readonly<Record<string, string>>) {
  let stage: Stage;
  let context: BrowserContext;
  let page: Page;
  /** What the browser complained about, and where else it went. */
  const complaints: string[] = [];
  /** Each test is another client, so that none uses up the limit of another. */
  let client = 0;

  beforeAll(async () => {
    if (missing === null) stage = await startStage(environment());
  }, 60_000);

  afterAll(async () => {
    if (missing === null) await stage[Symbol.asyncDispose]();
  });

  beforeEach(async () => {
    if (missing !== null) return;
    complaints.length = 0;
    const address = client === 0 ? CALLER : `2001:db8:42:${client.toString(16)}::7`;
    client++;
    context = await stage.browser.newContext({
      extraHTTPHeaders: { ...PROXY_HEADERS, "X-Forwarded-For": address },
    });
    await context.addInitScript(`addEventListener("securitypolicyviolation", (event) =>
      console.error("violation:", event.violatedDirective, event.blockedURI));`);
    page = await newPage();
  });

  afterEach(async () => {
    if (missing !== null) return;
    await context.close();
    expect(complaints).toEqual([]);
  });

  /** Opens one more page, and goes on with it. */
  async function newPage(): Promise<Page> {
    const opened = await context.newPage();
    opened.on("request", (request) => {
      if (new URL(request.url()).origin !== new URL(stage.url).origin)
        complaints.push(request.url());
    });
    opened.on("pageerror", (error) => complaints.push(String(error)));
    opened.on("console", (message) => {
      const isAnswer = message.text().startsWith("Failed to load resource");
      if (message.type() === "error" && !isAnswer) complaints.push(message.text());
    });
    page = opened;
    return opened;
  }

  const open = async (hash = "") => void (await page.goto(`${stage.url}${hash}`));

  const button = (name: string) => page.getByRole("button", { name, exact: true });

  /** Opens a tool, gives it the key if it asks for one, and runs it to its end. */
  async function runTool(hash: string, key = stage.service.key): Promise<void> {
    await open(hash);
    if (await page.locator("#key").isVisible()) await page.fill("#key", key);
    await button("Run").click();
    await button("Run again").waitFor();
  }

  const textOf = async (selector: string) => (await page.locator(selector).textContent()) ?? "";

  return {
    newPage,
    open,
    button,
    runTool,
    textOf,
    get page() {
      return page;
    },
    get stage() {
      return stage;
    },
  };
}
