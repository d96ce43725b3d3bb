/** The memory of a prober after a probe has ended: how much, and for how long. */

import { heapStats } from "bun:jsc";
import { afterEach, beforeEach, describe, expect, jest, spyOn, test } from "bun:test";
import {
  type ProbeRequest,
  Prober,
  QUARANTINE_MS,
  SWEEP_MS,
} from "../../../src/icmp/prober/prober.ts";
import { RememberedProbes } from "../../../src/icmp/prober/remembered.ts";
import { measureMtu } from "../../../src/tools/mtu/engine.ts";
import { ping } from "../../../src/tools/ping/engine.ts";
import { createTraceroute } from "../../../src/tools/trace/engine.ts";
import { echoReply, SOURCE, simulate, TARGET } from "../fake.ts";

const SIGNAL = new AbortController().signal;
const REQUEST = { target: TARGET, source: SOURCE, scopeId: 0, flowLabel: 1, timeoutMs: 20 };

/** The target's reply to a probe, as a socket receives it. */
const replyTo = (packet: Parameters<typeof echoReply>[0], receivedMs: number) =>
  ({ source: TARGET, message: echoReply(packet), hopLimit: 9, scopeId: 0, receivedMs }) as const;

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

/** A seeded generator of whole numbers below a bound. */
function seeded(): (bound: number) => number {
  let state = 7;
  return (bound) => {
    state = (state * 48271) % 0x7fffffff;
    return state % bound;
  };
}

test("50,000 steps: what is remembered is what a map of objects remembers", () => {
  const random = seeded();
  const probes = new RememberedProbes<
    Pick<ProbeRequest, "target" | "source" | "scopeId" | "flowLabel" | "timeoutMs">
  >();
  const model = new Map<number, { sentMs: number; freeMs: number; cookie: number; has: boolean }>();
  let added = 0;
  let most = 0;
  for (let nowMs = 0, step = 0; step < 50_000; step++) {
    // Bursts and pauses, so that it is empty at times and holds thousands at others.
    nowMs += random(2000) === 0 ? 3000 : random(3) / 4;
    probes.forget(nowMs);
    for (const [key, { freeMs }] of model) {
      if (freeMs > nowMs) break;
      model.delete(key);
    }
    const key = 2 ** 32 - 1 - random(6000);
    const known = model.get(key);
    const found = probes.get(key);
    if (known === undefined) {
      expect(found).toBeUndefined();
      const cookie = step & 0xff;
      const freeMs = nowMs + 900 + random(200);
      const request = { ...REQUEST, flowLabel: step, timeoutMs: step / 7 };
      expect(probes.add(key, new Uint8Array(8).fill(cookie), request, nowMs, freeMs)).toBe(added++);
      model.set(key, { sentMs: nowMs, freeMs, cookie, has: false });
    } else {
      expect(found?.sentMs).toBe(known.sentMs);
      expect([...(found?.cookie ?? [])]).toEqual(new Array(8).fill(known.cookie));
      expect(found?.hasResponse).toBe(known.has);
      expect(found?.request.target).toBe(TARGET);
      expect(found?.request.timeoutMs).toBe((found?.request.flowLabel ?? 0) / 7);
      known.has ||= random(2) === 0;
      if (known.has) probes.noteResponse(found?.number ?? -1);
    }
    expect(probes.numbers.size).toBe(model.size);
    most = Math.max(most, model.size);
  }
  expect(most).toBeGreaterThan(1024);
  expect(added).toBeGreaterThan(5 * most);
});

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
    await clock.pass(2 * REQUEST.timeoutMs + 2);
  };
  const sweep = () => jest.advanceTimersByTime(SWEEP_MS);
  return { clock, socket, prober, silent, sweep };
}

function heap() {
  Bun.gc(true);
  const { heapSize, objectCount } = heapStats();
  return { bytes: heapSize, objects: objectCount };
}

