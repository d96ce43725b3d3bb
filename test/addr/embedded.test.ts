import { describe, expect, test } from "bun:test";
import {
  type EmbeddedIpv4,
  embeddedIpv4,
  extractNat64,
  localNat64Candidates,
  nat64Prefixes,
} from "../../src/addr/embedded.ts";
import { formatIpv4 } from "../../src/addr/ipv4.ts";
import { formatPrefix } from "../../src/addr/prefix.ts";
import { parseIpv6 } from "./parse.ts";

/** One line for each embedded address. */
function show(embedded: EmbeddedIpv4): string {
  return embedded.mechanism === "teredo"
    ? `Teredo ${formatIpv4(embedded.client)}:${embedded.port} by ${formatIpv4(embedded.server)}, flags ${embedded.flags.toString(16)}`
    : `${embedded.mechanism} ${formatIpv4(embedded.address)}`;
}

describe("embeddedIpv4", () => {
  test.each([
    ["::ffff:192.0.2.1", "ipv4-mapped 192.0.2.1", "RFC 4291 2.5.5.2"],
    ["::ffff:0:192.0.2.1", "ipv4-translated 192.0.2.1", "RFC 2765 2.1"],
    ["::192.0.2.1", "ipv4-compatible 192.0.2.1", "RFC 4291 2.5.5.1"],
    ["::2", "ipv4-compatible 0.0.0.2", "the first compatible address"],
    ["64:ff9b::192.0.2.33", "nat64 192.0.2.33", "RFC 6052 2.4"],
    ["2002:c000:201::1", "6to4 192.0.2.1", "RFC 3056 2"],
    ["2002:ffff:ffff:ffff::", "6to4 255.255.255.255", "bits 16 to 47, and no more"],
    [
      "2001:0:4136:e378:8000:63bf:3fff:fdd2",
      "Teredo 192.0.2.45:40000 by 65.54.227.120, flags 8000",
      "behind a cone NAT",
    ],
    ["2001::", "Teredo 255.255.255.255:65535 by 0.0.0.0, flags 0", "all zeros"],
    [
      "2001:0:ffff:ffff:ffff:ffff:ffff:ffff",
      "Teredo 0.0.0.0:0 by 255.255.255.255, flags ffff",
      "all ones",
    ],
    [
      "2001:0:4136:e378:0:5efe:3fff:fdd2",
      "Teredo 192.0.2.45:41217 by 65.54.227.120, flags 0",
      "what looks like ISATAP is flags and port",
    ],
    ["fe80::5efe:192.0.2.143", "isatap 192.0.2.143", "RFC 5214 6.2"],
    ["fe80::200:5efe:192.0.2.143", "isatap 192.0.2.143", "universal bit set"],
    ["2001:db8::5efe:10.0.0.1", "isatap 10.0.0.1", "in a global prefix"],
    ["2002:c000:201:1:0:5efe:10.0.0.1", "6to4 192.0.2.1, isatap 10.0.0.1", "ISATAP over 6to4"],
    ["fe80::100:5efe:192.0.2.143", "", "another bit set"],
    ["fe80::1:0:5efe:1", "", "5efe in another place"],
    ["ff02::5efe:192.0.2.143", "", "multicast has no interface ID"],
    ["5f00::5efe:192.0.2.143", "", "a segment identifier has no interface ID"],
    ["64:ff9b:1::192.0.2.33", "", "RFC 8215 5: extract nothing by default"],
    ["2001:db8::192.0.2.33", "", "a dotted tail says nothing"],
    ["::", "", "unspecified"],
    ["::1", "", "loopback"],
    ["2001:db8::1", "", "nothing"],
  ])("%s: %p, %s", (text, expected) => {
    expect(embeddedIpv4(parseIpv6(text)).map(show).join(", ")).toBe(expected);
  });
});

test.each([
  ["64:ff9b:1:a0b:c:d00:c000:221", "192.0.2.33, 12.13.0.192, 11.12.13.0, 10.11.12.13"],
  ["64:ff9b:1::10.0.0.1", "10.0.0.1, 0.0.0.10, 0.0.0.0, 0.0.0.0"],
  ["64:ff9b:2::10.0.0.1", ""],
  ["64:ff9b::10.0.0.1", ""],
])("localNat64Candidates of %s, after a /96, /64, /56 and /48: %p", (text, expected) => {
  expect(localNat64Candidates(parseIpv6(text)).map(formatIpv4).join(", ")).toBe(expected);
});

describe("extractNat64, RFC 6052 section 2.4", () => {
  test.each([
    ["2001:db8:c000:221::", 32],
    ["2001:db8:1c0:2:21::", 40],
    ["2001:db8:122:c000:2:2100::", 48],
    ["2001:db8:122:3c0:0:221::", 56],
    ["2001:db8:122:344:c0:2:2100::", 64],
    ["2001:db8:122:344::192.0.2.33", 96],
    ["64:ff9b::192.0.2.33", 96],
    // Bits 64 to 71 must be zero; they are skipped if they are not.
    ["2001:db8:1c0:2:ff21:ffff:ffff:ffff", 40],
  ] as const)("%s after a /%i is 192.0.2.33", (text, length) => {
    expect(formatIpv4(extractNat64(parseIpv6(text), length))).toBe("192.0.2.33");
  });
});

describe("nat64Prefixes, RFC 7050 section 3", () => {
  // A prefix length, the answers of a resolver for ipv4only.arpa, and the prefixes in them.
  const rows: [string, string[], string[]][] = [
    ["a /32", ["2001:db8:c000:aa::", "2001:db8:c000:ab::"], ["2001:db8::/32"]],
    ["a /40", ["2001:db8:1c0:0:aa::", "2001:db8:1c0:0:ab::"], ["2001:db8:100::/40"]],
    ["a /48", ["2001:db8:122:c000:0:aa00::", "2001:db8:122:c000:0:ab00::"], ["2001:db8:122::/48"]],
    ["a /56", ["2001:db8:122:3c0:0:aa::", "2001:db8:122:3c0:0:ab::"], ["2001:db8:122:300::/56"]],
    [
      "a /64",
      ["2001:db8:122:344:c0:0:aa00:0", "2001:db8:122:344:c0:0:ab00:0"],
      ["2001:db8:122:344::/64"],
    ],
    ["a /96", ["64:ff9b::192.0.0.170", "64:ff9b::192.0.0.171"], ["64:ff9b::/96"]],
    ["only one of the two", ["64:ff9b::192.0.0.171"], ["64:ff9b::/96"]],
    [
      "two prefixes",
      ["64:ff9b::c000:aa", "64:ff9b::c000:ab", "2001:db8::c000:aa", "2001:db8::c000:ab"],
      ["64:ff9b::/96", "2001:db8::/96"],
    ],
    [
      "a prefix that contains a well-known address itself",
      ["2001:db8:c000:aa::c000:aa", "2001:db8:c000:aa::c000:ab"],
      ["2001:db8:c000:aa::/96"],
    ],
    ["the same, and only one: its place is uncertain", ["2001:db8:c000:aa::c000:aa"], []],
    ["addresses that a resolver invents", ["2001:db8::1", "64:ff9b::192.0.2.1"], []],
    ["nothing", [], []],
  ];
  test.each(rows)("%s", (_, addresses, prefixes) => {
    expect(nat64Prefixes(addresses.map(parseIpv6)).map(formatPrefix)).toEqual(prefixes);
  });
});
