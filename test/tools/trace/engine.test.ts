import { describe, expect, test } from "bun:test";
import { formatIpv6 } from "../../../src/addr/format.ts";
import { equalIpv6, type Ipv6Address } from "../../../src/addr/ipv6.ts";
import { SILENCE_MS } from "../../../src/icmp/prober/prober.ts";
import type { TraceOptions, TraceOutcome, TraceRequest } from "../../../src/tools/trace/engine.ts";
import { GAP_LIMIT } from "../../../src/tools/trace/responses.ts";
import {
  HOPS_AT_ONCE,
  LOOK_AHEAD,
  MAX_PERSISTENCE_MS,
  MAX_SUSPICION_MS,
} from "../../../src/tools/trace/schedule.ts";
import { parseIpv6 } from "../../addr/parse.ts";
import { openIcmp } from "../../icmp/engines.ts";
import {
  echoReply,
  type FakeSocket,
  icmpError,
  type Network,
  path,
  SOURCE,
  type Station,
  simulate,
  stationAddress,
} from "../../icmp/fake.ts";

function start(network: Network) {
  const { clock, socket, options } = simulate(network);
  const engine = openIcmp(options);
  return { clock, socket, engine, startMs: clock.nowMs() };
}

type Done = Extract<TraceOutcome, { kind: "done" }>;

/** The outcome, checked for what holds at the end of every trace, and how long it took. */
async function trace(
  network: Network,
  request: Partial<TraceRequest> = {},
  options: TraceOptions = {},
) {
  const lab = start(network);
  const target = parseIpv6("2001:db8:ffff::2");
  const defaults = { target, maxHops: 30, timeoutMs: 2000 };
  const outcome = await lab.clock.run(lab.engine.traceroute({ ...defaults, ...request }, options));
  const tookMs = lab.clock.nowMs() - lab.startMs;
  if (outcome.kind !== "done") throw new Error(outcome.kind);
  expect(lab.engine.outstanding()).toBe(0);
  await lab.clock.advance(1);
  expect(lab.clock.pending).toBe(0);
  expect(outcome.source).toEqual(SOURCE);
  expect(outcome.hops.map(({ hop }) => hop)).toEqual(outcome.hops.map((_, index) => index + 1));
  return { outcome, sent: lab.socket.sent, tookMs };
}

/** Hops as text: the address, or null for a silent one. */
function addresses({ hops }: Done): (string | null)[] {
  return hops.map(({ ip }) => ip);
}

/** A chain of `length` stations whose times rise to that of the last; some are silent. */
function chain(length: number, rttMs: number, silent: readonly number[] = []): Station[] {
  return Array.from({ length }, (_, index) => ({
    rttMs: (rttMs * (index + 1)) / length,
    answers: () => !silent.includes(index + 1),
  }));
}

/** The addresses that a trace over that chain must show. */
function expected(length: number, silent: readonly number[] = []): (string | null)[] {
  return Array.from({ length }, (_, index) =>
    silent.includes(index + 1) ? null : formatIpv6(stationAddress(index + 1)),
  );
}

const lastOf = (stations: readonly Station[]) => ({ target: stationAddress(stations.length) });

