import { describe, expect, test } from "bun:test";
import { formatIpv6, formatIpv6Expanded } from "../../src/addr/format.ts";
import {
  equalIpv6,
  ipv6FromBytes,
  ipv6ToBytes,
  isIpv4Mapped,
  readIpv6,
  tryParseIpv6,
  tryParseZoned,
} from "../../src/addr/ipv6.ts";
import { parseIpv6 } from "./parse.ts";
import { slowParseIpv6 } from "./slow-ipv6.ts";

/** The bytes of an address in hex. */
function hexOf(text: string): string {
  return ipv6ToBytes(parseIpv6(text)).toHex();
}

const VALID: readonly (readonly [text: string, hex: string, why: string])[] = [
  ["2001:DB8:0:0:8:800:200C:417A", "20010db80000000000080800200c417a", "RFC 4291 2.2 form 1"],
  ["ABCD:EF01:2345:6789:ABCD:EF01:2345:6789", "abcdef0123456789abcdef0123456789", "upper case"],
  ["2001:DB8::8:800:200C:417A", "20010db80000000000080800200c417a", "RFC 4291 2.2 form 2"],
  ["FF01::101", "ff010000000000000000000000000101", "multicast"],
  ["::1", "00000000000000000000000000000001", "loopback"],
  ["::", "00000000000000000000000000000000", "unspecified"],
  ["0:0:0:0:0:0:0:0", "00000000000000000000000000000000", "unspecified in full"],
  ["0:0:0:0:0:0:13.1.68.3", "0000000000000000000000000d014403", "RFC 4291 2.2 form 3"],
  ["0:0:0:0:0:FFFF:129.144.52.38", "00000000000000000000ffff81903426", "mapped in full"],
  ["::13.1.68.3", "0000000000000000000000000d014403", "compatible, and not rewritten to mapped"],
  ["::FFFF:129.144.52.38", "00000000000000000000ffff81903426", "mapped"],
  ["64:ff9b::192.0.2.33", "0064ff9b0000000000000000c0000221", "dotted tail in any prefix"],
  ["1:2:3:4:5:6:1.2.3.4", "00010002000300040005000601020304", "six groups and a tail"],
  ["1:2:3:4:5::1.2.3.4", "00010002000300040005000001020304", "a gap of one before a tail"],
  ["::0.0.0.0", "00000000000000000000000000000000", "each decimal may be a single zero"],
  ["::255.255.255.255", "000000000000000000000000ffffffff", "greatest tail"],
  ["1:2:3:4:5:6:7::", "00010002000300040005000600070000", "a gap of one at the end"],
  ["::2:3:4:5:6:7:8", "00000002000300040005000600070008", "a gap of one at the start"],
  ["1:2:3::5:6:7:8", "00010002000300000005000600070008", "a gap of one in the middle"],
  ["1::", "00010000000000000000000000000000", "everything after is zero"],
  ["0::0", "00000000000000000000000000000000", "a gap between zeros"],
  ["0000:0000::0000", "00000000000000000000000000000000", "four digits of zero"],
  ["00a:000b::0C", "000a000b00000000000000000000000c", "leading zeros, mixed case"],
  ["fFfF::AbCd", "ffff000000000000000000000000abcd", "mixed case in a group"],
  [
    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "ffffffffffffffffffffffffffffffff",
    "all bits, 39 characters",
  ],
  [
    "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255",
    "ffffffffffffffffffffffffffffffff",
    "the longest text, 45 characters",
  ],
];

