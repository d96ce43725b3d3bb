import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { isDecodedInTime, PROPERTIES, tryDecode } from "./fuzz.ts";
import { hex } from "./messages.ts";

describe("for every input", () => {
  test.each(Object.keys(PROPERTIES))("%s", (name) => {
    fc.assert(PROPERTIES[name] as fc.IRawProperty<unknown>, { numRuns: 1000 });
  });
});

/** A record of class IN with this owner, type and data, in hex. */
function record(owner: string, type: string, data: string): string {
  const length = (data.length / 2).toString(16).padStart(4, "0");
  return `${owner}${type}000100000000${length}${data}`;
}

const MESSAGE_BYTES = 65_535;

/** A response with one record that the others may point into, and as many others as fit. */
function filled(first: string, other: (index: number) => string): Uint8Array {
  let records = first;
  let count = 1;
  for (;;) {
    const next = other(count - 1);
    if (12 + (records.length + next.length) / 2 > MESSAGE_BYTES) break;
    records += next;
    count += 1;
  }
  return hex(`0000 8180 0000 ${count.toString(16).padStart(4, "0")} 0000 0000 ${records}`);
}

const A = "0001";
const NS = "0002";
const TXT = "0010";
const UNKNOWN = "ffff";
const ROOT = "00";

/** Offset of the data of the first record if its owner is the root. */
const DATA = 12 + 11;

function pointerTo(target: number): string {
  return (0xc000 | target).toString(16);
}

/** 64 names of 126 labels: 8,064 suffixes to point at. */
const longNames = `${"0161".repeat(126)}00`.repeat(64);
const endOfLongName = (index: number) =>
  pointerTo(DATA + 253 * (index % 64) + 2 * ((index * 7) % 126));

/** 126 pointers, each to the one before it, the first to a root in front of them. */
const chain = `00${Array.from({ length: 126 }, (_, at) => pointerTo(at === 0 ? DATA : DATA - 1 + 2 * at)).join("")}`;
const linkOfChain = (index: number) => pointerTo(DATA + 1 + 2 * (124 - (index % 4)));

describe("the most expensive messages of 65,535 bytes are decoded quickly", () => {
  test.each<[string, Uint8Array]>([
    [
      "addresses of the root",
      filled(record(ROOT, A, "00000000"), () => record(ROOT, A, "c0000201")),
    ],
    [
      "addresses of one long name",
      filled(record(`${"0161".repeat(126)}00`, A, "00000000"), () => record("c00c", A, "c0000201")),
    ],
    [
      "empty records of an unknown type",
      filled(record(ROOT, UNKNOWN, ""), () => record(ROOT, UNKNOWN, "")),
    ],
    [
      "owners that each point into another part of a long name",
      filled(record(ROOT, UNKNOWN, longNames), (index) =>
        record(endOfLongName(index), UNKNOWN, ""),
      ),
    ],
    [
      "owners and data that point into a long name",
      filled(record(ROOT, UNKNOWN, longNames), (index) =>
        record(endOfLongName(index), NS, endOfLongName(index + 31)),
      ),
    ],
    [
      "pointers at the end of a chain of pointers",
      filled(record(ROOT, UNKNOWN, chain), (index) =>
        record(linkOfChain(index), NS, linkOfChain(index + 1)),
      ),
    ],
    [
      "names of 255 bytes that all need escapes",
      filled(record(ROOT, A, "00000000"), () =>
        record(`${`3f${"ff".repeat(63)}`.repeat(3)}3d${"ff".repeat(61)}00`, A, "00000000"),
      ),
    ],
    [
      "one TXT record of empty strings",
      filled(record(ROOT, TXT, "00".repeat(65_000)), () => record(ROOT, A, "00000000")),
    ],
  ])("%s", (_, bytes) => {
    expect(bytes.length).toBeGreaterThan(MESSAGE_BYTES - 300);
    expect(tryDecode(bytes)).not.toBeNull();
    expect(isDecodedInTime(bytes)).toBe(true);
  });

  test("garbage", () => {
    const bytes = crypto.getRandomValues(new Uint8Array(MESSAGE_BYTES));
    expect(isDecodedInTime(bytes)).toBe(true);
  });
});
