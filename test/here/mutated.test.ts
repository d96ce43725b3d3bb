/** Messages of routers, neighbors and the kernel that are changed at random, or at every byte. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { formatIpv6 } from "../../src/addr/format.ts";
import { type Arrived, parseAdvertisement, parseNeighbour } from "../../src/here/discovery.ts";
import {
  type KernelMessage,
  parseAddress,
  parseLink,
  parseRoute,
  splitMessages,
} from "../../src/here/kernel.ts";
import { hex, hexAddress } from "../icmp/hex.ts";
import { addressText } from "../lab/address.ts";
import {
  arrived,
  CAPTIVE_PORTAL,
  HEAD,
  LINK_LAYER,
  MTU,
  NAT64,
  NEIGHBOUR,
  PREFIX,
  RESOLVER,
  ROUTE,
  saidIn,
  TARGET_LINK_LAYER,
} from "./discovery-bytes.ts";
import { RECORDED } from "./recorded.ts";

/** The options of a message as RFC 4861 section 4.6 has them, read once more and slowly; null if one breaks the message. */
function slowOptions(message: Uint8Array, from: number): Uint8Array[] | null {
  const options: Uint8Array[] = [];
  for (let at = from; at < message.length; ) {
    const bytes = (message[at + 1] ?? 0) * 8;
    if (bytes === 0 || at + bytes > message.length) return null;
    options.push(message.slice(at, at + bytes));
    at += bytes;
  }
  return options;
}

const numberIn = (bytes: Uint8Array, from: number, to: number) =>
  Number(`0x${bytes.slice(from, to).toHex()}`);
const secondsIn = (bytes: Uint8Array, from: number) => {
  const seconds = numberIn(bytes, from, from + 4);
  return seconds === 2 ** 32 - 1 ? null : seconds;
};
/** The text of a prefix of which only the first bits are kept. */
function prefixText(bytes: Uint8Array, bits: number): string {
  const kept = bytes.map((byte, at) => byte & (0xff00 >> Math.min(8, Math.max(0, bits - at * 8))));
  return `${addressText(kept)}/${bits}`;
}

/** What an advertisement says, read once more. */
function slowSaid({ source, hopLimit, message }: Arrived): unknown {
  const isLinkLocal = /^fe[89ab]/.test(formatIpv6(source));
  if (message.length < 16 || message[0] !== 134 || message[1] !== 0) return null;
  const options = hopLimit === 255 && isLinkLocal ? slowOptions(message, 16) : null;
  if (options === null) return null;
  const of = (type: number, isLong: (units: number) => boolean) =>
    options.filter((option) => option[0] === type && isLong(option[1] ?? 0));
  const flags = message[5] ?? 0;
  const mtu = of(5, () => true).at(-1);
  return {
    lifetimeSeconds: numberIn(message, 6, 8),
    preference: { 0: "medium", 8: "high", 16: "medium", 24: "low" }[flags & 24],
    hopLimit: message[4],
    mtu: mtu ? numberIn(mtu, 4, 8) : null,
    flags: [...(flags & 128 ? ["managed"] : []), ...(flags & 64 ? ["other"] : [])],
    prefixes: of(3, (units) => units >= 4)
      .filter((option) => (option[2] ?? 0) <= 128)
      .map((option) => {
        const [bits = 0, kind = 0] = option.slice(2, 4);
        const names = `${kind & 128 ? " on-link" : ""}${kind & 64 ? " autonomous" : ""}`;
        const [valid, preferred] = [secondsIn(option, 4), secondsIn(option, 8)];
        return `${prefixText(option.slice(16, 32), bits)}${names} ${preferred ?? ""} ${valid ?? ""}`;
      }),
    resolvers: of(25, (units) => units >= 3 && units % 2 === 1).flatMap((option) =>
      Array.from({ length: (option.length - 8) / 16 }, (_, at) => {
        const ip = addressText(option.slice(8 + at * 16, 24 + at * 16));
        return `${ip} ${secondsIn(option, 4)}`;
      }),
    ),
    nat64Prefixes: of(38, (units) => units === 2)
      .filter((option) => numberIn(option, 3, 4) % 8 < 6)
      .map((option) => {
        const scaled = numberIn(option, 2, 4);
        const bytes = new Uint8Array(16);
        bytes.set(option.slice(4, 16));
        const bits = [96, 64, 56, 48, 40, 32][scaled % 8] ?? 0;
        return `${prefixText(bytes, bits)} ${scaled - (scaled % 8)}`;
      }),
  };
}

/** The first rows of each kind. */
const cut = (said: unknown, most: number) =>
  said &&
  Object.fromEntries(
    Object.entries(said).map(([key, rows]) => [
      key,
      Array.isArray(rows) ? rows.slice(0, most) : rows,
    ]),
  );