describe("a trace that reaches its target", () => {
  test.each([
    ["one hop", 1, 0.1, [], 50],
    ["twelve routers", 13, 1, [], 100],
    ["30 hops at 0.1 ms", 30, 0.1, [], 50],
    ["30 hops at 100 ms", 30, 100, [], 200],
    ["30 hops at 200 ms", 30, 200, [], 350],
    ["30 hops at 0.1 ms, 5 silent in a row", 30, 0.1, [6, 7, 8, 9, 10], 450],
    ["30 hops at 100 ms, 5 silent in a row", 30, 100, [6, 7, 8, 9, 10], 700],
    ["30 hops at 0.1 ms, 5 silent here and there", 30, 0.1, [1, 4, 9, 22, 29], 450],
    ["30 hops at 100 ms, 5 silent here and there", 30, 100, [1, 4, 9, 22, 29], 700],
    ["30 hops at 100 ms, the last 5 before the target silent", 30, 100, [25, 26, 27, 28, 29], 700],
    ["64 hops at 100 ms", 64, 100, [], 300],
  ] as const)("%s", async (_name, length, rttMs, silent, limitMs) => {
    const stations = chain(length, rttMs, silent);
    const request = { ...lastOf(stations), maxHops: 64 };
    const { outcome, tookMs } = await trace(path(stations), request);
    expect(addresses(outcome)).toEqual(expected(length, silent));
    expect(outcome).toMatchObject({ reached: true, reason: "reached", error: null });
    expect(tookMs).toBeLessThan(limitMs);
    for (const { hop, rtt: hopRttMs } of outcome.hops) {
      if (!silent.includes(hop as never)) expect(hopRttMs).toBeCloseTo((rttMs * hop) / length, 2);
    }
  });

  test("shows the same hops for every length of the path", async () => {
    for (let length = 1; length <= 40; length++) {
      const stations = chain(length, 20);
      const { outcome } = await trace(path(stations), { ...lastOf(stations), maxHops: 64 });
      expect(addresses(outcome)).toEqual(expected(length));
    }
  });

  test("does not ask far behind a near target", async () => {
    const stations = chain(2, 0.1);
    const { sent } = await trace(path(stations), lastOf(stations));
    expect(sent.length).toBeLessThanOrEqual(HOPS_AT_ONCE);
  });

  test("keeps one flow label for all probes", async () => {
    const stations = chain(30, 10);
    const { outcome, sent } = await trace(path(stations), lastOf(stations));
    expect(new Set(sent.map(({ flowLabel }) => flowLabel))).toEqual(new Set([outcome.flowLabel]));
    expect(outcome.flowLabel).toBeGreaterThan(0);
    expect(outcome.flowLabel).toBeLessThan(2 ** 20);
  });

  test("tells each address as soon as it has answered", async () => {
    const stations = chain(5, 10);
    const seen: string[] = [];
    await trace(path(stations), lastOf(stations), {
      onHop: ({ ip }) => ip && seen.push(ip),
    });
    expect([...new Set(seen)]).toEqual(expected(5) as string[]);
  });

  test("reports further times and addresses of a hop", async () => {
    const other = parseIpv6("2001:db8:0:2::2");
    const stations = chain(4, 4, [3]);
    const inner = path(stations);
    let asked = 0;
    const network: Network = (packet, sentMs) => {
      if (packet.hopLimit !== 2) return inner(packet, sentMs);
      const message = icmpError(packet, 3, 0);
      const first = { delayMs: 190, from: stationAddress(2), message };
      return asked++ === 0 ? [first] : [{ delayMs: 5, from: other, message }];
    };
    const { outcome } = await trace(network, lastOf(stations));
    const [, hop] = outcome.hops;
    expect(hop).toMatchObject({
      ip: formatIpv6(other),
      rtt: 5,
      details: { addresses: [other, stationAddress(2)].map(formatIpv6), rtts: [5, 190] },
    });
  });
});

