/** The service from a web page of another origin, in a real browser. */
import { afterAll, beforeAll, expect } from "bun:test";
import { type Browser, chromium, type Page } from "playwright-core";
import { labMissing, programMissing, testWith } from "../lab/lab.ts";
import { findProgram } from "../lab/run.ts";
import { type Service, startService } from "../lab/service.ts";

const missing = labMissing ?? programMissing("chromium");
const browserTest = testWith(missing);

let service: Service;
let origin: Bun.Server<undefined>;
let browser: Browser;
let page: Page;

beforeAll(async () => {
  if (missing !== null) return;
  service = await startService({ SIXSCOPE_RATE_ANONYMOUS: "20" });
  origin = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => new Response("<!doctype html>", { headers: { "Content-Type": "text/html" } }),
  });
  browser = await chromium.launch({
    executablePath: findProgram("chromium") ?? "",
    // Root cannot use the sandbox, and the browser must send only the page's requests.
    args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"],
  });
  page = await browser.newPage();
  await page.goto(origin.url.href);
});

afterAll(async () => {
  if (missing !== null) return;
  await browser.close();
  await origin.stop(true);
  await service[Symbol.asyncDispose]();
});

/** The parts of an answer that a script of the page can read. */
async function fetchInPage(path: string, headers: Record<string, string> = {}) {
  return await page.evaluate(
    async ([url, sent]) => {
      const response = await fetch(url, { headers: sent });
      return {
        status: response.status,
        body: (await response.json()) as Record<string, unknown>,
        headers: Object.fromEntries(response.headers),
      };
    },
    [service.url + path, headers] as const,
  );
}

browserTest(
  "a page of another origin reads answers, and the headers that are exposed",
  async () => {
    const { status, body, headers } = await fetchInPage("/validate?address=::1");
    expect(status).toBe(200);
    expect(body).toMatchObject({ valid: true, type: "Loopback" });
    expect(Object.keys(headers)).toEqual(
      expect.arrayContaining([
        "x-ratelimit-limit",
        "x-ratelimit-remaining",
        "x-ratelimit-reset",
        "x-request-id",
      ]),
    );
  },
);

browserTest("a key passes the preflight", async () => {
  const { status, body } = await fetchInPage("/ping/::1?count=1", { "X-API-Key": service.key });
  expect(status).toBe(200);
  expect(body).toMatchObject({ stats: { received: 1 } });
});

browserTest("errors are readable too: 401, 404, and 429 with Retry-After", async () => {
  expect(await fetchInPage("/ping/::1")).toMatchObject({ status: 401 });
  expect(await fetchInPage("/nothing")).toMatchObject({ status: 404 });
  let answer = await fetchInPage("/myip");
  while (answer.status === 200) answer = await fetchInPage("/myip");
  expect(answer.status).toBe(429);
  expect(Number(answer.headers["retry-after"])).toBeGreaterThan(0);
});