const INVALID: readonly (readonly [text: string, position: number, why: string])[] = [
  ["", 0, "empty"],
  [":", 0, "one colon"],
  [":::", 2, "three colons"],
  ["::::", 2, "four colons"],
  ["1:::2", 3, "three colons in the middle"],
  ["1::2::3", 4, "two gaps"],
  ["::1::", 3, "two gaps at the ends"],
  [":1:2:3:4:5:6:7:8", 0, "one colon at the start"],
  ["1:2:3:4:5:6:7:8:", 16, "one colon at the end"],
  ["1:2:3:4:5:6:7:", 14, "one colon at the end instead of a group"],
  [":1:2:3:4:5:6:7", 0, "one colon at the start instead of a group"],
  [":1::", 0, "one colon at the start before a gap"],
  ["1:2:3:4:5:6:7", 13, "seven groups"],
  ["1:2:3:4:5:6:7:8:9", 16, "nine groups"],
  ["1", 1, "one group"],
  ["1:2:3:4::5:6:7:8", 16, "a gap that replaces no group"],
  ["::1:2:3:4:5:6:7:8", 17, "a gap for none at the start"],
  ["1:2:3:4:5:6:7:8::", 17, "a gap for none at the end"],
  ["1:2:3:4:5:6::1.2.3.4", 20, "a gap for none before a tail"],
  ["12345::", 4, "five digits"],
  ["00000::", 4, "five zeros"],
  ["::00001", 6, "five digits at the end"],
  ["1:2:3:4:5:6:7:00008", 18, "five digits in the last group"],
  ["1:2:3:4:5:6:7:1.2.3.4", 14, "a tail that begins in the last group"],
  ["1:2:3:4:5:6:7:8:1.2.3.4", 16, "a tail after eight groups"],
  ["1:2:3:4:5:1.2.3.4", 17, "five groups and a tail"],
  ["::1.2.3.4:5", 9, "a group after a tail"],
  ["1.2.3.4::", 1, "a tail at the start"],
  ["1.2.3.4", 1, "an IPv4 address"],
  ["::1.2.3", 7, "three decimals"],
  ["::1.2.3.", 8, "a decimal is missing at the end"],
  ["::1.2.3.4.", 9, "a dot at the end"],
  ["::1.2.3.4.5", 9, "five decimals"],
  ["::1..2.3", 4, "a decimal is missing in the middle"],
  ["::.1.2.3", 2, "a decimal is missing at the start"],
  ["::256.0.0.1", 4, "a decimal above 255"],
  ["::1.2.3.256", 10, "the last decimal above 255"],
  ["::1.2.3.1000", 11, "four digits in a decimal"],
  ["::01.2.3.4", 3, "a leading zero"],
  ["::1.2.3.00", 9, "two zeros"],
  ["::1.2.3.a", 8, "hex in a decimal"],
  ["::a.2.3.4", 2, "hex in the first decimal"],
  ["::0x1.2.3.4", 3, "a hex prefix in a decimal"],
  ["::0x1", 3, "a hex prefix"],
  ["::12zz", 4, "digits, then letters: parseInt would stop and accept"],
  ["::g", 2, "a letter after f"],
  ["::G", 2, "a capital after F"],
  ["::`", 2, "the character before a"],
  ["::@", 2, "the character before A"],
  ["::/", 2, "the character before 0"],
  ["::-1", 2, "a sign"],
  ["::+1", 2, "a plus"],
  ["fe80::1%eth0", 7, "a zone"],
  ["fe80::1%25eth0", 7, "a zone as in a URL"],
  ["fe80::1%", 7, "an empty zone"],
  ["2001:db8::/32", 10, "a prefix length"],
  ["2001:db8::1/128", 11, "a prefix length after a group"],
  ["[::1]", 0, "brackets"],
  ["[::1", 0, "an opening bracket"],
  ["::1]", 3, "a closing bracket"],
  ["[::1]:80", 0, "a socket address"],
  [" ::1", 0, "a space before"],
  ["::1 ", 3, "a space after it"],
  [":: 1", 2, "a space inside"],
  ["::1\n", 3, "a line feed after it"],
  ["\t::1", 0, "a tab before"],
  ["::1\u0000", 3, "a NUL after it"],
  ["\u0000", 0, "a NUL"],
  ["::1\u00a0", 3, "a no-break space"],
  ["\ufeff::1", 0, "a byte order mark"],
  ["::\u0661", 2, "an Arabic-Indic digit"],
  ["::\uff11", 2, "a full-width digit"],
  ["::\uff41", 2, "a full-width letter"],
  ["::\u0131", 2, "a code whose low byte is the digit 1"],
  ["::\u0141", 2, "a code whose low byte is the letter A"],
  ["\u003a\uff1a1", 0, "a full-width colon"],
  ["::\ud800", 2, "a lone high surrogate"],
  ["::\udc00", 2, "a lone low surrogate"],
  ["::%31", 2, "a percent sequence that was not decoded"],
  ["%3a%3a1", 0, "percent sequences only"],
  ["::%zz", 2, "a broken percent sequence"],
  ["1:2:3:4:5:6:7:8 ", 15, "a space after eight groups"],
  ["localhost", 0, "a name"],
  ["dead.beef", 4, "a name of hex letters"],
  ["2001:db8::1.example.com", 12, "a name after an address"],
  ["ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.2555", 45, "46 characters"],
];