describe("a target that is hard to find", () => {
  test.each([16, 20, 28])("is found behind %p silent hops", async (count) => {
    const silent = Array.from({ length: count }, (_, index) => index + 2);
    const stations = chain(count + 2, 20, silent);
    const { outcome, tookMs } = await trace(path(stations), lastOf(stations));
    expect(addresses(outcome)).toEqual(expected(count + 2, silent));
    expect(outcome.reached).toBe(true);
    expect(tookMs).toBeLessThan(2100);
  });

  test.each([1000, 300])(
    "shows at its distance though it replies once in %p ms",
    async (everyMs) => {
      const stations = chain(5, 1);
      let freeMs = 0;
      let replied = 0;
      stations[4] = {
        rttMs: 1,
        answers: (_, atMs) => {
          // The first reply goes to a probe that went further than it had to.
          if (atMs < freeMs || (replied === 0 && ++skipped < 3)) return false;
          freeMs = atMs + everyMs;
          replied++;
          return true;
        },
      };
      let skipped = 0;
      const { outcome } = await trace(path(stations), lastOf(stations));
      expect(addresses(outcome)).toEqual(expected(5));
    },
  );

  test("shows where it replied if nearer hops stay silent, and soon", async () => {
    // The replies come back over a shorter path.
    const network: Network = (packet) => {
      if (packet.hopLimit < 4) {
        const message = icmpError(packet, 3, 0);
        return [{ delayMs: 1, from: stationAddress(packet.hopLimit), message }];
      }
      if (packet.hopLimit < 9) return [];
      const message = echoReply(packet);
      return [{ delayMs: 2, from: stationAddress(9), message, hopLimit: 60 }];
    };
    const { outcome, tookMs } = await trace(network, { target: stationAddress(9) });
    expect(addresses(outcome)).toEqual(expected(9, [4, 5, 6, 7, 8]));
    expect(tookMs).toBeLessThan(MAX_SUSPICION_MS + 1000);
  });

  test("that rate-limits the errors that end the path is shown where it is", async () => {
    let asked = 0;
    const network: Network = (packet) => {
      const { hopLimit } = packet;
      const from = stationAddress(Math.min(hopLimit, 3));
      if (hopLimit < 3) return [{ delayMs: 1, from, message: icmpError(packet, 3, 0) }];
      // Those that came first took the router's tokens.
      if (hopLimit === 3 && ++asked < 4) return [];
      if (hopLimit > 3 && hopLimit < 7) return [];
      return [{ delayMs: 1, from, message: icmpError(packet, 1, 0), hopLimit: 62 }];
    };
    const { outcome } = await trace(network);
    expect(addresses(outcome)).toEqual([1, 2, 3].map((hop) => formatIpv6(stationAddress(hop))));
    expect(outcome.reason).toBe("unreachable");
  });

  test("that replies from another address is reached, and named", async () => {
    const other = parseIpv6("2001:db8:ffff::99");
    const target = parseIpv6("2001:db8:ffff::");
    const network: Network = (packet) => [{ delayMs: 1, from: other, message: echoReply(packet) }];
    const { outcome } = await trace(network, { target });
    expect(outcome).toMatchObject({
      reached: true,
      reason: "reached",
      otherSource: formatIpv6(other),
    });
    expect(addresses(outcome)).toEqual([formatIpv6(other)]);
  });

  test("that replies after an error of the same probe is reached", async () => {
    const network: Network = (packet) => [
      { delayMs: 1, from: stationAddress(1), message: icmpError(packet, 1, 1) },
      { delayMs: 1.5, from: stationAddress(2), message: echoReply(packet) },
    ];
    const { outcome } = await trace(network, { target: stationAddress(2) });
    expect(outcome).toMatchObject({ reached: true, error: null });
  });
});

describe("a hop that is silent", () => {
  test("is asked three times, at least 100 ms apart", async () => {
    const stations = chain(5, 1, [3]);
    const { sent } = await trace(path(stations), lastOf(stations));
    const times = sent.filter(({ hopLimit }) => hopLimit === 3).map(({ atMs }) => atMs);
    expect(times).toHaveLength(3);
    expect((times[1] as number) - (times[0] as number)).toBeGreaterThanOrEqual(100);
    expect((times[2] as number) - (times[1] as number)).toBeGreaterThanOrEqual(100);
  });

  test.each([2, 3])("shows when it answers the request number %p", async (answered) => {
    const stations = chain(5, 1);
    stations[2] = { rttMs: 0.6, answers: (nth) => nth === answered };
    const { outcome } = await trace(path(stations), lastOf(stations));
    expect(addresses(outcome)).toEqual(expected(5));
  });

  test("shows when it answers slower than those behind it", async () => {
    const stations = chain(5, 1);
    stations[2] = { rttMs: 250 };
    const { outcome } = await trace(path(stations), lastOf(stations));
    expect(outcome.hops[2]?.rtt).toBe(250);
    expect(outcome.hops[2]?.ip).toBe(formatIpv6(stationAddress(3)));
  });

  test("is not taken for the target by asking again when the target's first reply is lost", async () => {
    const stations = chain(5, 1);
    stations[4] = { rttMs: 1, answers: (nth) => nth > 4 };
    const { outcome } = await trace(path(stations), { ...lastOf(stations), maxHops: 8 });
    expect(addresses(outcome)).toEqual(expected(5));
  });
});

