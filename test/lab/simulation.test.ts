import { expect, test } from "bun:test";
import { addressBytes, addressText } from "./address.ts";
import {
  type InternetDescription,
  LINUX_RATE_LIMIT,
  type Path,
  type Router,
} from "./internet-description.ts";
import {
  ECHO_REQUEST,
  formatEcho,
  formatIcmp,
  formatPacket,
  icmpChecksum,
  parsePacket,
} from "./packet.ts";
import { type Answer, createSimulation } from "./simulation.ts";

const SOURCE = "2001:db8::1";
const TARGET = "2001:db8:2::7";
const FIRST: Router = { address: "2001:db8:1::1", rttMs: 10 };
const SECOND: Router = { address: "2001:db8:1::2", rttMs: 20 };

type ProbeOptions = {
  readonly to?: string;
  readonly from?: string;
  readonly hopLimit?: number;
  readonly flowLabel?: number;
  readonly sequence?: number;
  readonly dataBytes?: number;
};

/** An echo request as bytes; its data counts up from 0. */
function probe(options: ProbeOptions = {}): Uint8Array {
  const { to = TARGET, from = SOURCE, hopLimit = 64, flowLabel = 0, sequence = 1 } = options;
  const data = Uint8Array.from({ length: options.dataBytes ?? 16 }, (_, index) => index);
  const request = formatEcho({ type: ECHO_REQUEST, identifier: 0x1234, sequence, data });
  const addresses = { source: addressBytes(from), destination: addressBytes(to) };
  const packet = parsePacket(formatIcmp({ ...addresses, hopLimit }, request));
  if (packet === null) throw new Error("no packet");
  return formatPacket({ ...packet, flowLabel });
}

/** An answer in short: `10 2001:db8:1::1 3/0`. */
function summary({ afterMs, packet: bytes }: Answer): string {
  const packet = parsePacket(bytes);
  if (packet === null) return "no packet";
  const [type, code] = packet.payload;
  return `${afterMs} ${addressText(packet.source)} ${type}/${code}`;
}

function internetOf(path: Path): InternetDescription {
  return { destinations: [{ to: TARGET, ...path }] };
}

function messageOf(answer: Answer | undefined): Uint8Array {
  return (answer && parsePacket(answer.packet)?.payload) ?? new Uint8Array();
}

/** The answers of the first router to `count` probes at once. */
function answersAtOnce(special: Partial<Router>, count: number, nowMs = 0): readonly Answer[] {
  const simulate = createSimulation(internetOf({ routers: [{ ...FIRST, ...special }] }));
  return Array.from({ length: count }, () => probe({ hopLimit: 1 })).flatMap((bytes) =>
    simulate(bytes, nowMs),
  );
}

const TWO = [FIRST, SECOND] as const;

test.each<[string, Path, ProbeOptions, string[]]>([
  [
    "hop limit 1 ends at the first router",
    { routers: TWO },
    { hopLimit: 1 },
    ["10 2001:db8:1::1 3/0"],
  ],
  ["hop limit 2 ends at the second", { routers: TWO }, { hopLimit: 2 }, ["20 2001:db8:1::2 3/0"]],
  [
    "hop limit 3 reaches the host",
    { routers: TWO, end: { rttMs: 30 } },
    { hopLimit: 3 },
    ["30 2001:db8:2::7 129/0"],
  ],
  ["a host without routers", {}, { hopLimit: 1 }, ["0 2001:db8:2::7 129/0"]],
  ["a silent router", { routers: [{ ...FIRST, silent: true }] }, { hopLimit: 1 }, []],
  [
    "a silent router forwards",
    { routers: [{ ...FIRST, silent: true }] },
    {},
    ["0 2001:db8:2::7 129/0"],
  ],
  ["a silent host", { end: { silent: true } }, {}, []],
  ["a blackhole", { routers: TWO, end: "blackhole" }, {}, []],
  [
    "a router before a blackhole",
    { routers: TWO, end: "blackhole" },
    { hopLimit: 2 },
    ["20 2001:db8:1::2 3/0"],
  ],
  [
    "a router that refuses",
    { routers: [{ ...FIRST, error: { type: 1, code: 1 } }, SECOND] },
    {},
    ["10 2001:db8:1::1 1/1"],
  ],
  [
    "a host that refuses",
    { routers: TWO, end: { rttMs: 5, error: { type: 1, code: 4 } } },
    {},
    ["5 2001:db8:2::7 1/4"],
  ],
  [
    "a loop of two, odd",
    { routers: TWO, end: { loopOf: 2 } },
    { hopLimit: 9 },
    ["10 2001:db8:1::1 3/0"],
  ],
  [
    "a loop of two, even",
    { routers: TWO, end: { loopOf: 2 } },
    { hopLimit: 64 },
    ["20 2001:db8:1::2 3/0"],
  ],
  [
    "a loop of the last alone",
    { routers: TWO, end: { loopOf: 1 } },
    { hopLimit: 9 },
    ["20 2001:db8:1::2 3/0"],
  ],
  [
    "1281 bytes into a link of 1280",
    { routers: [{ ...FIRST, mtu: 1280 }] },
    { dataBytes: 1233 },
    ["10 2001:db8:1::1 2/0"],
  ],
  [
    "1280 bytes into a link of 1280",
    { routers: [{ ...FIRST, mtu: 1280 }] },
    { dataBytes: 1232 },
    ["0 2001:db8:2::7 129/0"],
  ],
  ["a destination that is not described", {}, { to: "2001:db8:3::1" }, []],
])("%s", (_, path, options, expected) => {
  expect(createSimulation(internetOf(path))(probe(options), 0).map(summary)).toEqual(expected);
});

