/** Repeated probes of all hops, over simulated paths and real Linux routers. */
import "../scripted.ts";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { formatIpv6 } from "../../../src/addr/format.ts";
import { Prober } from "../../../src/icmp/prober/prober.ts";
import { type MtrOutcome, type MtrRequest, mtr } from "../../../src/tools/mtr/engine.ts";
import type { MtrReport } from "../../../src/tools/mtr/rounds.ts";
import { mtrVerdict } from "../../../src/tools/mtr/verdict.ts";
import type { Traced } from "../../../src/tools/trace/engine.ts";
import type { TraceHop } from "../../../src/tools/trace/responses.ts";
import { parseIpv6 } from "../../addr/parse.ts";
import { type IcmpEngine, openIcmp } from "../../icmp/engines.ts";
import {
  countingRandom,
  type FakeResponse,
  FakeSocket,
  icmpError,
  type Network,
  path,
  SOURCE,
  type Station,
  simulate,
  stationAddress,
} from "../../icmp/fake.ts";
import { type KernelChain, startKernelChain } from "../../lab/kernel-chain.ts";
import { describeWith, labMissing, programMissing } from "../../lab/lab.ts";
import { nftRule } from "../../lab/nft.ts";
import { run } from "../../lab/run.ts";
import { randomFrom } from "../../lab/simulation.ts";
import { FakeClock } from "../../util/fake-clock.ts";

type Done = Extract<MtrOutcome, { kind: "done" }>;

const REQUEST = { rounds: 10, intervalMs: 200, maxHops: 30, timeoutMs: 1000 };

function start(network: Network) {
  const { clock, socket, options } = simulate(network);
  const engine = openIcmp(options);
  return { clock, socket, engine, startMs: clock.nowMs() };
}

/** A chain of `count` stations. */
const stations = (count: number): Station[] =>
  Array.from({ length: count }, (_, index) => ({ rttMs: index + 1 }));

const counts = ({ hops }: MtrReport) => hops.map(({ sent, received }) => [sent, received]);