describe("a trace that ends before the target", () => {
  const behind = parseIpv6("2001:db8:ffff::2");

  test.each([
    [1, 0, "unreachable", "no-route"],
    [1, 1, "prohibited", "prohibited"],
    [1, 2, "unreachable", "beyond-scope"],
    [1, 3, "unreachable", "address-unreachable"],
    [1, 4, "unreachable", "port-unreachable"],
    [1, 5, "prohibited", "source-policy"],
    [1, 6, "prohibited", "reject-route"],
    [2, 0, "packet-too-big", "packet-too-big"],
    [4, 1, "parameter-problem", "unrecognized-next-header"],
  ] as const)("type %p code %p: %s", async (type, code, reason, name) => {
    const stations = chain(6, 5);
    stations[3] = { rttMs: 4, rejects: [type, code] };
    const { outcome } = await trace(path(stations), { target: behind });
    expect(addresses(outcome)).toEqual(expected(4));
    const from = formatIpv6(stationAddress(4));
    const error = { type, code, name, from, fromTarget: false };
    expect(outcome).toMatchObject({ reached: false, reason, error });
  });

  test("rejected by the target itself", async () => {
    const stations = chain(3, 5);
    stations[2] = { rttMs: 4, rejects: [1, 4] };
    const { outcome } = await trace(path(stations), lastOf(stations));
    expect(outcome).toMatchObject({
      reached: false,
      reason: "unreachable",
      error: { name: "port-unreachable", fromTarget: true },
    });
    expect(addresses(outcome)).toEqual(expected(3));
  });

  test("rejected on the way, though the target has replied: it is reached", async () => {
    const network: Network = (packet) => {
      const { hopLimit } = packet;
      if (hopLimit >= 4)
        return [{ delayMs: 4, from: stationAddress(4), message: echoReply(packet) }];
      const message = hopLimit === 2 ? icmpError(packet, 1, 1) : icmpError(packet, 3, 0);
      return [{ delayMs: 4 + hopLimit, from: stationAddress(hopLimit), message }];
    };
    const { outcome } = await trace(network, { target: stationAddress(4) });
    expect(outcome).toMatchObject({ reached: true, reason: "reached", error: null });
    expect(addresses(outcome)).toEqual(expected(4));
  });

  test("reports the MTU of a Packet Too Big", async () => {
    const network: Network = (packet) => [
      {
        delayMs: 1,
        from: stationAddress(1),
        message: icmpError(packet, packet.hopLimit === 1 ? 3 : 2, 0, { parameter: 1280 }),
      },
    ];
    const { outcome } = await trace(network);
    expect(outcome.hops.map(({ details }) => details?.mtu)).toEqual([undefined, 1280]);
  });

  test("a failed reassembly is not an answer", async () => {
    const network: Network = (packet) => [
      { delayMs: 1, from: stationAddress(1), message: icmpError(packet, 3, 1) },
    ];
    const { outcome } = await trace(network, { maxHops: 2 });
    expect(addresses(outcome)).toEqual([null, null]);
  });

  test("this machine's own error about a neighbour is not a hop", async () => {
    const network: Network = (packet) => [
      { delayMs: 1500, from: SOURCE, message: icmpError(packet, 1, 3) },
    ];
    const { outcome } = await trace(network);
    expect(addresses(outcome)).toEqual([null]);
    expect(outcome).toMatchObject({
      reason: "unreachable",
      error: { name: "address-unreachable", from: formatIpv6(SOURCE), fromTarget: false },
    });
  });
});