describe("tryParseIpv6 and readIpv6", () => {
  test.each(VALID)("%p is %s: %s", (text, hex) => {
    expect(hexOf(text)).toBe(hex);
    expect(tryParseIpv6(text)).toEqual(parseIpv6(text));
    // Every row also holds for both forms that we write, and for the second parser.
    expect(hexOf(formatIpv6(parseIpv6(text)))).toBe(hex);
    expect(formatIpv6Expanded(parseIpv6(text)).replaceAll(":", "")).toBe(hex);
    expect(
      slowParseIpv6(text)
        ?.map((group) => group.toString(16).padStart(4, "0"))
        .join(""),
    ).toBe(hex);
  });

  test.each(INVALID)("%p stops at offset %i: %s", (text, position) => {
    expect(tryParseIpv6(text)).toBeNull();
    expect(slowParseIpv6(text)).toBeNull();
    expect(() => parseIpv6(text)).toThrow("is not an IPv6 address");
    expect(readIpv6(text)).toEqual({ reason: expect.any(String), position: position + 1 });
  });
});

test.each([
  ["1::2::3", '"::" occurs twice', 5],
  ["2001:db8::g", "neither a hex digit nor a colon", 11],
  ["fe80::1%eth0", "a zone is not part of an address", 8],
  ["2001:db8::/32", "a prefix length is not part of an address", 11],
  ["[::1]", "brackets are not part of an address", 1],
  ["::1 ", "white space is not part of an address", 4],
  ["1:2", "fewer than eight groups", 4],
  ["1:2:3:4:5:6:7:8:9", "more than eight groups", 17],
  ["1:2:3:4::5:6:7:8", '"::" replaces no group', 17],
  ["1:", "a group is missing", 3],
  ["12345::", "a group of more than four digits", 5],
  ["192.0.2.1", "it begins like an IPv4 address", 4],
  ["1:2:3:4:5:6:7:1.2.3.4", "an IPv4 address after more than six groups", 15],
  ["::1.2.3.256", "a decimal is greater than 255", 11],
  ["9".repeat(1_000_000), "a group of more than four digits", 5],
])("readIpv6(%p) says %p at character %i", (text, reason, position) => {
  expect(readIpv6(text)).toEqual({ reason, position });
});

describe("bytes and equality", () => {
  test("ipv6FromBytes reads a view in the middle of a buffer", () => {
    const bytes = Uint8Array.fromHex("ff20010db80000000000000000000000c1ff").subarray(1, 17);
    expect(formatIpv6(ipv6FromBytes(bytes))).toBe("2001:db8::c1");
  });

  test.each([0, 4, 15, 17])("ipv6FromBytes throws for %i bytes", (count) => {
    expect(() => ipv6FromBytes(new Uint8Array(count))).toThrow(RangeError);
  });

  test.each([
    ["::1", "0::1", true],
    ["::1", "::2", false],
    ["::1:0:0", "::", false],
    ["0:0:1::", "::", false],
    ["1::", "::", false],
  ])("equalIpv6(%p, %p) is %p", (a, b, equal) => {
    expect(equalIpv6(parseIpv6(a), parseIpv6(b))).toBe(equal);
  });

  test.each([
    ["::ffff:0.0.0.0", true],
    ["::ffff:255.255.255.255", true],
    ["::fffe:1.2.3.4", false],
    ["::1.2.3.4", false],
    ["::1:ffff:0:0", false],
    ["1::ffff:0:0", false],
  ])("isIpv4Mapped(%p) is %p", (text, mapped) => {
    expect(isIpv4Mapped(parseIpv6(text))).toBe(mapped);
  });
});

test.each([
  ["fe80::1%eth0", "fe80::1", "eth0"],
  ["FE80::1%2", "fe80::1", "2"],
  ["febf::1%br-lan.10", "febf::1", "br-lan.10"],
  ["fe80::1%abcdefghijklmno", "fe80::1", "abcdefghijklmno"],
  ["fe80::1%25abcdefghijklmno", "fe80::1", "abcdefghijklmno"],
  ["fe80::1%25eth0", "fe80::1", "eth0"],
  ["fe80::1%25", "fe80::1", "25"],
  ["fe80::1%2512", "fe80::1", "2512"],
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
