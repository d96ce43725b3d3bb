import { describe, expect, test } from "bun:test";
import type { Ipv6Address } from "../../src/addr/ipv6.ts";
import { internetChecksum } from "../../src/icmp/checksum.ts";
import { LIMITS } from "../../src/icmp/limits.ts";
import { type ProbeEvent, Prober, type RunPlan, TARGET_BUSY } from "../../src/icmp/prober.ts";
import type { OutgoingPacket } from "../../src/icmp/socket.ts";
import { parseIpv6 } from "../addr/parse.ts";
import {
  countingRandom,
  echoReply,
  FakeSocket,
  icmpError,
  type Network,
  SOURCE,
  VirtualClock,
} from "./fake.ts";

const TARGET = parseIpv6("2001:db8:ffff::2");
const ROUTER = parseIpv6("2001:db8:0:1::1");
const STRANGER = parseIpv6("2001:db8:bad::1");
const PLAN: RunPlan = {
  target: TARGET,
  scopeId: 0,
  source: SOURCE,
  flowLabel: 0x12345,
  timeoutMs: 1000,
  maxProbes: 10,
};

const silence: Network = () => [];

function start(network: Network = silence, plan = PLAN, sendBufferBytes?: number) {
  const clock = new VirtualClock();
  const socket = new FakeSocket(clock, network, sendBufferBytes);
  const prober = new Prober(socket.open, clock, countingRandom());
  const events: ProbeEvent[] = [];
  const run = prober.open(plan, (event) => events.push(event));
  const deliver = (message: Uint8Array, from = TARGET, scopeId = 0) =>
    socket.deliver({
      source: from,
      message,
      hopLimit: 60,
      scopeId,
      receivedNs: clock.nowNs(),
    });
  return { clock, socket, prober, run, events, deliver };
}

/** A copy with one byte changed. */
function spoil(bytes: Uint8Array, at: number): Uint8Array {
  const copy = bytes.slice();
  copy[at] = (copy[at] as number) ^ 0xff;
  return copy;
}

const COOKIE_AT = 8;
const QUOTED = 48;