test("every checksum is right, and replies set out with a hop limit of 64", () => {
  const simulate = createSimulation(internetOf({ routers: TWO }));
  const hopLimits = [1, 2, 3].map((hopLimit) => {
    const packet = parsePacket(simulate(probe({ hopLimit }), 0)[0]?.packet ?? new Uint8Array());
    if (packet === null) throw new Error("no packet");
    expect(icmpChecksum(packet.source, packet.destination, packet.payload)).toBe(0);
    expect(addressText(packet.destination)).toBe(SOURCE);
    return packet.hopLimit;
  });
  expect(hopLimits).toEqual([64, 63, 62]);
});

test("a probe with a wrong checksum gets errors on the way and no reply", () => {
  const simulate = createSimulation(internetOf({ routers: TWO }));
  const wrong = (hopLimit: number) => probe({ hopLimit }).with(42, 0);
  expect(simulate(wrong(2), 0)).toHaveLength(1);
  expect(simulate(wrong(64), 0)).toEqual([]);
});

test.each<[string, Partial<Router>, number, number]>([
  ["all of a small packet", {}, 16, 64],
  ["header and 8 bytes", { quotationBytes: 48 }, 16, 48],
  ["no more than makes an error of 1280 bytes", {}, 1400, 1232],
])("an error quotes %s", (_, special, dataBytes, quotedBytes) => {
  const routers = [FIRST, { ...SECOND, ...special }];
  const [answer] = createSimulation(internetOf({ routers }))(probe({ hopLimit: 2, dataBytes }), 0);
  const arrived = probe({ hopLimit: 1, dataBytes });
  expect(messageOf(answer).subarray(8)).toEqual(arrived.subarray(0, quotedBytes));
});

test.each<[string, Partial<Router>, string, string]>([
  [
    "a label stack",
    {
      extensions: [
        { label: 16, hopLimit: 2 },
        { label: 0xfffff, trafficClass: 5 },
      ],
    },
    "10000000",
    "2000e3ed000c010100010002fffffb01",
  ],
  ["any bytes", { extensions: Uint8Array.of(0xff, 0, 1) }, "10000000", "ff0001"],
  ["a length field of none", { extensions: Uint8Array.of(0x20), lengthField: 0 }, "00000000", "20"],
])("128 bytes of the invoking packet are followed by %s", (_, special, word, extensions) => {
  const message = messageOf(answersAtOnce(special, 1)[0]);
  expect(message.subarray(4, 8).toHex()).toBe(word);
  expect(message.subarray(8, 72)).toEqual(probe({ hopLimit: 1 }));
  expect(message.subarray(72, 136)).toEqual(new Uint8Array(64));
  expect(message.subarray(136).toHex()).toBe(extensions);
});

test("Packet Too Big carries the MTU and no extensions", () => {
  const router = { ...FIRST, mtu: 1280, extensions: [{ label: 16 }] };
  const simulate = createSimulation(internetOf({ routers: [router] }));
  const message = messageOf(simulate(probe({ dataBytes: 1400 }), 0)[0]);
  expect(message.subarray(4, 8).toHex()).toBe("00000500");
  expect(message).toHaveLength(1240);
});

