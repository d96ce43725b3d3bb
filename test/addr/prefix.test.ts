import { describe, expect, test } from "bun:test";
import { formatIp, type IpAddress, tryParseIp } from "../../src/addr/ip.ts";
import {
  AddressError,
  formatPrefix,
  parsePrefix,
  prefixContains,
  prefixOf,
  prefixTable,
  unmapPrefix,
} from "../../src/addr/prefix.ts";

function ip(text: string): IpAddress {
  const address = tryParseIp(text);
  if (address === null) throw new Error(`${text} is not an address`);
  return address;
}

describe("parsePrefix", () => {
  test.each([
    ["2001:DB8::/32", "2001:db8::/32", "IPv6"],
    ["::/0", "::/0", "all of IPv6"],
    ["::1", "::1/128", "an IPv6 address alone"],
    ["::1/128", "::1/128", "one IPv6 address"],
    ["fe80::/10", "fe80::/10", "a length inside a group"],
    ["2001:db8:0:8000::/49", "2001:db8:0:8000::/49", "the last bit of the prefix is set"],
    ["10.0.0.0/8", "10.0.0.0/8", "IPv4"],
    ["0.0.0.0/0", "0.0.0.0/0", "all of IPv4"],
    ["192.0.2.7", "192.0.2.7/32", "an IPv4 address alone"],
    ["172.16.0.0/12", "172.16.0.0/12", "a length inside a byte"],
    ["::ffff:10.0.0.0/104", "::ffff:10.0.0.0/104", "mapped stays IPv6"],
    [
      "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255/128",
      "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128",
      "the longest text",
    ],
  ])("%p is %p: %s", (text, canonical) => {
    const prefix = parsePrefix(text);
    expect(formatPrefix(prefix)).toBe(canonical);
    expect(parsePrefix(canonical)).toEqual(prefix);
  });

  test.each([
    ["2001:db8::1/32", "did you mean 2001:db8::/32?", "host bits"],
    ["2001:db8:0:8000::/48", "did you mean 2001:db8::/48?", "the first bit after the prefix"],
    ["::1/127", "did you mean ::/127?", "the last bit"],
    ["::1/0", "did you mean ::/0?", "no bit is significant"],
    ["10.0.0.1/8", "did you mean 10.0.0.0/8?", "IPv4 host bits"],
    ["255.255.255.255/31", "did you mean 255.255.255.254/31?", "the last bit of IPv4"],
    [
      "2001:db8::/129",
      "the prefix length must be a number from 0 to 128",
      "longer than an IPv6 address",
    ],
    [
      "10.0.0.0/33",
      "the prefix length must be a number from 0 to 32",
      "longer than an IPv4 address",
    ],
    ["2001:db8::/", "the prefix length must be a number from 0 to 128", "no length"],
    ["2001:db8::/032", "the prefix length must be a number from 0 to 128", "a leading zero"],
    ["2001:db8::/+32", "the prefix length must be a number from 0 to 128", "a sign"],
    ["2001:db8::/-1", "the prefix length must be a number from 0 to 128", "a negative length"],
    ["2001:db8::/32 ", "the prefix length must be a number from 0 to 128", "a space after it"],
    ["2001:db8::/32\n", "the prefix length must be a number from 0 to 128", "a line feed after it"],
    ["2001:db8::/3.2e1", "the prefix length must be a number from 0 to 128", "an exponent"],
    ["2001:db8::/ffff::", "the prefix length must be a number from 0 to 128", "a mask"],
    ["10.0.0.0/255.0.0.0", "the prefix length must be a number from 0 to 32", "an IPv4 mask"],
    ["2001:db8::/32/32", "the prefix length must be a number from 0 to 128", "two lengths"],
    ["10/8", "fewer than four decimals", "a shortened IPv4 network"],
    ["/32", "a decimal is missing", "no address"],
    ["", "a decimal is missing", "empty"],
    ["fe80::%eth0/64", "a zone is not part of an address", "a zone"],
    ["[2001:db8::]/32", "brackets are not part of an address", "brackets"],
    [" ::/0", "white space is not part of an address", "a space before"],
  ])("%p is refused with %p: %s", (text, reason) => {
    expect(() => parsePrefix(text)).toThrow(AddressError);
    expect(() => parsePrefix(text)).toThrow(reason);
  });
});

