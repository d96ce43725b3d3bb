/** The memory of a prober after a probe has ended: how much, and for how long. */

import "../../tools/scripted.ts";
import { heapStats } from "bun:jsc";
import { afterEach, beforeEach, describe, expect, jest, spyOn, test } from "bun:test";
import { Prober, QUARANTINE_MS, SWEEP_MS } from "../../../src/icmp/prober/prober.ts";
import { mtr } from "../../../src/tools/mtr/engine.ts";
import { measureMtu } from "../../../src/tools/mtu/engine.ts";
import { ping } from "../../../src/tools/ping/engine.ts";
import { echoReply, SOURCE, simulate, TARGET } from "../fake.ts";

const SIGNAL = new AbortController().signal;
const REQUEST = { target: TARGET, source: SOURCE, scopeId: 0, flowLabel: 1, timeoutMs: 20 };

/** The target's reply to a probe, as a socket receives it. */
const replyTo = (packet: Parameters<typeof echoReply>[0], receivedMs: number) =>
  ({ source: TARGET, message: echoReply(packet), hopLimit: 9, scopeId: 0, receivedMs }) as const;

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

/** A prober whose time and sweeps are the test's. */
function start() {
  const { clock, socket, options } = simulate(() => []);
  const prober = new Prober(options);
  let runs = 0;
  /** Lets probes of one run time out. */
  const silent = async (count: number, signal: AbortSignal, callback?: () => () => void) => {
    // Each run has its own /64, because those have a bound.
    const target = { ...TARGET, word1: ++runs };
    for (let sent = 0; sent < count; sent++) {
      const extra = callback ? { onResponse: callback() } : {};
      void prober.probe({ ...REQUEST, ...extra, target, signal, hopLimit: 9 });
    }
    socket.sent.length = 0;
    // Some are tried again, because their sequence is in use.
    await clock.advance(2 * REQUEST.timeoutMs + 2);
  };
  const sweep = () => jest.advanceTimersByTime(SWEEP_MS);
  return { clock, socket, prober, silent, sweep };
}

function heap() {
  Bun.gc(true);
  const { heapSize, objectCount } = heapStats();
  return { bytes: heapSize, objects: objectCount };
}

test("60,000 probes in quarantine take a kilobyte each, and time alone frees them", async () => {
  const { clock, prober, silent, sweep } = start();
  const RUNS = 120;
  const COUNT = RUNS * 500;
  const before = heap();
  for (let run = 0; run < RUNS; run++)
    await silent(500, prober.signalFor(undefined), () => () => {});
  expect([prober.outstanding, prober.counters.sent]).toEqual([0, COUNT]);
  expect((heap().bytes - before.bytes) / COUNT).toBeLessThan(1000);
  sweep();
  expect(jest.getTimerCount()).toBe(1);
  clock.block(QUARANTINE_MS + REQUEST.timeoutMs);
  sweep();
  // Nothing is left to sweep, and nothing was sent since.
  expect(jest.getTimerCount()).toBe(0);
  expect((heap().bytes - before.bytes) / COUNT).toBeLessThan(20);
});

describe("callbacks die", () => {
  const PROBES = 900;
  type Started = ReturnType<typeof start>;
  // biome-ignore format: a table
  test.each<[string, (started: Started) => void, boolean]>([
    ["not while their run goes on", ({ sweep }) => sweep(), false],
    ["with the quarantine", ({ clock, sweep }) => { clock.block(QUARANTINE_MS + 200); sweep(); }, true],
  ])("%s", async (_, end, isDead) => {
    const started = start();
    const signal = started.prober.signalFor(undefined);
    const callbacks: WeakRef<() => void>[] = [];
    await started.silent(PROBES, signal, () => {
      const callback = () => expect.unreachable();
      callbacks.push(new WeakRef(callback));
      return callback;
    });
    end(started);
    // A reference of this turn lives until the end of its turn.
    for (let turn = 0; turn < 3; turn++) {
      await new Promise(setImmediate);
      Bun.gc(true);
    }
    const left = callbacks.filter((callback) => callback.deref() !== undefined).length;
    if (isDead) expect(left).toBeLessThan(PROBES / 10);
    else expect(left).toBe(PROBES);
  });
});

