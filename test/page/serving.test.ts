/** How the page and its files are served: who gets them, with what headers, and at whose cost. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { bundlePage } from "../../src/page/bundle.ts";
import { labMissing, testWith } from "../lab/lab.ts";
import { type Service, startService } from "../lab/service.ts";

const labTest = testWith(labMissing);

const BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

/** All of the page, compressed, in bytes. */
const MOST_BYTES = 70_000;

let service: Service;
let page: string;

beforeAll(async () => {
  if (labMissing !== null) return;
  service = await startService({ SIXSCOPE_LOG_LEVEL: "info" });
  page = new URL("/", service.url).href;
});

afterAll(async () => {
  if (labMissing === null) await service[Symbol.asyncDispose]();
});

const view = (headers: Readonly<Record<string, string>> = {}, method = "GET") =>
  fetch(page, { method, headers: { Accept: BROWSER, ...headers } });

/** The paths of the files that the page names. */
const filesIn = (html: string) =>
  [...html.matchAll(/(?:href|src)="\.(\/assets\/[^"]+)"/g)].map(([, path]) => path ?? "");

labTest.each<[string | null, string]>([
  [BROWSER, "text/html;charset=utf-8"],
  ["text/html", "text/html;charset=utf-8"],
  ["text/html;q=0.5, text/plain;q=0.4", "text/html;charset=utf-8"],
  ["text/html;q=0.4, text/plain;q=0.5", "text/plain"],
  ["text/html, text/plain", "text/plain"],
  ["text/plain", "text/plain"],
  ["*/*", "text/plain"],
  [null, "text/plain"],
])("Accept: %p gets %p at /", async (accept, type) => {
  const response = await fetch(page, { headers: accept === null ? {} : { Accept: accept } });
  expect(response.headers.get("content-type")).toBe(type);
  expect(response.headers.get("vary")).toBe("Accept");
  expect(await response.text()).toContain("127.0.0.1");
});

labTest("the address is in the HTML, and nothing else is asked for", async () => {
  const response = await view();
  const html = await response.text();
  expect(html).toMatch(/<h1[^>]*>127\.0\.0\.1<\/h1>/);
  expect(html).not.toContain("{{");
  expect(html).not.toMatch(/<script(?![^>]*src=)|<style|\son\w+=|https?:/);
  const policy = response.headers.get("content-security-policy") ?? "";
  expect(policy).toContain("default-src 'none'");
  expect(policy).not.toContain("unsafe");
  expect(response.headers.get("referrer-policy")).toBe("no-referrer");
  expect(response.headers.get("x-content-type-options")).toBe("nosniff");
});

labTest("the page is revalidated, and its files are kept for a year", async () => {
  const first = await view();
  expect(first.headers.get("cache-control")).toBe("private, no-cache");
  const etag = first.headers.get("etag") ?? "";
  const again = await view({ "If-None-Match": etag });
  expect([again.status, await again.text()]).toEqual([304, ""]);
  expect((await view({ "If-None-Match": 'W/"other"' })).status).toBe(200);
  const paths = filesIn(await first.text());
  expect(paths.length).toBeGreaterThanOrEqual(3);
  for (const path of paths) {
    expect(path).toMatch(/-[0-9a-z]{8}\.\w+$/);
    const response = await fetch(new URL(path, page));
    expect([response.status, response.headers.get("content-encoding")]).toEqual([200, "gzip"]);
    expect(response.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
    const plain = await fetch(new URL(path, page), { headers: { "Accept-Encoding": "identity" } });
    expect(plain.headers.get("content-encoding")).toBeNull();
    expect(await plain.text()).toBe(await response.text());
  }
});

labTest("HEAD has the headers of GET", async () => {
  const [path = ""] = filesIn(await (await view()).text());
  for (const url of [page, new URL(path, page).href]) {
    const [get, head] = await Promise.all(
      ["GET", "HEAD"].map((method) => fetch(url, { method, headers: { Accept: BROWSER } })),
    );
    expect(await head?.text()).toBe("");
    for (const name of ["content-type", "etag", "cache-control"]) {
      expect(head?.headers.get(name)).toBe(get?.headers.get(name) ?? null);
    }
  }
});

labTest.each(["/assets/", "/assets/nothing.js", "/assets/index.html", "/assets/..%2findex.html"])(
  "%s does not exist",
  async (path) => {
    expect((await fetch(new URL(path, page))).status).toBe(404);
  },
);

labTest("views cost nothing of the API's limit, are bounded, and are in the log", async () => {
  const left = async () =>
    Number((await fetch(`${service.url}/myip`)).headers.get("x-ratelimit-remaining"));
  const before = await left();
  for (let request = 0; request < 5; request++) await view();
  // More are left if a window has ended meanwhile.
  expect(await left()).toBeGreaterThanOrEqual(before - 1);
  await service.says("route=/ ");
  const statuses = new Set<number>();
  for (let request = 0; request < 1000 && !statuses.has(429); request++)
    statuses.add((await view()).status);
  expect([...statuses].sort()).toEqual([200, 429]);
  const refused = await view();
  expect(await refused.text()).toContain("is used up; try again in");
  expect(await left()).toBeGreaterThanOrEqual(before - 2);
});

test("all of the page is small, and the same each time", async () => {
  const files = await bundlePage();
  const bytes = Object.values(files).map(({ text }) => Bun.gzipSync(text, { level: 9 }).length);
  expect(bytes.reduce((sum, size) => sum + size, 0)).toBeLessThan(MOST_BYTES);
  expect(await bundlePage()).toEqual(files);
});