describe("a trace that gets no more responses", () => {
  const far = { target: parseIpv6("2001:db8:ffff::2") };

  test("ends at the gap limit within the timeout", async () => {
    const { outcome, sent, tookMs } = await trace(
      path(
        chain(
          30,
          10,
          [...Array(30).keys()].map((n) => n + 4),
        ),
      ),
      far,
    );
    expect(addresses(outcome)).toEqual([...expected(3), ...Array(GAP_LIMIT).fill(null)]);
    expect(outcome).toMatchObject({ reached: false, reason: "gap-limit", error: null });
    expect(tookMs).toBeLessThan(2100);
    const hopLimits = sent.map(({ hopLimit }) => hopLimit);
    // Hops further away are asked once.
    const times = Array.from({ length: 30 }, (_, at) => hopLimits.filter((hop) => hop === at + 1));
    expect(times.map(({ length }) => length)).toEqual(
      times.map((_, at) => (at < 3 ? 1 : at < 3 + LOOK_AHEAD ? 3 : 1)),
    );
  });

  test.each([
    [100, 200 + SILENCE_MS + 20],
    [2000, 1000 + SILENCE_MS + 20],
    [10_000, 10_020],
  ])("gets no response within %p ms: ends by %p ms", async (timeoutMs, limitMs) => {
    const { outcome, tookMs } = await trace(() => [], { timeoutMs });
    expect(outcome).toMatchObject({ reached: false, reason: "gap-limit" });
    expect(outcome.hops).toHaveLength(GAP_LIMIT);
    expect(tookMs).toBeLessThan(limitMs);
  });

  test("names a neighbour that this machine does not find", async () => {
    const network: Network = (packet) => [
      { delayMs: 3050, from: SOURCE, message: icmpError(packet, 1, 3) },
    ];
    const { outcome, tookMs } = await trace(network);
    expect(outcome).toMatchObject({
      reason: "unreachable",
      error: { name: "address-unreachable", from: formatIpv6(SOURCE) },
    });
    expect(addresses(outcome)).toEqual([null]);
    expect(tookMs).toBeLessThan(3060);
  });

  describe("behind a router that misses its neighbour after three seconds", () => {
    /** Three routers; the last one reports `delayMs` after the first packet that the target is not there. */
    const absent = (rttMs: number, delayMs = 3050): Network => {
      const inner = path(chain(4, rttMs));
      let firstMs = Infinity;
      return (packet, ms) => {
        if (packet.hopLimit < 4) return inner(packet, ms);
        firstMs = Math.min(firstMs, ms);
        const message = icmpError(packet, 1, 3);
        const atMs = firstMs + delayMs + 0.75 * rttMs;
        return [{ delayMs: atMs - ms, from: stationAddress(3), message }];
      };
    };
    const request = { ...far, awaitsRouters: true };

    test.each([
      [1, 3050],
      [1, 3150],
      [300, 3050],
      [1500, 3100],
    ])("at %p ms, it is unreachable", async (rttMs, delayMs) => {
      const { outcome, tookMs } = await trace(absent(rttMs, delayMs), request);
      expect(addresses(outcome)).toEqual([...expected(3), formatIpv6(stationAddress(3))]);
      const from = formatIpv6(stationAddress(3));
      const error = { name: "address-unreachable", from, fromTarget: false };
      expect(outcome).toMatchObject({ reached: false, reason: "unreachable", error });
      expect(tookMs).toBeLessThan(delayMs + 2 * rttMs + 200);
    });

    test("its hops are told long before", async () => {
      const told: number[] = [];
      const { clock, engine, startMs } = start(absent(10));
      const onHop = () => told.push(clock.nowMs() - startMs);
      await clock.run(engine.traceroute({ maxHops: 30, timeoutMs: 2000, ...request }, { onHop }));
      expect(told.filter((ms) => ms < 50)).toHaveLength(3);
    });

    test("a silent path takes no longer than that", async () => {
      const network = path(
        chain(
          30,
          10,
          [...Array(27).keys()].map((at) => at + 4),
        ),
      );
      const { outcome, tookMs } = await trace(network, request);
      expect(outcome).toMatchObject({ reason: "gap-limit", error: null });
      expect(tookMs).toBeWithin(SILENCE_MS - 100, SILENCE_MS + 30);
    });

    test.each([
      ["who does not wait", { awaitsRouters: false }, 2100],
      ["that may not go further", { awaitsRouters: true, maxHops: 3 }, 100],
    ])("a trace %s ends before", async (_name, more, limitMs) => {
      const { outcome, tookMs } = await trace(absent(10), { ...far, ...more });
      expect(outcome.reached).toBe(false);
      expect(tookMs).toBeLessThan(limitMs);
    });
  });

  test("ends at the last hop asked for", async () => {
    const { outcome } = await trace(path(chain(30, 10)), { ...far, maxHops: 5 });
    expect(addresses(outcome)).toEqual(expected(5));
    expect(outcome).toMatchObject({ reached: false, reason: "max-hops" });
  });
});