test("the longest prefix decides", () => {
  const simulate = createSimulation({
    destinations: [
      { to: "2001:db8:2::/48", end: { rttMs: 48 } },
      { to: "2001:db8:2:1::/64", end: { rttMs: 64 } },
      { to: "2001:db8:2:1::1", end: { rttMs: 128 } },
      { to: "::/0", end: { rttMs: 0 } },
    ],
  });
  const rttTo = (to: string) => simulate(probe({ to }), 0)[0]?.afterMs;
  expect(["2001:db8:2:1::1", "2001:db8:2:1::2", "2001:db8:2::1", "::2"].map(rttTo)).toEqual([
    128, 64, 48, 0,
  ]);
});

test("equal paths are chosen by flow label, or by checksum", () => {
  const equalPaths = [{ end: { rttMs: 0 } }, { end: { rttMs: 1 } }, { end: { rttMs: 2 } }];
  const byLabel = createSimulation({ destinations: [{ to: TARGET, equalPaths }] });
  const labels = [0, 1, 2, 3, 0xfffff];
  expect(labels.map((flowLabel) => byLabel(probe({ flowLabel }), 0)[0]?.afterMs)).toEqual(
    labels.map((label) => label % 3),
  );
  const byChecksum = createSimulation({
    destinations: [{ to: TARGET, equalPaths, balanceBy: "checksum" }],
  });
  const taken = [1, 2, 3].map((sequence) => byChecksum(probe({ sequence }), 0)[0]?.afterMs);
  expect(new Set(taken)).toEqual(new Set([0, 1, 2]));
});

test("a rate limit is a bucket for each router and each address that it answers to", () => {
  const simulate = createSimulation({
    destinations: [{ to: "2001:db8:2::/64", routers: [{ ...FIRST, rateLimit: LINUX_RATE_LIMIT }] }],
  });
  const answeredOf40 = (nowMs: number, from: string) =>
    Array.from({ length: 40 }, (_, index) =>
      probe({ to: `2001:db8:2::${index}`, from, hopLimit: 1 }),
    ).flatMap((bytes) => simulate(bytes, nowMs)).length;
  expect(answeredOf40(1000, SOURCE)).toBe(6);
  expect(answeredOf40(1099, SOURCE)).toBe(0);
  expect(answeredOf40(1100, SOURCE)).toBe(1);
  expect(answeredOf40(1100, "2001:db8::2")).toBe(6);
  expect(answeredOf40(9000, SOURCE)).toBe(6);
});

test("a router's rate limit does not touch what it forwards", () => {
  const routers = [{ ...FIRST, rateLimit: { intervalMs: 100, burst: 1 } }];
  const simulate = createSimulation(internetOf({ routers }));
  expect(Array.from({ length: 9 }, () => simulate(probe(), 0)).flat()).toHaveLength(9);
});

test("loss by number, by probability, on the way and at its end", () => {
  expect(answersAtOnce({ loss: [1, 3] }, 4)).toHaveLength(2);
  const quarter = answersAtOnce({ loss: 0.25 }, 4000).length;
  expect(quarter).toBeGreaterThan(2850);
  expect(quarter).toBeLessThan(3150);
  expect(answersAtOnce({ loss: 0.25 }, 4000)).toHaveLength(quarter);
  const behind = createSimulation(
    internetOf({ routers: [{ ...FIRST, forwardLoss: [2] }, SECOND] }),
  );
  expect([2, 2, 2, 1].flatMap((hopLimit) => behind(probe({ hopLimit }), 0)).map(summary)).toEqual([
    "20 2001:db8:1::2 3/0",
    "20 2001:db8:1::2 3/0",
    "10 2001:db8:1::1 3/0",
  ]);
});

test("jitter lengthens a delay evenly", () => {
  const delays = answersAtOnce({ jitterMs: 8 }, 1000).map(({ afterMs }) => afterMs);
  expect(Math.min(...delays)).toBeGreaterThanOrEqual(10);
  expect(Math.max(...delays)).toBeLessThan(18);
  expect(delays.reduce((sum, delay) => sum + delay) / 1000).toBeCloseTo(14, 0);
});
