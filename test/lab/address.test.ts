import { expect, test } from "bun:test";
import { addressBytes, addressText, isInPrefix, parsePrefix } from "./address.ts";

test.each([
  ["::", "00000000000000000000000000000000"],
  ["::1", "00000000000000000000000000000001"],
  ["2001:db8::", "20010db8000000000000000000000000"],
  ["2001:db8::1", "20010db8000000000000000000000001"],
  ["2001:db8:0:1::2", "20010db8000000010000000000000002"],
  ["2001:0:0:1::2", "20010000000000010000000000000002"],
  ["2001::1:0:0:2", "20010000000000000001000000000002"],
  ["1:2:3:4:5:6:7:8", "00010002000300040005000600070008"],
  ["1:0:3:4:5:6:7:8", "00010000000300040005000600070008"],
  ["fe80::10:0", "fe800000000000000000000000100000"],
])("%s is %s", (text, hex) => {
  expect(addressBytes(text).toHex()).toBe(hex);
  expect(addressText(Uint8Array.fromHex(hex))).toBe(text);
});

test.each(["", ":", ":::", "1", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "::1::", "12345::", "g::"])(
  "%j is not an address",
  (text) => {
    expect(() => addressBytes(text)).toThrow("is not an IPv6 address");
  },
);

test.each([
  ["2001:db8::1", "2001:db8::/32", true],
  ["2001:db9::1", "2001:db8::/32", false],
  ["2001:db9::1", "2001:db8::/31", true],
  ["2001:db8:7fff::", "2001:db8::/33", true],
  ["2001:db8:8000::", "2001:db8::/33", false],
  ["2001:db8::1", "2001:db8::1", true],
  ["2001:db8::2", "2001:db8::1", false],
  ["ffff::", "::/0", true],
])("%s in %s: %p", (address, prefix, expected) => {
  expect(isInPrefix(addressBytes(address), parsePrefix(prefix))).toBe(expected);
});
