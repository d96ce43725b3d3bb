import { describe, expect, test } from "bun:test";
import { tryParseIp } from "../../src/addr/ip.ts";
import { formatPrefix } from "../../src/addr/prefix.ts";
import {
  ASSIGNMENT_TABLE,
  REGISTRY_SNAPSHOT,
  SPECIAL_PURPOSE_BLOCKS,
} from "../../src/addr/registry.ts";
import { edgesOf, ipv4EdgesOf } from "./blocks.ts";
import { parseIpv6 } from "./parse.ts";

/** Special-purpose rows around the edges of every block: before it, its first and last address, after it; "" for none. */
const SPECIAL_EDGES: readonly (readonly [string, string, string, string, string])[] = [
  ["::1/128", "::/128", "::1/128", "::1/128", ""],
  ["::/128", "", "::/128", "::/128", "::1/128"],
  ["::ffff:0:0/96", "", "::ffff:0:0/96", "::ffff:0:0/96", ""],
  ["64:ff9b::/96", "", "64:ff9b::/96", "64:ff9b::/96", ""],
  ["64:ff9b:1::/48", "", "64:ff9b:1::/48", "64:ff9b:1::/48", ""],
  ["100::/64", "", "100::/64", "100::/64", "100:0:0:1::/64"],
  ["100:0:0:1::/64", "100::/64", "100:0:0:1::/64", "100:0:0:1::/64", ""],
  ["2001::/23", "", "2001::/32", "2001::/23", ""],
  ["2001::/32", "", "2001::/32", "2001::/32", "2001::/23"],
  ["2001:1::1/128", "2001::/23", "2001:1::1/128", "2001:1::1/128", "2001:1::2/128"],
  ["2001:1::2/128", "2001:1::1/128", "2001:1::2/128", "2001:1::2/128", "2001:1::3/128"],
  ["2001:1::3/128", "2001:1::2/128", "2001:1::3/128", "2001:1::3/128", "2001::/23"],
  ["2001:2::/48", "2001::/23", "2001:2::/48", "2001:2::/48", "2001::/23"],
  ["2001:3::/32", "2001::/23", "2001:3::/32", "2001:3::/32", "2001::/23"],
  ["2001:4:112::/48", "2001::/23", "2001:4:112::/48", "2001:4:112::/48", "2001::/23"],
  ["2001:10::/28", "2001::/23", "2001:10::/28", "2001:10::/28", "2001:20::/28"],
  ["2001:20::/28", "2001:10::/28", "2001:20::/28", "2001:20::/28", "2001:30::/28"],
  ["2001:30::/28", "2001:20::/28", "2001:30::/28", "2001:30::/28", "2001::/23"],
  ["2001:db8::/32", "", "2001:db8::/32", "2001:db8::/32", ""],
  ["2002::/16", "", "2002::/16", "2002::/16", ""],
  ["2620:4f:8000::/48", "", "2620:4f:8000::/48", "2620:4f:8000::/48", ""],
  ["3fff::/20", "", "3fff::/20", "3fff::/20", ""],
  ["5f00::/16", "", "5f00::/16", "5f00::/16", ""],
  ["fc00::/7", "", "fc00::/7", "fc00::/7", ""],
  ["fe80::/10", "", "fe80::/10", "fe80::/10", ""],
  ["0.0.0.0/8", "", "0.0.0.0/32", "0.0.0.0/8", ""],
  ["0.0.0.0/32", "", "0.0.0.0/32", "0.0.0.0/32", "0.0.0.0/8"],
  ["10.0.0.0/8", "", "10.0.0.0/8", "10.0.0.0/8", ""],
  ["100.64.0.0/10", "", "100.64.0.0/10", "100.64.0.0/10", ""],
  ["127.0.0.0/8", "", "127.0.0.0/8", "127.0.0.0/8", ""],
  ["169.254.0.0/16", "", "169.254.0.0/16", "169.254.0.0/16", ""],
  ["172.16.0.0/12", "", "172.16.0.0/12", "172.16.0.0/12", ""],
  ["192.0.0.0/24", "", "192.0.0.0/29", "192.0.0.0/24", ""],
  ["192.0.0.0/29", "", "192.0.0.0/29", "192.0.0.0/29", "192.0.0.8/32"],
  ["192.0.0.8/32", "192.0.0.0/29", "192.0.0.8/32", "192.0.0.8/32", "192.0.0.9/32"],
  ["192.0.0.9/32", "192.0.0.8/32", "192.0.0.9/32", "192.0.0.9/32", "192.0.0.10/32"],
  ["192.0.0.10/32", "192.0.0.9/32", "192.0.0.10/32", "192.0.0.10/32", "192.0.0.0/24"],
  ["192.0.0.170/32", "192.0.0.0/24", "192.0.0.170/32", "192.0.0.170/32", "192.0.0.171/32"],
  ["192.0.0.171/32", "192.0.0.170/32", "192.0.0.171/32", "192.0.0.171/32", "192.0.0.0/24"],
  ["192.0.2.0/24", "", "192.0.2.0/24", "192.0.2.0/24", ""],
  ["192.31.196.0/24", "", "192.31.196.0/24", "192.31.196.0/24", ""],
  ["192.52.193.0/24", "", "192.52.193.0/24", "192.52.193.0/24", ""],
  ["192.88.99.0/24", "", "192.88.99.0/24", "192.88.99.0/24", ""],
  ["192.88.99.2/32", "192.88.99.0/24", "192.88.99.2/32", "192.88.99.2/32", "192.88.99.0/24"],
  ["192.168.0.0/16", "", "192.168.0.0/16", "192.168.0.0/16", ""],
  ["192.175.48.0/24", "", "192.175.48.0/24", "192.175.48.0/24", ""],
  ["198.18.0.0/15", "", "198.18.0.0/15", "198.18.0.0/15", ""],
  ["198.51.100.0/24", "", "198.51.100.0/24", "198.51.100.0/24", ""],
  ["203.0.113.0/24", "", "203.0.113.0/24", "203.0.113.0/24", ""],
  ["240.0.0.0/4", "", "240.0.0.0/4", "255.255.255.255/32", ""],
  ["255.255.255.255/32", "240.0.0.0/4", "255.255.255.255/32", "255.255.255.255/32", ""],
];

