/** TCP SYNs and UDP packets as probes, over loopback. */

import { afterAll, expect, spyOn, test } from "bun:test";
import { UdpSocket } from "../../../src/icmp/socket/port-sockets.ts";
import { EchoSocket } from "../../../src/icmp/socket/socket.ts";
import { parseIpv6 } from "../../addr/parse.ts";
import { describeWith, labMissing, testWith } from "../../lab/lab.ts";
import { openIcmp, openProber } from "../engines.ts";

const kernelTest = testWith(labMissing);
const LOOPBACK = parseIpv6("::1");
const REQUEST = new Uint8Array(64);

kernelTest("a listening port is open, another is closed, and no connection is made", async () => {
  let connections = 0;
  using server = Bun.listen({
    hostname: "::1",
    port: 0,
    socket: { open: () => void connections++, data() {} },
  });
  const prober = openProber();
  const { signal } = new AbortController();
  const about = { target: LOOPBACK, source: LOOPBACK, scopeId: 0, hopLimit: 64, flowLabel: 7 };
  const ask = (port: number, protocol: "tcp" | "udp" = "tcp") =>
    prober.probe({ ...about, timeoutMs: 5000, signal, probedPort: { protocol, port } });
  const answers = [await ask(server.port), await ask(1), await ask(1, "udp")];
  prober.close();
  expect(answers).toMatchObject([
    { kind: "reply", state: "open", isOtherSource: false },
    { kind: "reply", state: "closed" },
    { kind: "reply", state: "closed" },
  ]);
  expect(connections).toBe(0);
});

kernelTest("a packet is sent though errors about others come just before", () => {
  const socket = new UdpSocket();
  const about = { target: LOOPBACK, source: LOOPBACK, scopeId: 0, hopLimit: 64, flowLabel: 0 };
  const packet = { ...about, probedPort: { protocol: "udp", port: 1 }, message: REQUEST } as const;
  const { send } = EchoSocket.prototype;
  let errors = 3;
  using _ = spyOn(EchoSocket.prototype, "send").mockImplementation(function (
    this: EchoSocket,
    next,
  ) {
    // Over loopback, the port is unreachable at once.
    if (errors-- > 0) send.call(this, packet);
    return send.call(this, next);
  });
  expect(socket.send(packet)).toBeNumber();
  socket.close();
});

describeWith(labMissing)("a UDP port that answers", () => {
  const engine = openIcmp();
  afterAll(() => engine.close());

  /** A server that answers each packet with some others after a time, the first of which comes `afterMs` later. */
  const serve = async (
    answer: (nth: number, data: Uint8Array) => readonly (string | Uint8Array)[],
    afterMs = 0,
  ) => {
    let count = 0;
    const socket = await Bun.udpSocket({
      hostname: "::1",
      socket: {
        data(_, data, port, from) {
          const answers = answer(++count, data);
          const send = () => {
            for (const each of answers) socket.send(each, port, from);
          };
          if (afterMs > 0) setTimeout(send, afterMs);
          else send();
        },
      },
    });
    return socket;
  };

  const request = { target: LOOPBACK, count: 6, intervalMs: 40, timeoutMs: 5000 };

  test.each<[name: string, Parameters<typeof serve>[0]]>([
    ["what was sent", (_, data) => [data]],
    ["a word of its own", () => ["hello"]],
    ["an empty packet", () => [""]],
  ])("with %s is open, and each answer is a reply", async (_, answer) => {
    const socket = await serve(answer);
    const probedPort = { protocol: "udp", port: socket.port } as const;
    const outcome = await engine.ping({ ...request, probedPort });
    expect(outcome).toMatchObject({ kind: "done", stats: { transmitted: 6, received: 6 } });
    expect(outcome.kind === "done" && outcome.answers).toEqual(Array(6).fill("open"));
    socket.close();
  });

  test("and takes longer than the next packet is told by each packet's own time", async () => {
    const socket = await serve(() => ["hello"], 100);
    const probedPort = { protocol: "udp", port: socket.port } as const;
    const outcome = await engine.ping({ ...request, probedPort });
    if (outcome.kind !== "done") throw new Error(outcome.kind);
    expect(outcome.results).toHaveLength(6);
    for (const { rtt } of outcome.results) expect(rtt).toBeGreaterThanOrEqual(99);
    socket.close();
  });

  test("and is late is open all the same", async () => {
    const socket = await serve(() => ["hello"], 200);
    const probedPort = { protocol: "udp", port: socket.port } as const;
    const outcome = await engine.ping({ ...request, count: 1, timeoutMs: 100, probedPort });
    expect(outcome).toMatchObject({ kind: "done", late: 1, answers: ["open"] });
    socket.close();
  });

  test("only sometimes loses the packets without an answer", async () => {
    const socket = await serve((nth) => (nth % 3 === 0 ? [] : ["hello"]));
    const probedPort = { protocol: "udp", port: socket.port } as const;
    const outcome = await engine.ping({ ...request, timeoutMs: 2000, probedPort });
    if (outcome.kind !== "done") throw new Error(outcome.kind);
    expect(outcome.lost.map(({ seq, reason }) => [seq, reason])).toEqual([
      [3, "timeout"],
      [6, "timeout"],
    ]);
    socket.close();
  });

  test("with two packets has one reply, and the second answers nothing", async () => {
    const socket = await serve(() => ["one", "two"]);
    const probedPort = { protocol: "udp", port: socket.port } as const;
    const outcome = await engine.ping({ ...request, count: 3, probedPort });
    expect(outcome).toMatchObject({ kind: "done", stats: { received: 3 }, lost: [] });
    socket.close();
  });

  test("ends a trace and every round of mtr", async () => {
    const socket = await serve(() => ["hello"]);
    const probedPort = { protocol: "udp", port: socket.port } as const;
    const path = { target: LOOPBACK, maxHops: 30, timeoutMs: 5000, probedPort };
    expect(await engine.traceroute(path)).toMatchObject({
      kind: "done",
      reached: true,
      hops: [{ hop: 1, state: "open" }],
    });
    const outcome = await engine.mtr({ ...path, rounds: 5, intervalMs: 100 });
    expect(outcome).toMatchObject({ kind: "done", toTarget: { sent: 5, received: 5 } });
    socket.close();
  });

  test("from another port than the one asked is no answer", async () => {
    const other = await Bun.udpSocket({ hostname: "::1" });
    const socket = await Bun.udpSocket({
      hostname: "::1",
      socket: { data: (_, _data, port, from) => void other.send("hello", port, from) },
    });
    const probedPort = { protocol: "udp", port: socket.port } as const;
    const outcome = await engine.ping({ ...request, count: 2, timeoutMs: 300, probedPort });
    expect(outcome).toMatchObject({ kind: "done", answers: [], stats: { received: 0 } });
    socket.close();
    other.close();
  });
});