describe("which packet answers a probe", () => {
  const reply = echoReply;
  const exceeded = (packet: OutgoingPacket) => icmpError(packet, 3, 0);
  type Row = readonly [
    name: string,
    message: (packet: OutgoingPacket) => Uint8Array,
    from: typeof TARGET,
    counter: string,
    events: number,
  ];
  const rows: readonly Row[] = [
    ["the target's reply", reply, TARGET, "answered", 1],
    [
      "a reply with another first cookie byte",
      (p) => spoil(reply(p), COOKIE_AT),
      TARGET,
      "forged",
      0,
    ],
    ["a reply with another last cookie byte", (p) => spoil(reply(p), 15), TARGET, "forged", 0],
    ["a reply that ends in the cookie", (p) => reply(p).subarray(0, 15), TARGET, "forged", 0],
    ["a reply without data", (p) => reply(p).subarray(0, 8), TARGET, "forged", 0],
    ["a right reply from a stranger", reply, STRANGER, "wrongSource", 0],
    ["a reply with another sequence", (p) => spoil(reply(p), 7), TARGET, "unknown", 0],
    ["a reply with another tag", (p) => spoil(reply(p), 4), TARGET, "unknown", 0],
    ["a reply with another run", (p) => spoil(reply(p), 5), TARGET, "unknown", 0],
    ["a router's error", exceeded, ROUTER, "answered", 1],
    [
      "an error that quotes a foreign destination",
      (p) => icmpError(p, 3, 0, { destination: STRANGER }),
      ROUTER,
      "forged",
      0,
    ],
    ["an error with another cookie", (p) => spoil(exceeded(p), QUOTED + 8), ROUTER, "forged", 0],
    [
      "an error with part of another cookie",
      (p) => spoil(icmpError(p, 3, 0, { quoteBytes: 50 }), QUOTED + 9),
      ROUTER,
      "forged",
      0,
    ],
    [
      "an error that quotes 40 + 8 bytes",
      (p) => icmpError(p, 3, 0, { quoteBytes: 48 }),
      ROUTER,
      "withoutCookie",
      1,
    ],
    [
      "an error that quotes 40 + 8 bytes to a foreign destination",
      (p) => icmpError(p, 3, 0, { quoteBytes: 48, destination: STRANGER }),
      ROUTER,
      "forged",
      0,
    ],
    [
      "an error that quotes 40 + 7 bytes",
      (p) => icmpError(p, 3, 0, { quoteBytes: 47 }),
      ROUTER,
      "malformed",
      0,
    ],
    [
      "an error about another sequence",
      (p) => spoil(exceeded(p), QUOTED + 7),
      ROUTER,
      "unknown",
      0,
    ],
    ["an error about an echo reply", (p) => spoil(exceeded(p), QUOTED), ROUTER, "malformed", 0],
    ["the request itself", (p) => p.message, TARGET, "malformed", 0],
    [
      "a neighbour solicitation",
      (p) => Uint8Array.of(135, ...p.message.subarray(1)),
      TARGET,
      "malformed",
      0,
    ],
    ["three bytes", (p) => p.message.subarray(0, 3), TARGET, "malformed", 0],
  ];
  test.each(rows)("%s", (_name, message, from, counter, count) => {
    const { run, socket, prober, events, deliver } = start();
    run.send(1, 64);
    deliver(message(socket.sent[0] as OutgoingPacket), from);
    expect(events).toHaveLength(count);
    expect(prober.counters[counter as "answered"]).toBe(1);
    expect(run.outstanding).toBe(1 - count);
  });

  test("a link-local target's reply counts on the interface of its zone only", () => {
    const target = parseIpv6("fe80::2");
    const { run, socket, prober, events, deliver } = start(silence, {
      ...PLAN,
      target,
      scopeId: 3,
    });
    run.send(1, 64);
    const message = echoReply(socket.sent[0] as OutgoingPacket);
    deliver(message, target, 4);
    expect([events.length, prober.counters.wrongSource]).toEqual([0, 1]);
    deliver(message, target, 3);
    expect([events.length, prober.counters.answered]).toEqual([1, 1]);
  });
});

