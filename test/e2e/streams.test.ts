/** Pings and traces as server-sent events, over a simulated internet. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { readEvents, type SentEvent } from "../lab/events.ts";
import { startInternet } from "../lab/internet.ts";
import type { Destination, Host, Router } from "../lab/internet-description.ts";
import { programMissing, testWith, tunMissing } from "../lab/lab.ts";
import { nftRule } from "../lab/nft.ts";
import { run } from "../lab/run.ts";
import { type Service, startService } from "../lab/service.ts";

const tunTest = testWith(tunMissing);

/** The parts of a document that are compared with those of its events. */
interface Parts {
  readonly hops?: readonly object[];
  readonly results?: readonly object[];
  readonly details: { readonly lost?: readonly object[]; readonly flowLabel?: number };
}

let service: Service;

beforeAll(async () => {
  if (tunMissing === null) service = await startService();
});

afterAll(async () => {
  if (tunMissing === null) await service[Symbol.asyncDispose]();
});

function ask(path: string, init: RequestInit = {}, { url, key }: Service = service) {
  return fetch(url + path, {
    ...init,
    headers: { "X-API-Key": key, Accept: "text/event-stream" },
  });
}

async function stream(path: string): Promise<SentEvent[]> {
  const response = await ask(path);
  expect(response.headers.get("content-type")).toBe("text/event-stream");
  return await Array.fromAsync(readEvents(response));
}

async function plain(path: string): Promise<Parts> {
  const response = await fetch(service.url + path, { headers: { "X-API-Key": service.key } });
  return undated((await response.json()) as Parts);
}