test.each([
  ["2001:db8::/32", "2001:db8::", true, "first"],
  ["2001:db8::/32", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", true, "last"],
  ["2001:db8::/32", "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff", false, "before the first"],
  ["2001:db8::/32", "2001:db9::", false, "after the last"],
  ["2001:db8::/33", "2001:db8:7fff::", true, "a bit after a word, inside"],
  ["2001:db8::/33", "2001:db8:8000::", false, "a bit after a word, outside"],
  ["::/65", "::7fff:0:0:0", true, "in the third word, inside"],
  ["::/65", "::8000:0:0:0", false, "in the third word, outside"],
  ["::/127", "::1", true, "in the last bits, inside"],
  ["::/127", "::2", false, "in the last bits, outside"],
  ["::1/128", "::1", true, "itself"],
  ["::1/128", "::", false, "its neighbour"],
  ["::/0", "ffff::", true, "everything"],
  ["::/0", "192.0.2.1", false, "IPv6 does not hold IPv4"],
  ["0.0.0.0/0", "255.255.255.255", true, "all of IPv4"],
  ["0.0.0.0/0", "::", false, "IPv4 does not hold IPv6"],
  ["0.0.0.0/0", "::ffff:1.2.3.4", false, "not even mapped: unmap first"],
  ["128.0.0.0/1", "128.0.0.0", true, "the sign bit, inside"],
  ["128.0.0.0/1", "127.255.255.255", false, "the sign bit, outside"],
  ["192.0.2.4/31", "192.0.2.5", true, "31 bits, inside"],
  ["192.0.2.4/31", "192.0.2.6", false, "31 bits, outside"],
])("prefixContains(%p, %p) is %p: %s", (prefix, address, expected) => {
  expect(prefixContains(parsePrefix(prefix), ip(address))).toBe(expected);
});

test.each([
  ["2001:db8:1:2:3:4:5:6", 64, "2001:db8:1:2::/64"],
  ["2001:db8:1:2:3:4:5:6", 0, "::/0"],
  ["2001:db8:1:2:3:4:5:6", 128, "2001:db8:1:2:3:4:5:6/128"],
  ["ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 97, "ffff:ffff:ffff:ffff:ffff:ffff:8000:0/97"],
  ["192.0.2.77", 24, "192.0.2.0/24"],
])("prefixOf(%p, %i) is %p", (address, length, expected) => {
  expect(formatPrefix(prefixOf(ip(address), length))).toBe(expected);
});

describe("a prefixTable", () => {
  const texts = [
    "::/0",
    "2000::/3",
    "2001::/16",
    "2001:db8::/32",
    "2001:db8:1::/48",
    "2001:db8:1::1/128",
    "2001:db9::/32",
    "10.0.0.0/8",
    "10.1.0.0/16",
    "10.1.2.3/32",
  ];

  test.each([
    ["2001:db8:1::1", "2001:db8:1::1/128"],
    ["2001:db8:1::2", "2001:db8:1::/48"],
    ["2001:db8:2::1", "2001:db8::/32"],
    ["2001:dba::1", "2001::/16"],
    ["2002::1", "2000::/3"],
    ["4000::", "::/0"],
    ["10.1.2.3", "10.1.2.3/32"],
    ["10.1.2.4", "10.1.0.0/16"],
    ["10.2.0.0", "10.0.0.0/8"],
    ["11.0.0.0", null],
  ])("%p lies in %p", (address, expected) => {
    for (const order of [texts, texts.toReversed()]) {
      const table = prefixTable(order.map((text) => ({ prefix: parsePrefix(text) })));
      const row = table.find(ip(address));
      expect(row ? formatPrefix(row.prefix) : null).toBe(expected);
    }
  });

  test("finds nothing in an empty table", () => {
    expect(prefixTable([]).find(ip("::1"))).toBeUndefined();
  });

  test("gives the first of two rows with the same prefix", () => {
    const prefix = parsePrefix("2001:db8::/32");
    const table = prefixTable([
      { prefix, name: "first" },
      { prefix, name: "second" },
    ]);
    expect(table.find(ip("2001:db8::1"))?.name).toBe("first");
  });

  test("agrees with a search of all rows", () => {
    const rows = texts.map((text) => ({ prefix: parsePrefix(text) }));
    const table = prefixTable(rows);
    for (const { prefix } of rows) {
      const inside = rows.filter((row) => prefixContains(row.prefix, prefix.network));
      const longest = inside.sort((a, b) => b.prefix.length - a.prefix.length)[0];
      const found = table.find(prefix.network);
      expect(found && `${formatIp(found.prefix.network)}/${found.prefix.length}`).toBe(
        longest && formatPrefix(longest.prefix),
      );
    }
  });
});

test.each([
  ["::ffff:0:0/96", "0.0.0.0/0", "all of IPv4"],
  ["::ffff:10.0.0.0/104", "10.0.0.0/8", "a block"],
  ["::ffff:192.0.2.1/128", "192.0.2.1/32", "an address"],
  ["::fffe:0:0/95", "::fffe:0:0/95", "more than what is mapped"],
  ["::fffe:0:0/96", "::fffe:0:0/96", "its neighbour"],
  ["2001:db8::/104", "2001:db8::/104", "long, and not mapped"],
  ["10.0.0.0/8", "10.0.0.0/8", "IPv4 already"],
])("unmapPrefix(%p) is %p: %s", (prefix, expected) => {
  expect(formatPrefix(unmapPrefix(parsePrefix(prefix)))).toBe(expected);
});
