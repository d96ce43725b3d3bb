/** Ping and traceroute through the whole service, over real kernel routers. */
import { afterAll, beforeAll, expect } from "bun:test";
import { type KnotServer, startKnot } from "../lab/dns-server.ts";
import { readEvents } from "../lab/events.ts";
import { type KernelChain, startKernelChain } from "../lab/kernel-chain.ts";
import { labMissing, programMissing, testWith } from "../lab/lab.ts";
import { type Service, startService } from "../lab/service.ts";

const ROUTERS = 12;

const missing = labMissing ?? programMissing("knotd");
const labTest = testWith(missing);

let chain: KernelChain;
let knot: KnotServer;
let service: Service;

beforeAll(async () => {
  if (missing !== null) return;
  chain = await startKernelChain({ routers: ROUTERS, limitsErrors: false });
  knot = await startKnot({ zones: zonesOf(chain), address: "::1" });
  service = await startService({ SIXSCOPE_RESOLVER_A: `[::1]:${knot.endpoint.port}` });
});

afterAll(async () => {
  if (missing !== null) return;
  await service[Symbol.asyncDispose]();
  await knot.stop();
  await chain.stop();
});

/** Names for the target and the first router, in both directions; the other routers have none. */
function zonesOf({ target, hops }: KernelChain): Record<string, string> {
  const start =
    "$TTL 60\n@ SOA ns.example.test. hostmaster.example.test. 1 60 60 60 60\n@ NS ns.example.test.\n";
  return {
    "example.test.": `${start}ns AAAA ::1\ntarget AAAA ${target}\nwww CNAME target\n`,
    "8.b.d.0.1.0.0.2.ip6.arpa.": `${start}${reverse(target)} PTR target.example.test.\n${reverse(hops[0] ?? "")} PTR first-router.example.test.\n`,
  };
}

function reverse(address: string): string {
  const groups = address.split(":");
  const missingGroups = 8 - groups.filter((group) => group !== "").length;
  const expanded = groups.flatMap((group) =>
    group === "" ? Array<string>(missingGroups).fill("0000") : group.padStart(4, "0"),
  );
  return `${[...expanded.join("")].reverse().join(".")}.ip6.arpa.`;
}

async function get(path: string): Promise<unknown> {
  const response = await fetch(service.url + path, { headers: { "X-API-Key": service.key } });
  return await response.json();
}

labTest("a trace to a target behind 12 routers shows all 13 hops in order", async () => {
  expect(await get(`/traceroute/${chain.target}`)).toEqual({
    target: chain.target,
    ip: chain.target,
    hops: chain.hops.map((ip, index) => ({
      hop: index + 1,
      ip,
      hostname:
        index === 0
          ? "first-router.example.test"
          : index === ROUTERS
            ? "target.example.test"
            : null,
      rtt: expect.any(Number),
      details: { replyHopLimit: 64 - index },
    })),
    details: expect.objectContaining({ reached: true, reason: "reached" }),
  });
});

labTest("a stream reports a hop again when its name has come", async () => {
  const response = await fetch(`${service.url}/traceroute/${chain.target}`, {
    headers: { "X-API-Key": service.key, Accept: "text/event-stream" },
  });
  const events = await Array.fromAsync(readEvents(response));
  const result = events.pop()?.data as { hops: { hop: number; hostname: string | null }[] };
  const hops = events.map(({ data }) => data as (typeof result.hops)[number]);
  expect(result.hops.map(({ hop }) => hops.findLast((row) => row.hop === hop))).toEqual(
    result.hops,
  );
  const named = hops.filter(({ hostname }) => hostname !== null).map(({ hop }) => hop);
  expect(named.toSorted((a, b) => a - b)).toEqual([1, ROUTERS + 1]);
  expect(hops.filter(({ hop }) => hop === 1).map(({ hostname }) => hostname)).toEqual([
    null,
    "first-router.example.test",
  ]);
});

labTest("our own client resolves a name and follows its CNAME chain", async () => {
  expect(await get("/traceroute/www.example.test")).toMatchObject({
    target: "www.example.test",
    ip: chain.target,
    hops: { length: ROUTERS + 1 },
  });
  expect(await get("/ping/www.example.test?count=1")).toMatchObject({
    target: "www.example.test",
    ip: chain.target,
    results: [{ seq: 1, ttl: 64 - ROUTERS, rtt: expect.any(Number) }],
    stats: { transmitted: 1, received: 1, loss: 0 },
  });
});

labTest("a trace ends at maxHops, with that reason", async () => {
  expect(await get(`/traceroute/${chain.target}?maxHops=3`)).toMatchObject({
    hops: chain.hops.slice(0, 3).map((ip) => ({ ip })),
    details: { reached: false, reason: "max-hops" },
  });
});

labTest("a link-local target is probed on the interface that its zone names", async () => {
  const shown = await chain.exec(1, ["ip", "-6", "-o", "addr", "show", "uplink", "scope", "link"]);
  const [, router = ""] = /inet6 (\S+)\//.exec(shown) ?? [];
  expect(await get(`/ping/${router}%25${chain.device}?count=1`)).toMatchObject({
    target: `${router}%${chain.device}`,
    ip: router,
    results: [{ seq: 1, ttl: 64 }],
  });
  expect(await get(`/traceroute/${router}%25${chain.device}`)).toMatchObject({
    ip: router,
    hops: [{ hop: 1, ip: router }],
  });
});

labTest("four pings at the default interval are answered at once after the last", async () => {
  const body = (await get(`/ping/${chain.target}`)) as { results: unknown[] };
  expect(body).toMatchObject({
    results: [1, 2, 3, 4].map((seq) => ({ seq, ttl: 64 - ROUTERS })),
    stats: { transmitted: 4, received: 4, loss: 0 },
    details: { lost: [], duplicates: 0, late: 0 },
  });
});

testWith(labMissing)(
  "a silent resolver holds up neither traces nor the only probe slot",
  async () => {
    const silent = await Bun.udpSocket({ hostname: "127.0.0.1" });
    await using own = await startService({
      SIXSCOPE_RESOLVER_A: `127.0.0.1:${silent.port}`,
      SIXSCOPE_MAX_PROBES: "1",
    });
    const headers = { "X-API-Key": own.key };
    const named = fetch(`${own.url}/ping/www.example.test`, { headers });
    const traced = await fetch(`${own.url}/traceroute/::1`, { headers });
    expect(await traced.json()).toMatchObject({ hops: [{ ip: "::1", hostname: null }] });
    expect(await (await named).json()).toMatchObject({ error: { code: "RESOLVER_TIMEOUT" } });
    await own.says("route=/api/v1/ping/");
    expect(own.stderr().match(/(?<= msg=request .*route=\/api\/v1\/)\w+/g)).toEqual([
      "traceroute",
      "ping",
    ]);
    silent.close();
  },
);
