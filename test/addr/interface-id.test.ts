import { expect, test } from "bun:test";
import { typeEntry } from "../../src/addr/classify.ts";
import { interfaceIdOf } from "../../src/addr/interface-id.ts";
import { parseIpv6 } from "./parse.ts";

type InterfaceId = NonNullable<ReturnType<typeof interfaceIdOf>>;

const idOf = (text: string) => {
  const address = parseIpv6(text);
  return interfaceIdOf(address, typeEntry(address));
};

const ROWS: readonly (readonly [string, Omit<InterfaceId, "value">, string])[] = [
  ["2001:db8::", { kind: "subnet-router-anycast" }, "RFC 4291 2.6.1"],
  ["2001:db8::fdff:ffff:ffff:ff80", { kind: "subnet-anycast" }, "RFC 2526, the first"],
  ["2001:db8::fdff:ffff:ffff:fffe", { kind: "subnet-anycast" }, "RFC 2526, home agents"],
  ["2001:db8::fdff:ffff:ffff:ffff", { kind: "subnet-anycast" }, "RFC 2526, the last"],
  ["2001:db8::fdff:ffff:ffff:ff7f", { kind: "random" }, "one before RFC 2526's"],
  [
    "fe80::3656:78ff:fe9a:bcde",
    { kind: "eui64", mac: "34:56:78:9a:bc:de" },
    "RFC 4291 appendix A: the universal bit is inverted",
  ],
  [
    "fe80::11:22ff:fe33:4455",
    { kind: "eui64", mac: "02:11:22:33:44:55" },
    "a locally administered MAC address",
  ],
  ["fe80::3756:78ff:fe9a:bcde", { kind: "random" }, "interfaces do not have group addresses"],
  ["fe80::3656:78fe:ff9a:bcde", { kind: "random" }, "fe:ff instead of ff:fe"],
  ["fe80::5efe:192.0.2.1", { kind: "isatap" }, "RFC 5214"],
  ["fe80::200:5efe:192.0.2.1", { kind: "isatap" }, "RFC 5214, universal"],
  ["2001:db8::1", { kind: "low-byte" }, "the least"],
  ["2001:db8::ffff", { kind: "low-byte" }, "two bytes"],
  ["2001:db8::ff:ffff", { kind: "low-byte" }, "the greatest"],
  ["2001:db8::53", { kind: "embedded-port", port: 53 }, "a port in decimal digits"],
  ["2001:db8::443", { kind: "embedded-port", port: 443 }, "three digits"],
  ["2001:db8::8080", { kind: "embedded-port", port: 8080 }, "four digits"],
  ["2001:db8::54", { kind: "low-byte" }, "digits that are not a service port"],
  ["2001:db8::80:80", { kind: "low-byte" }, "a port's digits in two groups"],
  ["2001:db8::8e1", { kind: "low-byte" }, "80 in scientific notation, which is not decimal digits"],
  ["2001:db8::1bb", { kind: "low-byte" }, "443 in hex is a number like any other"],
  ["2001:db8::100:0", { kind: "embedded-ipv4", ipv4: "1.0.0.0" }, "in 32 bits, the least"],
  ["2001:db8::192.0.2.1", { kind: "embedded-ipv4", ipv4: "192.0.2.1" }, "in 32 bits"],
  ["2001:db8::192:0:2:1", { kind: "embedded-ipv4", ipv4: "192.0.2.1" }, "in decimal digits"],
  ["2001:db8::192:0:2:256", { kind: "random" }, "a group that reads above 255"],
  ["2001:db8::192:0:2:a", { kind: "random" }, "a group with a letter"],
  ["2001:db8::0:1:2:3", { kind: "random" }, "no IPv4 address begins with 0"],
  ["2001:db8::8d4c:a91e:7b02:f635", { kind: "random" }, "no pattern"],
];

test.each(ROWS.map(([text, expected, why]) => [text, why, expected] as const))(
  "%s: %s",
  (text, _, expected) => {
    const { value, ...rest } = idOf(text) as InterfaceId;
    expect(rest).toEqual(expected);
    expect(value).toHaveLength(19);
    expect(parseIpv6(`0:0:0:0:${value}`)).toMatchObject({
      word2: parseIpv6(text).word2,
      word3: parseIpv6(text).word3,
    });
  },
);

test.each([
  ["::1", "loopback"],
  ["::192.0.2.1", "compatible"],
  ["::ffff:192.0.2.1", "mapped"],
  ["64:ff9b::192.0.2.1", "NAT64"],
  ["2001::1", "Teredo"],
  ["2001:20::1", "a hash"],
  ["5f00::1", "a segment identifier"],
  ["ff02::1", "multicast"],
  ["4000::1", "reserved"],
])("%s has none: %s", (text) => {
  expect(idOf(text)).toBeNull();
});
