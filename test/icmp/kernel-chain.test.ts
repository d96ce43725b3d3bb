/** Ping and traceroute through real Linux routers. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { formatIpv6 } from "../../src/addr/format.ts";
import { interfaceIndex } from "../../src/icmp/socket/interfaces.ts";
import type { PingOutcome, PingRequest } from "../../src/tools/ping/engine.ts";
import type { TraceOptions, TraceOutcome, TraceRequest } from "../../src/tools/trace/engine.ts";
import { parseIpv6 } from "../addr/parse.ts";
import { type KernelChain, startKernelChain } from "../lab/kernel-chain.ts";
import { describeWith, labMissing, programMissing, testWith } from "../lab/lab.ts";
import { nftRule } from "../lab/nft.ts";
import { awaitAddress, labEnvironment, run } from "../lab/run.ts";
import { watchStalls } from "../lab/stall.ts";
import { addressesToAll, type IcmpEngine, openIcmp } from "./engines.ts";
import { withTag } from "./tag.ts";

const PING = { count: 3, intervalMs: 10, timeoutMs: 2000 };
const TRACE = { maxHops: 30, timeoutMs: 2000 };
const ROUTERS = 12;
const TARGET_NODE = ROUTERS + 1;

type PingDone = Extract<PingOutcome, { kind: "done" }>;
type TraceDone = Extract<TraceOutcome, { kind: "done" }>;

/** An nft ruleset with one rule for echo requests. */
const nftTable = (hook: Parameters<typeof nftRule>[0], rule: string) =>
  nftRule(hook, `icmpv6 type echo-request ${rule}`);