/** A document without its date, which differs between two calls. */
function undated<T extends object>(document: T): T {
  Object.assign(document, JSON.parse(JSON.stringify(document).replace(/"startedAt":"[^"]*",/, "")));
  return document;
}

/** The lists that a client holds at the end, by replacing what has the same number; and the result. */
function fold(events: readonly SentEvent[]) {
  const result = events.at(-1);
  expect(result?.event).toBe("result");
  undated(result?.data as object);
  const parts = new Map<number, { seq?: number; hop?: number; reason?: string }>();
  for (const { event, data } of events.slice(0, -1)) {
    if (event === "waiting") continue;
    expect(["hop", "sample"]).toContain(event);
    const part = data as { seq?: number; hop?: number };
    parts.set(part.seq ?? part.hop ?? 0, part);
  }
  const inOrder = [...parts].toSorted(([a], [b]) => a - b).map(([, part]) => part);
  return { inOrder, result: result?.data as Parts };
}

const router = (hop: number, more: Partial<Router> = {}, path = 0): Router => ({
  address: `2001:db8:${path + 1}::${hop.toString(16)}`,
  rttMs: (100 * hop) / 29,
  ...more,
});

/** 29 routers and the target behind them, as far as from one continent to another. */
const path = (special: (hop: number) => Partial<Router> = () => ({}), end: Host = {}) => ({
  routers: Array.from({ length: 29 }, (_, index) => router(index + 1, special(index + 1))),
  end: { rttMs: 100, ...end },
});

const ONE_IN_FOUR = 0.25;

/** A target for each kind of path. */
const TARGETS: readonly Destination[] = [
  { to: "2001:db8:ff::1", ...path() },
  {
    to: "2001:db8:ff::2",
    // The target seems to be farther away until it replies to the probe that it missed.
    ...path(() => ({ loss: ONE_IN_FOUR, forwardLoss: 0.02 }), { loss: [1] }),
  },
  { to: "2001:db8:ff::3", ...path((hop) => ({ silent: [5, 6, 28, 29].includes(hop) })) },
  { to: "2001:db8:ff::4", ...path((hop) => (hop === 7 ? { error: { type: 1, code: 0 } } : {})) },
  { to: "2001:db8:ff::5", ...path(), end: "blackhole" },
  {
    to: "2001:db8:ff:1::/64",
    equalPaths: Array.from({ length: 8 }, (_, number) => ({
      routers: Array.from({ length: 12 }, (_, hop) =>
        router(hop + 1, { silent: hop === number }, number + 16),
      ),
    })),
  },
];

// biome-ignore format: a table
const PATHS: [kind: string, target: string][] = [
  ["whole", "2001:db8:ff::1"],
  ["lossy", "2001:db8:ff::2"],
  ["silent", "2001:db8:ff::3"],
  ["unreachable", "2001:db8:ff::4"],
  ["that ends in nothing", "2001:db8:ff::5"],
  ["of equal paths", "2001:db8:ff:1::7"],
];

describe("over a simulated internet", () => {
  tunTest(
    "the hops of a trace of 30 come as they answer, and at the end the silent one",
    async () => {
      await using _ = await startInternet({ destinations: TARGETS });
      const events = await stream("/traceroute/2001:db8:ff::3");
      const order = events.map(({ event, data }) =>
        event === "hop" ? (data as { hop: number }).hop : event,
      );
      expect(order[0]).toBe(1);
      expect(order.indexOf(20)).toBeLessThan(order.indexOf(5));
      expect(order.at(-1)).toBe("result");
    },
  );

  tunTest("the hops come long before the trace ends", async () => {
    const to = "2001:db8:ff::6";
    await using _ = await startInternet({
      destinations: [{ to, ...path(), end: { silent: true } }],
    });
    // The trace would wait 10 s for its target.
    await using own = await startService({ SIXSCOPE_PROBE_TIMEOUT_MS: "10000" });
    const gone = new AbortController();
    const response = await ask(`/traceroute/${to}`, { signal: gone.signal }, own);
    const hops = new Set<number>();
    const events = readEvents(response);
    while (hops.size < 29) {
      const { event, data } = (await events.next()).value;
      expect(event).toBe("hop");
      hops.add(data.hop);
    }
    gone.abort();
    const id = response.headers.get("x-request-id");
    await own.says(`id=${id} `);
    expect(own.stderr()).toMatch(new RegExp(`id=${id} .* status=499 `));
  });

  tunTest.each(PATHS)("a trace of a path that is %s: events, result, answer", async (_, target) => {
    await using _internet = await startInternet({ destinations: TARGETS });
    const events = await stream(`/traceroute/${target}?maxHops=40`);
    const { inOrder, result } = fold(events);
    expect(inOrder).toEqual(result.hops as object[]);
  });

  tunTest.each([
    ["answered", {}],
    ["lossy", { loss: [2, 6] }],
    ["silent", { silent: true }],
    ["unreachable", { error: { type: 1, code: 4 } }],
  ] as const)("a ping of a target that is %s: events, result, answer", async (_, end: Host) => {
    const destinations = [{ to: "2001:db8:ff::1", end: { rttMs: 20, ...end } }];
    await using _internet = await startInternet({ destinations });
    const events = await stream("/ping/2001:db8:ff::1?count=4");
    const { inOrder, result } = fold(events);
    expect(events).toHaveLength(5);
    expect(inOrder.filter(({ reason }) => reason === undefined)).toEqual(
      result.results as object[],
    );
    expect(inOrder.filter(({ reason }) => reason)).toEqual(result.details.lost as object[]);
    const times = /"(rtt|min|avg|max)":[\d.]+/g;
    const timeless = (parts: Parts) => JSON.stringify(parts).replace(times, '"$1":0');
    expect(timeless(await plain("/ping/2001:db8:ff::1?count=4"))).toBe(timeless(result));
  });

  tunTest("64 streams at once keep apart", async () => {
    await using _ = await startInternet({ destinations: TARGETS });
    const paths = Array.from({ length: 64 }, (_, number) =>
      number % 2 === 0
        ? `/ping/2001:db8:ff::${(number % 5) + 1}?count=3`
        : `/traceroute/2001:db8:ff:1::${number.toString(16)}`,
    );
    const streams = await Promise.all(paths.map(stream));
    for (const [index, events] of streams.entries()) {
      const { inOrder, result } = fold(events);
      const parts = result.hops ?? [...(result.results ?? []), ...(result.details.lost ?? [])];
      expect(inOrder).toHaveLength(parts.length);
      for (const part of inOrder) expect(parts).toContainEqual(part);
      expect(paths[index]).toContain((result as unknown as { target: string }).target);
    }
  });
});

describe("over loopback", () => {
  tunTest("a client that goes away frees the probe slot at once", async () => {
    await using own = await startService({
      SIXSCOPE_MAX_PROBES: "1",
      SIXSCOPE_PING_INTERVAL_MS: "10000",
    });
    const gone = new AbortController();
    const response = await ask("/ping/::1?count=10", { signal: gone.signal }, own);
    const events = readEvents(response);
    expect((await events.next()).value).toMatchObject({ event: "sample", data: { seq: 1 } });
    const id = response.headers.get("x-request-id");
    expect((await ask("/ping/::1?count=1", {}, own)).status).toBe(429);
    gone.abort();
    await events.next().catch(() => {});
    // The ping itself would have run for 90 s.
    await own.says(`id=${id} `);
    expect(own.stderr()).toMatch(new RegExp(`id=${id} .* status=499 `));
    expect((await ask("/ping/::1?count=1", {}, own)).status).toBe(200);
  });

  tunTest("a service that stops lets a stream end first", async () => {
    await using own = await startService();
    const events = readEvents(await ask("/ping/::1?count=5", {}, own));
    const seen = [(await events.next()).value];
    own.signal("SIGTERM");
    seen.push(...(await Array.fromAsync(events)));
    expect(fold(seen).result.results).toHaveLength(5);
    expect(await own.exited).toBe(0);
  });

  tunTest("HEAD has the headers of the document and no body", async () => {
    const head = await ask("/ping/::1?count=1", { method: "HEAD" });
    expect([head.status, await head.text()]).toEqual([200, ""]);
    expect(head.headers.get("content-type")).toBe("application/json");
    expect((await ask("/ping/::g", { method: "HEAD" })).status).toBe(400);
  });

  tunTest.each([
    ["/ping/::g", 400, "INVALID_ADDRESS"],
    ["/ping/::1?count=0", 400, "INVALID_PARAMETER"],
    ["/ping/ff02::1", 400, "TARGET_NOT_ALLOWED"],
    ["/traceroute/2001:db8:dead::1", 500, "NETWORK_UNREACHABLE"],
  ])("what fails before the first event is JSON: %s", async (path, status, code) => {
    const response = await ask(path);
    expect(response.status).toBe(status);
    expect(response.headers.get("content-type")).toBe("application/json");
    expect(await response.json()).toMatchObject({ error: { code } });
  });

  testWith(tunMissing, programMissing("nft"))("what fails later is the last event", async () => {
    await run(["nft", "-f", "-"], nftRule("output", "ip6 daddr ::1 icmpv6 type echo-request drop"));
    const events = await stream("/ping/::1?count=2").finally(() => run(["nft", "flush ruleset"]));
    expect(events).toEqual([
      { event: "sample", data: { seq: 1, reason: "not-sent", errno: "EPERM" } },
      { event: "sample", data: { seq: 2, reason: "not-sent", errno: "EPERM" } },
      { event: "error", data: { error: expect.objectContaining({ code: "NETWORK_UNREACHABLE" }) } },
    ]);
    await service.says("route=/api/v1/ping/:target status=500 ");
  });

  tunTest("a stream has the rate limit's headers, and counts as one request", async () => {
    // Its window has just begun.
    await using own = await startService();
    const remaining = async () =>
      Number((await ask("/ping/::1?count=1", {}, own)).headers.get("x-ratelimit-remaining"));
    expect((await remaining()) - (await remaining())).toBe(1);
  });

  tunTest("an endpoint without events answers with JSON", async () => {
    expect(await (await ask("/myip")).json()).toMatchObject({ version: 4 });
  });
});
