/** Ping and traceroute over a simulated internet: delay, loss, forgeries, equal paths. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { formatIpv6 } from "../../src/addr/format.ts";
import type { Prober } from "../../src/icmp/prober/prober.ts";
import type { PingOutcome, PingRequest } from "../../src/tools/ping/engine.ts";
import type { TraceOutcome, TraceRequest } from "../../src/tools/trace/engine.ts";
import { parseIpv6 } from "../addr/parse.ts";
import { addressBytes } from "../lab/address.ts";
import { startInternet } from "../lab/internet.ts";
import {
  type AnswerRule,
  LINUX_RATE_LIMIT,
  type Path,
  type Router,
} from "../lab/internet-description.ts";
import { describeWith, tunMissing } from "../lab/lab.ts";
import {
  ECHO_REQUEST,
  formatEcho,
  formatError,
  formatIcmp,
  formatPacket,
  NEXT_HEADER_ICMPV6,
  TIME_EXCEEDED,
} from "../lab/packet.ts";
import type { Probe } from "../lab/probe-log.ts";
import { run } from "../lab/run.ts";
import { addressesToAll, type IcmpEngine, openIcmp } from "./engines.ts";

const TARGET = "2001:db8:2::7";

type PingDone = Extract<PingOutcome, { kind: "done" }>;
type TraceDone = Extract<TraceOutcome, { kind: "done" }>;

const routerAddress = (hop: number, site = 1) => `2001:db8:${site}::${hop.toString(16)}`;

/** Routers whose times rise to that of the last. */
function routers(count: number, rttMs: number, special: Record<number, Partial<Router>> = {}) {
  return Array.from({ length: count }, (_, index): Router => {
    const hop = index + 1;
    return { address: routerAddress(hop), rttMs: (rttMs * hop) / count, ...special[hop] };
  });
}

const hopsTo = (count: number, silent: readonly number[] = []) =>
  Array.from({ length: count }, (_, index) =>
    silent.includes(index + 1) ? null : routerAddress(index + 1),
  );