describe("when an answer comes", () => {
  test("a second time, it is a duplicate", () => {
    const { run, socket, prober, events, deliver } = start();
    run.send(7, 64);
    const packet = socket.sent[0] as OutgoingPacket;
    deliver(echoReply(packet));
    deliver(echoReply(packet));
    deliver(icmpError(packet, 1, 4));
    expect(events.map(({ kind, label }) => [kind, label])).toEqual([
      ["answer", 7],
      ["duplicate", 7],
      ["duplicate", 7],
    ]);
    expect(prober.counters).toMatchObject({ answered: 1, duplicate: 2 });
  });

  test("behind an error, the target's reply counts, and nothing behind that", () => {
    const { run, socket, events, deliver } = start();
    run.send(7, 64);
    const packet = socket.sent[0] as OutgoingPacket;
    deliver(icmpError(packet, 1, 0), ROUTER);
    deliver(icmpError(packet, 1, 0), ROUTER);
    deliver(echoReply(packet));
    deliver(icmpError(packet, 1, 0), ROUTER);
    expect(events.map(({ kind, answer }) => [kind, answer.kind])).toEqual([
      ["answer", "error"],
      ["duplicate", "error"],
      ["answer", "reply"],
      ["duplicate", "error"],
    ]);
    expect(run.outstanding).toBe(0);
  });

  test("that does not tell whether the probe arrives, the probe is still open", () => {
    const { run, socket, prober, events, deliver } = start();
    run.send(7, 64);
    deliver(icmpError(socket.sent[0] as OutgoingPacket, 3, 1));
    expect([events.length, run.outstanding, prober.counters.beside]).toEqual([0, 1, 1]);
  });

  test.each([
    [1000, "answer"],
    [1000.001, "late"],
  ] as const)("after %p ms of 1000, it is: %s", (ms, kind) => {
    const { run, socket, clock, events, deliver } = start();
    run.send(1, 64);
    clock.block(ms);
    deliver(echoReply(socket.sent[0] as OutgoingPacket));
    expect(events.map((event) => event.kind)).toEqual([kind]);
    expect(run.outstanding).toBe(0);
  });

  test("after the end of the run, it is counted as late and nobody is told", () => {
    const { run, socket, prober, events, deliver } = start();
    run.send(1, 64);
    run.close();
    deliver(echoReply(socket.sent[0] as OutgoingPacket));
    expect(events).toEqual([]);
    expect(prober.counters).toMatchObject({ answered: 0, late: 1 });
    expect(prober.outstanding).toBe(0);
  });

  test("in another order, each finds its probe", () => {
    const { run, socket, events, deliver } = start();
    for (const label of [1, 2, 3]) run.send(label, 64);
    for (const index of [2, 0, 1]) deliver(echoReply(socket.sent[index] as OutgoingPacket));
    expect(events.map(({ label }) => label)).toEqual([3, 1, 2]);
  });

  test.each([
    ["the kernel's time counts, not the reading of the packet", 10, 50, 10],
    ["received before it was sent: the clock was set, the reading counts", -3_600_000, 50, 50],
    ["received when it was sent", 0, 0, 0],
  ])("%s", (_name, receivedMs, readMs, rttMs) => {
    const { run, socket, clock, events } = start();
    const sentNs = clock.nowNs();
    run.send(1, 64);
    clock.block(readMs);
    const message = echoReply(socket.sent[0] as OutgoingPacket);
    const receivedNs = sentNs + receivedMs * 1e6;
    socket.deliver({ source: TARGET, message, hopLimit: 60, scopeId: 0, receivedNs });
    expect(events[0]?.answer.rttMs).toBe(rttMs);
  });
});

