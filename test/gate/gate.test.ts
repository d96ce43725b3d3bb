import { expect, test } from "bun:test";
import { type IpAddress, tryParseIp } from "../../src/addr/ip.ts";
import { PACKETS_PER_SECOND, SYN_PAUSE_MS } from "../../src/gate/bounds.ts";
import { type Caller, Gate } from "../../src/gate/gate.ts";
import { randomFrom } from "../lab/simulation.ts";
import { FakeClock, settle } from "../util/fake-clock.ts";

const NEVER = new AbortController().signal;
const VICTIM = tryParseIp("2001:db8:5::1") as IpAddress;
const HTTPS = { protocol: "tcp", port: 443 } as const;

/** A gate with a fake clock, and a log of what left when. */
function setUp() {
  const clock = new FakeClock();
  const gate = new Gate(clock);
  const left: { readonly client: string; readonly atMs: number }[] = [];
  const send = async (caller: Caller, where: object = {}, signal = NEVER) => {
    const leaving = { target: VICTIM, caller, ...where };
    const mayLeave = await gate.mayLeave(leaving, signal);
    if (mayLeave) left.push({ client: caller.client, atMs: clock.nowMs() });
    return mayLeave;
  };
  const many = (count: number, caller: Caller, where: object = {}) =>
    Array.from({ length: count }, () => send(caller, where));
  return { clock, gate, left, send, many };
}

/** The most that left within any second. */
function mostInASecond(times: readonly number[]): number {
  return Math.max(
    ...times.map((from) => times.filter((at) => at >= from && at < from + 1000).length),
  );
}

test("what meets no bound leaves at once", () => {
  const { gate } = setUp();
  const caller = { client: "a" };
  expect(gate.mayLeave({ target: VICTIM, probedPort: HTTPS, caller }, NEVER)).toBe(true);
  expect(gate.mayLeave({ target: VICTIM, caller }, NEVER)).toBe(true);
});

test.each(["2001:db8:5::1", "192.0.2.1"])(
  "a port of %s gets ten SYNs and connections a second, of all clients and hop limits that reach it together",
  async (ip) => {
    const { clock, left, many } = setUp();
    const target = tryParseIp(ip) as IpAddress;
    const all = ["a", "b", "c"].flatMap((client) => [
      ...many(20, { client }, { target, probedPort: HTTPS }),
      ...many(20, { client }, { target, probedPort: HTTPS, hopLimit: 64 }),
    ]);
    await clock.run(Promise.all(all));
    expect(left).toHaveLength(120);
    expect(mostInASecond(left.map(({ atMs }) => atMs))).toBeLessThanOrEqual(10);
  },
);

test("at a port, who sends little waits for turns, not for the floods of others", async () => {
  const { clock, left, many } = setUp();
  const floods = ["a", "b", "c"].flatMap((client) => many(100, { client }, { probedPort: HTTPS }));
  await clock.advance(1000);
  const honest = many(4, { client: "honest" }, { probedPort: HTTPS });
  const sinceMs = clock.nowMs();
  await clock.run(Promise.all(honest));
  // Four turns, each behind one of every flood, and the turn that was under way.
  expect(clock.nowMs() - sinceMs).toBeLessThanOrEqual((4 * 4 + 1) * SYN_PAUSE_MS);
  await clock.run(Promise.all(floods));
  expect(left).toHaveLength(304);
});

test("at a port, services that ask over NATS take turns, however many clients one of them names", async () => {
  const { clock, left, many } = setUp();
  const flood = Array.from({ length: 100 }, (_, at) =>
    many(1, { client: `nats one/${at}` }, { probedPort: HTTPS }),
  ).flat();
  await clock.advance(1000);
  const honest = many(4, { client: "nats two/a" }, { probedPort: HTTPS });
  const sinceMs = clock.nowMs();
  await clock.run(Promise.all(honest));
  // Four turns, each behind one of the flood, and the turn that was under way.
  expect(clock.nowMs() - sinceMs).toBeLessThanOrEqual((4 * 2 + 1) * SYN_PAUSE_MS);
  await clock.run(Promise.all(flood));
  expect(left).toHaveLength(104);
});

