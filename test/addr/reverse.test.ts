import { expect, test } from "bun:test";
import { tryParseIp } from "../../src/addr/ip.ts";
import { reverseName } from "../../src/addr/reverse.ts";

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