describe("the special-purpose registries", () => {
  test.each(SPECIAL_EDGES)("around %s: %p | %p … %p | %p", (block, before, first, last, after) => {
    const row = SPECIAL_PURPOSE_BLOCKS.rows.find((each) => each.block === block);
    if (row === undefined) throw new Error(`no row for ${block}`);
    const { version } = row.prefix.network;
    const edges = version === 4 ? ipv4EdgesOf(row.prefix) : edgesOf(row.prefix);
    const blockOf = (ip: typeof edges.before) => {
      const found = ip && SPECIAL_PURPOSE_BLOCKS.find(ip);
      return found ? found.block : "";
    };
    expect(blockOf(edges.first)).toBe(first);
    expect(blockOf(edges.last)).toBe(last);
    expect(blockOf(edges.before)).toBe(before);
    expect(blockOf(edges.after)).toBe(after);
  });

  test("has an expectation for each of the 25 and 26 rows", () => {
    expect(SPECIAL_EDGES.map(([block]) => block)).toEqual(
      SPECIAL_PURPOSE_BLOCKS.rows.map(({ block }) => block),
    );
    expect(SPECIAL_PURPOSE_BLOCKS.rows).toHaveLength(25 + 26);
    expect(REGISTRY_SNAPSHOT).toMatch(/^\d{4}-\d{2}$/);
  });

  test.each([
    ["2001:db8::1", "Documentation", [3849], "2004-07", undefined, false],
    ["64:ff9b::1", "IPv4-IPv6 Translat.", [6052], "2010-10", undefined, true],
    ["2001::1", "TEREDO", [4380, 8190], "2006-01", undefined, null],
    ["2002::1", "6to4", [3056], "2001-02", undefined, null],
    ["2001:10::1", "Deprecated (previously ORCHID)", [4843], "2007-03", "2014-03", undefined],
    ["192.88.99.1", "Deprecated (6to4 Relay Anycast)", [7526], "2001-06", "2015-03", undefined],
    ["10.1.2.3", "Private-Use", [1918], "1996-02", undefined, false],
  ] as const)("%s is %p", (text, name, rfcs, allocated, terminated, reachable) => {
    const ip = tryParseIp(text);
    const row = ip && SPECIAL_PURPOSE_BLOCKS.find(ip);
    expect(row).toMatchObject({ name, rfcs, allocated });
    expect(row?.terminated).toBe(terminated);
    expect(row?.flags?.globallyReachable).toBe(reachable);
  });

  test("these rows are globally reachable, undecided or empty, and all others are not", () => {
    const blocksOf = (reachable: boolean | null | undefined) =>
      SPECIAL_PURPOSE_BLOCKS.rows
        .filter(({ flags }) => flags?.globallyReachable === reachable)
        .map(({ block }) => block);
    expect(blocksOf(true)).toEqual([
      "64:ff9b::/96",
      "2001:1::1/128",
      "2001:1::2/128",
      "2001:1::3/128",
      "2001:3::/32",
      "2001:4:112::/48",
      "2001:20::/28",
      "2001:30::/28",
      "2620:4f:8000::/48",
      "192.0.0.9/32",
      "192.0.0.10/32",
      "192.31.196.0/24",
      "192.52.193.0/24",
      "192.175.48.0/24",
    ]);
    expect(blocksOf(null)).toEqual(["2001::/32", "2002::/16"]);
    expect(blocksOf(undefined)).toEqual(["2001:10::/28", "192.88.99.0/24"]);
  });

  test("the letters of a row are its five flags in order", () => {
    expect(SPECIAL_PURPOSE_BLOCKS.find(parseIpv6("fe80::1"))?.flags).toEqual({
      source: true,
      destination: true,
      forwardable: false,
      globallyReachable: false,
      reservedByProtocol: true,
    });
  });
});

