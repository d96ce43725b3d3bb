import { expect, test } from "bun:test";
import { formatIpv6 } from "../../src/addr/format.ts";
import { tryParseZoned } from "../../src/addr/zone.ts";

test.each([
  ["fe80::1%eth0", "fe80::1", "eth0"],
  ["FE80::1%2", "fe80::1", "2"],
  ["febf::1%br-lan.10", "febf::1", "br-lan.10"],
  ["fe80::1%abcdefghijklmno", "fe80::1", "abcdefghijklmno"],
])("%p is %p on %p", (text, address, zone) => {
  const zoned = tryParseZoned(text);
  expect(zoned && formatIpv6(zoned.address)).toBe(address);
  expect(zoned?.zone).toBe(zone);
});

test.each([
  ["fe80::1", "no zone"],
  ["fe80::1%", "an empty zone"],
  ["%eth0", "no address"],
  ["fe80::1%eth0%eth1", "two zones"],
  ["fe80::1%eth/0", "a slash"],
  ["fe80::1%eth0:1", "a colon"],
  ["fe80::1%eth 0", "a space"],
  ["fe80::1%eth0\n", "a line feed"],
  ["fe80::1%\u00e90", "a character beyond ASCII"],
  ["fe80::1%abcdefghijklmnop", "16 characters"],
  ["fe80::1%eth0/64", "a prefix length"],
  ["2001:db8::1%eth0", "a global address"],
  ["fec0::1%eth0", "a site-local address"],
  ["ff02::1%eth0", "multicast"],
  ["169.254.0.1%eth0", "IPv4"],
])("%p is null: %s", (text) => {
  expect(tryParseZoned(text)).toBeNull();
});
