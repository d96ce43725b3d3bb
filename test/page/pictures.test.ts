/** The data that the pictures of the tools are drawn from. */
import { describe, expect, test } from "bun:test";
import { digitsOf, partsOf } from "../../src/page/browser/pictures/address-parts.ts";
import { formatMs, NUMBER_FORMATS, roundUp, scaleOf } from "../../src/tools/numbers.ts";
import { describeAddress } from "../../src/tools/validate/engine.ts";
import { parseIpv6 } from "../addr/parse.ts";

describe("the bits of an address", () => {
  test.each<[string, Readonly<Record<string, string>>]>([
    [
      "2001:db8:42:7::1",
      { prefix: "2001:0db8:0042", subnet: "0007", interface: "0000:0000:0000:0001" },
    ],
    [
      "2001:db8::21b:44ff:fe11:3ab7",
      { prefix: "2001:0db8:0000", subnet: "0000", mac: "021b:44:11:3ab7", eui64: "ff:fe" },
    ],
    ["fe80::1", { prefix: "fe80:0000:0000:0000", interface: "0000:0000:0000:0001" }],
    [
      "ff02::1:ff00:1",
      { prefix: "ff", flags: "0", scope: "2", group: "0000:0000:0000:0000:0001:ff00:0001" },
    ],
    ["::ffff:192.0.2.7", { prefix: "0000:0000:0000:0000:0000:ffff", ipv4: "c000:0207" }],
    ["64:ff9b::192.0.2.7", { prefix: "0064:ff9b:0000:0000:0000:0000", ipv4: "c000:0207" }],
    [
      "2002:c000:207::1",
      { prefix: "2002", ipv4: "c000:0207", subnet: "0000", interface: "0000:0000:0000:0001" },
    ],
    [
      "2001:db8::5efe:192.0.2.7",
      { prefix: "2001:0db8:0000", subnet: "0000", interface: "0000:5efe", ipv4: "c000:0207" },
    ],
    [
      "2001:db8::c000:207",
      { prefix: "2001:0db8:0000", subnet: "0000", interface: "0000:0000", ipv4: "c000:0207" },
    ],
    [
      "2001:0:4136:e378:8000:63bf:3fff:fdd2",
      {
        prefix: "2001:0000",
        server: "4136:e378",
        flags: "8000",
        port: "63bf",
        client: "3fff:fdd2",
      },
    ],
  ])("%s", (text, expected) => {
    const validation = describeAddress(parseIpv6(text), null);
    const parts = partsOf(validation);
    const digits = validation.expanded.replaceAll(":", "");
    const found = [...new Set(parts)].map((part) => [part, digitsOf(part, digits, parts)]);
    expect(Object.fromEntries(found)).toEqual(expected);
  });
});

describe("numbers", () => {
  test.each([
    [0.0456, "0.05"],
    [9.994, "9.99"],
    [10, "10.0"],
    [99.94, "99.9"],
    [1234.5, "1235"],
  ])("%p ms is %s", (ms, text) => {
    expect(formatMs(ms)).toBe(text);
  });

  test("are written by their kind", () => {
    const texts = Object.entries(NUMBER_FORMATS).map(([kind, format]) => [kind, format(2)]);
    expect(Object.fromEntries(texts)).toEqual({
      ...{ time: "2.000 ms", ms: "2.00", percent: "2 %", count: "2", bytes: "2 bytes" },
    });
  });

  test.each([
    [[0.3, 82.9, null], 100],
    [[1.1], 1.5],
    [[20], 20],
    [[], 0.01],
  ])("%p ms are on a scale to %p", (times, end) => {
    expect(scaleOf(times)).toBeCloseTo(end, 10);
    for (const ms of times) expect(roundUp(ms ?? 1)).toBeGreaterThanOrEqual(ms ?? 1);
  });
});
