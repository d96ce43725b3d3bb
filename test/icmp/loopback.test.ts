import { afterAll, beforeAll, expect } from "bun:test";
import { readdirSync } from "node:fs";
import { RawSocket as IcmpSocket } from "../../src/icmp/socket/raw-socket.ts";
import { openSocket } from "../../src/icmp/socket/socket.ts";
import { encodeEchoRequest } from "../../src/icmp/wire/packet.ts";
import { SOCK } from "../../src/platform/linux.ts";
import { parseIpv6 } from "../addr/parse.ts";
import { labMissing, programMissing, testWith } from "../lab/lab.ts";
import { RawSocket } from "../lab/raw-socket.ts";
import { run } from "../lab/run.ts";
import { type IcmpEngine, openIcmp, openProber } from "./engines.ts";
import { withTag } from "./tag.ts";

const LOOPBACK = parseIpv6("::1");
const test = testWith(labMissing);
let engine: IcmpEngine;

beforeAll(() => {
  if (labMissing === null) engine = openIcmp();
});

afterAll(() => engine?.close());

test("four pings of ::1 are all answered", async () => {
  const request = { target: LOOPBACK, count: 4, intervalMs: 10, timeoutMs: 2000 };
  const outcome = await engine.ping(request);
  if (outcome.kind !== "done") throw new Error(outcome.kind);
  expect(outcome).toMatchObject({
    source: LOOPBACK,
    results: { length: 4 },
    lost: [],
    duplicates: 0,
  });
  expect(outcome.results.map(({ seq, ttl }) => [seq, ttl])).toEqual([
    [1, 64],
    [2, 64],
    [3, 64],
    [4, 64],
  ]);
  for (const { rtt } of outcome.results) expect(rtt).toBeGreaterThan(0);
  expect(engine.outstanding()).toBe(0);
});

test("replies that came in time count, however long the event loop was blocked", async () => {
  const request = { target: LOOPBACK, count: 1, intervalMs: 10, timeoutMs: 2500 };
  const pending = Array.from({ length: 300 }, () => engine.ping(request));
  Bun.sleepSync(3000);
  for (const outcome of await Promise.all(pending)) {
    expect(outcome).toMatchObject({ results: { length: 1 }, lost: [] });
  }
});

test.each([
  ["neighbour solicitations", 135],
  ["neighbour advertisements", 136],
  ["echo requests", 128],
  ["echo replies of another program", 129],
])("a flood of %s is dropped in the kernel", (_, type) => {
  const FLOOD = 2000;
  const message = new Uint8Array(24).fill(0x77);
  message.set([type, 0, 0, 0]);
  using sender = new RawSocket();
  const socket = new IcmpSocket(1);
  for (let sent = 0; sent < FLOOD; sent++) {
    sender.send({ destination: "::1", message, hopLimit: 255 });
  }
  // Loopback delivers each packet before the next one is sent.
  expect(socket.receive()).toBeNull();
  socket.close();
});

test("a flood while the event loop is blocked fills the kernel's buffer and no more", async () => {
  const TAG = 0x5a;
  const PACKETS = 30_000;
  const socket = new IcmpSocket(TAG);
  const address = { target: LOOPBACK, source: LOOPBACK, scopeId: 0 };
  const message = encodeEchoRequest(TAG * 256, 0, new Uint8Array(8));
  const packet = { ...address, hopLimit: 64, flowLabel: 1, message };
  for (let count = 0; count < PACKETS; count++) socket.send(packet);
  let received = 0;
  while (socket.receive() !== null) received++;
  socket.close();
  expect(received).toBeGreaterThan(1000);
  expect(received).toBeLessThan(PACKETS * 0.85);
});

