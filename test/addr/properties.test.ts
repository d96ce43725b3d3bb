import { expect, test } from "bun:test";
import fc from "fast-check";
import { classifyIpv6, TYPE_TABLE } from "../../src/addr/classify.ts";
import { formatIpv6, formatIpv6Expanded, formatIpv6Integer } from "../../src/addr/format.ts";
import { formatIp, looksLikeIpv4, tryParseIp } from "../../src/addr/ip.ts";
import { formatIpv4, ipv4FromWord, tryParseIpv4 } from "../../src/addr/ipv4.ts";
import {
  type Ipv6Address,
  ipv6FromBytes,
  ipv6ToBytes,
  tryParseIpv6,
  tryParseZoned,
} from "../../src/addr/ipv6.ts";
import { objectionTo } from "../../src/addr/policy.ts";
import {
  AddressError,
  formatPrefix,
  type Prefix,
  parsePrefix,
  prefixContains,
  prefixOf,
  prefixTable,
} from "../../src/addr/prefix.ts";
import { formatSocketAddress, tryParseSocketAddress } from "../../src/addr/socket-address.ts";
import { describeAddress } from "../../src/tools/validate/engine.ts";
import { edgesOf, integerOf } from "./blocks.ts";
import { parseIpv6 } from "./parse.ts";
import { slowParseIpv4, slowParseIpv6 } from "./slow-ipv6.ts";

/** Realistic groups: mostly zeros and small numbers, so that runs and ties are frequent. */
const group = fc.oneof(
  { weight: 3, arbitrary: fc.constant(0) },
  fc.integer({ min: 0, max: 0xff }),
  fc.integer({ min: 0, max: 0xffff }),
);
const eightGroups = fc.array(group, { minLength: 8, maxLength: 8 });
const anyBits = fc
  .uint8Array({ minLength: 16, maxLength: 16 })
  .map((bytes) => ipv6FromBytes(bytes));
/** An address at or beside an edge of a block of the type table, or with anything after the block's bits. */
const nearBlocks = fc
  .record({ row: fc.constantFrom(...TYPE_TABLE.rows), place: fc.nat({ max: 4 }), bits: anyBits })
  .map(({ row, place, bits }) => {
    const { first, last, before, after } = edgesOf(row.prefix);
    return [first, last, before, after][place] ?? mix(first, bits, row.prefix.length);
  });
const address = fc.oneof(
  anyBits,
  nearBlocks,
  eightGroups.map((groups) => fromGroups(groups)),
);
const ipv4 = fc.integer({ min: 0, max: 0xffff_ffff }).map((word) => ipv4FromWord(word));
const ip = fc.oneof(address, ipv4);

function fromGroups(groups: readonly number[]): Ipv6Address {
  return ipv6FromBytes(Uint8Array.from(groups.flatMap((value) => [value >>> 8, value & 255])));
}

function groupsOf(value: Ipv6Address): number[] {
  const view = new DataView(ipv6ToBytes(value).buffer);
  return Array.from({ length: 8 }, (_, index) => view.getUint16(index * 2));
}

/** The first `length` bits of one address, then the bits of the other. */
function mix(front: Ipv6Address, back: Ipv6Address, length: number): Ipv6Address {
  const bytes = ipv6ToBytes(front);
  const other = ipv6ToBytes(back);
  for (let bit = length; bit < 128; bit++) {
    const mask = 0x80 >>> (bit % 8);
    const at = bit >>> 3;
    bytes[at] = ((bytes[at] as number) & ~mask) | ((other[at] as number) & mask);
  }
  return ipv6FromBytes(bytes);
}

/** Any legal spelling of an address: case, leading zeros, any place of `::`, a dotted tail. */
const spelling = address.chain((value) =>
  fc
    .record({
      tail: fc.boolean(),
      gap: fc.nat(),
      style: fc.array(fc.record({ zeros: fc.nat({ max: 3 }), upper: fc.boolean() }), {
        minLength: 8,
        maxLength: 8,
      }),
    })
    .map(({ tail, gap, style }) => {
      const groups = groupsOf(value);
      const parts = groups.slice(0, tail ? 6 : 8).map((each, index) => {
        const { zeros, upper } = style[index] as { zeros: number; upper: boolean };
        const digits = each.toString(16);
        const padded = digits.padStart(Math.min(4, digits.length + zeros), "0");
        return upper ? padded.toUpperCase() : padded;
      });
      const gaps = zeroRuns(groups.slice(0, parts.length));
      const dotted = tail ? [[...ipv6ToBytes(value).subarray(12)].join(".")] : [];
      const run = gaps[gap % (gaps.length + 1)];
      const text =
        run === undefined
          ? [...parts, ...dotted].join(":")
          : `${parts.slice(0, run[0]).join(":")}::${[...parts.slice(run[1]), ...dotted].join(":")}`;
      return { value, text };
    }),
);

