import { describe, expect, spyOn, test } from "bun:test";
import { formatIpv6 } from "../../../src/addr/format.ts";
import { equalIpv6 } from "../../../src/addr/ipv6.ts";
import { PACKETS_PER_SECOND, RETRY_MS } from "../../../src/gate/bounds.ts";
import { MAX_BUFFER_RETRIES, SILENCE_MS } from "../../../src/icmp/prober/prober.ts";
import type { PingOutcome, PingRequest } from "../../../src/tools/ping/engine.ts";
import type { Sample } from "../../../src/tools/ping/result.ts";
import { parseIpv6 } from "../../addr/parse.ts";
import { type IcmpEngine, openIcmp } from "../../icmp/engines.ts";
import {
  echoReply,
  type FakeResponse,
  icmpError,
  type Network,
  ROUTER,
  SOURCE,
  simulate,
  TARGET,
} from "../../icmp/fake.ts";
import type { FakeClock } from "../../util/fake-clock.ts";

const REQUEST: PingRequest = { target: TARGET, count: 4, intervalMs: 200, timeoutMs: 1000 };

function start(network: Network) {
  const { clock, socket, options } = simulate(network);
  const engine = openIcmp(options);
  return { clock, socket, engine, startMs: clock.nowMs() };
}

type Done = Extract<PingOutcome, { kind: "done" }>;

/** The outcome, checked for what holds at the end of every ping. */
async function finish(
  { clock, engine }: { clock: FakeClock; engine: IcmpEngine },
  request = REQUEST,
): Promise<Done> {
  const reported = new Map<number, Sample>();
  const onSample = (sample: Sample) => reported.set(sample.seq, sample);
  const outcome = await clock.run(engine.ping(request, { onSample }));
  expect(engine.outstanding()).toBe(0);
  if (outcome.kind !== "done") throw new Error(outcome.kind);
  const { results, lost } = outcome;
  const all = [...results, ...lost].sort((a, b) => a.seq - b.seq);
  expect([...reported.values()].sort((a, b) => a.seq - b.seq)).toEqual(all);
  expect(all.map(({ seq }) => seq)).toEqual(
    Array.from({ length: request.count }, (_, index) => index + 1),
  );
  return outcome;
}

/** A network that treats each request by its number, counted from 1. */
function byNumber(
  respond: (nth: number, reply: FakeResponse) => readonly FakeResponse[] | string,
): Network {
  let count = 0;
  return (packet) => {
    count++;
    return respond(count, { delayMs: 10, from: TARGET, message: echoReply(packet) });
  };
}