describe("requests that the kernel refuses", () => {
  test("cost a hop its try, not the trace its end", async () => {
    const stations = chain(5, 1);
    const inner = path(stations);
    const network: Network = (packet, ms) => (packet.hopLimit === 2 ? "EPERM" : inner(packet, ms));
    const { outcome, tookMs } = await trace(network, lastOf(stations));
    expect(addresses(outcome)).toEqual(expected(5, [2]));
    expect(outcome.refused).toEqual([{ hop: 2, errno: "EPERM" }]);
    expect(tookMs).toBeLessThan(100);
  });

  test("are named, and are no silent hops at the end of a trace", async () => {
    const stations = chain(30, 1, [4, 5, 6]);
    const inner = path(stations);
    let asked = 0;
    const network: Network = (packet, ms) => {
      if (packet.hopLimit <= 3) return inner(packet, ms);
      return ++asked > 10 ? "EPERM" : [];
    };
    const { outcome } = await trace(network, lastOf(stations));
    expect(outcome).toMatchObject({ reached: false, reason: "not-sent" });
    expect(outcome.refused).toContainEqual({ hop: 4, errno: "EPERM" });
  });

  test("for lack of buffers are repeated", async () => {
    const stations = chain(5, 1);
    const inner = path(stations);
    let calls = 0;
    const network: Network = (packet, ms) => (calls++ < 3 ? "ENOBUFS" : inner(packet, ms));
    const { outcome } = await trace(network, lastOf(stations));
    expect(addresses(outcome)).toEqual(expected(5));
  });

  test("all of them make the target unreachable", async () => {
    const { clock, engine } = start(() => "EACCES");
    const request = { target: stationAddress(1), maxHops: 30, timeoutMs: 2000 };
    const outcome = await clock.run(engine.traceroute(request));
    expect(outcome).toEqual({ kind: "unreachable", code: "EACCES" });
    expect([engine.outstanding(), clock.pending]).toEqual([0, 0]);
  });
});

test("traces whose hop is silent do not wait for each other because others' is not", async () => {
  const answering = parseIpv6("2001:db8:5::1");
  /** Three hops to every target; the second is silent to all targets but one. */
  const network: Network = (packet) => {
    const { hopLimit, target } = packet;
    if (hopLimit >= 3) return [{ delayMs: 3, from: target, message: echoReply(packet) }];
    if (hopLimit === 2 && !equalIpv6(target, answering)) return [];
    const from = stationAddress(hopLimit);
    return [{ delayMs: hopLimit, from, message: icmpError(packet, 3, 0) }];
  };
  const lab = start(network);
  const targets = Array.from({ length: 60 }, (_, index) => parseIpv6(`2001:db8:6::${index + 1}`));
  const request = { maxHops: 30, timeoutMs: 2000 };
  const all = [answering, ...targets].map((target) =>
    lab.engine.traceroute({ target, ...request }),
  );
  const outcomes = await lab.clock.run(Promise.all(all));
  expect(outcomes.map(({ kind }) => kind)).toEqual(outcomes.map(() => "done"));
  expect(lab.clock.nowMs() - lab.startMs).toBeLessThan(3000);
});

test("traces that met a silent hop alone do not keep a crowd from waiting for its turns", async () => {
  const lone = parseIpv6("2001:db8:5::1");
  let tokensAtMs = 0;
  /** Linux's limit: six at once, and then one in 100 ms. */
  const isWithinLimit = (nowMs: number) => {
    const nextMs = Math.max(tokensAtMs, nowMs - 500);
    if (nextMs > nowMs) return false;
    tokensAtMs = nextMs + 100;
    return true;
  };
  const network: Network = (packet, sentMs) => {
    const { hopLimit, target } = packet;
    if (hopLimit >= 3) return [{ delayMs: 3, from: target, message: echoReply(packet) }];
    const isSilent = equalIpv6(target, lone) || !isWithinLimit(sentMs);
    if (hopLimit === 2 && isSilent) return [];
    const from = stationAddress(hopLimit);
    return [{ delayMs: hopLimit, from, message: icmpError(packet, 3, 0) }];
  };
  const lab = start(network);
  const request = { maxHops: 30, timeoutMs: 2000 };
  const trace = (target: Ipv6Address) => lab.engine.traceroute({ target, ...request });
  await lab.clock.run(trace(parseIpv6("2001:db8:6::ffff")));
  for (let times = 0; times < 5; times++) await lab.clock.run(trace(lone));
  const targets = Array.from({ length: 60 }, (_, index) => parseIpv6(`2001:db8:6::${index + 1}`));
  const outcomes = (await lab.clock.run(Promise.all(targets.map(trace)))) as Done[];
  const silent = outcomes.filter((outcome) => addresses(outcome)[1] === null);
  expect(silent).toHaveLength(0);
});