test("a network gets a thousand packets a second, and clients take turns there too", async () => {
  const { clock, left, many } = setUp();
  const sent = 3 * PACKETS_PER_SECOND;
  const flood = many(sent, { client: "flood" });
  await clock.advance(1);
  const honest = many(10, { client: "honest" });
  const honestMs = clock.nowMs();
  // A thousand leave at the same time, one behind the other.
  while (left.length < sent + 10) {
    await settle();
    if (left.length < sent + 10) clock.fire();
  }
  const honestLeft = left.filter(({ client }) => client === "honest").map(({ atMs }) => atMs);
  expect((honestLeft.at(-1) as number) - honestMs).toBeLessThanOrEqual(1000);
  await Promise.all([...flood, ...honest]);
  const times = left.map(({ atMs }) => atMs);
  for (const [at, atMs] of times.entries()) {
    const before = times[at - PACKETS_PER_SECOND];
    if (before !== undefined) expect(atMs - before).toBeGreaterThanOrEqual(1000);
  }
});

test("begun and aborted over and over, connections count as those that go on", async () => {
  const { clock, left, send } = setUp();
  for (let round = 0; round < 200; round++) {
    const gone = new AbortController();
    const begun = [1, 2, 3].map(() => send({ client: "a" }, { probedPort: HTTPS }, gone.signal));
    await clock.advance(10);
    gone.abort();
    await clock.run(Promise.all(begun));
  }
  // Two seconds.
  expect(left.length).toBeLessThanOrEqual(21);
  expect(left.length).toBeGreaterThanOrEqual(18);
});

test("a run is told when it begins to wait, and at the end how long; nothing else is kept", async () => {
  const { clock, gate, send } = setUp();
  const told: (string | number)[] = [];
  const onWaiting = () => told.push("waits");
  const caller = { client: "a", onWaiting, onWaited: (ms: number) => told.push(Math.round(ms)) };
  await send(caller, { probedPort: HTTPS });
  expect(told).toEqual([]);
  const gone = new AbortController();
  const waiting = [
    send(caller, { probedPort: HTTPS }),
    send(caller, { probedPort: HTTPS }),
    send(caller, { probedPort: HTTPS }, gone.signal),
  ];
  gone.abort();
  expect(await clock.run(Promise.all(waiting))).toEqual([true, true, false]);
  expect(told).toEqual(["waits", 2 * SYN_PAUSE_MS]);
  expect(clock.pending).toBe(0);
  expect(Object.values(gate.counts())).toEqual([0, 0]);
});

test("the announced wait is the longest that turns can take: 300 random crowds", async () => {
  for (let seed = 1; seed <= 300; seed++) {
    const random = randomFrom(seed);
    const { clock, gate, many } = setUp();
    const callers: Caller[] = [];
    const runs: Promise<unknown>[] = [];
    const others = 1 + Math.floor(random() * 8);
    for (let other = 0; other < others; other++) {
      const caller = { client: `client ${Math.floor(random() * 4)}` };
      const count = 1 + Math.floor(random() * 20);
      gate.expect({ target: VICTIM, probedPort: HTTPS }, caller, count);
      runs.push(...many(count, caller, { probedPort: HTTPS }));
      callers.push(caller);
      await clock.advance(random() * 500);
    }
    const count = 1 + Math.floor(random() * 10);
    const own = { client: "own" };
    const waitMs = gate.expect({ target: VICTIM, probedPort: HTTPS }, own, count);
    const beginMs = clock.nowMs();
    await clock.run(Promise.all(many(count, own, { probedPort: HTTPS })));
    expect(clock.nowMs() - beginMs).toBeLessThanOrEqual(waitMs + 2 * SYN_PAUSE_MS);
    await clock.run(Promise.all(runs));
    for (const caller of [...callers, own]) gate.forget(caller);
    expect(Object.values(gate.counts())).toEqual([0, 0]);
  }
});