describeWith(tunMissing)("over a simulated internet", () => {
  let engine: IcmpEngine;

  beforeAll(() => {
    engine = openIcmp();
  });

  afterAll(() => engine?.close());

  async function ping(request: Partial<PingRequest> = {}, target = TARGET): Promise<PingDone> {
    const defaults = { count: 4, intervalMs: 20, timeoutMs: 5000 };
    const outcome = await engine.ping({ target: parseIpv6(target), ...defaults, ...request });
    if (outcome.kind !== "done") throw new Error(JSON.stringify(outcome));
    return outcome;
  }

  async function trace(request: Partial<TraceRequest> = {}, target = TARGET): Promise<TraceDone> {
    // Long enough that no hop is asked twice because a busy machine reads its answer late.
    const defaults = { maxHops: 64, timeoutMs: 20_000 };
    const outcome = await engine.traceroute({ target: parseIpv6(target), ...defaults, ...request });
    if (outcome.kind !== "done") throw new Error(JSON.stringify(outcome));
    return outcome;
  }

  const addresses = ({ hops }: TraceDone) => hops.map(({ ip }) => ip);

  const internet = (path: Path, to = TARGET) => startInternet({ destinations: [{ to, ...path }] });

  /** The engine's counters that changed while `run` ran. */
  async function counting(run: () => Promise<unknown>): Promise<Partial<Prober["counters"]>> {
    const before = { ...engine.counters };
    await run();
    const names = Object.keys(before) as (keyof Prober["counters"])[];
    const changes = names.map((name) => [name, engine.counters[name] - before[name]] as const);
    return Object.fromEntries(changes.filter(([, change]) => change !== 0));
  }

  test.each([
    ["no silent hop", 0.1, []],
    ["no silent hop, far away", 100, []],
    ["five silent ones", 0.1, [6, 7, 8, 9, 10]],
    ["five silent ones, far away", 100, [3, 9, 10, 20, 29]],
  ] as const)("30 hops with %s", async (_name, rttMs, silent) => {
    const special = Object.fromEntries(silent.map((hop) => [hop, { silent: true }]));
    await using _ = await internet({ routers: routers(29, rttMs, special), end: { rttMs } });
    const outcome = await trace();
    expect(addresses(outcome)).toEqual([...hopsTo(29, silent), TARGET]);
    for (const { hop, rtt: measured } of outcome.hops) {
      if (measured !== null)
        expect(measured).toBeGreaterThanOrEqual((rttMs * Math.min(hop, 29)) / 29);
    }
  });

  test("a blackhole ends a trace at the gap limit", async () => {
    await using _ = await internet({ routers: routers(3, 10), end: "blackhole" });
    const outcome = await trace({ timeoutMs: 4000 });
    expect(outcome).toMatchObject({ reached: false, reason: "gap-limit", error: null });
    expect(addresses(outcome)).toEqual([...hopsTo(3), ...Array(8).fill(null)]);
  });

  test("a loop of two routers is one", async () => {
    await using _ = await internet({ routers: routers(4, 4), end: { loopOf: 2 } });
    const outcome = await trace({ maxHops: 9 });
    const addressesIn = [3, 4].map((hop) => routerAddress(hop));
    const found = { from: 3, to: 4, addresses: addressesIn };
    expect(outcome).toMatchObject({ reached: false, reason: "loop", loop: found });
    const loop = [3, 4, 3, 4, 3, 4, 3].map((hop) => routerAddress(hop));
    expect(addresses(outcome)).toEqual([...hopsTo(2), ...loop]);
  });

  test.each(["flowLabel", "checksum"] as const)(
    "one trace takes one of eight equal paths chosen by %s",
    async (balanceBy) => {
      const equalPaths = Array.from({ length: 8 }, (_, path) => ({
        routers: Array.from({ length: 10 }, (_, hop) => ({
          address: routerAddress(hop + 1, path + 16),
        })),
      }));
      await using _ = await startInternet({
        destinations: [{ to: "2001:db8:2::/64", equalPaths, balanceBy }],
      });
      const taken = new Set<string>();
      for (let round = 0; round < 12; round++) {
        const target = `2001:db8:2::${round + 16}`;
        const hops = addresses(await trace({}, target)).slice(0, 10);
        const site = hops[0]?.split(":")[2] ?? "";
        expect(hops).toEqual(
          Array.from({ length: 10 }, (_, hop) => `2001:db8:${site}::${(hop + 1).toString(16)}`),
        );
        taken.add(site);
      }
      expect(taken.size).toBeGreaterThan(1);
    },
  );

  test.each(["flowLabel", "checksum"] as const)(
    "four equal paths chosen by %s are all found",
    async (balanceBy) => {
      const equalPaths = [1, 2, 3, 4].map((path) => ({
        routers: [{ address: routerAddress(1) }, { address: routerAddress(2, path + 16) }],
      }));
      await using _ = await startInternet({
        destinations: [{ to: TARGET, equalPaths, balanceBy }],
      });
      const found = new Set<string>();
      // A search misses a path by chance, one in twenty times at most.
      for (let searches = 0; searches < 10 && found.size < 4; searches++) {
        const request = { target: parseIpv6(TARGET), maxHops: 30, timeoutMs: 20_000, paths: 16 };
        const outcome = await engine.paths(request);
        if (outcome.kind !== "done") throw new Error(outcome.kind);
        for (const path of outcome.paths) found.add(`${path.addresses}`);
      }
      expect([...found].toSorted()).toEqual(
        [1, 2, 3, 4]
          .map((path) => `${[routerAddress(1), routerAddress(2, path + 16), TARGET]}`)
          .toSorted(),
      );
    },
  );

  test("what goes out has the flow label and source that are reported, one checksum, and its hop limit", async () => {
    const net = await internet({ routers: routers(5, 5), end: { rttMs: 5 } });
    const { flowLabel, source } = await trace();
    const probes = await net.stop();
    expect(new Set(probes.map((probe) => probe.flowLabel))).toEqual(new Set([flowLabel]));
    expect(new Set(probes.map((probe) => probe.source))).toEqual(new Set([formatIpv6(source)]));
    expect(new Set(probes.map((probe) => probe.checksum)).size).toBe(1);
    expect(probes.every((probe) => probe.checksumIsRight)).toBe(true);
    const hopLimits = probes.map((probe) => probe.hopLimit).slice(0, 6);
    expect(hopLimits.toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6]);
  });

  test("a ping keeps its source when the machine gets a better one", async () => {
    const net = await internet({ end: { rttMs: 1 } });
    const pending = ping({ count: 8, intervalMs: 50 });
    await run(["ip", "addr", "add", "2001:db8::99/128", "dev", net.device, "nodad"]);
    const route = ["ip", "-6", "route", "replace", TARGET, "dev", net.device];
    await run([...route, "src", "2001:db8::99"]);
    const { results, source } = await pending;
    const probes = await net.stop();
    expect(results).toHaveLength(8);
    expect(new Set(probes.map((probe) => probe.source))).toEqual(new Set([formatIpv6(source)]));
    expect(formatIpv6(source)).toBe(net.source);
  });

  test("a quarter of all packets lost costs a ping its share, and a trace nothing", async () => {
    const lossy = routers(10, 5).map((router) => ({ ...router, loss: [1] }));
    await using _ = await internet({ routers: lossy, end: { rttMs: 5, loss: [2, 6, 10, 14, 18] } });
    const { results, lost } = await ping({ count: 20, intervalMs: 5, timeoutMs: 2000 });
    expect(results).toHaveLength(15);
    expect(lost).toEqual([2, 6, 10, 14, 18].map((seq) => ({ seq, reason: "timeout" })));
    expect(addresses(await trace())).toEqual([...hopsTo(10), TARGET]);
  });

  test("replies that overtake each other find their samples", async () => {
    const rules = [1, 2, 3].map((probe) => ({ probes: [probe], afterMs: 200 - 50 * probe }));
    await using _ = await internet({ end: { rttMs: 10, rules } });
    const { results } = await ping();
    const least = [160, 110, 60, 10];
    expect(results.map(({ seq }) => seq)).toEqual([1, 2, 3, 4]);
    for (const [index, { rtt }] of results.entries()) {
      expect(rtt).toBeGreaterThanOrEqual(least[index] as number);
    }
  });

  test("duplicates and late replies are counted", async () => {
    const rules: AnswerRule[] = [
      { probes: [1], beside: true, copies: 2, afterMs: 2 },
      { probes: [2], afterMs: 1800 },
    ];
    await using _ = await internet({ end: { rttMs: 1, rules } });
    const outcome = await ping({ count: 6, timeoutMs: 1500, intervalMs: 500 });
    expect(outcome.results.map(({ seq }) => seq)).toEqual([1, 3, 4, 5, 6]);
    expect(outcome).toMatchObject({
      lost: [{ seq: 2, reason: "timeout", rtt: expect.any(Number) }],
      duplicates: 2,
    });
  });

  test.each([
    ["with another cookie", "cookie", { forged: 4 }],
    ["with another sequence", "sequence", { unknown: 4 }],
    ["with another identifier, which the kernel keeps away", "identifier", {}],
    ["with a wrong checksum, which the kernel keeps away", "checksum", { dropped: 4 }],
    ["without a cookie", { cutTo: 8 }, { forged: 4 }],
  ] as const)("forged replies %s answer nothing", async (_name, change, expected) => {
    await using _ = await internet({ end: { rules: [{ change }] } });
    let outcome: PingDone | undefined;
    const counted = await counting(async () => {
      outcome = await ping({ timeoutMs: 1000 });
    });
    expect(outcome?.results).toEqual([]);
    expect(counted).toEqual({ sent: 4, ...expected });
  });

  test("replies from another address are replies, and reported", async () => {
    await using _ = await internet({ end: { rules: [{ change: "source" }] } });
    const { results, lost } = await ping();
    expect(lost).toEqual([]);
    for (const { details } of results) expect(details?.from).toBe("2001:db8:2::f8");
  });

  test("a living target behind 22 silent hops is found", async () => {
    const silent = Array.from({ length: 22 }, (_, index) => index + 3);
    const special = Object.fromEntries(silent.map((hop) => [hop, { silent: true }]));
    await using _ = await internet({ routers: routers(24, 5, special), end: { rttMs: 5 } });
    const outcome = await trace({ maxHops: 30, timeoutMs: 5000 });
    expect(addresses(outcome)).toEqual([...hopsTo(24, silent), TARGET]);
    expect(outcome.reached).toBe(true);
  });

  test("a hop with a link-local address keeps its interface", async () => {
    const special = { 2: { address: "fe80::77" } };
    const net = await internet({ routers: routers(3, 3, special), end: { rttMs: 3 } });
    await using _ = net;
    const { hops } = await trace();
    expect(hops.map((hop) => hop.details?.zone)).toEqual([
      undefined,
      net.device,
      undefined,
      undefined,
    ]);
    expect(hops[1]?.ip).toBe("fe80::77");
  });

  test("a forged reply before the true one does not disturb it", async () => {
    const rules: AnswerRule[] = [{ beside: true, change: "cookie", afterMs: -15 }];
    await using _ = await internet({ end: { rttMs: 20, rules } });
    const { results, duplicates } = await ping();
    expect([results.length, duplicates]).toEqual([4, 0]);
    for (const { rtt } of results) expect(rtt).toBeGreaterThanOrEqual(20);
  });

  test.each([
    ["that quotes a foreign destination", { change: "destination" }, null, "forged"],
    ["that quotes another cookie", { change: "cookie" }, null, "forged"],
    ["of garbage", { change: "garbage" }, null, null],
    ["cut behind its header", { change: { cutTo: 8 } }, null, null],
  ] as const)("a Time Exceeded %s is not a hop", async (_name, rule, address, counter) => {
    const special = { 2: { rules: [rule] } };
    await using _ = await internet({ routers: routers(3, 3, special), end: { rttMs: 3 } });
    let outcome: TraceDone | undefined;
    const counted = await counting(async () => {
      outcome = await trace();
    });
    expect(outcome && addresses(outcome)).toEqual([
      routerAddress(1),
      address,
      routerAddress(3),
      TARGET,
    ]);
    if (counter !== null) expect(counted[counter]).toBeGreaterThan(0);
  });

  test("a Time Exceeded that quotes 40 + 8 bytes only is a hop, and counted", async () => {
    const special = { 2: { quotationBytes: 48 } };
    await using _ = await internet({ routers: routers(3, 3, special), end: { rttMs: 3 } });
    const counted = await counting(async () => {
      expect(addresses(await trace())).toEqual([...hopsTo(3), TARGET]);
    });
    expect(counted.withoutCookie).toBe(1);
  });

  test.each([
    ["who knows all but the flow label is not believed", 1, false],
    ["who knows the flow label too is believed: the attack works", 0, true],
  ])("an attacker off the path %s", async (_name, mistake, believed) => {
    const net = await internet({ end: "blackhole" });
    await using _ = net;
    // Without earlier probes, which may have had the same identifier.
    const own = openIcmp();
    const { counters } = own;
    const caller = new AbortController();
    const pending = own.ping(
      { target: parseIpv6(TARGET), count: 1, intervalMs: 20, timeoutMs: 100_000 },
      { signal: caller.signal },
    );
    while (net.count() === 0) await Bun.sleep(1);
    const [probe] = net.seen() as [Probe];
    const host = addressBytes(net.source);
    const header = { source: addressBytes("2001:db8:bad::1"), destination: host, hopLimit: 64 };
    const quoted = { trafficClass: 0, nextHeader: NEXT_HEADER_ICMPV6, hopLimit: 1, source: host };
    const destination = addressBytes(TARGET);
    // The tag and half of the flow label are in the identifier; the sequences are tried one by one.
    for (let sequence = 0; sequence < 2 ** 16; sequence++) {
      const { identifier } = probe;
      const data = new Uint8Array();
      const payload = formatEcho({ type: ECHO_REQUEST, identifier, sequence, data });
      const flowLabel = probe.flowLabel ^ mistake;
      const quotation = formatPacket({ ...quoted, destination, flowLabel, payload });
      const error = { type: TIME_EXCEEDED, code: 0, word: 0, quotation, extensions: data };
      net.inject(formatIcmp(header, formatError(error)));
      // The kernel keeps so many that have not been read.
      const read = () => counters.unknown + counters.answered + counters.forged;
      if (sequence % 500 === 499) while (read() <= sequence) await Bun.sleep(1);
    }
    while (counters.answered + counters.forged === 0) await Bun.sleep(5);
    if (!believed) caller.abort();
    expect((await pending).kind).toBe(believed ? "done" : "aborted");
    const counts = believed ? [1, 1, 0] : [0, 0, 1];
    expect([counters.answered, counters.withoutCookie, counters.forged]).toEqual(counts);
    own.close();
  });

  test("a hop has its MPLS labels", async () => {
    const special = {
      2: { extensions: [{ label: 24_001, trafficClass: 5, bottomOfStack: true, ttl: 1 }] },
    };
    await using _ = await internet({ routers: routers(3, 3, special), end: { rttMs: 3 } });
    const { hops } = await trace();
    expect(hops.map(({ details }) => details?.mpls?.map(({ label }) => label))).toEqual([
      undefined,
      [24_001],
      undefined,
      undefined,
    ]);
  });

  // That the limit hides none of them is shown on a fake clock: a machine may be too slow for it.
  test("traces that run at once through routers with Linux's rate limit show no wrong router", async () => {
    const limited = routers(8, 8).map((router) => ({ ...router, rateLimit: LINUX_RATE_LIMIT }));
    await using _ = await internet({ routers: limited, end: { rttMs: 8 } }, "2001:db8:2::/64");
    const targets = Array.from(
      { length: 20 },
      (_, index) => `2001:db8:2::${(index + 16).toString(16)}`,
    );
    const outcomes = await Promise.all(targets.map((target) => trace({}, target)));
    for (const [index, outcome] of outcomes.entries()) {
      const all = [...hopsTo(8), targets[index] ?? null];
      const seen = addressesToAll(outcome).map((ip, at) => ip ?? all[at] ?? null);
      expect(seen).toEqual(all);
    }
  });

  test("200 pings at once to live, dead and lossy targets keep their answers apart", async () => {
    await using _ = await startInternet({
      destinations: [
        { to: "2001:db8:a::/64", end: { rttMs: 5, hopLimit: 70 } },
        { to: "2001:db8:b::/64", end: "blackhole" },
        { to: "2001:db8:c::/64", end: { rttMs: 20, hopLimit: 90, loss: 0.25 } },
      ],
    });
    const outcomes = await Promise.all(
      Array.from({ length: 200 }, (_, index) =>
        ping(
          { count: 5, timeoutMs: 2000 },
          `2001:db8:${"abc"[index % 3]}::${(index + 1).toString(16)}`,
        ),
      ),
    );
    const kinds = [
      { rttMs: 5, hopLimit: 70 },
      { rttMs: Infinity, hopLimit: 0 },
      { rttMs: 20, hopLimit: 90 },
    ] as const;
    for (const [index, { results, lost, duplicates }] of outcomes.entries()) {
      const kind = kinds[index % 3] as (typeof kinds)[number];
      expect([results.length + lost.length, duplicates]).toEqual([5, 0]);
      if (index % 3 === 1) expect(results).toEqual([]);
      for (const { rtt, ttl } of results) {
        expect(ttl).toBe(kind.hopLimit);
        expect(rtt).toBeGreaterThanOrEqual(kind.rttMs);
      }
    }
    expect(outcomes.some(({ results }, index) => index % 3 === 0 && results.length === 5)).toBe(
      true,
    );
    expect(engine.outstanding()).toBe(0);
  });
});
