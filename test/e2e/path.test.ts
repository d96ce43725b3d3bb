/** Loss by hop and the path MTU through the whole service, over real kernel routers. */
import { afterAll, beforeAll, expect } from "bun:test";
import { mergeRound } from "../../src/tools/mtr/report.ts";
import type { MtrRound } from "../../src/tools/mtr/result.ts";
import { readEvents, type SentEvent } from "../lab/events.ts";
import { type KernelChain, startKernelChain } from "../lab/kernel-chain.ts";
import { labMissing, programMissing, testWith } from "../lab/lab.ts";
import { nftRule } from "../lab/nft.ts";
import { type Service, startService } from "../lab/service.ts";

const ROUTERS = 4;
const missing = labMissing ?? programMissing("nft");
const labTest = testWith(missing);

let chain: KernelChain;
let service: Service;

beforeAll(async () => {
  if (missing !== null) return;
  chain = await startKernelChain({ routers: ROUTERS, limitsErrors: false });
  // Nothing answers there, so hops have no names.
  service = await startService({ SIXSCOPE_RESOLVER_A: "[::1]:9" });
});

afterAll(async () => {
  if (missing !== null) return;
  await service[Symbol.asyncDispose]();
  await chain.stop();
});

const set = (node: number, script: string) => chain.exec(node, ["nft", "-f", "-"], script);

const ask = (path: string, headers: Record<string, string> = {}) =>
  fetch(service.url + path, { headers: { "X-API-Key": service.key, ...headers } });

const get = async (path: string): Promise<unknown> => await (await ask(path)).json();

const stream = async (path: string) =>
  await Array.fromAsync(readEvents(await ask(path, { Accept: "text/event-stream" })));

labTest("/mtr counts every hop, and marks the one that rate-limits its errors", async () => {
  await set(2, nftRule("output", "icmpv6 type time-exceeded numgen inc mod 2 == 0 drop"));
  try {
    const path = `/mtr/${chain.target}?rounds=10&intervalMs=150`;
    const { hops, details } = (await get(path)) as { hops: object[]; details: object };
    expect(hops).toMatchObject(
      chain.hops.map((ip, at) => ({
        hop: at + 1,
        ip,
        hostname: null,
        sent: 10,
        cause: at === 1 ? "replies" : null,
        addresses: [{ ip, share: 100 }],
      })),
    );
    expect(hops[1]).toMatchObject({ received: 5, loss: 50 });
    expect(hops.at(-1)).toMatchObject({ received: 10, loss: 0, p95: expect.any(Number) });
    expect(details).toMatchObject({
      reached: true,
      toTarget: { sent: 10, received: 10, loss: 0 },
      paths: [{ rounds: 10, reached: true, addresses: chain.hops }],
    });
  } finally {
    await set(2, "flush ruleset");
  }
});

labTest("/mtr streams the trace and the rounds in order, which add up to the result", async () => {
  const events = await stream(`/mtr/${chain.target}?rounds=4&intervalMs=150`);
  expect(events.at(-1)?.event).toBe("result");
  const parts = events.slice(0, -1).map(({ event, data }) => {
    expect(event).toBe("round");
    return data as MtrRound;
  });
  const traced = parts.filter(({ round }) => round === 0);
  expect(traced.reduce(mergeRound).hops.map(({ ip, sent }) => [ip, sent])).toEqual(
    chain.hops.map((ip) => [ip, 0]),
  );
  const rounds = parts.slice(traced.length);
  expect(rounds.map(({ round }) => round)).toEqual([1, 2, 3, 4]);
  expect(rounds.map(({ hops }) => hops.at(-1))).toMatchObject(
    [1, 2, 3, 4].map((sent) => ({ ip: chain.target, sent, received: sent })),
  );
  expect(events.at(-1)?.data).toMatchObject({ rounds: 4, hops: parts.reduce(mergeRound).hops });
});

labTest("/mtu says who told the MTU, and streams the hops", async () => {
  await chain.setMtu(3, 1420);
  try {
    const answer = await get(`/mtu/${chain.target}`);
    expect(answer).toMatchObject({
      mtu: 1420,
      packetTooBig: { from: chain.hops[1], hop: 2, mtu: 1420 },
      lastLarge: 2,
      firstSmall: 3,
      hops: chain.hops.map((ip, at) => ({ hop: at + 1, ip, mtu: at < 2 ? 1500 : 1420 })),
      details: { verdict: { code: "narrowed" }, doubtful: [] },
    });
    const events = await stream(`/mtu/${chain.target}`);
    const { event, data: result } = events.pop() as SentEvent;
    expect(event).toBe("result");
    expect(result).toMatchObject({
      mtu: 1420,
      hops: expect.any(Array),
      details: { verdict: { code: "narrowed" } },
    });
    const hops = new Map(events.map(({ data }) => [(data as { hop: number }).hop, data]));
    const inOrder = [...hops].toSorted(([a], [b]) => a - b).map(([, hop]) => hop);
    expect(inOrder).toEqual((result as { hops: object[] }).hops);
  } finally {
    await chain.setMtu(3, 1500);
  }
});

labTest("/mtu finds a black hole, and where it is", async () => {
  await chain.setMtu(3, 1420);
  await set(2, nftRule("output", "icmpv6 type packet-too-big drop"));
  try {
    expect(await get(`/mtu/${chain.target}?names=no`)).toMatchObject({
      mtu: 1420,
      details: { verdict: { code: "black-hole" } },
      packetTooBig: null,
      lastLarge: 2,
      firstSmall: 3,
    });
  } finally {
    await set(2, "flush ruleset");
    await chain.setMtu(3, 1500);
  }
});

labTest("who goes away frees the probe slot", async () => {
  await using own = await startService({ SIXSCOPE_MAX_PROBES: "1" });
  const headers = { "X-API-Key": own.key };
  const gone = new AbortController();
  const response = await fetch(`${own.url}/mtr/::1?rounds=100&intervalMs=1000`, {
    headers: { ...headers, Accept: "text/event-stream" },
    signal: gone.signal,
  });
  expect((await fetch(`${own.url}/mtu/::1`, { headers })).status).toBe(429);
  gone.abort();
  await own.says(`id=${response.headers.get("x-request-id")} `);
  expect((await fetch(`${own.url}/mtu/::1`, { headers })).status).toBe(200);
});