test("60,000 probes in quarantine take 300 bytes each and no objects, and time alone frees them", async () => {
  const { clock, prober, silent, sweep } = start();
  const RUNS = 120;
  const COUNT = RUNS * 500;
  const before = heap();
  for (let run = 0; run < RUNS; run++) await silent(500, prober.signalFor(undefined));
  expect([prober.outstanding, prober.counters.sent]).toEqual([0, COUNT]);
  const full = heap();
  expect((full.bytes - before.bytes) / COUNT).toBeLessThan(300);
  expect((full.objects - before.objects) / COUNT).toBeLessThan(0.5);
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
  test.each<[string, (started: Started, signal: AbortSignal, caller: AbortController) => void, boolean]>([
    ["not while their run goes on", ({ sweep }) => sweep(), false],
    ["with their run, at the next sweep", ({ prober, sweep }, signal) => { prober.endRun(signal); sweep(); }, true],
    ["with the caller, at the next sweep", ({ sweep }, _, caller) => { caller.abort(); sweep(); }, true],
    ["with the quarantine", ({ clock, sweep }) => { clock.block(QUARANTINE_MS + 200); sweep(); }, true],
  ])("%s", async (_, end, isDead) => {
    const started = start();
    const caller = new AbortController();
    const signal = started.prober.signalFor(caller.signal);
    const callbacks: WeakRef<() => void>[] = [];
    await started.silent(PROBES, signal, () => {
      const callback = () => expect.unreachable();
      callbacks.push(new WeakRef(callback));
      return callback;
    });
    end(started, signal, caller);
    // A reference of this turn lives until the end of its turn.
    for (let turn = 0; turn < 3; turn++) {
      await new Promise(setImmediate);
      Bun.gc(true);
    }
    const left = callbacks.filter((callback) => callback.deref() !== undefined).length;
    if (isDead) expect(left).toBeLessThan(PROBES / 10);
    else expect(left).toBe(PROBES);
  });

  const trace = { target: TARGET, timeoutMs: 20, maxHops: 2 };
  // biome-ignore format: a table
  test.each<[string, (prober: Prober) => Promise<unknown>]>([
    ["ping", (prober) => ping(prober, { target: TARGET, timeoutMs: 20, count: 2, intervalMs: 10 })],
    ["path MTU", (prober) => measureMtu(prober, createTraceroute(prober), trace)],
  ])("of a %s at its end", async (_, run) => {
    const { clock, prober } = start();
    const probe = spyOn(prober, "probe");
    const endRun = spyOn(prober, "endRun");
    await clock.run(run(prober));
    const signals = probe.mock.calls.filter(([{ onResponse }]) => onResponse).map(([{ signal }]) => signal);
    expect(signals.length).toBeGreaterThan(1);
    const ended = endRun.mock.calls.map(([signal]) => signal);
    const left = new Set(signals).difference(new Set(ended));
    expect([...left].filter(({ aborted }) => !aborted).length).toBe(0);
  });

  test("and one run's end leaves another's: its late answers are told", async () => {
    const { clock, socket, prober } = start();
    const told: string[] = [];
    const probe = (run: string) => {
      const signal = prober.signalFor(undefined);
      const onResponse = () => void told.push(run);
      void prober.probe({ ...REQUEST, signal, hopLimit: 9, onResponse });
      return signal;
    };
    const ended = probe("ended");
    probe("going on");
    await clock.pass(REQUEST.timeoutMs + 2);
    prober.endRun(ended);
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
  const RUNS = 20;
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
  await clock.pass(REQUEST.timeoutMs + 2);
  const [packet] = socket.sent;
  if (packet === undefined) throw new Error("nothing was sent");
  const receivedMs = clock.nowMs();
  socket.deliver(replyTo(packet, receivedMs));
  clock.block(QUARANTINE_MS + 200);
  sweep();
  expect(prober.counters).toMatchObject({ late: 1, unknown: 0 });
});
