/** How each engine ends a run that meets its budget: with what it has, and with nothing beyond. */
import { describe, expect, test } from "bun:test";
import { ENOUGH, type RunBudget } from "../../src/tools/budget.ts";
import type { MtrOutcome } from "../../src/tools/mtr/engine.ts";
import { parseIpv6 } from "../addr/parse.ts";
import { openIcmp } from "../icmp/engines.ts";
import { icmpError, type Network, path, simulate, stationAddress } from "../icmp/fake.ts";

const HOPS = 8;
const TARGET = stationAddress(HOPS);

/** A chain whose routers answer each probe from another address. */
function hostile(): Network {
  let count = 0;
  const chain = path(Array.from({ length: HOPS }, (_, at) => ({ rttMs: at + 1 })));
  return (packet, sentMs) => {
    const answers = chain(packet, sentMs);
    if (typeof answers === "string" || packet.hopLimit >= HOPS) return answers;
    const from = parseIpv6(`2001:db8:ff::${(++count).toString(16)}`);
    return answers.map((each) => ({ ...each, from, message: icmpError(packet, 3, 0) }));
  };
}

/** A budget of a number of addresses. */
function budgetOf(most: number) {
  const controller = new AbortController();
  const admitted = new Set<string>();
  const end = () => {
    controller.abort(ENOUGH);
    return false;
  };
  const budget: RunBudget = {
    enough: controller.signal,
    admit: (hop, ip) => {
      if (ip === undefined) return true;
      const key = `${hop} ${ip}`;
      if (!admitted.has(key) && admitted.size >= most) return end();
      admitted.add(key);
      return true;
    },
    work: (task) => task(),
  };
  return { budget, admitted, end };
}

function start(network = hostile()) {
  const { clock, socket, options } = simulate(network);
  const engine = openIcmp(options);
  return { clock, socket, engine, startMs: clock.nowMs() };
}

const REQUEST = { target: TARGET, maxHops: 30, timeoutMs: 1000, scopeId: 0 };

describe("a run that meets its budget", () => {
  test.each([0, 1, 7, 8, 50, 99])(
    "mtr keeps the rounds that fit into %d addresses",
    async (most) => {
      const { clock, engine, socket, startMs } = start();
      const { budget, admitted } = budgetOf(most);
      const rounds: number[] = [];
      const outcome = (await clock.run(
        engine.mtr(
          { ...REQUEST, rounds: 100, intervalMs: 100 },
          { budget, onRound: (round) => rounds.push(round) },
        ),
      )) as Extract<MtrOutcome, { kind: "done" }>;
      expect(outcome.kind).toBe("done");
      expect(admitted.size).toBeLessThanOrEqual(most);
      const shown = outcome.hops.flatMap(({ addresses }) => addresses);
      expect(shown.length).toBeLessThanOrEqual(most);
      // The target has one address, each of the routers another one in each round.
      const fit = Math.floor(Math.max(0, most - 1) / (HOPS - 1));
      expect(rounds).toEqual(Array.from({ length: fit }, (_, at) => at + 1));
      expect(outcome.hops.every(({ sent }) => sent === fit)).toBe(true);
      expect(clock.nowMs() - startMs).toBeLessThan(5000);
      expect(engine.outstanding()).toBe(0);
      const sent = socket.sent.length;
      await clock.advance(3000);
      expect(socket.sent).toHaveLength(sent);
    },
  );

  test.each([10, 30, 100])("paths keep the labels that fit into %d addresses", async (most) => {
    const { clock, engine, startMs } = start();
    const { budget, admitted } = budgetOf(most);
    const outcome = await clock.run(engine.paths({ ...REQUEST, paths: 16 }, { budget }));
    expect(outcome).toMatchObject({ kind: "done", reached: true, complete: false });
    const nodes = "graph" in outcome ? outcome.graph.nodes : [];
    expect(nodes.filter(({ ip }) => ip !== null).length).toBeLessThanOrEqual(most);
    expect(admitted.size).toBeLessThanOrEqual(most);
    expect(clock.nowMs() - startMs).toBeLessThan(20_000);
  });

  test.each(["mtr", "paths"] as const)("%s sends nothing more", async (tool) => {
    const { clock, engine, socket } = start();
    const { budget, end } = budgetOf(1000);
    const request = { ...REQUEST, rounds: 50, intervalMs: 200, paths: 16 };
    const outcome = engine[tool](request, { budget });
    await clock.advance(250);
    end();
    const { length } = socket.sent;
    expect(await clock.run<object>(outcome)).toMatchObject({ kind: "done", reached: true });
    expect(socket.sent).toHaveLength(length);
    expect(engine.outstanding()).toBe(0);
  });

  test.each(["mtr", "paths"] as const)(
    "is %s that its caller leaves, and has no outcome",
    async (tool) => {
      const { clock, engine } = start();
      const { budget } = budgetOf(1000);
      const caller = new AbortController();
      const request = { ...REQUEST, rounds: 50, intervalMs: 200, paths: 16 };
      const outcome = engine[tool](request, { budget, signal: caller.signal });
      await clock.advance(150);
      caller.abort();
      expect(await clock.run<object>(outcome)).toEqual({ kind: "aborted" });
      expect(engine.outstanding()).toBe(0);
    },
  );
});