test.each([
  ["quote hop-by-hop options are dropped in the kernel", 0, "reply"],
  ["quote a routing header are dropped in the kernel", 43, "reply"],
  ["quote a fragment header are dropped in the kernel", 44, "reply"],
  ["quote destination options are dropped in the kernel", 60, "reply"],
  ["have our tag make an answer unknown, not lost", 58, "unknown"],
] as const)("a flood of errors that %s", async (_name, nextHeader, kind) => {
  const TAG = 0x5d;
  const FLOOD = 30_000;
  const prober = openProber({ random: withTag(TAG) });
  const { signal } = new AbortController();
  const request = { target: LOOPBACK, source: LOOPBACK, scopeId: 0, flowLabel: 1, signal };
  const probe = () => prober.probe({ ...request, hopLimit: 64, timeoutMs: 3000 });
  const message = new Uint8Array(300);
  message.set([1, 0]);
  message[8] = 0x60;
  message[8 + 6] = nextHeader;
  message.set([128, 0, 0, 0, TAG], 8 + 40);
  using sender = new RawSocket();
  // While a probe is outstanding, the socket is read on a timer only, which the flood does not let through.
  const first = probe();
  for (let sent = 0; sent < FLOOD; sent++) sender.send({ destination: "::1", message });
  const second = probe();
  expect((await first).kind).toBe("reply");
  const { kind: seen } = await second;
  // A flood of more than a second lets the prober read before it sends, and then nothing may be lost.
  expect(kind === "unknown" ? [kind, "reply"] : [kind]).toContain(seen);
  if (seen === kind) expect(prober.counters.dropped).toBe(kind === "unknown" ? 1 : 0);
  prober.close();
});

test("a socket that refuses an option says which, and leaves no descriptor open", () => {
  const count = () => readdirSync("/proc/self/fd").length;
  const before = count();
  // The filter is one of raw sockets only.
  const make = () => new IcmpSocket(1, openSocket(SOCK.dgram, 0));
  expect(make).toThrow(/^setsockopt/);
  expect(count()).toBe(before);
});

test("a closed socket neither sends nor receives, even if its descriptor is in use again", () => {
  const socket = new IcmpSocket(0x5b);
  const message = encodeEchoRequest(0x5b00, 0, new Uint8Array(8));
  const address = { target: LOOPBACK, source: LOOPBACK, scopeId: 0 };
  const packet = { ...address, hopLimit: 64, flowLabel: 1, message };
  expect(socket.send(packet)).toBeNumber();
  socket.close();
  expect(socket.send(packet)).toBe("EBADF");
  expect(socket.receive()).toBeNull();
});

test("a trace to ::1 has one hop", async () => {
  const seen: unknown[] = [];
  const outcome = await engine.traceroute(
    { target: LOOPBACK, maxHops: 30, timeoutMs: 2000 },
    { onHop: ({ ip }) => seen.push(ip) },
  );
  expect(outcome).toMatchObject({
    kind: "done",
    source: LOOPBACK,
    reached: true,
    reason: "reached",
    error: null,
    hops: [{ hop: 1, ip: "::1" }],
  });
  expect(seen).toContain("::1");
  expect(engine.outstanding()).toBe(0);
});

test.each([
  ["no route", "2001:db8::1", "ENETUNREACH"],
  ["link-local without a zone", "fe80::1", "EINVAL"],
  ["IPv4-mapped", "::ffff:127.0.0.1", "EINVAL"],
  ["unspecified", "::", "EINVAL"],
  ["multicast", "ff02::1", "EINVAL"],
])("nothing is sent to a target that cannot be reached: %s", async (_name, text, code) => {
  const { sent } = engine.counters;
  const request = { target: parseIpv6(text), timeoutMs: 1000 };
  expect(await engine.ping({ ...request, count: 2, intervalMs: 10 })).toEqual({
    kind: "unreachable",
    code,
  });
  expect(await engine.traceroute({ ...request, maxHops: 4 })).toEqual({
    kind: "unreachable",
    code,
  });
  expect(engine.counters.sent).toBe(sent);
});

testWith(labMissing, programMissing("setpriv"))(
  "without CAP_NET_RAW a prober cannot be opened, and the error says why",
  async () => {
    const module = import.meta.resolve("./engines.ts");
    const script = `
      const { openProber } = await import(${JSON.stringify(module)});
      try { openProber(); } catch (error) { console.log(error.name, error.code); }`;
    const bare = ["setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw"];
    expect(await run([...bare, process.execPath, "-e", script])).toBe("SystemError EPERM\n");
  },
);