/** Assignments around the edges of every block: before it, itself, after it; "" for none. */
const ASSIGNMENT_EDGES: readonly (readonly [string, string, string, string])[] = [
  ["2001::/23", "", "IANA", "APNIC"],
  ["2001:200::/23", "IANA", "APNIC", "ARIN"],
  ["2001:c00::/23", "RIPE NCC", "APNIC", "APNIC"],
  ["2001:e00::/23", "APNIC", "APNIC", ""],
  ["2001:4400::/23", "AFRINIC", "APNIC", "RIPE NCC"],
  ["2001:8000::/19", "", "APNIC", "APNIC"],
  ["2001:a000::/20", "APNIC", "APNIC", "APNIC"],
  ["2001:b000::/20", "APNIC", "APNIC", ""],
  ["2400::/12", "", "APNIC", "APNIC"],
  ["2410::/12", "APNIC", "APNIC", ""],
  ["2001:400::/23", "APNIC", "ARIN", "RIPE NCC"],
  ["2001:1800::/23", "RIPE NCC", "ARIN", "RIPE NCC"],
  ["2001:4800::/23", "RIPE NCC", "ARIN", "RIPE NCC"],
  ["2600::/12", "", "ARIN", "ARIN"],
  ["2610::/23", "ARIN", "ARIN", ""],
  ["2620::/23", "", "ARIN", ""],
  ["2630::/12", "", "ARIN", ""],
  ["2001:600::/23", "ARIN", "RIPE NCC", "RIPE NCC"],
  ["2001:800::/22", "RIPE NCC", "RIPE NCC", "APNIC"],
  ["2001:1400::/22", "LACNIC", "RIPE NCC", "ARIN"],
  ["2001:1a00::/23", "ARIN", "RIPE NCC", "RIPE NCC"],
  ["2001:1c00::/22", "RIPE NCC", "RIPE NCC", "RIPE NCC"],
  ["2001:2000::/19", "RIPE NCC", "RIPE NCC", "RIPE NCC"],
  ["2001:4000::/23", "RIPE NCC", "RIPE NCC", "AFRINIC"],
  ["2001:4600::/23", "APNIC", "RIPE NCC", "ARIN"],
  ["2001:4a00::/23", "ARIN", "RIPE NCC", "RIPE NCC"],
  ["2001:4c00::/23", "RIPE NCC", "RIPE NCC", ""],
  ["2001:5000::/20", "", "RIPE NCC", ""],
  ["2003::/18", "6to4", "RIPE NCC", ""],
  ["2a00::/12", "", "RIPE NCC", "RIPE NCC"],
  ["2a10::/12", "RIPE NCC", "RIPE NCC", ""],
  ["2001:1200::/23", "", "LACNIC", "RIPE NCC"],
  ["2800::/12", "", "LACNIC", ""],
  ["2001:4200::/23", "RIPE NCC", "AFRINIC", "APNIC"],
  ["2c00::/12", "", "AFRINIC", ""],
  ["2002::/16", "", "6to4", "RIPE NCC"],
  ["3fff::/20", "Reserved", "Documentation", ""],
  ["2d00::/8", "", "Reserved", "Reserved"],
  ["2e00::/7", "Reserved", "Reserved", "Reserved"],
  ["3000::/5", "Reserved", "Reserved", "Reserved"],
  ["3800::/6", "Reserved", "Reserved", "Reserved"],
  ["3c00::/7", "Reserved", "Reserved", "Reserved"],
  ["3e00::/8", "Reserved", "Reserved", "Reserved"],
  ["3f00::/9", "Reserved", "Reserved", "Reserved"],
  ["3f80::/10", "Reserved", "Reserved", "Reserved"],
  ["3fc0::/11", "Reserved", "Reserved", "Reserved"],
  ["3fe0::/12", "Reserved", "Reserved", "Reserved"],
  ["3ff0::/13", "Reserved", "Reserved", "Reserved"],
  ["3ff8::/14", "Reserved", "Reserved", "Reserved"],
  ["3ffc::/15", "Reserved", "Reserved", "Reserved"],
  ["3ffe::/16", "Reserved", "Reserved", "Documentation"],
];

describe("the assignments", () => {
  test.each(ASSIGNMENT_EDGES)("around %s: %p | %p | %p", (block, before, inside, after) => {
    const row = ASSIGNMENT_TABLE.rows.find(({ prefix }) => formatPrefix(prefix) === block);
    if (row === undefined) throw new Error(`no row for ${block}`);
    const edges = edgesOf(row.prefix);
    const assigneeOf = (ip: typeof edges.before) =>
      (ip && ASSIGNMENT_TABLE.find(ip)?.assignee) ?? "";
    expect(assigneeOf(edges.first)).toBe(inside);
    expect(assigneeOf(edges.last)).toBe(inside);
    expect(assigneeOf(edges.before)).toBe(before);
    expect(assigneeOf(edges.after)).toBe(after);
  });

  test("has an expectation for each of the 51 rows", () => {
    expect(ASSIGNMENT_EDGES.map(([block]) => block)).toEqual(
      ASSIGNMENT_TABLE.rows.map(({ prefix }) => formatPrefix(prefix)),
    );
    expect(ASSIGNMENT_TABLE.rows).toHaveLength(51);
  });
});
