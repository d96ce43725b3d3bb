import { describe, expect, test } from "bun:test";
import { FairSlots } from "../../src/gate/fair-slots.ts";
import { randomFrom } from "../lab/simulation.ts";
import { settle } from "../util/fake-clock.ts";

const NEVER = new AbortController().signal;

/** Waits for a slot, and returns what gives it back, or ends the wait. */
function enter(slots: FairSlots, client: string, onEnter: () => void) {
  const gone = new AbortController();
  let leave = () => gone.abort();
  void slots.wait(client, gone.signal).then((got) => {
    if (got === null) return;
    leave = got;
    onEnter();
  });
  return async () => {
    leave();
    await settle();
  };
}

/** Enters clients, and logs who has a slot. */
function setUp(limit: number) {
  const slots = new FairSlots(limit);
  const log: string[] = [];
  const enterAs = (name: string) => enter(slots, name.replace(/\d+$/, ""), () => log.push(name));
  const enterAll = async (...names: readonly string[]) => {
    const leaves = names.map(enterAs);
    await settle();
    return leaves;
  };
  return { slots, log, enterAll };
}

describe("slots", () => {
  test.each([
    [256, 1, 128],
    [256, 2, 86],
    [256, 8, 29],
    [1000, 1, 500],
    [1, 1, 1],
  ])("of %i slots, each of %i floods holds %i at most", (limit, floods, each) => {
    const { slots } = setUp(limit);
    const held = Array.from({ length: floods }, () => 0);
    for (let round = 0; round < limit; round++) {
      for (let flood = 0; flood < floods; flood++) {
        if (slots.tryTake(`flood ${flood}`)) held[flood] = (held[flood] ?? 0) + 1;
      }
    }
    expect(Math.max(...held)).toBe(each);
    if (limit > 1) expect(slots.tryTake("another")).not.toBeNull();
  });

  test("clients that wait take turns, however much one of them wants", async () => {
    const { log, enterAll } = setUp(1);
    const leaves = await enterAll("a1", "a2", "a3", "a4", "b1", "c1", "b2");
    const order = [0, 1, 4, 5, 2, 6, 3];
    for (const at of order) await leaves[at]?.();
    expect(log).toEqual(["a1", "a2", "b1", "c1", "a3", "b2", "a4"]);
  });

  test("one that stops waiting takes no slot", async () => {
    const { log, enterAll, slots } = setUp(1);
    const [a, b, c] = await enterAll("a1", "b1", "c1");
    await b?.();
    await a?.();
    await c?.();
    expect(log).toEqual(["a1", "c1"]);
    expect(slots.isIdle).toBe(true);
  });

  test("a slot is given back once, however often its holder leaves", async () => {
    const { log, enterAll, slots } = setUp(2);
    const [leave] = await enterAll("a1", "b1");
    await leave?.();
    await leave?.();
    expect(slots.running).toBe(1);
    await enterAll("c1", "d1");
    expect(log).toEqual(["a1", "b1", "c1"]);
  });

  test("a client waits for no more than its share", async () => {
    const { slots } = setUp(4);
    const held = await Promise.all([slots.take("a", NEVER), slots.take("a", NEVER)]);
    const waiting = [slots.take("a", NEVER), slots.take("a", NEVER)];
    expect(await slots.take("a", NEVER)).toBeNull();
    for (const leave of held) leave?.();
    const got = await Promise.all(waiting);
    expect(got.every((leave) => leave !== null)).toBe(true);
  });

  test("who goes away while it waits leaves no trace", async () => {
    const { slots } = setUp(1);
    const gone = new AbortController();
    const leave = slots.tryTake("a");
    const waited = slots.wait("b", gone.signal);
    gone.abort();
    expect(await waited).toBeNull();
    expect(await slots.wait("c", AbortSignal.abort())).toBeNull();
    let told = 0;
    expect(await slots.take("c", AbortSignal.abort(), 1, () => told++)).toBeNull();
    expect(told).toBe(0);
    leave?.();
    expect(slots.isIdle).toBe(true);
  });
});

test("20,000 random steps: none lost or made, and whoever holds none waits for no flood", async () => {
  const random = randomFrom(7);
  const { slots } = setUp(16);
  /** What holds a slot or waits for one. */
  const entries: { readonly client: string; isIn: boolean; leave: () => Promise<void> }[] = [];
  for (let step = 0; step < 20_000; step++) {
    if (random() < 0.55) {
      const client = `flood ${Math.floor(random() * 4)}`;
      const entry = { client, isIn: false, leave: async () => {} };
      entry.leave = enter(slots, client, () => {
        entry.isIn = true;
      });
      entries.push(entry);
      await settle();
    } else {
      await entries.splice(Math.floor(random() * entries.length), 1)[0]?.leave();
    }
    if (step % 7 === 0) {
      const honest = slots.tryTake(`honest ${step}`);
      expect(honest).not.toBeNull();
      honest?.();
    }
    const running = entries.filter(({ isIn }) => isIn);
    expect(slots.running).toBe(running.length);
    if (running.length < entries.length) expect(running.length).toBeGreaterThanOrEqual(8);
  }
  for (const { leave } of entries) await leave();
  expect(slots.isIdle).toBe(true);
});

test("services take turns, and then the clients of each, however many it names", async () => {
  const slots = new FairSlots(1);
  const order: string[] = [];
  const many = Array.from({ length: 100 }, (_, of) => `a/${of}`);
  const at = ["first", ...many, "b/x", "b/x", "b/y", "c"];
  const leaves = at.map((client) => enter(slots, client, () => order.push(client)));
  await settle();
  // Only the one that holds the slot can leave it.
  for (let turn = 0; turn < 8; turn++) {
    const client = order.at(-1);
    const index = at.findIndex((each, of) => each === client && leaves[of] !== undefined);
    const leave = leaves[index];
    leaves[index] = undefined as never;
    await leave?.();
  }
  expect(order).toEqual(["first", "a/0", "b/x", "c", "a/1", "b/y", "a/2", "b/x", "a/3"]);
});
