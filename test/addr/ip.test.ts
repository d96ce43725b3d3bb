import { expect, test } from "bun:test";
import { formatIp, looksLikeIpv4, tryParseIp, unmapIp } from "../../src/addr/ip.ts";

test.each([
  ["192.0.2.1", 4, "192.0.2.1"],
  ["2001:DB8::1", 6, "2001:db8::1"],
  ["::ffff:192.0.2.1", 6, "::ffff:192.0.2.1"],
] as const)("tryParseIp(%p) has version %i and is written %p", (text, version, canonical) => {
  const ip = tryParseIp(text);
  expect(ip?.version).toBe(version);
  expect(ip && formatIp(ip)).toBe(canonical);
});

test.each(["", "localhost", "1.2.3", "1:2", "[::1]", "::1%eth0", "10.0.0.0/8"])(
  "tryParseIp(%p) is null",
  (text) => {
    expect(tryParseIp(text)).toBeNull();
  },
);

test.each([
  ["::ffff:192.0.2.1", "192.0.2.1", "mapped"],
  ["::FFFF:C000:201", "192.0.2.1", "mapped, written in hex"],
  ["192.0.2.1", "192.0.2.1", "IPv4 already"],
  ["::192.0.2.1", "::c000:201", "compatible is not mapped"],
  ["::ffff:0:192.0.2.1", "::ffff:0:c000:201", "translated is not mapped"],
  ["64:ff9b::192.0.2.1", "64:ff9b::c000:201", "NAT64 is not mapped"],
  ["2001:db8::1", "2001:db8::1", "any other"],
])("unmapIp(%p) is %p: %s", (text, unmapped) => {
  const ip = tryParseIp(text);
  expect(ip && formatIp(unmapIp(ip))).toBe(unmapped);
});

test.each([
  ["1.2.3.4", true, "valid"],
  ["999.1.1.1", true, "out of range"],
  ["01.02.03.04", true, "leading zeros"],
  ["1.2.3.4.", true, "with the final dot of a host name"],
  ["12345.6.7.8", true, "five digits"],
  ["1.2.3", false, "three runs"],
  ["1.2.3.4.5", false, "five runs"],
  ["1.2.3.", false, "three runs and a final dot"],
  ["1.2.3.4..", false, "two final dots"],
  ["1..3.4", false, "an empty run"],
  [".1.2.3.4", false, "an empty first run"],
  ["...", false, "dots only"],
  [".", false, "one dot"],
  ["", false, "empty"],
  ["4.3.2.1.in-addr.arpa", false, "a reverse name"],
  ["1.2.3.example", false, "a name"],
  ["1.2.3.4a", false, "a letter at the end"],
  ["::1.2.3.4", false, "an IPv6 address"],
  ["1.2.3.\u0664", false, "an Arabic-Indic digit"],
  [`${"1".repeat(249)}.2.3.4`, false, "longer than any name"],
])("looksLikeIpv4(%p) is %p: %s", (text, expected) => {
  expect(looksLikeIpv4(text)).toBe(expected);
});