describe("a hop at the distance of routers that rate-limit their errors", () => {
  const SILENT = parseIpv6("2001:db8:5::1");
  const LIMITED = parseIpv6("2001:db8:6::1");
  const request = { maxHops: 30, timeoutMs: 2000 };
  /** Hop 2 is silent to one target; to the others it answers the request number `answered`. */
  const network = (answered: number, isTarget = false): Network => {
    let asked = 0;
    return (packet) => {
      const { hopLimit, target } = packet;
      if (hopLimit === 2 && equalIpv6(target, SILENT)) return [];
      if (hopLimit === 2 && asked++ % answered !== answered - 1) return [];
      const isReply = hopLimit > 2 || (isTarget && hopLimit === 2);
      const [from, message] = isReply
        ? [target, echoReply(packet)]
        : [stationAddress(hopLimit), icmpError(packet, 3, 0)];
      // The target is at hop 2, and silent at the others.
      if (isTarget && hopLimit > 2 && equalIpv6(target, LIMITED)) return [];
      return [{ delayMs: 1, from, message }];
    };
  };
  /** Milliseconds between two requests to hop 2 of the silent target. */
  const gaps = (sent: FakeSocket["sent"]) =>
    sent
      .filter(({ target, hopLimit }) => hopLimit === 2 && equalIpv6(target, SILENT))
      .map(({ atMs }, at, { [at - 1]: last }) => Math.round(atMs - (last?.atMs ?? atMs)))
      .slice(1);

  test.each([
    ["just now", network(2), 0, [100, 200, 400, 600, 600]],
    ["too long ago", network(2), 2000, [100, 100]],
    ["at its first request", network(1), 0, [100, 100]],
    ["as the target", network(2, true), 0, [100, 100]],
  ])("one has answered another trace %s", async (_name, net, passMs, expectedGaps) => {
    const { clock, engine, socket } = start(net);
    await clock.run(engine.traceroute({ target: LIMITED, ...request }));
    await clock.advance(passMs);
    await clock.run(engine.traceroute({ target: SILENT, ...request }));
    expect(gaps(socket.sent)).toEqual(expectedGaps);
  });

  test("is given up in the end, however many other traces are answered", async () => {
    const { clock, engine, startMs } = start(network(2));
    await clock.run(engine.traceroute({ target: LIMITED, ...request }));
    let tookMs = 0;
    const lone = engine.traceroute({ target: SILENT, ...request }).then(() => {
      tookMs = clock.nowMs() - startMs;
    });
    while (tookMs === 0 && clock.nowMs() - startMs < 2 * MAX_PERSISTENCE_MS) {
      await clock.run(engine.traceroute({ target: LIMITED, ...request }));
    }
    expect(tookMs).toBeWithin(MAX_PERSISTENCE_MS, MAX_PERSISTENCE_MS + 1000);
    await clock.run(lone);
  });
});

