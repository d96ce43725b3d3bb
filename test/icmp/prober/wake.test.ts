/** How the prober learns that something has arrived: by a signal, and where one is lost, by a timer. */

import { describe, expect, jest, spyOn, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { type Answer, Prober, SWEEP_MS, TURN_MS } from "../../../src/icmp/prober/prober.ts";
import { DatagramSocket } from "../../../src/icmp/socket/datagram-socket.ts";
import type { ProbedPort } from "../../../src/icmp/socket/socket.ts";
import { ping } from "../../../src/tools/ping/engine.ts";
import type { Clock } from "../../../src/util/clock.ts";
import { parseIpv6 } from "../../addr/parse.ts";
import { labMissing, testWith, usersMissing } from "../../lab/lab.ts";
import { RawSocket as PlainSocket } from "../../lab/raw-socket.ts";
import { labEnvironment } from "../../lab/run.ts";
import { FakeClock } from "../../util/fake-clock.ts";
import { openProber } from "../engines.ts";
import {
  countingRandom,
  echoReply,
  FakeSocket,
  type Network,
  SOURCE,
  simulate,
  TARGET,
} from "../fake.ts";
import { withTag } from "../tag.ts";

const kernelTest = testWith(labMissing);
const usersTest = testWith(usersMissing);
const LOOPBACK = parseIpv6("::1");
const SIGNAL = new AbortController().signal;
const PROBE = { scopeId: 0, flowLabel: 7, hopLimit: 64, signal: SIGNAL };

function start(network: Network) {
  const { clock, socket, options } = simulate(network);
  const prober = new Prober(options);
  /** Sends a probe; the answer, and how long after the sending it is known. */
  const probe = async (timeoutMs: number): Promise<[answer: Answer, ms: number]> => {
    const sentMs = clock.nowMs();
    const request = { ...PROBE, target: TARGET, source: SOURCE, timeoutMs };
    return [await prober.probe(request), clock.nowMs() - sentMs];
  };
  return { clock, socket, prober, probe };
}

const repliesAfter =
  (delayMs: number): Network =>
  (packet) => [{ delayMs, from: TARGET, message: echoReply(packet) }];

describe("a reply", () => {
  // biome-ignore format: a table
  test.each<[string, delayMs: number, timeoutMs: number, isLost: boolean, knownMs: number]>([
    ["is known when it has come", 10, 1000, false, 10],
    ["whose signal is lost is known at the deadline", 10, 1000, true, 1001],
    ["just before the deadline too", 19.9, 20, true, 21],
  ])("%s", async (_, delayMs, timeoutMs, isLost, knownMs) => {
    const { clock, socket, probe } = start(repliesAfter(delayMs));
    socket.losesSignal = () => isLost;
    const [answer, ms] = await clock.run(probe(timeoutMs));
    expect(answer).toMatchObject({ kind: "reply" });
    if (answer.kind === "reply") expect(answer.rttMs).toBeCloseTo(delayMs, 9);
    expect(ms).toBeCloseTo(knownMs, 4);
    // The timer of a run outlasts its probes.
    await clock.advance(timeoutMs);
    expect(clock.pending).toBe(0);
  });

  test("whose signal is lost is known at the next sweep, if that comes earlier", async () => {
    jest.useFakeTimers();
    const { clock, socket, probe } = start(repliesAfter(10));
    socket.losesSignal = () => true;
    const known = probe(60_000);
    clock.block(10);
    jest.advanceTimersByTime(SWEEP_MS);
    jest.useRealTimers();
    expect((await known)[0]).toMatchObject({ kind: "reply", rttMs: 10 });
  });

  test("is never lost with its signal, whatever is lost, late, blocked or in the way", async () => {
    let state = 11;
    const random = () => {
      state = (state * 48271) % 0x7fffffff;
      return state / 0x7fffffff;
    };
    let [replies, timeouts] = [0, 0];
    for (let run = 0; run < 400; run++) {
      const delays: number[] = [];
      const lab = start((packet) => {
        const delayMs = delays.at(-1) as number;
        return delayMs < 0 ? [] : [{ delayMs, from: TARGET, message: echoReply(packet) }];
      });
      // The share of the signals that is lost changes under way.
      let lost = random();
      lab.socket.losesSignal = () => random() < lost;
      const all: Promise<void>[] = [];
      let blockedMs = 0;
      for (let count = 0; count < 20; count++) {
        if (count % 7 === 6) lost = random() < 0.5 ? 1 : random();
        const delayMs = random() < 0.2 ? -1 : random() * 150;
        const timeoutMs = 20 + Math.floor(random() * 100);
        delays.push(delayMs);
        const before = blockedMs;
        all.push(
          lab.probe(timeoutMs).then(([answer, ms]) => {
            const isInTime = delayMs >= 0 && delayMs <= timeoutMs;
            expect(answer.kind).toBe(isInTime ? "reply" : "timeout");
            if (answer.kind === "reply") expect(answer.rttMs).toBeCloseTo(delayMs, 6);
            expect(ms).toBeLessThan(timeoutMs + 1 + blockedMs - before + 0.01);
            if (isInTime) replies++;
            else timeouts++;
          }),
        );
        if (random() < 0.1) {
          const ms = random() * 300;
          blockedMs += ms;
          lab.clock.block(ms);
        }
        await lab.clock.advance(random() * 30);
      }
      await lab.clock.run(Promise.all(all));
      await lab.clock.advance(200);
      expect([lab.prober.outstanding, lab.clock.pending]).toEqual([0, 0]);
    }
    expect(Math.min(replies, timeouts)).toBeGreaterThan(2000);
  });

  test("of a flood, a turn reads only a part, and others have their turn", async () => {
    const { clock, socket, prober } = start(() => []);
    const flood = { source: TARGET, message: new Uint8Array(8), hopLimit: 60, scopeId: 0 };
    for (let count = 0; count < 2500; count++) {
      socket.deliver({ ...flood, receivedMs: clock.nowMs() });
    }
    const read: number[] = [];
    for (const ms of [0.5, 1, 1]) {
      await clock.advance(ms);
      read.push(prober.counters.malformed);
    }
    expect(read).toEqual([1024, 2048, 2500]);
  });

  test("of packets that take long, a turn reads for a bounded time", async () => {
    const { clock, socket, prober } = start(() => []);
    const slow = { source: TARGET, message: new Uint8Array(8), hopLimit: 60, scopeId: 0 };
    for (let count = 0; count < 25; count++) socket.deliver({ ...slow, receivedMs: clock.nowMs() });
    const receive = socket.receive.bind(socket);
    socket.receive = () => {
      clock.block(1);
      return receive();
    };
    const read: number[] = [];
    for (let turn = 0; turn < 3; turn++) {
      clock.fire();
      while (prober.counters.malformed === read.at(-1)) clock.fire();
      read.push(prober.counters.malformed);
    }
    expect(read).toEqual([TURN_MS, 2 * TURN_MS, 25]);
  });

  test("ends all waits of the run that listens for it, and of no other", async () => {
    const { clock, prober } = start(repliesAfter(30));
    const own = new AbortController().signal;
    const runs = [own, own, new AbortController().signal] as const;
    const fromMs = clock.nowMs();
    const request = { ...PROBE, target: TARGET, source: SOURCE, timeoutMs: 10, signal: runs[0] };
    await clock.run(prober.probe(request));
    const ended = runs.map(async (signal) => {
      await prober.listen(signal, fromMs + 40);
      return clock.nowMs() - fromMs;
    });
    expect(await clock.run(Promise.all(ended))).toEqual([30, 30, 40]);
  });
});

/** A clock whose timers are late. */
class LateClock extends FakeClock {
  override after(delayMs: number, action: () => void): () => void {
    return super.after(delayMs + 0.7, action);
  }
}

describe("a ping", () => {
  test("keeps to its interval though timers are late, and makes up for no more", async () => {
    const clock = new LateClock();
    const { open, sent } = new FakeSocket(clock, repliesAfter(1));
    const prober = new Prober({ openSocket: open, clock, random: countingRandom() });
    const request = { target: TARGET, count: 100, intervalMs: 10, timeoutMs: 1000 };
    clock.event(clock.nowMs() + 505, () => clock.block(73));
    await clock.run(ping(prober, request));
    const pauses = sent.slice(1).map(({ atMs }, index) => atMs - (sent[index]?.atMs ?? 0));
    expect(pauses).toHaveLength(99);
    const whole = pauses.reduce((sum, ms) => sum + ms);
    expect(whole).toBeWithin(990 + 60, 990 + 73);
    expect(Math.min(...pauses)).toBeGreaterThan(9);
  });

  test("that hears nothing sleeps until it can be certain", async () => {
    const { clock, prober } = start(() => []);
    const listen = spyOn(prober, "listen");
    await clock.run(ping(prober, { target: TARGET, count: 2, intervalMs: 10, timeoutMs: 100 }));
    expect(listen.mock.calls.length).toBe(1);
  });
});

type Options = Parameters<typeof openProber>[0];

/** A clock whose timers never fire: only a signal can announce an answer. */
const WITHOUT_TIMERS: Clock = { nowMs: () => performance.now(), after: () => () => {} };

/** How probes to loopback end without timers. */
async function toldBySignal(
  options: readonly Options[],
  probedPort?: ProbedPort,
): Promise<string[]> {
  const request = { ...PROBE, target: LOOPBACK, source: LOOPBACK, timeoutMs: 60_000 };
  const probers = options.map((each) => openProber({ ...each, clock: WITHOUT_TIMERS }));
  const sent = probedPort === undefined ? request : { ...request, probedPort };
  const answers = await Promise.all(
    probers.map(async (prober) => {
      // The loopback of a busy machine drops packets.
      for (;;) {
        const answer = await Promise.race([prober.probe(sent), Bun.sleep(3000)]);
        if (answer) return answer;
      }
    }),
  );
  for (const prober of probers) prober.close();
  return answers.map(({ kind }) => kind);
}

/** Runs a script in a process of its own; it has a raw socket, and `probe`, which has it answered. */
async function scriptWithSocket(script: string): Promise<[output: string, status: number]> {
  const from = (path: string) => JSON.stringify(import.meta.resolve(path));
  const before = `
    import { RawSocket } from ${from("../../../src/icmp/socket/raw-socket.ts")};
    import { encodeEchoRequest } from ${from("../../../src/icmp/wire/packet.ts")};
    import { libc } from ${from("../../../src/platform/libc.ts")};
    const socket = new RawSocket(0x42);
    const address = { version: 6, word0: 0, word1: 0, word2: 0, word3: 1 };
    const message = encodeEchoRequest(0x4200, 1, new Uint8Array(8));
    const packet = { target: address, source: address, scopeId: 0, hopLimit: 64, flowLabel: 1, message };
    const probe = () => socket.send(packet);
    let isTold = false;
    const tell = () => { isTold = true; console.log("told"); };`;
  // So few descriptors that a script can use them up.
  const limited = ["sh", "-c", 'ulimit -n 256; exec "$@"', "sh"];
  const child = Bun.spawn([...limited, process.execPath, "-e", before + script], {
    env: labEnvironment,
    stderr: "inherit",
  });
  return [await new Response(child.stdout).text(), await child.exited];
}

describe("the kernel's signal", () => {
  // biome-ignore format: a table
  kernelTest.each<[string, Options[], ProbedPort | undefined, string[]]>([
    ["an echo reply", [{}], undefined, ["reply"]],
    ["an error in the queue of the UDP socket", [{}], { protocol: "udp", port: 9 }, ["reply"]],
    ["the reset of a closed TCP port", [{}], { protocol: "tcp", port: 9 }, ["reply"]],
    ["a reply to each of several engines", [{}, {}, {}], undefined, ["reply", "reply", "reply"]],
    ["a reply to each of two that have one tag", [{ random: withTag(7) }, { random: withTag(7) }], undefined, ["reply", "reply"]],
  ])("announces %s", async (_, options, probedPort, kinds) => {
    expect(await toldBySignal(options, probedPort)).toEqual(kinds);
  });

  usersTest("announces a reply to the datagram socket", async () => {
    writeFileSync("/proc/sys/net/ipv4/ping_group_range", "0 65535");
    expect(await toldBySignal([{ openSocket: () => new DatagramSocket() }])).toEqual(["reply"]);
  });

  kernelTest(
    "does not come for other programs' packets, and comes through a flood of them",
    async () => {
      let signals = 0;
      const count = () => signals++;
      process.on("SIGURG", count);
      const prober = openProber({ random: withTag(0x41), clock: WITHOUT_TIMERS });
      using sender = new PlainSocket();
      const message = new Uint8Array(24).fill(0x77);
      message.set([129, 0, 0, 0]);
      for (let sent = 0; sent < 5000; sent++) sender.send({ destination: "::1", message });
      await Bun.sleep(1);
      expect(signals).toBe(0);
      const request = { ...PROBE, target: LOOPBACK, source: LOOPBACK, timeoutMs: 60_000 };
      const answer = prober.probe(request);
      for (let sent = 0; sent < 5000; sent++) sender.send({ destination: "::1", message });
      expect((await answer).kind).toBe("reply");
      expect(signals).toBe(1);
      process.off("SIGURG", count);
      prober.close();
    },
  );

  // biome-ignore format: a table
  kernelTest.each([
    ["before anyone handles it", "probe(); await Bun.sleep(20);", "ended"],
    ["once it is handled", "socket.onArrival(tell); probe(); while (!isTold) await Bun.sleep(1);", "told\nended"],
    ["after the handler is replaced", "socket.onArrival(() => console.log('first')); socket.onArrival(tell); probe(); while (!isTold) await Bun.sleep(1);", "told\nended"],
    ["after the socket is closed", "socket.onArrival(tell); socket.close(); console.log(process.listenerCount('SIGURG'));", "0\nended"],
    ["and keeps nothing from ending", "socket.onArrival(() => {});", "ended"],
    // The shell would print a line at the signal.
    ["nor reaches a child", `
      const child = Bun.spawn(["sh", "-c", "trap 'echo signalled' URG; read line; echo $line"], { stdin: "pipe" });
      for (let count = 0; count < 100; count++) { probe(); await Bun.sleep(0); }
      child.stdin.write("quiet\\n");
      child.stdin.end();
      process.stdout.write(await new Response(child.stdout).text());`, "quiet\nended"],
  ])("does not end the process %s", async (_, script, printed) => {
    const ended = "process.on('exit', () => console.log('ended'));";
    expect(await scriptWithSocket(ended + script)).toEqual([`${printed}\n`, 0]);
  });
});

kernelTest.each([0, 1, 2, 3, 4])(
  "with room for %i descriptors a raw socket opens or not, and none stays open",
  async (room) => {
    const [printed, status] = await scriptWithSocket(`
      socket.close();
      const { fcntl, close } = libc();
      const DUPLICATE = 0;
      const fill = () => { const all = []; for (let fd; (fd = fcntl(2, DUPLICATE, 0)) >= 0; ) all.push(fd); return all; };
      const all = fill();
      for (const fd of all.splice(0, ${room})) close(fd);
      let opened = true;
      try { new RawSocket(0x43).close(); } catch ({ message }) { opened = message.endsWith(": EMFILE") ? false : message; }
      console.log(opened, fill().length);`);
    expect([printed, status]).toEqual([`${room >= 2} ${room}\n`, 0]);
  },
);
