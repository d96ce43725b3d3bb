/** SIXSCOPE_KEYLESS_FROM: who pings without a key, at whose cost, and what the page asks for. */
import { afterAll, beforeAll, expect } from "bun:test";
import { readEvents } from "../lab/events.ts";
import { labMissing, testWith } from "../lab/lab.ts";
import { value } from "../lab/metrics.ts";
import { type Service, startService } from "../lab/service.ts";

const labTest = testWith(labMissing);

let service: Service;

beforeAll(async () => {
  if (labMissing !== null) return;
  service = await startService({
    SIXSCOPE_KEYLESS_FROM: "2001:db8:7::/48,192.0.2.0/24",
    SIXSCOPE_TRUSTED_PROXIES: "127.0.0.1",
    SIXSCOPE_MAX_PROBES: "2",
    SIXSCOPE_METRICS_LISTEN: "127.0.0.1:0",
  });
});

afterAll(async () => {
  if (labMissing === null) await service[Symbol.asyncDispose]();
});

const ask = (
  client: string,
  url = `${service.url}/ping/::1?count=1`,
  accept = "*/*",
  more: Record<string, string> = {},
  signal: AbortSignal | null = null,
) =>
  fetch(url, {
    headers: { "X-Forwarded-For": client, "X-Forwarded-Proto": "https", Accept: accept, ...more },
    signal,
  });

labTest.each([
  ["2001:db8:7::1", 200],
  ["192.0.2.7", 200],
  ["2001:db8:8::1", 401],
  ["198.51.100.1", 401],
])("%s gets %p, at the limit of its address", async (client, status) => {
  const response = await ask(client);
  expect(response.status).toBe(status);
  expect(response.headers.get("x-ratelimit-limit")).toBe("100");
});

labTest("a page of another site sends no probe without a key", async () => {
  const sent = () => value(service, "sixscope_probes_sent_total");
  const before = await sent();
  const asPage = (headers: Record<string, string>, accept = "*/*") =>
    ask("2001:db8:7::1", undefined, accept, headers);
  const evil = { Origin: "https://evil.example" };
  for (const [headers, accept] of [
    [evil],
    [{ "Sec-Fetch-Site": "cross-site" }],
    [{ "Sec-Fetch-Site": "same-site" }, "text/event-stream"],
    [{ ...evil, "X-API-Key": "sx_wrong" }],
  ] as const) {
    const response = await asPage(headers, accept);
    const { error } = (await response.json()) as { error: { code: string; message: string } };
    expect([response.status, error.code]).toEqual([401, "UNAUTHORIZED"]);
    if (!("X-API-Key" in headers)) expect(error.message).toContain("a page of another site");
  }
  expect(await sent()).toBe(before);
  const own = { Origin: "https://six.example", "X-Forwarded-Host": "six.example" };
  expect((await asPage({ ...evil, "X-API-Key": service.key })).status).toBe(200);
  expect((await asPage({ ...own, "Sec-Fetch-Site": "same-origin" })).status).toBe(200);
  expect(await sent()).toBe(before + 2);
});

labTest.each([
  ["2001:db8:7::1", false],
  ["2001:db8:8::1", true],
])("the page of %s asks for a key: %p", async (client, needsKey) => {
  const html = await (await ask(client, new URL("/", service.url).href, "text/html")).text();
  const [, json = ""] = /name="caller" content="([^"]*)"/.exec(html) ?? [];
  expect(JSON.parse(json.replaceAll("&quot;", '"'))).toMatchObject({ needsKey });
});

labTest("one address with all probe slots does not keep another out", async () => {
  const long = `${service.url}/mtr/::1?rounds=100&intervalMs=1000`;
  const [first, others] = [new AbortController(), new AbortController()];
  const run = ({ signal }: AbortController) =>
    ask("2001:db8:7::1", long, "text/event-stream", {}, signal);
  await (await run(first)).body?.getReader().read();
  // One run more of the same address waits for the slot, and the next is refused.
  const more = await Promise.all([run(others), run(others)]);
  expect(more.map(({ status }) => status).toSorted()).toEqual([200, 429]);
  expect((await ask("2001:db8:7::2")).status).toBe(200);
  first.abort();
  const waiting = readEvents(more.find(({ ok }) => ok) as Response);
  while ((await waiting.next()).value?.event !== "round");
  others.abort();
});