describe("a ping", () => {
  test("sends at its interval and answers with the last reply", async () => {
    const lab = start(byNumber((_, reply) => [reply]));
    const outcome = await finish(lab);
    expect(lab.socket.sent.map(({ atMs }) => atMs - lab.startMs)).toEqual([0, 200, 400, 600]);
    expect(lab.clock.nowMs() - lab.startMs).toBe(610);
    expect(lab.clock.pending).toBe(0);
    expect(outcome).toEqual({
      kind: "done",
      source: SOURCE,
      answers: [],
      results: [1, 2, 3, 4].map((seq) => ({ seq, ttl: 60, rtt: 10 })),
      stats: { transmitted: 4, received: 4, loss: 0, min: 10, avg: 10, max: 10 },
      lost: [],
      late: 0,
      duplicates: 0,
      verdict: { code: "no-loss", text: "The target replied to all 4 requests." },
    });
  });

  test("tells each outcome as soon as it is known", async () => {
    const lab = start(byNumber((nth, reply) => (nth === 2 ? [] : [reply])));
    const told: [seq: number, what: string, atMs: number][] = [];
    const onSample = (sample: Sample) => {
      const what = "reason" in sample ? sample.reason : "reply";
      told.push([sample.seq, what, lab.clock.nowMs() - lab.startMs]);
    };
    await lab.clock.run(lab.engine.ping({ ...REQUEST, timeoutMs: 250 }, { onSample }));
    expect(told).toEqual([
      [1, "reply", 10],
      [3, "reply", 410],
      [2, "timeout", 451],
      [4, "reply", 610],
    ]);
  });

  test("tells nothing after its end", async () => {
    const lab = start(byNumber((nth, reply) => [{ ...reply, delayMs: nth === 1 ? 250 : 10 }]));
    const told: number[] = [];
    const onSample = ({ seq }: Sample) => told.push(seq);
    const request = { ...REQUEST, count: 2, intervalMs: 110, timeoutMs: 100 };
    await lab.clock.run(lab.engine.ping(request, { onSample }));
    expect(lab.clock.nowMs() - lab.startMs).toBe(120);
    await finish(lab);
    expect(told).toEqual([1, 2]);
  });

  test("waits for the timeout of its last sample and no longer", async () => {
    const lab = start(byNumber((nth, reply) => (nth === 4 ? [] : [reply])));
    const { lost } = await finish(lab);
    expect(lost).toEqual([{ seq: 4, reason: "timeout" }]);
    // The first reading of the socket behind the deadline.
    expect(lab.clock.nowMs() - lab.startMs).toBe(1601);
    expect(lab.clock.pending).toBe(0);
  });

  test("does not wait longer for an earlier sample that is lost", async () => {
    const lab = start(byNumber((nth, reply) => (nth === 1 ? [] : [reply])));
    const { lost } = await finish(lab, { ...REQUEST, timeoutMs: 300 });
    expect(lost).toEqual([{ seq: 1, reason: "timeout" }]);
    expect(lab.clock.nowMs() - lab.startMs).toBe(610);
  });

  test("puts samples in the order of their numbers when replies overtake each other", async () => {
    const lab = start(byNumber((nth, reply) => [{ ...reply, delayMs: 1000 - 240 * nth }]));
    const { results } = await finish(lab);
    expect(results.map(({ seq, rtt }) => [seq, rtt])).toEqual([
      [1, 760],
      [2, 520],
      [3, 280],
      [4, 40],
    ]);
  });

  test("counts duplicates and late replies beside the samples", async () => {
    const lab = start(
      byNumber((nth, reply) => {
        if (nth === 1) return [{ ...reply, delayMs: 350 }];
        if (nth === 2) return [reply, { ...reply, delayMs: 11 }, { ...reply, delayMs: 12 }];
        return [reply];
      }),
    );
    const outcome = await finish(lab, { ...REQUEST, timeoutMs: 300 });
    expect(outcome.duplicates).toBe(2);
    expect(outcome.lost).toEqual([{ seq: 1, reason: "timeout", rtt: 350 }]);
  });

  test.each([
    ["a reply within 100 ms of the error", 105, { results: [{ seq: 1, rtt: 105 }], lost: [] }],
    ["the error before a later reply", 105.1, { results: [], lost: [{ reason: "no-route" }] }],
  ])("reports %s, also of its last sample", async (_name, delayMs, expected) => {
    const network: Network = (packet) => [
      { delayMs: 5, from: ROUTER, message: icmpError(packet, 1, 0) },
      { delayMs, from: TARGET, message: echoReply(packet) },
    ];
    const outcome = await finish(start(network), { ...REQUEST, count: 1 });
    expect(outcome).toMatchObject({ ...expected, duplicates: 0 });
  });

  test("reports a reply before an error, and the error as a duplicate", async () => {
    const network: Network = (packet) => [
      { delayMs: 5, from: TARGET, message: echoReply(packet) },
      { delayMs: 10, from: ROUTER, message: icmpError(packet, 1, 0) },
    ];
    const outcome = await finish(start(network), { ...REQUEST, count: 2 });
    expect(outcome).toMatchObject({ results: { length: 2 }, lost: [], duplicates: 1 });
  });

  test("takes a reply from another address, and says from which", async () => {
    const network: Network = (packet) => [{ delayMs: 5, from: ROUTER, message: echoReply(packet) }];
    const { results } = await finish(start(network), { ...REQUEST, count: 1 });
    expect(results).toEqual([
      { seq: 1, ttl: 60, rtt: 5, details: { reason: "other-source", from: formatIpv6(ROUTER) } },
    ]);
  });

  test("does not call a sample lost when the kernel dropped packets", async () => {
    const lab = start(byNumber((nth, reply) => (nth === 2 ? [] : [reply])));
    lab.clock.after(500, () => {
      lab.socket.droppedPackets = 1;
    });
    const { lost } = await finish(lab);
    expect(lost).toEqual([{ seq: 2, reason: "unknown" }]);
  });

  test("does not take a failed reassembly for an answer", async () => {
    const network: Network = (packet) => [
      { delayMs: 5, from: TARGET, message: icmpError(packet, 3, 1) },
      { delayMs: 10, from: TARGET, message: echoReply(packet) },
    ];
    const outcome = await finish(start(network), { ...REQUEST, count: 1 });
    expect(outcome).toMatchObject({ results: [{ seq: 1, rtt: 10 }], lost: [], duplicates: 0 });
  });

  test.each([
    [1, 0, "no-route"],
    [1, 1, "prohibited"],
    [1, 2, "beyond-scope"],
    [1, 3, "address-unreachable"],
    [1, 4, "port-unreachable"],
    [1, 5, "source-policy"],
    [1, 6, "reject-route"],
    [1, 99, "destination-unreachable"],
    [2, 0, "packet-too-big"],
    [3, 0, "hop-limit-exceeded"],
    [4, 0, "erroneous-header"],
    [4, 1, "unrecognized-next-header"],
    [4, 10, "option-too-big"],
    [4, 11, "parameter-problem"],
  ])("an error of type %p code %p is a sample lost by %s", async (type, code, reason) => {
    const network: Network = (packet) => [
      { delayMs: 5, from: ROUTER, message: icmpError(packet, type, code) },
    ];
    const lab = start(network);
    const { lost } = await finish(lab, { ...REQUEST, count: 1 });
    expect(lost).toEqual([{ seq: 1, reason, type, code, from: formatIpv6(ROUTER), rtt: 5 }]);
    // For a reply that follows the error; a router that says that the hop limit is exceeded has dropped the probe.
    expect(lab.clock.nowMs() - lab.startMs).toBe(reason === "hop-limit-exceeded" ? 5 : 105);
  });

  test("loses every fourth sample if the network loses a quarter", async () => {
    const lab = start(byNumber((nth, reply) => (nth % 4 === 0 ? [] : [reply])));
    const { results, lost } = await finish(lab, { ...REQUEST, count: 100, intervalMs: 10 });
    expect(results).toHaveLength(75);
    expect(lost.map(({ seq }) => seq % 4)).toEqual(Array(25).fill(0));
  });
});