describe("many traces at once through routers that limit their answers", () => {
  const ROUTERS = 5;
  const targetOf = (index: number, site = "6") => parseIpv6(`2001:db8:${site}::${index + 1}`);

  /** Routers with six answers at once and then one in `everyMs`; flows choose among the stations of hop 3. */
  const crowd = (everyMs: number, third: (flowLabel: number, ms: number) => number | null) => {
    const tokens = new Map<number, number>();
    const network: Network = (packet, ms) => {
      const { hopLimit, target, flowLabel } = packet;
      if (hopLimit > ROUTERS) return [{ delayMs: 3, from: target, message: echoReply(packet) }];
      const station = hopLimit === 3 ? third(flowLabel, ms) : hopLimit;
      if (station === null) return [];
      const nextMs = Math.max(tokens.get(station) ?? -Infinity, ms - 5 * everyMs);
      if (nextMs > ms) return [];
      tokens.set(station, nextMs + everyMs);
      const message = icmpError(packet, 3, 0);
      return [{ delayMs: hopLimit / 2, from: stationAddress(station), message }];
    };
    const lab = start(network);
    const run = async (count: number, site?: string, flowLabel?: number) => {
      const request = { maxHops: 30, timeoutMs: 2000, flowLabel };
      const traces = Array.from({ length: count }, (_, index) =>
        lab.engine.traceroute({ target: targetOf(index, site), ...request }),
      );
      return (await lab.clock.run(Promise.all(traces))) as Done[];
    };
    return { ...lab, run };
  };
  /** The rows of a hop: the station that answered, `+` and the station that others saw, `limited`, or silence. */
  const rowsOf = (outcomes: readonly Done[], hop: number) =>
    outcomes.map(({ hops }) => {
      const { ip, others } = hops[hop - 1] ?? {};
      const number = (of: Ipv6Address) => of.word1 & 0xff;
      if (ip) return String(number(parseIpv6(ip)));
      return others ? `+${number(others.from)}` : others === null ? "limited" : "silent";
    });

  test.each([10, 60])("%i of them: each row is measured or another's", async (count) => {
    const outcomes = await crowd(1000, () => 3).run(count);
    for (let hop = 1; hop <= ROUTERS; hop++) {
      const rows = rowsOf(outcomes, hop);
      expect(rows.filter((row) => row !== String(hop) && row !== `+${hop}`)).toEqual([]);
      if (hop < 3) expect(rows).toContain(`+${hop}`);
    }
    for (const { rtt, others, ip } of outcomes.flatMap(({ hops }) => hops)) {
      expect([rtt === null, ip === null]).toEqual([others !== undefined, others !== undefined]);
    }
  });

  test("20 of them: Linux's limit hides no router", async () => {
    const outcomes = await crowd(100, () => 3).run(20);
    for (let hop = 1; hop <= ROUTERS; hop++)
      expect(new Set(rowsOf(outcomes, hop))).toEqual(new Set([String(hop)]));
  });

  test("where flows meet different routers, nobody's is borrowed", async () => {
    const outcomes = await crowd(1000, (flowLabel) => 3 + 10 * (flowLabel % 2)).run(40);
    expect(rowsOf(outcomes, 2)).toContain("+2");
    expect(new Set(rowsOf(outcomes, 3))).toEqual(new Set(["3", "13", "limited"]));
    // Behind it, the ways may differ too.
    for (const hop of [4, 5]) {
      expect(new Set(rowsOf(outcomes, hop))).toEqual(new Set([String(hop), "limited"]));
    }
  });

  test("one flow label says nothing of others", async () => {
    const rows = rowsOf(await crowd(1000, () => 3).run(40, "6", 7), 3);
    expect(new Set(rows)).toEqual(new Set(["3", "limited"]));
  });

  test("what changes under way is not borrowed", async () => {
    const { run, startMs } = crowd(300, (_, ms) => (ms < startMs + 200 ? 3 : 13));
    const rows = rowsOf(await run(60), 3);
    expect(rows.filter((row) => row.startsWith("+"))).toEqual([]);
  });

  test("a hop that never answers is silent, and others' answers are old after 5 s", async () => {
    const never = await crowd(1000, () => null).run(10);
    expect(new Set(rowsOf(never, 3))).toEqual(new Set(["silent"]));
    const { run, clock } = crowd(1000, (_, ms) => (ms < 1100 ? 3 : null));
    await run(8);
    expect(rowsOf(await run(1), 3)).toEqual(["+3"]);
    await clock.advance(5000);
    expect(rowsOf(await run(1), 3)).toEqual(["silent"]);
  });

  test("another network may be reached over another router", async () => {
    const { run } = crowd(1000, (_, ms) => (ms < 1100 ? 3 : null));
    await run(8);
    expect(rowsOf(await run(1), 3)).not.toEqual(["silent"]);
    expect(rowsOf(await run(1, "7"), 3)).toEqual(["silent"]);
  });
});

test("a target nearly as slow as the timeout is reached", async () => {
  const { outcome } = await trace(path([{ rttMs: 1990 }]), { target: stationAddress(1) });
  expect(outcome).toMatchObject({ reached: true, hops: [{ rtt: 1990 }] });
});

test("a trace that is aborted leaves nothing behind", async () => {
  const { clock, engine } = start((packet) => [
    { delayMs: 50, from: packet.target, message: echoReply(packet) },
  ]);
  const caller = new AbortController();
  const request = { target: stationAddress(1), maxHops: 30, timeoutMs: 2000 };
  const pending = engine.traceroute(request, { signal: caller.signal });
  caller.abort();
  expect(await pending).toEqual({ kind: "aborted" });
  expect(engine.outstanding()).toBe(0);
  await clock.advance(1);
  expect(clock.pending).toBe(0);
});

test("a trace whose signals are lost asks no hop again whose answer has come", async () => {
  const stations = chain(12, 100);
  const lab = start(path(stations));
  lab.socket.losesSignal = () => true;
  const request = { ...lastOf(stations), maxHops: 30, timeoutMs: 2000 };
  const outcome = await lab.clock.run(lab.engine.traceroute(request));
  expect(outcome.kind === "done" && addresses(outcome)).toEqual(expected(12));
  const asked = lab.socket.sent.map(({ hopLimit }) => hopLimit);
  expect(asked.length).toBe(new Set(asked).size);
});
