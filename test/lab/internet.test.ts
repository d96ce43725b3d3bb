import { expect } from "bun:test";
import { readdirSync } from "node:fs";
import { addressBytes } from "./address.ts";
import { startInternet } from "./internet.ts";
import { type Destination, LINUX_RATE_LIMIT, type Router } from "./internet-description.ts";
import { programMissing, testWith, tunMissing } from "./lab.ts";
import { ECHO_REPLY, ECHO_REQUEST, formatEcho, formatIcmp, TIME_EXCEEDED } from "./packet.ts";
import { RawSocket } from "./raw-socket.ts";
import { run } from "./run.ts";
import { ping, trace } from "./system-tools.ts";

const internetTest = testWith(tunMissing);
const pingTest = testWith(tunMissing, programMissing("ping"));
const traceTest = testWith(tunMissing, programMissing("traceroute"));

const TARGET = "2001:db8:2::7";

/** Enough for what comes, on a busy machine, and for what must not come any more. */
const WAIT_MS = 20_000;
const NOTHING_MORE_MS = 200;
/** After its last request, ping waits as long as between two, or twice as long as for an answer. */
const SLOWLY = ["-i", "0.3"];

/** Routers 2001:db8:1::1 and on, each 2 ms farther than the one before. */
function routers(count: number, special: Record<number, Partial<Router>> = {}): Router[] {
  return Array.from({ length: count }, (_, index) => ({
    address: `2001:db8:1::${(index + 1).toString(16)}`,
    rttMs: 2 * (index + 1),
    ...special[index + 1],
  }));
}

/** An echo request with 8 bytes of data. */
function request(sequence = 1): Uint8Array {
  return formatEcho({ type: ECHO_REQUEST, identifier: 7, sequence, data: new Uint8Array(8) });
}

traceTest("traceroute sees every router but the silent one, and the host", async () => {
  await using _ = await startInternet({
    destinations: [{ to: TARGET, routers: routers(12, { 5: { silent: true } }) }],
  });
  const expected = [...routers(12).map(({ address }) => address), TARGET];
  expect(await trace(TARGET)).toEqual(expected.with(4, "*"));
});

pingTest(
  "a delay is never shorter than described, and longer only where the machine is busy",
  async () => {
    await using _ = await startInternet({ destinations: [{ to: TARGET, end: { rttMs: 30 } }] });
    const { received, rttsMs } = await ping(TARGET, 10, ...SLOWLY);
    expect(received).toBe(10);
    const shortest = Math.min(...rttsMs);
    expect(shortest).toBeGreaterThanOrEqual(30);
    expect(shortest).toBeLessThan(60);
  },
);

pingTest("the answers that are to be lost are lost, and duplicates arrive", async () => {
  await using _ = await startInternet({
    destinations: [
      {
        to: TARGET,
        end: { loss: [2, 3], rules: [{ probes: [1], beside: true, copies: 2, afterMs: 3 }] },
      },
    ],
  });
  const { received, duplicates } = await ping(TARGET, 5, ...SLOWLY);
  expect({ received, duplicates }).toEqual({ received: 3, duplicates: 2 });
});

pingTest("the log holds what the test host sent", async () => {
  const internet = await startInternet({ destinations: [{ to: "2001:db8:2::/64" }] });
  await ping(TARGET, 3, "-s", "300", "-t", "9", ...SLOWLY);
  const probes = await internet.stop();
  expect(internet.count()).toBe(3);
  expect(probes.map(({ sequence }) => sequence)).toEqual([1, 2, 3]);
  expect(probes[0]).toMatchObject({
    source: "2001:db8::1",
    destination: TARGET,
    hopLimit: 9,
    packetBytes: 348,
    checksumIsRight: true,
  });
  const [first, , third] = probes.map(({ timeNs }) => timeNs);
  expect((third ?? 0) - (first ?? 0)).toBeGreaterThan(200e6);
});

internetTest("internets come and go without a trace", async () => {
  const network = () => run(["sh", "-c", "ip -o link | cut -d: -f2; ip -6 route; ip -6 -o addr"]);
  const held = (kind: string) => readdirSync(`/proc/self/${kind}`).length;
  const ROUNDS = 10;
  const before = { network: await network(), descriptors: held("fd"), threads: held("task") };
  for (let round = 0; round < ROUNDS; round++) {
    const internet = await startInternet({ destinations: [{ to: TARGET }] });
    await internet.stop();
    expect(await internet.stop()).toEqual([]);
  }
  expect(await network()).toBe(before.network);
  // The runtime ends some of its own later; one left behind in each round would stay.
  const isLeft = () =>
    held("fd") >= before.descriptors + ROUNDS || held("task") >= before.threads + ROUNDS;
  const latestMs = performance.now() + WAIT_MS;
  while (isLeft() && performance.now() < latestMs) {
    Bun.gc(true);
    await Bun.sleep(20);
  }
  expect(isLeft()).toBe(false);
});

internetTest("a device that cannot be set up is not left behind", async () => {
  const start = startInternet({ destinations: [{ to: "2001:db8::/nonsense" }] });
  expect(start).rejects.toThrow("2001:db8::/nonsense");
  await start.catch(() => {});
  expect(await run(["ip", "-o", "link"])).not.toContain("internet");
});

internetTest("a fault of the simulation comes out when it is stopped", async () => {
  const internet = await startInternet({
    destinations: [{ to: TARGET, routers: [{ address: "nowhere" }] }],
  });
  using socket = new RawSocket();
  socket.send({ destination: TARGET, hopLimit: 1, message: request() });
  expect(internet.stop()).rejects.toThrow('"nowhere" is not an IPv6 address');
});