const WHOLE = `${HEAD} ${LINK_LAYER} ${MTU} ${PREFIX} ${ROUTE} ${RESOLVER.replace("19 03", "19 05")} ${hexAddress("fe80::53")} ${NAT64} ${CAPTIVE_PORTAL}`;
const MESSAGES = [
  ...[
    HEAD,
    WHOLE,
    `${HEAD} ${PREFIX.repeat(9)}`,
    `${HEAD} ${RESOLVER.repeat(9)} ${NAT64.repeat(9)}`,
  ],
  ...[NEIGHBOUR, `${NEIGHBOUR} ${TARGET_LINK_LAYER}`],
].map(hex);

function sameAsSlow(message: Uint8Array): void {
  const packet = arrived(message);
  const said = saidIn(parseAdvertisement(packet));
  // How many rows of a kind are kept is a bound, and no rule.
  const most = Math.max(
    8,
    ...Object.values(said ?? {}).map((rows) => (Array.isArray(rows) ? rows.length : 0)),
  );
  expect(most).toBeLessThanOrEqual(32);
  expect(cut(said, 8)).toEqual(cut(slowSaid(packet), 8));
  const ip = parseNeighbour(packet);
  const isOne =
    message[0] === 136 && message[1] === 0 && message.length >= 24 && message[8] !== 0xff;
  const target = isOne && slowOptions(message, 24) ? addressText(message.slice(8, 24)) : null;
  expect(ip && formatIpv6(ip)).toBe(target);
}

/** A change of bytes: a bit, a byte, a length, bytes removed or inserted, the end removed, something behind it. */
const change = fc.oneof(
  fc.tuple(fc.nat(), fc.nat(7)).map(([at, bit]) => (bytes: number[]) => {
    bytes[at % bytes.length] = (bytes[at % bytes.length] ?? 0) ^ (1 << bit);
  }),
  fc
    .tuple(fc.nat(), fc.constantFrom(0, 1, 2, 3, 4, 5, 0x7f, 0x80, 0xff))
    .map(([at, value]) => (bytes: number[]) => {
      bytes[at % bytes.length] = value;
    }),
  // Where the lengths of the kernel and of options are.
  fc
    .tuple(fc.nat(40), fc.integer({ min: 0, max: 0xffff }))
    .map(([at, value]) => (bytes: number[]) => {
      bytes.splice((at * 4) % bytes.length, 2, value & 0xff, value >>> 8);
    }),
  fc.tuple(fc.nat(), fc.nat(40)).map(([at, count]) => (bytes: number[]) => {
    bytes.splice(at % bytes.length, count);
  }),
  fc.tuple(fc.nat(), fc.uint8Array({ maxLength: 40 })).map(([at, more]) => (bytes: number[]) => {
    bytes.splice(at % bytes.length, 0, ...more);
  }),
  fc.nat().map((at) => (bytes: number[]) => {
    bytes.splice(at % bytes.length);
  }),
  fc.tuple(fc.nat(), fc.nat(400)).map(([at, count]) => (bytes: number[]) => {
    bytes.push(
      ...Array.from({ length: count }, (_, index) => bytes[(at + index) % bytes.length] ?? 0),
    );
  }),
);

const changed = (messages: readonly Uint8Array[]) =>
  fc.oneof(
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 300 }) },
    {
      weight: 9,
      arbitrary: fc
        .tuple(fc.constantFrom(...messages), fc.array(change, { minLength: 1, maxLength: 6 }))
        .map(([message, changes]) => {
          const bytes = [...message];
          for (const each of changes) if (bytes.length > 0) each(bytes);
          return Uint8Array.from(bytes);
        }),
    },
  );

const each = (message: Uint8Array, act: (changed: Uint8Array) => void) => {
  for (let length = 0; length <= message.length; length++) act(message.slice(0, length));
  for (let bit = 0; bit < message.length * 8; bit++) {
    act(message.with(bit >>> 3, (message[bit >>> 3] ?? 0) ^ (1 << (bit & 7))));
  }
  for (let at = 0; at < message.length; at++) {
    for (const value of [0, 0xff]) act(message.with(at, value));
  }
};

describe("messages of neighbor discovery", () => {
  test("every cut, every bit, every byte: as a second reader says", () => {
    for (const message of [hex(WHOLE), hex(`${NEIGHBOUR} ${TARGET_LINK_LAYER}`)]) {
      each(message, sameAsSlow);
    }
  });

  test("12,000 mutated ones: as a second reader says", () => {
    fc.assert(fc.property(changed(MESSAGES), sameAsSlow), { numRuns: 12_000 });
  });

  test("bytes behind the end of one change nothing", () => {
    for (const message of MESSAGES) {
      const whole = Uint8Array.of(...message, ...hex(`${PREFIX} 00`));
      const view = arrived(whole.subarray(0, message.length));
      expect(parseAdvertisement(view)).toEqual(parseAdvertisement(arrived(message)));
      expect(parseNeighbour(view)).toEqual(parseNeighbour(arrived(message)));
    }
  });
});