describe("a run that is over calls back no more", () => {
  const trace = { target: TARGET, timeoutMs: 20, maxHops: 2 };
  const rounds = { rounds: 2, intervalMs: 10, ...trace };
  const traced = { kind: "done", source: SOURCE, flowLabel: 1, hops: [{}, {}], error: null };
  // biome-ignore format: a table
  test.each<[string, (prober: Prober) => Promise<unknown>]>([
    ["ping", (prober) => ping(prober, { target: TARGET, timeoutMs: 20, count: 2, intervalMs: 10 })],
    ["path MTU", (prober) => measureMtu(prober, trace)],
    ["mtr", (prober) => mtr(Object.assign(prober, { traceroute: async () => traced }), rounds)],
  ])("of a %s", async (_, run) => {
    const { clock, prober } = start();
    const probe = spyOn(prober, "probe");
    await clock.run(run(prober));
    const signals = probe.mock.calls.filter(([{ onResponse }]) => onResponse).map(([{ signal }]) => signal);
    expect(signals.length).toBeGreaterThan(1);
    expect(signals.filter(({ aborted }) => !aborted)).toEqual([]);
  });

  test("and its end leaves another's: its late answers are told", async () => {
    const { clock, socket, prober } = start();
    const ended = new AbortController();
    const told: string[] = [];
    const probe = (run: string, ...signals: AbortSignal[]) => {
      const onResponse = () => void told.push(run);
      const signal = prober.signalFor(...signals);
      void prober.probe({ ...REQUEST, signal, hopLimit: 9, onResponse });
    };
    probe("ended", ended.signal);
    probe("going on");
    await clock.advance(REQUEST.timeoutMs + 2);
    ended.abort();
    for (const packet of socket.sent) {
      const receivedMs = clock.nowMs();
      socket.deliver(replyTo(packet, receivedMs));
    }
    await clock.run(prober.listen(SIGNAL));
    expect(told).toEqual(["going on"]);
    expect(prober.counters).toMatchObject({ late: 2, unknown: 0 });
  });
});

test("runs that never end are forgotten with their last probes", async () => {
  const { clock, prober, silent, sweep } = start();
  const RUNS = 100;
  const signals: WeakRef<AbortSignal>[] = [];
  for (let run = 0; run < RUNS; run++) {
    const signal = prober.signalFor(undefined);
    signals.push(new WeakRef(signal));
    await silent(1, signal, () => () => {});
  }
  const left = async () => {
    // A reference of this turn lives until the end of its turn.
    for (let turn = 0; turn < 3; turn++) {
      await new Promise(setImmediate);
      Bun.gc(true);
    }
    return signals.filter((signal) => signal.deref() !== undefined).length;
  };
  sweep();
  expect(await left()).toBe(RUNS);
  clock.block(QUARANTINE_MS + 200);
  sweep();
  expect(await left()).toBeLessThan(RUNS / 4);
});

test("a late answer is counted before its probe is forgotten, also while nothing is sent", async () => {
  const { clock, socket, prober, sweep } = start();
  void prober.probe({ ...REQUEST, signal: SIGNAL, hopLimit: 9 });
  await clock.advance(REQUEST.timeoutMs + 2);
  const [packet] = socket.sent;
  if (packet === undefined) throw new Error("nothing was sent");
  const receivedMs = clock.nowMs();
  socket.deliver(replyTo(packet, receivedMs));
  clock.block(QUARANTINE_MS + 200);
  sweep();
  expect(prober.counters).toMatchObject({ late: 1, unknown: 0 });
});