describe("a ping of a TCP port", () => {
  const SYNS = { ...REQUEST, probedPort: { protocol: "tcp", port: 443 } } as const;

  /** What became of SYNs that were answered after these times, with RST where they are negative. */
  const asked = async (timesMs: readonly number[], more: Partial<PingRequest> = {}) => {
    const lab = start(
      byNumber((nth, reply) => {
        const ms = timesMs[nth - 1] ?? 0;
        return [{ ...reply, delayMs: Math.abs(ms), state: ms < 0 ? "closed" : "open" }];
      }),
    );
    const request = { ...SYNS, count: timesMs.length, timeoutMs: 2000, ...more };
    return await finish(lab, request);
  };

  // biome-ignore format: a table
  test.each<[name: string, timesMs: number[], again: number[]]>([
    ["one of four, a second late", [10, 1012, 11, 9], [2]],
    ["the first", [1010, 10, 11, 9], [1]],
    ["two of four", [1010, 10, 1030, 9], [1, 3]],
    ["0.9 s behind the median", [20, 20, 920, 20], [3]],
    ["a little less", [20, 20, 919, 20], []],
    ["a far target, where all take a second", [1010, 1030, 1020, 1900], []],
    ["a far target, and one a second behind", [700, 720, 1710, 690], [3]],
    ["one SYN alone", [1010], []],
    ["a second late with RST, which is sent once", [10, -1012, 10, 10], []],
  ])("whose SYN-ACK comes again has lost one: %s", async (_, timesMs, again) => {
    const { lost, results, stats, verdict } = await asked(timesMs);
    expect(lost).toEqual(
      again.map((seq) => ({ seq, reason: "retransmitted", rtt: timesMs[seq - 1] ?? 0 })),
    );
    expect(stats).toMatchObject({ transmitted: timesMs.length, received: results.length });
    expect(stats.loss).toBe((again.length / timesMs.length) * 100);
    const sentence =
      again.length === 0 ? "" : `To ${again.length} SYN${again.length === 1 ? "" : "s"}, only a retransmitted SYN-ACK came`;
    expect(verdict.text).toContain(sentence);
    expect(verdict.text.includes("retransmitted")).toBe(again.length > 0);
  });

  test("has the state of every answer", async () => {
    const { answers, results } = await asked([10, -10, 10, 1010, -10]);
    expect(answers).toEqual(["open", "closed", "open", "closed", "open"]);
    expect(results).toHaveLength(4);
  });

  test("that is none says nothing of retransmissions", async () => {
    const udp = { protocol: "udp", port: 53 } as const;
    for (const probedPort of [udp, undefined]) {
      const { lost } = await asked([10, 1010, 10, 10], { probedPort });
      expect(lost).toEqual([]);
    }
  });
});