/** Every run of zeros as [start, end), parts of longer runs included. */
function zeroRuns(groups: readonly number[]): [number, number][] {
  const runs: [number, number][] = [];
  for (let start = 0; start < groups.length; start++) {
    for (let end = start + 1; end <= groups.length && groups[end - 1] === 0; end++) {
      runs.push([start, end]);
    }
  }
  return runs;
}

/** A text with a few characters removed, inserted or replaced: mostly almost legal. */
function mutated(texts: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const edit = fc.record({
    at: fc.nat({ max: 45 }),
    remove: fc.nat({ max: 2 }),
    insert: fc.oneof(
      fc.constantFrom(
        "",
        ":",
        "::",
        ".",
        "0",
        "00",
        "f",
        "g",
        "1.2.3.4",
        "256",
        "%",
        "/",
        "[",
        " ",
      ),
      fc.string({ unit: "binary", maxLength: 1 }),
    ),
  });
  return fc
    .record({ text: texts, edits: fc.array(edit, { minLength: 1, maxLength: 3 }) })
    .map(({ text, edits }) =>
      edits.reduce(
        (so, { at, remove, insert }) => so.slice(0, at) + insert + so.slice(at + remove),
        text,
      ),
    );
}

/** The result of `parsePrefix`, or null for an AddressError. */
function prefixOrNull(text: string): Prefix | null {
  try {
    return parsePrefix(text);
  } catch (error) {
    if (error instanceof AddressError) return null;
    throw error;
  }
}

const RUNS = { numRuns: 3000 };

test("both written forms parse to the same address", () => {
  fc.assert(
    fc.property(address, (value) => {
      expect(tryParseIpv6(formatIpv6(value))).toEqual(value);
      expect(tryParseIpv6(formatIpv6Expanded(value))).toEqual(value);
      expect(formatIpv6Expanded(value)).toMatch(/^([0-9a-f]{4}:){7}[0-9a-f]{4}$/);
    }),
    RUNS,
  );
});

test("all legal spellings of an address parse to it and are written alike", () => {
  fc.assert(
    fc.property(spelling, ({ value, text }) => {
      expect(parseIpv6(text)).toEqual(value);
      expect(formatIpv6(parseIpv6(text))).toBe(formatIpv6(value));
    }),
    RUNS,
  );
});

test("the canonical form compresses the longest run, the first on a tie, and is its own canonical form", () => {
  fc.assert(
    fc.property(address, (value) => {
      const canonical = formatIpv6(value);
      expect(formatIpv6(parseIpv6(canonical))).toBe(canonical);
      expect(canonical).toBe(canonical.toLowerCase());
      if (canonical.includes(".")) return;
      const runs = zeroRuns(groupsOf(value)).filter(([start, end]) => end - start > 1);
      const longest = Math.max(...runs.map(([start, end]) => end - start));
      const [chosen] = runs.find(([start, end]) => end - start === longest) ?? [];
      const [before, after] = canonical.split("::");
      if (chosen === undefined) expect(after).toBeUndefined();
      else expect(before?.split(":").filter(Boolean)).toHaveLength(chosen);
    }),
    RUNS,
  );
});

test("both parsers agree on spellings, mutated spellings and on any text", () => {
  const legal = spelling.map(({ text }) => text);
  const alphabet = fc.string({ unit: fc.constantFrom(..."0123456789abfFg:.:%/ "), maxLength: 50 });
  const texts = fc.oneof(legal, mutated(legal), alphabet, fc.string({ unit: "binary" }));
  fc.assert(
    fc.property(texts, (text) => {
      const fast = tryParseIpv6(text);
      expect(fast && groupsOf(fast)).toEqual(slowParseIpv6(text));
    }),
    { numRuns: 5000 },
  );
});

test("both IPv4 parsers agree, and writing inverts reading", () => {
  const legal = ipv4.map((value) => formatIpv4(value));
  fc.assert(
    fc.property(fc.oneof(legal, mutated(legal)), (text) => {
      const fast = tryParseIpv4(text);
      expect(fast && formatIpv4(fast).split(".").map(Number)).toEqual(slowParseIpv4(text));
      if (fast) expect(formatIpv4(fast)).toBe(text);
    }),
    RUNS,
  );
});

test("every address has exactly one type: the first that matches is the one that is found", () => {
  fc.assert(
    fc.property(address, (value) => {
      const bits = integerOf(value);
      const first = TYPE_TABLE.rows.find(({ prefix }) => {
        const shift = BigInt(128 - prefix.length);
        return bits >> shift === integerOf(prefix.network) >> shift;
      });
      expect(classifyIpv6(value)).toBe(first?.type as never);
    }),
    RUNS,
  );
});