const KERNEL = Object.values(RECORDED).map(hex);
const isWithin = (view: Uint8Array, bytes: Uint8Array) =>
  view.buffer === bytes.buffer &&
  view.byteOffset >= bytes.byteOffset &&
  view.byteOffset + view.length <= bytes.byteOffset + bytes.length;

const isSecondsOrNull = (seconds: number | null) =>
  seconds === null || (Number.isInteger(seconds) && Math.abs(seconds) <= 0xffff_ffff);

/** Throws if a message gives rows that no kernel has, or more than it has room for. */
function expectSane(message: KernelMessage, bytes: number): void {
  const link = parseLink(message);
  const address = parseAddress(message);
  const route = parseRoute(message);
  const isSane = [
    [link, address, route].filter((row) => row !== null).length <= 1,
    Object.values(link?.settings ?? {}).every(Number.isInteger),
    link === null || (link.name.length <= bytes && link.hardware.length <= bytes),
    address === null ||
      (address.prefixLength <= 128 &&
        isSecondsOrNull(address.preferredSeconds) &&
        isSecondsOrNull(address.validSeconds)),
    route === null ||
      (route.prefix.length <= 128 &&
        route.hops.length <= bytes / 8 &&
        isSecondsOrNull(route.expiresSeconds)),
  ];
  expect(isSane).toEqual(isSane.map(() => true));
}

function expectSaneAll(bytes: Uint8Array): void {
  const messages = splitMessages(bytes);
  expect(messages.length).toBeLessThanOrEqual(bytes.length / 16);
  expect(messages.every(({ body }) => isWithin(body, bytes))).toBe(true);
  for (const message of messages) expectSane(message, bytes.length);
}

describe("messages of the kernel", () => {
  test("every cut, every bit, every byte gives rows that can be", () => {
    const names = [
      ...([
        "link: a port of a bridge",
        "address: one of SLAAC",
        "address: the own end of a point-to-point link",
      ] as const),
      ...(["route: one of two next hops", "route: a default route of an advertisement"] as const),
    ];
    for (const name of names) {
      // The attributes of a link that are read are among the first.
      const message = hex(RECORDED[name]).slice(0, 200);
      each(message, expectSaneAll);
      const type = message[4] ?? 0;
      each(message.slice(16), (body) => expectSane({ type, body }, body.length));
    }
  });

  test("8,000 mutated ones give rows that can be", () => {
    fc.assert(fc.property(changed(KERNEL), expectSaneAll), { numRuns: 4000 });
    const bodies = KERNEL.map((message) => message.slice(16));
    const types = fc.constantFrom(16, 20, 24, 2, 3, 0xffff);
    fc.assert(
      fc.property(changed(bodies), types, (body, type) => expectSane({ type, body }, body.length)),
      { numRuns: 4000 },
    );
  });

  test("bytes behind the end of one change nothing", () => {
    for (const message of KERNEL) {
      const [alone] = splitMessages(message);
      const [first, ...others] = splitMessages(Uint8Array.of(...message, ...message, 1, 2, 3));
      expect(first).toEqual(alone);
      expect(others).toEqual(alone ? [alone] : []);
    }
  });

  test.each([
    ["a length of 0", "00000000 1400 0200 00000000 00000000", 0],
    ["a length below that of the header", "0f000000 1400 0200 00000000 00000000", 0],
    ["a length behind the end", "11000000 1400 0200 00000000 00000000", 0],
    ["the greatest length", "ffffffff 1400 0200 00000000 00000000", 0],
    ["a header alone", "10000000 1400 0200 00000000 00000000", 1],
    ["half a header", "10000000 1400 0200", 0],
    ["no bytes", "", 0],
  ])("%s", (_name, message, count) => {
    expect(splitMessages(hex(message))).toHaveLength(count);
  });

  const ROUTE_HEAD = "0a 00 00 00 fe 03 00 01 00000000";
  test.each([
    ["without next hops", "0800 0900 00000000", 0],
    ["with a next hop of the length 0", "0c00 0900 0000 00 00 03000000", 0],
    ["with a next hop shorter than its head", "0c00 0900 0700 00 00 03000000", 0],
    ["with a next hop that ends behind them", "0c00 0900 0900 00 00 03000000", 0],
    ["with a next hop without a gateway", "0c00 0900 0800 00 00 03000000", 1],
    ["with a gateway of 4 bytes", "1400 0900 1000 00 00 03000000 0800 0500 c0000201", 1],
    ["with next hops in a gateway", "1400 0900 1000 00 00 03000000 0800 0900 08000000", 1],
  ])("a route %s", (_name, attributes, hops) => {
    const route = parseRoute({ type: 24, body: hex(`${ROUTE_HEAD} ${attributes}`) });
    expect(route?.hops).toHaveLength(hops);
    expect(route?.hops.every(({ via }) => via === null)).toBe(true);
  });
});