describe("a ping that hears nothing", () => {
  const unreachable = (packet: Parameters<Network>[0], delayMs: number) => ({
    delayMs,
    from: SOURCE,
    message: icmpError(packet, 1, 3),
  });

  test("listens until neighbour discovery has failed", async () => {
    const lab = start((packet, sentMs) => [unreachable(packet, lab.startMs + 3050 - sentMs)]);
    const { lost } = await finish(lab);
    expect(lost).toEqual(
      [1, 2, 3, 4].map((seq) => ({
        seq,
        reason: "address-unreachable",
        type: 1,
        code: 3,
        from: formatIpv6(SOURCE),
        rtt: 3050 - 200 * (seq - 1),
      })),
    );
    expect(lab.clock.nowMs() - lab.startMs).toBeCloseTo(3050, -1);
  });

  test("listens on for the last samples while only this machine has answered", async () => {
    const lab = start((packet, sentMs) =>
      sentMs === lab.startMs ? [unreachable(packet, 3050)] : [unreachable(packet, 3100)],
    );
    const { lost } = await finish(lab, { ...REQUEST, count: 2, intervalMs: 2500 });
    expect(lost.map(({ reason }) => reason)).toEqual(Array(2).fill("address-unreachable"));
    expect(lab.clock.nowMs() - lab.startMs).toBeCloseTo(5600, -1);
  });

  test("ends when no error can come any more", async () => {
    const lab = start(() => []);
    const { lost } = await finish(lab);
    expect(lost.map(({ reason }) => reason)).toEqual(Array(4).fill("timeout"));
    expect(lab.clock.nowMs() - lab.startMs).toBeCloseTo(600 + SILENCE_MS, -1);
  });

  test("ends at once when it is aborted", async () => {
    const lab = start(() => []);
    const caller = new AbortController();
    const pending = lab.engine.ping(REQUEST, { signal: caller.signal });
    await lab.clock.advance(2500);
    caller.abort();
    expect(await pending).toEqual({ kind: "aborted" });
  });
});

describe("requests that the kernel refuses", () => {
  test.each(["EPERM", "EACCES", "EINVAL", "EHOSTUNREACH"])(
    "%s costs its sample only",
    async (errno) => {
      const lab = start(byNumber((nth, reply) => (nth === 2 ? errno : [reply])));
      const outcome = await finish(lab);
      expect(outcome.lost).toEqual([{ seq: 2, reason: "not-sent", errno }]);
      expect(outcome.results).toHaveLength(3);
      expect(lab.clock.nowMs() - lab.startMs).toBe(610);
    },
  );

  test("a source address that is gone is replaced, and nothing is lost", async () => {
    const next = parseIpv6("2001:db8::77");
    const lab = start((packet, sentMs) => {
      const isGone = sentMs >= lab.startMs + 300;
      if (isGone === equalIpv6(packet.source, SOURCE)) return "EINVAL";
      return [{ delayMs: 10, from: TARGET, message: echoReply(packet) }];
    });
    lab.clock.after(300, () => {
      lab.socket.route = (_target, _scopeId, flowLabel) => ({ source: next, flowLabel });
    });
    const outcome = await finish(lab);
    expect(outcome).toMatchObject({ source: next, results: { length: 4 }, lost: [] });
    const flowLabels = new Set(lab.socket.sent.map(({ flowLabel }) => flowLabel));
    expect(flowLabels.size).toBe(1);
    expect(lab.engine.counters.refused).toBe(0);
  });

  test("all of them make the target unreachable", async () => {
    const { clock, engine } = start(() => "EPERM");
    expect(await clock.run(engine.ping(REQUEST))).toEqual({ kind: "unreachable", code: "EPERM" });
    expect([engine.outstanding(), clock.pending]).toEqual([0, 0]);
  });

  test("for lack of buffers are repeated", async () => {
    const lab = start(byNumber((nth, reply) => (nth <= 3 ? "ENOBUFS" : [reply])));
    const { results, lost } = await finish(lab, { ...REQUEST, count: 2 });
    expect([results.length, lost.length]).toEqual([2, 0]);
    const times = lab.socket.sent.map(({ atMs }) => atMs - lab.startMs);
    expect(times).toEqual([3 * RETRY_MS, 3 * RETRY_MS + 200]);
  });

  test("for lack of buffers are given up in the end", async () => {
    let calls = 0;
    const { clock, engine } = start(() => {
      calls++;
      return "ENOBUFS";
    });
    const outcome = await clock.run(engine.ping({ ...REQUEST, count: 1 }));
    expect(outcome).toEqual({ kind: "unreachable", code: "ENOBUFS" });
    expect(calls).toBe(1 + MAX_BUFFER_RETRIES);
  });
});