describe("what goes out", () => {
  test("all probes of a run have one checksum, identifier and flow label", () => {
    const { run, socket, clock } = start(silence, { ...PLAN, maxProbes: 5000 });
    for (let label = 0; label < 5000; label++) {
      run.send(label, 1 + (label % 64));
      clock.block(1);
    }
    const flows = new Set(
      socket.sent.map(({ message, flowLabel }) =>
        [internetChecksum(message), message[4], message[5], flowLabel].join(),
      ),
    );
    expect(flows.size).toBe(1);
    expect(new Set(socket.sent.map(({ message }) => message.subarray(6, 16).join())).size).toBe(
      5000,
    );
  });

  test("once the kernel has not taken the flow label, all probes have none, and the run says so", () => {
    const { run, socket } = start();
    run.send(1, 64);
    socket.takesLabels = false;
    run.send(2, 64);
    socket.takesLabels = true;
    run.send(3, 64);
    expect(socket.sent.map(({ flowLabel }) => flowLabel)).toEqual([0x12345, 0, 0]);
    expect(run.flowLabel).toBe(0);
  });

  describe("to neighbours that may not be there, no more than half of the socket's room", () => {
    const HALF = 4;
    const ROOM = 2 * HALF * LIMITS.queuedProbeBytes;

    function full() {
      const lab = start(silence, PLAN, ROOM);
      for (let label = 0; label < HALF; label++) expect(lab.run.send(label, 64)).toBeNull();
      expect(lab.run.send(HALF, 64)).toBe(TARGET_BUSY);
      return { ...lab, first: lab.socket.sent[0] as OutgoingPacket };
    }

    test("over all runs to their /64", () => {
      const { prober } = full();
      const other = (target: string) =>
        prober.open({ ...PLAN, target: parseIpv6(target) }, () => {}).send(1, 64);
      expect(other("2001:db8:ffff::99")).toBe(TARGET_BUSY);
      expect(other("2001:db8:fffe::2")).toBeNull();
    });

    test.each<[string, (packet: OutgoingPacket) => Uint8Array, Ipv6Address]>([
      ["a reply", echoReply, TARGET],
      ["an error from the way", (packet) => icmpError(packet, 3, 0), ROUTER],
    ])("until %s is heard: they have left", (_, answer, from) => {
      const { run, prober, first, deliver } = full();
      deliver(answer(first), from);
      const other = prober.open(PLAN, () => {});
      for (let label = 0; label < HALF; label++) expect(other.send(label, 64)).toBeNull();
      expect(other.send(HALF, 64)).toBe(TARGET_BUSY);
      expect(run.send(HALF, 64)).toBeNull();
    });

    test("or until the kernel has given them up; its own word is nothing heard", () => {
      const { run, first, clock, deliver } = full();
      deliver(icmpError(first, 1, 3), SOURCE);
      clock.block(LIMITS.neighbourMs - 1);
      expect(run.send(HALF, 64)).toBe(TARGET_BUSY);
      clock.block(1);
      expect(run.send(HALF, 64)).toBeNull();
    });
  });

  test("a probe that the kernel refuses is not outstanding", () => {
    const { run, prober } = start(() => "EPERM");
    expect(run.send(1, 64)).toBe("EPERM");
    expect(run.outstanding).toBe(0);
    expect(prober.counters).toMatchObject({ sent: 0, refused: 1 });
  });

  test("100,000 probes in runs of ten are all told apart", () => {
    const { socket, prober, clock, deliver } = start();
    let wrong = 0;
    let answered = 0;
    for (let first = 0; first < 100_000; first += 10) {
      const run = prober.open(PLAN, ({ label, kind }) => {
        answered++;
        if (kind !== "answer" || Math.floor(label / 10) * 10 !== first) wrong++;
      });
      for (let label = first; label < first + 10; label++) run.send(label, 64);
      for (const packet of socket.sent.splice(0)) deliver(echoReply(packet));
      run.close();
      clock.block(10);
    }
    expect([answered, wrong]).toEqual([100_000, 0]);
  });

  /** The byte of the run and the sequence, which follow the tag. */
  const keyOf = ({ message }: OutgoingPacket) =>
    new DataView(message.buffer).getUint32(4) % 2 ** 24;

  test("the key of a run says nothing about the next one's: a forged error that quotes no cookie must guess it", () => {
    const { socket, prober, clock } = start();
    const RUNS = 2000;
    for (let count = 0; count < RUNS; count++) {
      prober.open(PLAN, () => {}).send(1, 64);
      clock.block(1);
    }
    const keys = socket.sent.map(keyOf);
    const steps = keys.slice(1).map((key, at) => (key - (keys[at] as number) + 2 ** 24) % 2 ** 24);
    expect(new Set(steps).size).toBeGreaterThan(RUNS * 0.99);
    expect(steps.filter((step) => step <= PLAN.maxProbes)).toBeEmpty();
    // Each sixteenth of all keys is used about as often as any other.
    const used = Array.from({ length: 16 }, (_, part) => keys.filter((key) => key >> 20 === part));
    for (const { length } of used) expect(length).toBeWithin(RUNS / 32, RUNS / 8);
  });

  test("a run begins where the random source says, unless a key there is open or in quarantine", () => {
    const clock = new VirtualClock();
    const socket = new FakeSocket(clock, silence);
    const places: [number, number, number][] = [];
    const random = (bytes: Uint8Array) => {
      if (bytes.length === 3) bytes.set(places.shift() ?? [0, 0, 0]);
    };
    const prober = new Prober(socket.open, clock, random);
    const begin = (...tried: typeof places) => {
      places.splice(0, Infinity, ...tried);
      const run = prober.open(PLAN, () => {});
      const errno = run.send(1, 64);
      const sent = socket.sent.pop();
      return { run, key: sent === undefined ? errno : keyOf(sent) };
    };
    const first = begin([7, 1, 0]);
    expect(first.key).toBe(0x070100);
    // What the first may still send is taken too; what lies directly beside it is not.
    expect(begin([7, 1, 9], [7, 0, 247], [7, 1, 10]).key).toBe(0x07010a);
    expect(begin([7, 0, 246]).key).toBe(0x0700f6);
    first.run.close();
    // Behind its end only what it has sent is taken.
    expect(begin([7, 1, 0], [7, 1, 0], [9, 0, 0]).key).toBe(0x090000);
    clock.block(PLAN.timeoutMs + LIMITS.quarantineMs);
    expect(begin([7, 1, 0]).key).toBe(0x070100);
    // All sequences have room behind the first.
    expect(begin([1, 255, 255]).key).toBeLessThanOrEqual(0x020000 - PLAN.maxProbes);
    const taken = Array.from({ length: 2 * LIMITS.maxKeyTries }, () => [9, 0, 0] as [9, 0, 0]);
    expect(begin(...taken).key).toBe("ENOBUFS");
    expect(places).toHaveLength(LIMITS.maxKeyTries);
  });

  test("an identifier and sequence come again only after the timeout and the quarantine", () => {
    const { socket, prober, clock } = start();
    const seen = new Map<string, number>();
    const quarantineMs = PLAN.timeoutMs + LIMITS.quarantineMs;
    let soonestMs = Infinity;
    for (let count = 0; count < 600; count++) {
      const run = prober.open({ ...PLAN, maxProbes: 65_536 }, () => {});
      run.send(1, 64);
      run.close();
      const packet = socket.sent.pop();
      if (packet !== undefined) {
        const key = packet.message.subarray(4, 8).join();
        soonestMs = Math.min(soonestMs, clock.nowMs - (seen.get(key) ?? -Infinity));
        seen.set(key, clock.nowMs);
      }
      clock.block(30);
    }
    expect(seen.size).toBe(256);
    expect(soonestMs).toBeGreaterThanOrEqual(quarantineMs);
    expect(prober.counters.sent).toBeGreaterThan(256);
    expect(prober.counters.sent).toBeLessThan(600);
  });

  test("no more probes are remembered than the limit allows", () => {
    const { prober } = start();
    const results = new Map<string | null, number>();
    const PROBES = 512;
    const RUNS = LIMITS.maxProbes / PROBES + 1;
    for (let number = 1; number <= RUNS; number++) {
      const plan = { ...PLAN, target: { ...TARGET, word1: number }, maxProbes: PROBES };
      const { send } = prober.open(plan, () => {});
      for (let label = 0; label < PROBES; label++) {
        const result = send(label, 64);
        results.set(result, (results.get(result) ?? 0) + 1);
      }
    }
    expect(results).toEqual(
      new Map([
        [null, LIMITS.maxProbes],
        ["ENOBUFS", PROBES],
      ]),
    );
  });

  test("no more probes a second go to one /64 than the limit allows, over all runs", () => {
    const { prober, clock } = start();
    const plan = { ...PLAN, maxProbes: 65_536 };
    const neighbours = [TARGET, { ...TARGET, word3: 99 }, { ...TARGET, word2: 1 }];
    const runs = neighbours.map((target) => prober.open({ ...plan, target }, () => {}));
    const elsewhere = prober.open({ ...plan, target: { ...TARGET, word1: 99 } }, () => {});
    let sent = 0;
    let busy = 0;
    const SECONDS = 3;
    for (let ms = 0; ms < SECONDS * 1000; ms++) {
      for (const run of runs) {
        if (run.send(1, 64) === null) sent++;
        else busy++;
      }
      expect(elsewhere.send(1, 64)).toBeNull();
      clock.block(1);
    }
    expect(sent).toBeLessThanOrEqual(LIMITS.targetBurst + SECONDS * LIMITS.targetProbesPerSecond);
    expect(sent).toBeGreaterThan(SECONDS * LIMITS.targetProbesPerSecond);
    expect(busy).toBeGreaterThan(0);
  });
});
