import { describe, expect, test } from "bun:test";
import { type AddressType, classifyIpv6, TYPE_TABLE } from "../../src/addr/classify.ts";
import { edgesOf, integerOf } from "./blocks.ts";
import { parseIpv6 } from "./parse.ts";

/** Types around the edges of every block: before it, its first and last address, after it. */
const EDGES: readonly (readonly [
  block: string,
  before: AddressType | null,
  first: AddressType,
  last: AddressType,
  after: AddressType | null,
])[] = [
  ["::/128", null, "Unspecified", "Unspecified", "Loopback"],
  ["::1/128", "Unspecified", "Loopback", "Loopback", "IPv4Compatible"],
  ["2001:1::1/128", "ProtocolAssignment", "PcpAnycast", "PcpAnycast", "TurnAnycast"],
  ["2001:1::2/128", "PcpAnycast", "TurnAnycast", "TurnAnycast", "SrpAnycast"],
  ["2001:1::3/128", "TurnAnycast", "SrpAnycast", "SrpAnycast", "ProtocolAssignment"],
  ["::ffff:0:0/96", "Reserved", "IPv4Mapped", "IPv4Mapped", "Reserved"],
  ["::ffff:0:0:0/96", "Reserved", "IPv4Translated", "IPv4Translated", "Reserved"],
  ["64:ff9b::/96", "Reserved", "Nat64", "Nat64", "Reserved"],
  ["::/96", null, "Unspecified", "IPv4Compatible", "Reserved"],
  ["100::/64", "Reserved", "DiscardOnly", "DiscardOnly", "DummyPrefix"],
  ["100:0:0:1::/64", "DiscardOnly", "DummyPrefix", "DummyPrefix", "Reserved"],
  ["64:ff9b:1::/48", "Reserved", "Nat64Local", "Nat64Local", "Reserved"],
  ["2001:2::/48", "ProtocolAssignment", "Benchmarking", "Benchmarking", "ProtocolAssignment"],
  ["2001:4:112::/48", "ProtocolAssignment", "As112", "As112", "ProtocolAssignment"],
  ["2620:4f:8000::/48", "GlobalUnicast", "As112", "As112", "GlobalUnicast"],
  ["2001::/32", "GlobalUnicast", "Teredo", "Teredo", "ProtocolAssignment"],
  ["2001:3::/32", "ProtocolAssignment", "Amt", "Amt", "ProtocolAssignment"],
  ["2001:db8::/32", "GlobalUnicast", "Documentation", "Documentation", "GlobalUnicast"],
  ["3fff::/20", "GlobalUnicast", "Documentation", "Documentation", "GlobalUnicast"],
  ["2001:10::/28", "ProtocolAssignment", "OrchidDeprecated", "OrchidDeprecated", "OrchidV2"],
  ["2001:20::/28", "OrchidDeprecated", "OrchidV2", "OrchidV2", "DroneRemoteId"],
  ["2001:30::/28", "OrchidV2", "DroneRemoteId", "DroneRemoteId", "ProtocolAssignment"],
  ["2001::/23", "GlobalUnicast", "Teredo", "ProtocolAssignment", "GlobalUnicast"],
  ["2002::/16", "GlobalUnicast", "SixToFour", "SixToFour", "GlobalUnicast"],
  ["5f00::/16", "Reserved", "SegmentRouting", "SegmentRouting", "Reserved"],
  ["fe80::/10", "Reserved", "LinkLocal", "LinkLocal", "SiteLocal"],
  ["fec0::/10", "LinkLocal", "SiteLocal", "SiteLocal", "Multicast"],
  ["ff00::/8", "SiteLocal", "Multicast", "Multicast", null],
  ["fc00::/7", "Reserved", "UniqueLocal", "UniqueLocal", "Reserved"],
  ["2000::/3", "Reserved", "GlobalUnicast", "GlobalUnicast", "Reserved"],
  ["::/0", null, "Unspecified", "Multicast", null],
];

describe("classifyIpv6", () => {
  test.each(EDGES)("around %s: %s | %s … %s | %s", (block, before, first, last, after) => {
    const row = TYPE_TABLE.rows.find((each) => each.block === block);
    if (row === undefined) throw new Error(`no row for ${block}`);
    const edges = edgesOf(row.prefix);
    expect(classifyIpv6(edges.first)).toBe(first);
    expect(classifyIpv6(edges.last)).toBe(last);
    expect(edges.before && classifyIpv6(edges.before)).toBe(before);
    expect(edges.after && classifyIpv6(edges.after)).toBe(after);
  });

  test("has an expectation for every row of the table", () => {
    expect(EDGES.map(([block]) => block)).toEqual(TYPE_TABLE.rows.map(({ block }) => block));
  });

  test("the first row that matches is also the longest", () => {
    for (const [index, later] of TYPE_TABLE.rows.entries()) {
      for (const earlier of TYPE_TABLE.rows.slice(0, index)) {
        const { first, last } = edgesOf(earlier.prefix);
        const inner = edgesOf(later.prefix);
        const shadowed =
          integerOf(first) <= integerOf(inner.first) && integerOf(inner.last) <= integerOf(last);
        expect(shadowed && `${later.block} after ${earlier.block}`).toBe(false);
      }
    }
  });

  test.each([
    ["2001:4860:4860::8888", "GlobalUnicast", "a public resolver"],
    ["2600::", "GlobalUnicast", "an allocated block"],
    ["3ffe::1", "GlobalUnicast", "once 6bone, 3ffe::/16"],
    ["3fff:fff:ffff::", "Documentation", "RFC 9637: the block is a /20"],
    ["2001:db8::1", "Documentation", "the contract's example"],
    ["fd00::1", "UniqueLocal", "locally assigned"],
    ["fc00::1", "UniqueLocal", "the half that is not defined yet"],
    ["ff02::1", "Multicast", "all nodes"],
    ["::8.8.8.8", "IPv4Compatible", "not mapped"],
    ["::ffff:8.8.8.8", "IPv4Mapped", "mapped"],
    ["64:ff9b::8.8.8.8", "Nat64", "well-known prefix"],
    ["64:ff9b:1::8.8.8.8", "Nat64Local", "local-use prefix"],
    ["200::1", "Reserved", "once NSAP, RFC 4048"],
    ["4000::1", "Reserved", "not allocated yet"],
    ["fe00::1", "Reserved", "between unique-local and link-local"],
  ] as const)("%s is %s: %s", (text, type) => {
    expect(classifyIpv6(parseIpv6(text))).toBe(type);
  });
});