test("pings that ask too much of one /64 take longer, and lose nothing", async () => {
  const lab = start((packet) => [{ delayMs: 1, from: packet.target, message: echoReply(packet) }]);
  const request = { ...REQUEST, count: 100, intervalMs: 10 };
  const outcomes = await lab.clock.run(
    Promise.all(Array.from({ length: 40 }, () => lab.engine.ping(request))),
  );
  for (const outcome of outcomes)
    expect(outcome).toMatchObject({ results: { length: 100 }, lost: [] });
  const seconds = (lab.clock.nowMs() - lab.startMs) / 1000;
  expect(lab.socket.sent).toHaveLength(4000);
  expect(seconds).toBeGreaterThan((4000 - PACKETS_PER_SECOND) / PACKETS_PER_SECOND);
});

test.each([
  ["replies", (packet) => [{ delayMs: 1, from: TARGET, message: echoReply(packet) }]],
  ["silence", () => []],
  ["refusals", () => "EPERM"],
  ["lack of buffers", () => "ENOBUFS"],
] satisfies [string, Network][])(
  "pings with one signal leave no listener on it: %s",
  async (_name, network) => {
    const { signal } = new AbortController();
    const [adds, removes] = [
      spyOn(AbortSignal.prototype, "addEventListener"),
      spyOn(AbortSignal.prototype, "removeEventListener"),
    ];
    try {
      const { clock, engine } = start(network);
      for (let times = 0; times < 5; times++) await clock.run(engine.ping(REQUEST, { signal }));
      expect(adds.mock.calls.length).toBeGreaterThan(0);
      expect(removes.mock.calls.map(([, listener]) => listener)).toEqual(
        expect.arrayContaining(adds.mock.calls.map(([, listener]) => listener)),
      );
    } finally {
      adds.mockRestore();
      removes.mockRestore();
    }
  },
);

describe("a ping that is aborted", () => {
  test("ends at once and leaves nothing behind", async () => {
    const { clock, engine, socket } = start(() => []);
    const caller = new AbortController();
    const pending = engine.ping(REQUEST, { signal: caller.signal });
    caller.abort();
    expect(await pending).toEqual({ kind: "aborted" });
    expect([engine.outstanding(), socket.sent.length]).toEqual([0, 1]);
    await clock.advance(1);
    expect(clock.pending).toBe(0);
  });

  test("before it began sends nothing", async () => {
    const { engine, socket } = start(() => []);
    const signal = AbortSignal.abort();
    expect(await engine.ping(REQUEST, { signal })).toEqual({ kind: "aborted" });
    expect(socket.sent).toEqual([]);
  });

  test("by closing the engine ends too", async () => {
    const { clock, engine, socket } = start(() => []);
    const pending = engine.ping(REQUEST);
    engine.close();
    expect(socket.isClosed).toBe(true);
    expect(await pending).toEqual({ kind: "aborted" });
    expect(engine.outstanding()).toBe(0);
    await clock.advance(1);
    expect(clock.pending).toBe(0);
  });
});

test("200 pings at once to live, dead and lossy targets keep their answers apart", async () => {
  const address = (index: number) => parseIpv6(`2001:db8:ffff::${(index + 1).toString(16)}`);
  const network: Network = (packet, sentMs) => {
    const index = packet.target.word3 - 1;
    const dead = index % 3 === 1;
    const lossy = index % 3 === 2 && Math.floor(sentMs / 7) % 4 === 0;
    if (dead || lossy) return [];
    const hopLimit = index % 256;
    return [{ delayMs: 1 + index, from: packet.target, message: echoReply(packet), hopLimit }];
  };
  const { clock, engine } = start(network);
  const request = { ...REQUEST, count: 10, intervalMs: 50 };
  const pings = Array.from({ length: 200 }, (_, index) =>
    engine.ping({ ...request, target: address(index) }),
  );
  const outcomes = await clock.run(Promise.all(pings));
  for (const [index, outcome] of outcomes.entries()) {
    if (outcome.kind !== "done") throw new Error(outcome.kind);
    for (const { rtt, ttl } of outcome.results) {
      expect([rtt, ttl]).toEqual([1 + index, index % 256]);
    }
    expect(outcome.results.length + outcome.lost.length).toBe(10);
    if (index % 3 === 0) expect(outcome.lost).toEqual([]);
    if (index % 3 === 1) expect(outcome.results).toEqual([]);
  }
  expect([engine.outstanding(), clock.pending]).toEqual([0, 0]);
  expect(engine.counters).toMatchObject({ duplicate: 0, late: 0, forged: 0, unknown: 0 });
});
