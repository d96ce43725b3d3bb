import { expect, test } from "bun:test";
import {
  formatIpv6,
  formatIpv6Binary,
  formatIpv6Expanded,
  formatIpv6Integer,
  reverseName,
} from "../../src/addr/format.ts";
import { tryParseIp } from "../../src/addr/ip.ts";
import { parseIpv6 } from "./parse.ts";

test.each([
  ["2001:0DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1", "RFC 5952 4.2.3: the first of two equal runs"],
  ["2001:0:0:1:0:0:0:1", "2001:0:0:1::1", "RFC 5952 4.2.3: the longest run"],
  ["2001:0:0:0:1:0:0:1", "2001::1:0:0:1", "the longest run is first"],
  ["2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1", "RFC 5952 4.2.2: a single zero group stays"],
  ["2001:db8::1:1:1:1:1", "2001:db8:0:1:1:1:1:1", "RFC 5952 4.2.2, the input has a gap elsewhere"],
  ["2001:db8:0:0:0:0:2:1", "2001:db8::2:1", "RFC 5952 4.2.1: as short as possible"],
  ["2001:db8::0:1", "2001:db8::1", "RFC 5952 4.2.1"],
  ["2001:0db8::0001", "2001:db8::1", "RFC 5952 4.1: no leading zeros"],
  ["2001:DB8::ABCD", "2001:db8::abcd", "RFC 5952 4.3: lower case"],
  ["0:0:1:0:0:1:0:0", "::1:0:0:1:0:0", "three equal runs: the first"],
  ["0:1:0:0:0:1:0:0", "0:1::1:0:0", "a single zero at the start stays"],
  ["1:0:0:0:0:0:0:0", "1::", "a run at the end"],
  ["0:0:0:0:0:0:0:1", "::1", "a run at the start"],
  ["0:0:0:0:0:0:0:0", "::", "a run of everything"],
  ["0:1:1:1:1:1:1:1", "0:1:1:1:1:1:1:1", "a single zero at the start"],
  ["1:1:1:1:1:1:1:0", "1:1:1:1:1:1:1:0", "a single zero at the end"],
  ["0:1:0:1:0:1:0:1", "0:1:0:1:0:1:0:1", "single zeros only"],
  ["1:2:3:4:5:6:0:0", "1:2:3:4:5:6::", "two zeros at the end"],
  ["0:0:3:4:5:6:7:8", "::3:4:5:6:7:8", "two zeros at the start"],
  ["a:ab:abc:abcd:100:ff:f0:f", "a:ab:abc:abcd:100:ff:f0:f", "groups of every width"],
  ["::ffff:c000:201", "::ffff:192.0.2.1", "RFC 5952 5: mapped in mixed notation"],
  ["::ffff:0:0", "::ffff:0.0.0.0", "the first mapped address"],
  ["::ffff:ffff:ffff", "::ffff:255.255.255.255", "the last mapped address"],
  ["::fffe:ffff:ffff", "::fffe:ffff:ffff", "one before the mapped block"],
  ["::1:0:0:0", "::1:0:0:0", "one after the mapped block"],
  ["::1.2.3.4", "::102:304", "compatible in hex"],
  ["64:ff9b::1.2.3.4", "64:ff9b::102:304", "NAT64 in hex"],
  ["::ffff:0:1.2.3.4", "::ffff:0:102:304", "translated in hex"],
])("%p is written %p: %s", (text, canonical) => {
  expect(formatIpv6(parseIpv6(text))).toBe(canonical);
  expect(formatIpv6(parseIpv6(canonical))).toBe(canonical);
});

test.each([
  {
    text: "::",
    expanded: "0000:0000:0000:0000:0000:0000:0000:0000",
    integer: "0",
    binary: Array(8).fill("0".repeat(16)).join(":"),
  },
  {
    text: "::ffff:192.0.2.1",
    expanded: "0000:0000:0000:0000:0000:ffff:c000:0201",
    integer: "281473902969345",
    binary: `${"0000000000000000:".repeat(5)}1111111111111111:1100000000000000:0000001000000001`,
  },
  {
    text: "2001:db8::a:bc",
    expanded: "2001:0db8:0000:0000:0000:0000:000a:00bc",
    integer: "42540766411282592856903984951654482108",
    binary: `0010000000000001:0000110110111000:${"0000000000000000:".repeat(4)}0000000000001010:0000000010111100`,
  },
  {
    text: "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    expanded: "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    integer: "340282366920938463463374607431768211455",
    binary: Array(8).fill("1".repeat(16)).join(":"),
  },
])("$text in its long forms", ({ text, expanded, integer, binary }) => {
  const address = parseIpv6(text);
  expect(formatIpv6Expanded(address)).toBe(expanded);
  expect(formatIpv6Integer(address)).toBe(integer);
  expect(formatIpv6Binary(address)).toBe(binary);
});

test.each([
  [
    "4321:0:1:2:3:4:567:89ab",
    "b.a.9.8.7.6.5.0.4.0.0.0.3.0.0.0.2.0.0.0.1.0.0.0.0.0.0.0.1.2.3.4.ip6.arpa",
    "RFC 3596 2.5",
  ],
  [
    "::ffff:192.0.2.1",
    "1.0.2.0.0.0.0.c.f.f.f.f.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.ip6.arpa",
    "mapped stays IPv6",
  ],
  ["10.2.0.52", "52.0.2.10.in-addr.arpa", "RFC 1035 3.5"],
  ["255.254.1.0", "0.1.254.255.in-addr.arpa", "zeros are written"],
])("reverseName(%p) is %p: %s", (text, name) => {
  const ip = tryParseIp(text);
  expect(ip && reverseName(ip)).toBe(name);
});