describeWith(labMissing)("through twelve kernel routers", () => {
  let chain: KernelChain;
  let engine: IcmpEngine;

  beforeAll(async () => {
    chain = await startKernelChain({ routers: ROUTERS });
    engine = openIcmp({ random: withTag(3) });
  });

  afterAll(async () => {
    await engine?.close();
    await chain?.stop();
  });

  const startPing = (target: string, request: Partial<PingRequest> = {}) =>
    engine.ping({ target: parseIpv6(target), ...PING, ...request });

  async function ping(target: string, request?: Partial<PingRequest>): Promise<PingDone> {
    const outcome = await startPing(target, request);
    if (outcome.kind !== "done") throw new Error(JSON.stringify(outcome));
    return outcome;
  }

  async function trace(
    target: string,
    request?: Partial<TraceRequest>,
    options?: TraceOptions,
  ): Promise<TraceDone> {
    const outcome = await engine.traceroute(
      { target: parseIpv6(target), ...TRACE, ...request },
      options,
    );
    if (outcome.kind !== "done") throw new Error(JSON.stringify(outcome));
    return outcome;
  }

  const addresses = ({ hops }: TraceDone) => hops.map(({ ip }) => ip);

  /** Another address of the target host. */
  const alias = (number: number) => chain.target.replace(/2$/, `a${number.toString(16)}`);

  test("a ping is answered with the hop limit that is left", async () => {
    const { results, source } = await ping(chain.target);
    expect(results.map(({ ttl }) => ttl)).toEqual(Array(3).fill(64 - ROUTERS));
    expect(formatIpv6(source)).toBe(chain.source);
  });

  test("a trace shows all 13 hops in order", async () => {
    const outcome = await trace(chain.target);
    expect(addresses(outcome)).toEqual([...chain.hops]);
    expect(outcome).toMatchObject({ reached: true, reason: "reached", error: null });
    for (const { rtt } of outcome.hops) expect(rtt).toBeGreaterThan(0);
  });

  test("a trace ends at the last hop asked for", async () => {
    const outcome = await trace(chain.target, { maxHops: 5 });
    expect(addresses(outcome)).toEqual(chain.hops.slice(0, 5));
    expect(outcome).toMatchObject({ reached: false, reason: "max-hops" });
  });

  test("40 traces at once to 40 targets behind the same rate-limited routers show every hop", async () => {
    const targets = Array.from({ length: 40 }, (_, index) => alias(index));
    const commands = targets.map((target) => `addr add ${target}/64 dev uplink nodad`).join("\n");
    const script = ["ip -batch -", ...targets.map(awaitAddress)].join(" && ");
    await chain.exec(TARGET_NODE, ["sh", "-c", script], commands);
    using stalls = watchStalls();
    const outcomes = await Promise.all(targets.map((target) => trace(target)));
    const isStalled = stalls.longestMs() > 1000;
    for (const [index, outcome] of outcomes.entries()) {
      const seen = isStalled ? addressesToAll(outcome) : addresses(outcome);
      expect(seen).toEqual([...chain.hops.slice(0, ROUTERS), targets[index] as string]);
    }
  });

  test("a busy event loop changes neither the times nor the answers", async () => {
    const BLOCKED_MS = 200;
    const busy = setInterval(() => Bun.sleepSync(BLOCKED_MS), 1);
    try {
      const { results, lost } = await ping(chain.target, { count: 10, intervalMs: 60 });
      expect(lost).toEqual([]);
      // Read by the process, they would be as late as the event loop is.
      const median = results.map(({ rtt }) => rtt).sort((a, b) => a - b)[5];
      expect(median).toBeLessThan(BLOCKED_MS / 2);
    } finally {
      clearInterval(busy);
    }
  });

  test("200 pings at once to live and dead addresses keep their answers apart", async () => {
    const dead = (index: number) => chain.target.replace(/2$/, `dead:${index.toString(16)}`);
    const outcomes = await Promise.all(
      Array.from({ length: 200 }, (_, index) =>
        ping(index % 2 === 0 ? (chain.hops[index % 12] as string) : dead(index), {
          timeoutMs: 2000,
          intervalMs: 20,
        }),
      ),
    );
    for (const [index, { results, lost }] of outcomes.entries()) {
      const answered = index % 2 === 0 ? 3 : 0;
      expect([results.length, lost.length]).toEqual([answered, 3 - answered]);
      const hopLimit = 64 - (index % 12);
      for (const sample of results) expect(sample.ttl).toBe(hopLimit);
    }
  });

  test("traces to neighbours that are not there keep no probe of others from being sent", async () => {
    const dead = (index: number) => chain.source.replace(/1$/, `dead:${index.toString(16)}`);
    const stop = new AbortController();
    const traces = Array.from({ length: 30 }, (_, index) =>
      trace(dead(index), {}, { signal: stop.signal }).catch(() => {}),
    );
    await Bun.sleep(1200);
    const { results } = await ping(chain.target);
    stop.abort();
    await Promise.all(traces);
    expect(results).toHaveLength(3);
  });

  test("a link-local target is reached over the interface of its zone", async () => {
    const shown = await chain.exec(1, [
      "ip",
      "-6",
      "-o",
      "addr",
      "show",
      "dev",
      "uplink",
      "scope",
      "link",
    ]);
    const neighbour = /inet6 (fe80::[^/]+)/.exec(shown)?.[1] as string;
    const scopeId = interfaceIndex(chain.device) ?? 0;
    expect((await ping(neighbour, { scopeId })).results).toHaveLength(3);
    expect(addresses(await trace(neighbour, { scopeId }))).toEqual([neighbour]);
    expect(await startPing(neighbour, { scopeId: 1 })).not.toMatchObject({ lost: [] });
  });

  test("an MTU of 1280 on the path changes nothing", async () => {
    await chain.exec(3, ["ip", "link", "set", "downlink", "mtu", "1280"]);
    await chain.exec(4, ["ip", "link", "set", "uplink", "mtu", "1280"]);
    expect((await ping(chain.target)).results).toHaveLength(3);
    expect(addresses(await trace(chain.target))).toEqual([...chain.hops]);
  });

  /** After the timeout of the tests below, and long before a run has listened long enough. */
  const giveUpSoon = (device: string) => [
    ...["sh", "-c", `echo 500 > /proc/sys/net/ipv6/neigh/${device}/retrans_time_ms`],
  ];

  test("this machine reports a neighbour that does not resolve, which is not a hop", async () => {
    await run(giveUpSoon(chain.device));
    const missing = chain.source.replace(/1$/, "99");
    const soon = { timeoutMs: 500 };
    const [pinged, traced] = await Promise.all([ping(missing, soon), trace(missing, soon)]);
    const from = chain.source;
    expect(pinged.lost).toEqual(
      [1, 2, 3].map((seq) => ({
        seq,
        reason: "address-unreachable",
        type: 1,
        code: 3,
        from,
        rtt: expect.any(Number),
      })),
    );
    expect(traced).toMatchObject({ reached: false, reason: "unreachable", error: { from } });
    expect(addresses(traced)).toEqual([null]);
  });

  test("a router reports a neighbour that does not resolve, which a trace awaits", async () => {
    const missing = chain.target.replace(/2$/, "99");
    const last = chain.hops[ROUTERS - 1] as string;
    await chain.exec(ROUTERS, giveUpSoon("downlink"));
    const traced = await trace(missing, { awaitsRouters: true, timeoutMs: 500 });
    expect(addresses(traced)).toEqual([...chain.hops.slice(0, ROUTERS), last]);
    const error = { name: "address-unreachable", from: last, fromTarget: false };
    expect(traced).toMatchObject({ reached: false, reason: "unreachable", error });
  });

  testWith(programMissing("ping"))(
    "the address of a link's routers is answered from another one",
    async () => {
      const anycast = (chain.hops[1] as string).replace(/2$/, "");
      const { results, lost } = await ping(anycast);
      expect(lost).toEqual([]);
      expect(results.map(({ details }) => details?.from)).toEqual(
        Array(3).fill(expect.stringMatching(/^2001:db8:/)),
      );
      const shown = await run(["ping", "-6", "-c", "2", "-i", "0.2", anycast]);
      expect(shown).toContain(" 0% packet loss");
      const traced = await trace(anycast);
      expect(traced).toMatchObject({
        reached: true,
        otherSource: results[0]?.details?.from,
      });
      expect(traced.hops).toHaveLength(1);
    },
  );

  testWith(programMissing("ping"))("another program's flood wakes nothing here", async () => {
    // Its tag is no other's here; one of 256 identifiers that `ping` chooses by itself would have the same.
    const own = openIcmp({ random: withTag(1) });
    const before = { ...own.counters };
    const flood = Bun.spawn(["ping", "-6", "-f", "-q", "-e", "512", "-c", "5000", chain.target], {
      env: labEnvironment,
      stdout: "ignore",
    });
    const outcome = await own.ping({ ...PING, target: parseIpv6(chain.target), count: 10 });
    expect(await flood.exited).toBe(0);
    expect(outcome).toMatchObject({ kind: "done", results: { length: 10 }, lost: [] });
    expect(own.counters).toEqual({ ...before, sent: 10, answered: 10 });
    await own.close();
  });

  test("all runs share one raw socket, which closes at the end", async () => {
    const sockets = () => readFileSync("/proc/net/raw6", "utf8").trim().split("\n").length - 1;
    const before = sockets();
    const second = openIcmp();
    const request = { target: parseIpv6(chain.target), ...PING };
    const running = Array.from({ length: 20 }, () => second.ping(request));
    expect(sockets()).toBe(before + 1);
    await Promise.all(running);
    expect(second.outstanding()).toBe(0);
    await second.close();
    expect(sockets()).toBe(before);
  });

  test("engines come and go without leaving a file or a thread behind", async () => {
    const count = (what: string) => readdirSync(`/proc/self/${what}`).length;
    await openIcmp().close();
    const before = { files: count("fd"), threads: count("task") };
    const ROUNDS = 20;
    for (let round = 0; round < ROUNDS; round++) await openIcmp().close();
    await Bun.sleep(100);
    // The runner itself opens and closes some.
    expect(count("fd")).toBeLessThan(before.files + ROUNDS);
    expect(count("task")).toBeLessThan(before.threads + ROUNDS);
  });

  describeWith(programMissing("nft"))("where a router rejects", () => {
    const REJECTING = 4;

    const nft = (script: string) => chain.exec(REJECTING, ["nft", "-f", "-"], script);

    beforeAll(async () => {
      const unlimited = "echo 0 > /proc/sys/net/ipv6/icmp/ratelimit";
      await chain.exec(REJECTING, ["sh", "-c", unlimited]);
    });

    test("nothing, but the target limits its replies: traces show it at its distance", async () => {
      const limit = nftTable("input", "limit rate over 2/second burst 1 packets drop");
      await chain.exec(TARGET_NODE, ["nft", "-f", "-"], limit);
      try {
        for (let round = 0; round < 5; round++) {
          using stalls = watchStalls();
          const shown = addresses(await trace(chain.target));
          // A trace that has no turn for long gives the target's own distance up.
          const isStalled = stalls.longestMs() > 1000;
          expect(isStalled ? shown.filter(Boolean) : shown).toEqual([...chain.hops]);
        }
      } finally {
        await chain.exec(TARGET_NODE, ["nft", "delete table ip6 lab"]);
      }
    });

    test.each([
      ["no-route", 0, "unreachable", "no-route"],
      ["admin-prohibited", 1, "prohibited", "prohibited"],
      ["addr-unreachable", 3, "unreachable", "address-unreachable"],
      ["port-unreachable", 4, "unreachable", "port-unreachable"],
      ["policy-fail", 5, "prohibited", "source-policy"],
      ["reject-route", 6, "prohibited", "reject-route"],
    ])("with %s", async (rejection, code, reason, name) => {
      await nft(nftTable("forward", `reject with icmpv6 ${rejection}`));
      try {
        const from = chain.hops[REJECTING - 1] as string;
        const { lost } = await ping(chain.target, { count: 2 });
        const error = { type: 1, code, from };
        const sample = { reason: name, ...error, rtt: expect.any(Number) };
        expect(lost).toEqual([
          { seq: 1, ...sample },
          { seq: 2, ...sample },
        ]);
        const outcome = await trace(chain.target);
        expect(outcome).toMatchObject({ reached: false, reason, error: { ...error, name } });
        // Linux looks at the hop limit before it looks at its rules: the router answers as hop 4, and rejects at 5.
        const hops = chain.hops.slice(0, REJECTING);
        expect(addresses(outcome)).toEqual([...hops, hops.at(-1) as string]);
      } finally {
        await nft("delete table ip6 lab");
      }
    });

    test("nothing, but drops", async () => {
      await nft(nftTable("forward", "drop"));
      try {
        const { lost } = await ping(chain.target, { count: 2, timeoutMs: 200 });
        expect(lost.map(({ reason }) => reason)).toEqual(["timeout", "timeout"]);
        const outcome = await trace(chain.target);
        expect(outcome).toMatchObject({ reached: false, reason: "gap-limit", error: null });
        expect(addresses(outcome).slice(0, REJECTING)).toEqual(chain.hops.slice(0, REJECTING));
      } finally {
        await nft("delete table ip6 lab");
      }
    });
  });

  describeWith(programMissing("nft"))("where this machine refuses to send", () => {
    test.each([
      ["unreachable", "EHOSTUNREACH"],
      ["prohibit", "EACCES"],
      ["blackhole", "EINVAL"],
    ])("by a route of type %s", async (type, code) => {
      await run(["ip", "-6", "route", "add", type, "2001:db8:dead::/48"]);
      try {
        const target = "2001:db8:dead::1";
        expect(await startPing(target)).toEqual({ kind: "unreachable", code });
        const request = { target: parseIpv6(target), ...TRACE };
        expect(await engine.traceroute(request)).toEqual({ kind: "unreachable", code });
      } finally {
        await run(["ip", "-6", "route", "del", type, "2001:db8:dead::/48"]);
      }
    });

    test("by a firewall, each probe for itself", async () => {
      const nft = (script: string) => run(["nft", "-f", "-"], script);
      await nft(nftTable("output", "drop"));
      expect(await startPing(chain.target)).toEqual({ kind: "unreachable", code: "EPERM" });
      await nft("delete table ip6 lab");
      await nft(nftTable("output", "ip6 hoplimit 2 drop"));
      const outcome = await trace(chain.target);
      await nft("delete table ip6 lab");
      expect(addresses(outcome)).toEqual([...chain.hops].map((hop, at) => (at === 1 ? null : hop)));
    });
  });
});
