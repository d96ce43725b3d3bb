import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import { ProbeSlots } from "../../src/limits/probe-slots.ts";

const NEVER = new AbortController().signal;

/** Runs that last until the test ends them. */
function setUp(limit: number, keepsRoom = false) {
  const slots = new ProbeSlots(limit, keepsRoom);
  const ends: { client: string; end: () => void }[] = [];
  const outcomes: string[] = [];
  const begin = async (client: string, signal = NEVER) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const release = await slots.take(client, signal);
    if (release === null) {
      outcomes.push(`${client} has no slot`);
      return;
    }
    outcomes.push(`${client} runs`);
    ends.push({ client, end: resolve });
    await promise;
    release();
  };
  /** Ends the oldest run of a client. */
  const end = async (client: string) => {
    const at = ends.findIndex((run) => run.client === client);
    ends.splice(at, 1)[0]?.end();
    await settle();
  };
  return { slots, begin, end, outcomes };
}

/** Settles every promise that can be settled. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
}

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

describe("probe slots", () => {
  test("one key alone may use them all, and is refused at once beyond that", async () => {
    const { begin, outcomes, slots } = setUp(2);
    for (let run = 0; run < 3; run++) void begin("a");
    await settle();
    expect(outcomes).toEqual(["a runs", "a runs", "a has no slot"]);
    expect(slots.running).toBe(2);
  });

  test("another key waits for the next free slot, ahead of the one that has its share", async () => {
    const { begin, end, outcomes } = setUp(2);
    void begin("a");
    void begin("a");
    void begin("b");
    void begin("a");
    await settle();
    expect(outcomes).toEqual(["a runs", "a runs", "a has no slot"]);
    await end("a");
    expect(outcomes.at(-1)).toBe("b runs");
  });

  test("a client waits for no more than its share of the slots", async () => {
    const { begin, end, outcomes } = setUp(4);
    for (let run = 0; run < 4; run++) void begin("a");
    for (let run = 0; run < 3; run++) void begin("b");
    await settle();
    expect(outcomes.slice(4)).toEqual(["b has no slot"]);
    for (let run = 0; run < 3; run++) await end("a");
    expect(outcomes.slice(5)).toEqual(["b runs", "b runs"]);
  });

  test("a free slot goes to those who wait, not to a newcomer", async () => {
    const { begin, end, outcomes } = setUp(1);
    void begin("a");
    void begin("b");
    await settle();
    const ended = end("a");
    void begin("c");
    await ended;
    expect(outcomes).toEqual(["a runs", "b runs"]);
    await end("b");
    expect(outcomes).toEqual(["a runs", "b runs", "c runs"]);
  });

  test("no one waits longer than five seconds", async () => {
    const { begin, outcomes, slots } = setUp(1);
    void begin("a");
    void begin("b");
    jest.advanceTimersByTime(4_999);
    await settle();
    expect(outcomes).toEqual(["a runs"]);
    jest.advanceTimersByTime(1);
    await settle();
    expect(outcomes).toEqual(["a runs", "b has no slot"]);
    expect(slots.running).toBe(1);
  });

  test("a client that disconnects while it waits leaves no trace", async () => {
    const { begin, end, outcomes, slots } = setUp(1);
    const client = new AbortController();
    void begin("a");
    void begin("b", client.signal);
    client.abort();
    await settle();
    expect(outcomes).toEqual(["a runs", "b has no slot"]);
    await end("a");
    expect(slots.running).toBe(0);
    expect(jest.getTimerCount()).toBe(0);
  });

  test("a client that disconnected before it gets a free slot leaves it free", async () => {
    const { begin, outcomes, slots } = setUp(1);
    await begin("a", AbortSignal.abort());
    expect(outcomes).toEqual(["a has no slot"]);
    expect(slots.running).toBe(0);
  });

  test("a slot is given back once, however often its run ends", async () => {
    const { begin, slots, outcomes } = setUp(2);
    const release = await slots.take("a", NEVER);
    void begin("a");
    release?.();
    release?.();
    await settle();
    expect(slots.running).toBe(1);
    void begin("a");
    void begin("a");
    await settle();
    expect(outcomes).toEqual(["a runs", "a runs", "a has no slot"]);
  });
});

describe("slots that keep room", () => {
  test.each([
    [256, 1, 128],
    [256, 2, 86],
    [256, 8, 29],
    [1000, 1, 500],
    [1, 1, 1],
  ])("of %i slots, each of %i floods holds %i at most", (limit, floods, each) => {
    const { slots } = setUp(limit, true);
    const held = Array.from({ length: floods }, () => 0);
    for (let round = 0; round < limit; round++) {
      for (let flood = 0; flood < floods; flood++) {
        if (slots.tryTake(`flood ${flood}`)) held[flood] = (held[flood] ?? 0) + 1;
      }
    }
    expect(Math.max(...held)).toBe(each);
    if (limit > 1) expect(slots.tryTake("another")).not.toBeNull();
  });

  test("a flood waits behind itself: its next run begins when one of its own ends", async () => {
    const { begin, end, outcomes } = setUp(4, true);
    for (let run = 0; run < 3; run++) void begin("a");
    await settle();
    expect(outcomes).toEqual(["a runs", "a runs"]);
    void begin("b");
    await settle();
    expect(outcomes).toEqual(["a runs", "a runs", "b runs"]);
    await end("b");
    expect(outcomes).toHaveLength(3);
    await end("a");
    expect(outcomes.slice(3)).toEqual(["a runs"]);
  });

  test("5,000 random steps: no more than the limit, none lost, and who has none waits for no flood", async () => {
    const { begin, end, outcomes, slots } = setUp(32, true);
    const running = new Map<string, number>();
    let state = 11;
    const random = (bound: number) => {
      state = (state * 48271) % 0x7fffffff;
      return state % bound;
    };
    let seen = 0;
    let honest = 0;
    const note = () => {
      for (const outcome of outcomes.slice(seen)) {
        const [client = "", says] = outcome.split(" ");
        if (says === "runs") running.set(client, (running.get(client) ?? 0) + 1);
      }
      seen = outcomes.length;
    };
    for (let step = 0; step < 5_000; step++) {
      const flood = `flood${random(4)}`;
      for (let more = random(12); more > 0; more--) void begin(flood);
      if (step % 7 === 0) {
        void begin(`honest${step}`);
        await settle();
        honest += Number(outcomes.includes(`honest${step} runs`));
        await end(`honest${step}`);
        note();
        running.delete(`honest${step}`);
      }
      const ending = [...running.keys()][random(running.size || 1)];
      if (ending !== undefined && (running.get(ending) ?? 0) > 0) {
        running.set(ending, (running.get(ending) ?? 0) - 1);
        await end(ending);
      }
      await settle();
      note();
      const sum = [...running.values()].reduce((total, held) => total + held, 0);
      expect(slots.running).toBe(sum);
      expect(sum).toBeLessThanOrEqual(32);
      outcomes.length = 0;
      seen = 0;
    }
    expect(honest).toBe(Math.ceil(5_000 / 7));
  });
});