test("a prefixTable agrees with a search through all rows", () => {
  const prefix = fc
    .record({ value: ip, length: fc.nat() })
    .map(({ value, length }) => prefixOf(value, length % (value.version === 4 ? 33 : 129)));
  fc.assert(
    fc.property(fc.array(prefix, { maxLength: 20 }), ip, (prefixes, other) => {
      const table = prefixTable(prefixes.map((each) => ({ prefix: each })));
      const asked = [other, ...prefixes.map(({ network }) => network)];
      for (const value of asked) {
        const matching = prefixes.filter((each) => prefixContains(each, value));
        const longest = matching.reduce<Prefix | null>(
          (best, each) => (best === null || each.length > best.length ? each : best),
          null,
        );
        expect(table.find(value)?.prefix ?? null).toEqual(longest);
      }
    }),
  );
});

test("a prefix contains exactly the addresses from its first to its last", () => {
  const length = fc.integer({ min: 0, max: 128 });
  fc.assert(
    fc.property(address, address, length, (value, other, bits) => {
      const prefix = prefixOf(value, bits);
      const { first, last, before, after } = edgesOf(prefix);
      expect(prefixContains(prefix, value)).toBe(true);
      expect(prefixContains(prefix, first)).toBe(true);
      expect(prefixContains(prefix, last)).toBe(true);
      expect(before && prefixContains(prefix, before)).not.toBe(true);
      expect(after && prefixContains(prefix, after)).not.toBe(true);
      const between = integerOf(first) <= integerOf(other) && integerOf(other) <= integerOf(last);
      expect(prefixContains(prefix, other)).toBe(between);
      expect(parsePrefix(formatPrefix(prefix))).toEqual(prefix);
    }),
  );
});

test("socket addresses, integers and bytes survive the round trip", () => {
  fc.assert(
    fc.property(ip, fc.nat({ max: 65_535 }), (value, port) => {
      expect(tryParseIp(formatIp(value))).toEqual(value);
      expect(tryParseSocketAddress(formatSocketAddress({ address: value, port }))).toEqual({
        address: value,
        port,
      });
      expect(tryParseSocketAddress(formatIp(value), port)).toEqual({ address: value, port });
      if (value.version === 6) {
        expect(BigInt(formatIpv6Integer(value))).toBe(integerOf(value));
        expect(ipv6FromBytes(ipv6ToBytes(value))).toEqual(value);
      }
    }),
  );
});

test("every address can be described and checked against a policy", () => {
  fc.assert(
    fc.property(address, (value) => {
      const details = describeAddress(value).details;
      expect(JSON.parse(JSON.stringify(details))).toEqual(details);
      // The policy never treats an address as global that the registry calls not globally reachable.
      if (objectionTo(value, { mode: "global", allow: [], deny: [] }) === null) {
        expect(details.specialPurpose?.globallyReachable).not.toBe(false);
      }
    }),
    RUNS,
  );
});

test("no text makes a parser throw anything but AddressError", () => {
  const text = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.array(fc.integer({ min: 0, max: 0xffff })).map((codes) => String.fromCharCode(...codes)),
    mutated(spelling.map((each) => each.text)),
  );
  fc.assert(
    fc.property(text, (value) => {
      tryParseIp(value);
      prefixOrNull(value);
      tryParseSocketAddress(value, 53);
      tryParseZoned(value);
      looksLikeIpv4(value);
    }),
    RUNS,
  );
});

test.each([
  ["digits", "1".repeat(1_000_000)],
  ["colons", ":".repeat(1_000_000)],
  ["groups", "1:".repeat(500_000)],
  ["decimals", "1.".repeat(500_000)],
  ["an address and NULs", `::1${"\0".repeat(1_000_000)}`],
  ["text in brackets", `[${"1".repeat(1_000_000)}]:53`],
  ["a prefix length", `::/${"0".repeat(1_000_000)}`],
  ["a zone", `fe80::1%${"a".repeat(1_000_000)}`],
  ["opening brackets", "[".repeat(1_000_000)],
  ["slashes", "/".repeat(1_000_000)],
  ["lone surrogates", "\ud800".repeat(500_000)],
])("a megabyte of %s is not an address", (_, text) => {
  expect(tryParseIp(text)).toBeNull();
  expect(prefixOrNull(text)).toBeNull();
  expect(tryParseSocketAddress(text, 53)).toBeNull();
  expect(tryParseZoned(text)).toBeNull();
  expect(looksLikeIpv4(text)).toBe(false);
});