internetTest(
  "forgeries reach a raw socket before the true answer, a wrong checksum never",
  async () => {
    await using _ = await startInternet({
      destinations: [
        {
          to: TARGET,
          end: {
            rules: [
              { beside: true, change: "source" },
              { beside: true, change: "cookie" },
              { beside: true, change: "checksum" },
              { beside: true, change: { cutTo: 9 } },
            ],
          },
        },
      ],
    });
    using socket = new RawSocket();
    socket.send({ destination: TARGET, message: request() });
    const received = await socket.receive([ECHO_REPLY], WAIT_MS, 4);
    received.push(...(await socket.receive([ECHO_REPLY], NOTHING_MORE_MS)));
    expect(received.map(({ from, message }) => [from, message.subarray(8).toHex()])).toEqual([
      ["2001:db8:2::f8", "0000000000000000"],
      [TARGET, "ffffffffffffffff"],
      [TARGET, "00"],
      [TARGET, "0000000000000000"],
    ]);
  },
);

internetTest("late answers come after those of later probes", async () => {
  await using _ = await startInternet({
    destinations: [{ to: TARGET, end: { rules: [{ probes: [1], afterMs: 3000 }] } }],
  });
  using socket = new RawSocket();
  for (const sequence of [1, 2]) socket.send({ destination: TARGET, message: request(sequence) });
  const received = await socket.receive([ECHO_REPLY], WAIT_MS, 2);
  expect(received.map(({ message }) => message[7])).toEqual([2, 1]);
});

internetTest("200 hosts at once: live, dead and lossy", async () => {
  await using internet = await startInternet({
    destinations: [
      { to: "2001:db8:a::/64", routers: routers(3), end: { rttMs: 20, jitterMs: 5 } },
      { to: "2001:db8:d::/64", routers: routers(3), end: "blackhole" },
      { to: "2001:db8:f::/64", routers: routers(3), end: { rttMs: 20, loss: [2, 4] } },
    ],
  });
  using socket = new RawSocket();
  for (const sequence of [1, 2, 3, 4]) {
    for (let host = 1; host <= 200; host++) {
      const network = "adf"[host % 3];
      const destination = `2001:db8:${network}::${host.toString(16)}`;
      socket.send({ destination, message: request(sequence) });
    }
  }
  const replies = await socket.receive([ECHO_REPLY], WAIT_MS, 4 * 66 + 2 * 67);
  const from = (network: string) => replies.filter((reply) => reply.from.includes(`:${network}::`));
  expect([from("a").length, from("d").length, from("f").length]).toEqual([4 * 66, 0, 2 * 67]);
  expect(from("f").every(({ message }) => [1, 3].includes(message[7] ?? 0))).toBe(true);
  expect(await internet.stop()).toHaveLength(800);
});

internetTest(
  "40 targets behind a router with Linux's rate limit get six answers from it",
  async () => {
    const destinations: Destination[] = [
      { to: "2001:db8:2::/64", routers: routers(2, { 1: { rateLimit: LINUX_RATE_LIMIT } }) },
    ];
    await using internet = await startInternet({ destinations });
    using socket = new RawSocket();
    for (let host = 1; host <= 40; host++) {
      const destination = `2001:db8:2::${host.toString(16)}`;
      for (const hopLimit of [1, 2]) socket.send({ destination, hopLimit, message: request() });
    }
    const { burst, intervalMs } = LINUX_RATE_LIMIT;
    const errors = await socket.receive([TIME_EXCEEDED], WAIT_MS, burst + 40);
    errors.push(...(await socket.receive([TIME_EXCEEDED], NOTHING_MORE_MS)));
    const from = (address: string) => errors.filter((error) => error.from === address).length;
    const times = internet.seen().map(({ timeNs }) => timeNs);
    const tookMs = (Math.max(...times) - Math.min(...times)) / 1e6;
    expect(from("2001:db8:1::1")).toBeGreaterThanOrEqual(burst);
    expect(from("2001:db8:1::1")).toBeLessThanOrEqual(burst + Math.floor(tookMs / intervalMs));
    expect(from("2001:db8:1::2")).toBe(40);
  },
);

internetTest("a flow label stays on its path and is logged with the checksum", async () => {
  const internet = await startInternet({
    destinations: [
      { to: TARGET, equalPaths: [{ routers: routers(1) }, { routers: routers(2).slice(1) }] },
    ],
  });
  using socket = new RawSocket();
  const labels = [0x12344, 0x12345, 0x12344];
  for (const flowLabel of labels) {
    socket.send({ destination: TARGET, hopLimit: 1, flowLabel, message: request() });
  }
  const errors = await socket.receive([TIME_EXCEEDED], WAIT_MS, 3);
  const senders = errors.map(({ from }) => from);
  expect(senders.toSorted()).toEqual(["2001:db8:1::1", "2001:db8:1::1", "2001:db8:1::2"]);
  const probes = await internet.stop();
  expect(probes.map(({ flowLabel }) => flowLabel)).toEqual(labels);
  expect(new Set(probes.map(({ checksum }) => checksum)).size).toBe(1);
});

internetTest("a packet that no probe asked for can be injected", async () => {
  await using internet = await startInternet({ destinations: [{ to: TARGET }] });
  using socket = new RawSocket();
  const addresses = {
    source: addressBytes("2001:db8:bad::1"),
    destination: addressBytes(internet.source),
  };
  const reply = formatEcho({
    type: ECHO_REPLY,
    identifier: 1,
    sequence: 2,
    data: new Uint8Array(),
  });
  internet.inject(formatIcmp({ ...addresses, hopLimit: 9 }, reply));
  const [received] = await socket.receive([ECHO_REPLY], WAIT_MS, 1);
  expect(received?.from).toBe("2001:db8:bad::1");
});
