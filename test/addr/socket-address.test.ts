import { expect, test } from "bun:test";
import { formatSocketAddress, tryParseSocketAddress } from "../../src/addr/socket-address.ts";

test.each([
  ["[2001:DB8::1]:53", undefined, "[2001:db8::1]:53", "IPv6 with a port"],
  ["[2001:db8::1]:53", 5353, "[2001:db8::1]:53", "its own port, not the default"],
  ["[2001:db8::1]", 53, "[2001:db8::1]:53", "IPv6 in brackets, default port"],
  ["2001:db8::1", 53, "[2001:db8::1]:53", "IPv6 alone, default port"],
  ["2001:db8::1:53", 53, "[2001:db8::1:53]:53", "without brackets it is all address"],
  ["192.0.2.1:53", undefined, "192.0.2.1:53", "IPv4 with a port"],
  ["192.0.2.1", 53, "192.0.2.1:53", "IPv4 alone, default port"],
  ["192.0.2.1", 0, "192.0.2.1:0", "0 is a default too"],
  ["[::]:0", undefined, "[::]:0", "port 0"],
  ["[::]:65535", undefined, "[::]:65535", "the last port"],
  ["[::ffff:192.0.2.1]:53", undefined, "[::ffff:192.0.2.1]:53", "mapped"],
])("tryParseSocketAddress(%p, %p) is %p: %s", (text, defaultPort, canonical) => {
  const parsed = tryParseSocketAddress(text, defaultPort);
  expect(parsed && formatSocketAddress(parsed)).toBe(canonical);
});

test.each([
  ["", "empty"],
  ["[2001:db8::1]:65536", "a port above 65535"],
  ["[2001:db8::1]:99999", "a port of five nines"],
  ["[2001:db8::1]:", "no digits after the colon"],
  ["[2001:db8::1]:053", "a leading zero"],
  ["[2001:db8::1]:+53", "a sign"],
  ["[2001:db8::1]:53 ", "a space after it"],
  ["[2001:db8::1]:53\n", "a line feed after it"],
  ["[2001:db8::1]53", "no colon"],
  ["[2001:db8::1", "no closing bracket"],
  ["2001:db8::1]:53", "no opening bracket"],
  ["[]:53", "nothing in brackets"],
  ["[192.0.2.1]:53", "IPv4 in brackets"],
  ["[[::1]]:53", "brackets in brackets"],
  ["[fe80::1%eth0]:53", "a zone"],
  ["192.0.2.1:", "IPv4, no digits after the colon"],
  ["192.0.2.1:65536", "IPv4, a port above 65535"],
  ["192.0.2.256:53", "no IPv4 address"],
  [":53", "no address"],
  ["localhost:53", "a name"],
  ["localhost", "a name alone"],
])("tryParseSocketAddress(%p) is null: %s", (text) => {
  expect(tryParseSocketAddress(text)).toBeNull();
  expect(tryParseSocketAddress(text, 53)).toBeNull();
});

test.each(["2001:db8::1", "[2001:db8::1]", "192.0.2.1"])(
  "tryParseSocketAddress(%p) is null without a default port",
  (text) => {
    expect(tryParseSocketAddress(text)).toBeNull();
  },
);