describe("over a simulated path", () => {
  test("no round begins while none may", async () => {
    const { clock, socket, engine } = start(path(stations(4)));
    const { promise, resolve } = Promise.withResolvers<void>();
    const request = { ...REQUEST, target: stationAddress(4) };
    const ended = engine.mtr(request, { mayGoOn: () => promise });
    await clock.advance(60_000);
    const held = socket.sent.length;
    await clock.advance(60_000);
    expect(socket.sent.length).toBe(held);
    resolve();
    expect(counts((await clock.run(ended)) as Done)).toEqual(Array(4).fill([10, 10]));
  });

  test("every hop is asked once a round, at the interval", async () => {
    const { clock, socket, engine } = start(path(stations(4)));
    const request = { ...REQUEST, target: stationAddress(4) };
    const traced = await clock.run(engine.traceroute(request));
    expect(traced.kind).toBe("done");
    socket.sent.length = 0;
    const outcome = (await clock.run(engine.mtr(request))) as Done;
    expect(counts(outcome)).toEqual(Array(4).fill([10, 10]));
    expect(outcome.hops.map(({ avg }) => avg)).toEqual([1, 2, 3, 4]);
    expect(outcome.hops.map(({ addresses }) => addresses)).toEqual(
      [1, 2, 3, 4].map((hop) => [
        { ip: formatIpv6(stationAddress(hop)), hostname: null, received: 10, share: 100 },
      ]),
    );
    const times = socket.sent.filter(({ hopLimit }) => hopLimit === 2).map(({ atMs }) => atMs);
    const steps = times.slice(2).map((atMs, at) => atMs - (times[at + 1] as number));
    expect(steps).toEqual(Array(9).fill(200));
    expect(engine.outstanding()).toBe(0);
  });

  test("each round is told in order, and the last one is the result", async () => {
    const lost = stations(3);
    lost[1] = { rttMs: 2, answers: (nth) => nth % 3 !== 2 };
    const { clock, engine } = start(path(lost));
    const told: [number, MtrReport][] = [];
    const outcome = (await clock.run(
      engine.mtr(
        { ...REQUEST, target: stationAddress(3) },
        { onRound: (...round) => told.push(round) },
      ),
    )) as Done;
    expect(told.map(([number]) => number)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    const { kind: _, source: __, flowLabel: ___, answers: ____, error, ...report } = outcome;
    expect(error).toBeNull();
    expect(told.at(-1)?.[1]).toEqual(report);
    expect(outcome.hops[1]).toMatchObject({ sent: 10, received: 6, cause: "unclear" });
  });

  test("a path that becomes longer is followed, and nothing is lost", async () => {
    const [short, long] = [path(stations(3)), path(stations(6))];
    const lab = start((packet, sentMs) => {
      const isShort = sentMs < lab.startMs + 500;
      // The target has one address at both distances.
      const answers = isShort ? short(packet, sentMs) : long(packet, sentMs);
      if (typeof answers === "string") return answers;
      const last = stationAddress(6);
      return answers.map((each) => (each.message[0] === 129 ? { ...each, from: last } : each));
    });
    const request = { ...REQUEST, target: stationAddress(6), rounds: 12 };
    const outcome = (await lab.clock.run(lab.engine.mtr(request))) as Done;
    expect(outcome.paths.map(({ addresses }) => addresses.length)).toEqual([3, 6]);
    expect(outcome.reached).toBe(true);
    for (const { sent, received } of outcome.hops) expect(received).toBe(sent);
  });

  test("a path that becomes longer where a router is silent is followed too", async () => {
    const [short, long] = [path(stations(3)), path(stations(6))];
    const target = stationAddress(6);
    const lab = start((packet, sentMs) => {
      const isShort = sentMs < lab.startMs + 500;
      if (!isShort && packet.hopLimit > 2 && packet.hopLimit < 6) return [];
      const answers = (isShort ? short : long)(packet, sentMs) as FakeResponse[];
      return answers.map((each) => (each.message[0] === 129 ? { ...each, from: target } : each));
    });
    const told: MtrReport[] = [];
    const onRound = (_: number, report: MtrReport) => told.push(report);
    const request = { ...REQUEST, target, rounds: 100 };
    await lab.clock.run(lab.engine.mtr(request, { onRound }));
    const received = told.map(({ toTarget }) => toTarget.received);
    expect((received[99] as number) - (received[69] as number)).toBe(30);
    expect(told[99]?.hops).toHaveLength(6);
  });

  test("a target that falls silent is looked for a few hops further, and its rows stay", async () => {
    const three = path(stations(3));
    const lab = start((packet, sentMs) =>
      sentMs > lab.startMs + 500 && packet.hopLimit > 2 ? [] : three(packet, sentMs),
    );
    const request = { ...REQUEST, target: stationAddress(3), rounds: 200 };
    const { hops, toTarget } = (await lab.clock.run(lab.engine.mtr(request))) as Done;
    expect([hops.length, toTarget.sent]).toEqual([3, 200]);
    const furthest = Math.max(...lab.socket.sent.slice(-20).map(({ hopLimit }) => hopLimit));
    expect(furthest).toBeLessThanOrEqual(3 + 8);
  });

  test("a target that is not there is asked as far as the path answers", async () => {
    const silent = stations(20).map((station, at) =>
      at < 3 ? station : { rttMs: 1, answers: () => false },
    );
    const { clock, engine } = start(path(silent));
    const request = { ...REQUEST, target: stationAddress(20), rounds: 2 };
    const outcome = (await clock.run(engine.mtr(request))) as Done;
    expect(outcome.reached).toBe(false);
    expect(counts(outcome).slice(0, 4)).toEqual([
      [2, 2],
      [2, 2],
      [2, 2],
      [2, 0],
    ]);
    expect(outcome.hops.some(({ cause }) => cause === "replies")).toBe(false);
  });

  test("an error that ends the path is named, if it comes in a round", async () => {
    const reject = { rttMs: 2, rejects: [1, 1] as const };
    const to = { ...REQUEST, target: stationAddress(3), rounds: 30 };
    const run = async (network: Network) => {
      const { clock, engine } = start(network);
      return (await clock.run(engine.mtr(to))) as Done;
    };
    const [one, two, three] = stations(3) as [Station, Station, Station];
    const rejecting = path([one, reject, three]);
    const error = {
      type: 1,
      code: 1,
      name: "prohibited",
      from: formatIpv6(stationAddress(2)),
      fromTarget: false,
    };
    expect((await run(rejecting)).error).toEqual(error);
    // From some round on.
    const silent = path([one, two, { ...three, answers: () => false }]);
    const network: Network = (packet, atMs) => (atMs < 4000 ? silent : rejecting)(packet, atMs);
    expect((await run(network)).error).toEqual(error);
    const whole = path([one, two, three]);
    const mended: Network = (packet, atMs) => (atMs < 10 ? rejecting : whole)(packet, atMs);
    const { error: none, reached } = await run(mended);
    expect([none, reached]).toEqual([null, true]);
  });

  test.each([5, 90])(
    "a reply %p ms after an error counts, as for a ping and a trace",
    async (delayMs) => {
      const whole = path(stations(3));
      const lying: Network = (packet, atMs) => {
        const answers = whole(packet, atMs) as FakeResponse[];
        if (packet.hopLimit < 3) return answers;
        const error = { delayMs: 3, from: stationAddress(2), message: icmpError(packet, 1, 0) };
        return [error, ...answers.map((answer) => ({ ...answer, delayMs: 3 + delayMs }))];
      };
      const run = (network: Network) => start(network);
      const target = { ...REQUEST, target: stationAddress(3) };
      const [one, two, three] = [run(lying), run(lying), run(lying)];
      const pinged = await one.clock.run(one.engine.ping({ ...target, count: 10 }));
      expect(pinged).toMatchObject({ results: { length: 10 }, lost: [] });
      const traced = await two.clock.run(two.engine.traceroute(target));
      expect(traced).toMatchObject({ reached: true, error: null });
      const outcome = (await three.clock.run(three.engine.mtr(target))) as Done;
      expect(outcome).toMatchObject({
        toTarget: { sent: 10, received: 10, errors: 0 },
        error: null,
      });
    },
  );

  test("a reply after the timeout is late, though its round has been told", async () => {
    const slow = stations(3);
    const network = path(slow);
    let nth = 0;
    const { clock, engine } = start((packet, atMs) => {
      const answers = network(packet, atMs);
      if (typeof answers === "string" || packet.hopLimit < 3) return answers;
      const delayMs = ++nth > 1 && nth % 3 === 0 ? 1500 : 3;
      return answers.map((answer) => ({ ...answer, delayMs }));
    });
    const told: MtrReport[] = [];
    const request = { ...REQUEST, target: stationAddress(3), rounds: 18 };
    const onRound = (_: number, report: MtrReport) => told.push(report);
    const outcome = (await clock.run(engine.mtr(request, { onRound }))) as Done;
    const late = told.map(({ toTarget }) => toTarget.late);
    expect(late[0]).toBe(0);
    expect(late.at(-1)).toBeGreaterThan(3);
    const { sent, received, errors, unknown } = outcome.toTarget;
    expect([sent, received, errors, unknown]).toEqual([18, 12, 0, 0]);
    expect(outcome.hops[2]).toMatchObject(outcome.toTarget);
  });

  test("a SYN-ACK after the timeout is late, and the port open", async () => {
    const way = path(stations(4));
    const { clock, engine } = start((packet, sentMs) => {
      const answers = way(packet, sentMs) as FakeResponse[];
      if (packet.hopLimit < 4) return answers;
      const isRound = (packet.turn ?? 0) > 32;
      return answers.map((each) => ({ ...each, state: "open", delayMs: isRound ? 1500 : 4 }));
    });
    const probedPort = { protocol: "tcp", port: 443 } as const;
    const request = { ...REQUEST, target: stationAddress(4), probedPort };
    const outcome = (await clock.run(engine.mtr(request))) as Done;
    const { received, late } = outcome.toTarget;
    expect(received).toBe(0);
    expect(late).toBeGreaterThan(3);
    expect(outcome.answers).toContain("open");
    expect(outcome.answers.length).toBeGreaterThanOrEqual(late);
  });

  test.each([5, 1])(
    "the first SYN-ACK that is lost is lost, though the target sends it again: round %i",
    async (lost) => {
      let syns = 0;
      const way = path(stations(4));
      const { clock, engine } = start((packet, sentMs) => {
        const answers = way(packet, sentMs) as FakeResponse[];
        if (packet.hopLimit < 4) return answers;
        syns++;
        // The trace sends more than one.
        const nth = (packet.turn ?? 0) - 32;
        return answers.map((each) => ({
          ...each,
          state: nth === 7 ? "closed" : "open",
          delayMs: each.delayMs + (nth === lost ? 1000 : 0),
        }));
      });
      const probedPort = { protocol: "tcp", port: 443 } as const;
      const request = { ...REQUEST, target: stationAddress(4), probedPort, timeoutMs: 2000 };
      const outcome = (await clock.run(engine.mtr(request))) as Done;
      expect(syns).toBeGreaterThan(10);
      expect(outcome.toTarget).toMatchObject({ sent: 10, received: 9, retransmitted: 1, loss: 10 });
      expect(outcome.hops.at(-1)).toMatchObject({ received: 9, loss: 10 });
      expect(outcome.answers.toSorted()).toEqual(["closed", ...Array(9).fill("open")]);
      expect(mtrVerdict(outcome.hops, outcome as never, outcome).text).toContain(
        "To 1 SYN, only a retransmitted SYN-ACK came",
      );
    },
  );

  test("what the network lost is counted, whatever changes under way", async () => {
    const prober = (network: Network) => {
      const clock = new FakeClock();
      const openSocket = new FakeSocket(clock, network).open;
      return new Prober({ openSocket, clock, random: countingRandom() });
    };
    const traced = (hops: number) => {
      const found = { kind: "done", source: SOURCE, flowLabel: 7, hops: Array(hops).fill({}) };
      return async () => ({ ...found, reached: true, error: null }) as unknown as Traced;
    };
    for (let seed = 1; seed <= 100; seed++) {
      const random = randomFrom(seed);
      const whole = path(stations(5));
      const seen = Array.from({ length: 6 }, () => ({ sent: 0, received: 0, late: 0, errors: 0 }));
      const [lossy, from] = [random() / 2, 1 + Math.floor(random() * 5)];
      const network: Network = (packet, atMs) => {
        const row = seen[packet.hopLimit] as (typeof seen)[number];
        if (random() < 0.05) return "EPERM";
        row.sent++;
        if (packet.hopLimit >= from && random() < lossy) return [];
        if (packet.hopLimit > 2 && random() < 0.1) {
          row.errors++;
          const message = icmpError(packet, 1, 0);
          return [{ delayMs: 2, from: stationAddress(2), message }];
        }
        const isLate = random() < 0.1;
        row[isLate ? "late" : "received"]++;
        const answers = whole(packet, atMs) as FakeResponse[];
        return isLate ? answers.map((answer) => ({ ...answer, delayMs: 120 })) : answers;
      };
      const own = prober(network);
      const request = { ...REQUEST, target: stationAddress(5), rounds: 10, timeoutMs: 100 };
      const clock = own.clock as FakeClock;
      const outcome = (await clock.run(
        mtr(Object.assign(own, { traceroute: traced(5) }), request),
      )) as Done;
      const last = seen[5] as (typeof seen)[number];
      for (const { hop, sent, received, late, errors } of [
        ...outcome.hops,
        { ...outcome.toTarget, hop: 5 },
      ]) {
        const row = seen[hop] as typeof last;
        expect([seed, hop, sent, received, errors]).toEqual([
          seed,
          hop,
          row.sent,
          row.received,
          row.errors,
        ]);
        // Those of the last round can come after its end.
        expect(late).toBeWithin(row.late - 1, row.late + 1);
      }
      own.close();
    }
  });

  test("the rows of the trace are told first, at once", async () => {
    const { clock, engine, startMs } = start(path(stations(4)));
    const seen: [hop: number, atMs: number][] = [];
    const onHop = ({ hop }: TraceHop) => seen.push([hop, clock.nowMs() - startMs]);
    const request = { ...REQUEST, target: stationAddress(4), rounds: 1 };
    await clock.run(engine.mtr(request, { onHop }));
    for (const hop of [1, 2, 3, 4]) {
      expect(seen.find(([each]) => each === hop)?.[1]).toBeLessThan(30);
    }
  });

  test("a silent hop is told when the trace ends, before the first round", async () => {
    const silent = stations(4);
    silent[1] = { rttMs: 2, answers: () => false };
    const { clock, engine } = start(path(silent));
    const told: string[] = [];
    const request = { ...REQUEST, target: stationAddress(4), rounds: 1 };
    const onHop = ({ hop, ip }: TraceHop) => told.push(`${hop} ${ip === null}`);
    const onRound = () => told.push("round");
    await clock.run(engine.mtr(request, { onHop, onRound }));
    expect(told.slice(-2)).toEqual(["2 true", "round"]);
  });

  test("it ends at once when it is aborted, and leaves nothing behind", async () => {
    const { clock, engine } = start(path(stations(3)));
    const caller = new AbortController();
    const rounds: number[] = [];
    const pending = engine.mtr(
      { ...REQUEST, target: stationAddress(3) },
      { signal: caller.signal, onRound: (round) => rounds.push(round) },
    );
    await clock.advance(500);
    caller.abort();
    expect(await pending).toEqual({ kind: "aborted" });
    expect(rounds.length).toBeGreaterThan(0);
    expect(engine.outstanding()).toBe(0);
    await clock.advance(1);
    expect(clock.pending).toBe(0);
  });
});

describeWith(labMissing)("through six kernel routers", () => {
  const ROUTERS = 6;
  let chain: KernelChain;
  let engine: IcmpEngine;

  beforeAll(async () => {
    chain = await startKernelChain({ routers: ROUTERS });
    engine = openIcmp();
  });

  afterAll(async () => {
    engine?.close();
    await chain?.stop();
  });

  async function measure(request: Partial<MtrRequest> = {}): Promise<Done> {
    const target = parseIpv6(chain.target);
    const outcome = await engine.mtr({ ...REQUEST, intervalMs: 100, target, ...request });
    if (outcome.kind !== "done") throw new Error(JSON.stringify(outcome));
    expect(outcome.hops.map(({ addresses: [first] }) => first?.ip)).toEqual([...chain.hops]);
    expect(outcome.paths).toHaveLength(1);
    return outcome;
  }

  const limited = ({ hops }: Done) =>
    hops.filter((h) => h.cause === "replies").map(({ hop }) => hop);
  const set = (node: number, script: string) => chain.exec(node, ["nft", "-f", "-"], script);

  test("at a pace that routers allow, nothing is lost", async () => {
    const outcome = await measure({ intervalMs: 150 });
    expect(counts(outcome)).toEqual(Array(ROUTERS + 1).fill([10, 10]));
  });

  describeWith(programMissing("nft"))("that lose packets", () => {
    // Three hops a round pass here, so each of them loses its share in turn.
    const ONE_OF_FOUR = "numgen inc mod 4 == 0 drop";

    test("loss at hop 5 that goes on is loss", async () => {
      await set(4, nftRule("forward", `icmpv6 type echo-request ${ONE_OF_FOUR}`));
      try {
        const outcome = await measure({ rounds: 30, intervalMs: 120 });
        expect(limited(outcome)).toEqual([]);
        for (const { hop, sent, received } of outcome.hops) {
          if (hop < 5) expect(received).toBe(sent);
          else expect(received).toBeWithin(20, 26);
        }
      } finally {
        await set(4, "flush ruleset");
      }
    });

    test("loss at hop 5 alone is a limit", async () => {
      const rule = `icmpv6 type time-exceeded ${ONE_OF_FOUR}`;
      await set(5, nftRule("output", rule));
      try {
        const outcome = await measure({ rounds: 30, intervalMs: 120 });
        expect(limited(outcome)).toEqual([5]);
        expect(outcome.hops.at(-1)).toMatchObject({ sent: 30, received: 30 });
      } finally {
        await set(5, "flush ruleset");
      }
    });

    test("one error a second from all routers is a limit of all", async () => {
      for (let node = 1; node <= ROUTERS; node++) {
        await set(
          node,
          nftRule(
            "output",
            "icmpv6 type time-exceeded limit rate over 1/second burst 2 packets drop",
          ),
        );
      }
      try {
        const outcome = await measure({ rounds: 20, intervalMs: 120 });
        expect(limited(outcome)).toEqual([1, 2, 3, 4, 5, 6]);
        expect(outcome.hops.at(-1)).toMatchObject({ sent: 20, received: 20, cause: null });
      } finally {
        for (let node = 1; node <= ROUTERS; node++) await set(node, "flush ruleset");
      }
    });
  });

  describeWith(programMissing("mtr"))("beside mtr", () => {
    test("the hops are those of Debian's mtr", async () => {
      const shown = JSON.parse(
        await run(["mtr", "-6", "-n", "-j", "-c", "3", "-i", "0.2", chain.target]),
      ) as { report: { hubs: { host: string }[] } };
      const { hops } = await measure();
      expect(hops.map(({ addresses: [first] }) => first?.ip)).toEqual(
        shown.report.hubs.map(({ host }) => host),
      );
    });
  });
});
