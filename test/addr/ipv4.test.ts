import { describe, expect, test } from "bun:test";
import { formatIpv4, ipv4FromWord, readIpv4, tryParseIpv4 } from "../../src/addr/ipv4.ts";
import { slowParseIpv4 } from "./slow-ipv6.ts";

describe("tryParseIpv4 and readIpv4", () => {
  test.each([
    ["0.0.0.0", "00000000", "the first address"],
    ["192.0.2.1", "c0000201", "the sign bit is set, the word is not negative"],
    ["127.0.0.1", "7f000001", "loopback"],
    ["255.255.255.255", "ffffffff", "the last and longest"],
    ["10.20.30.40", "0a141e28", "trailing zeros of a decimal are not leading zeros"],
  ])("%p is %s: %s", (text, hex) => {
    const address = ipv4FromWord(Number.parseInt(hex, 16));
    expect(tryParseIpv4(text)).toEqual(address);
    expect(readIpv4(text)).toEqual(address);
    expect(formatIpv4(address)).toBe(text);
    expect([...Uint8Array.fromHex(hex)]).toEqual(slowParseIpv4(text) ?? []);
  });

  test.each([
    ["", 0, "empty"],
    ["1", 1, "one decimal"],
    ["1.2.3", 5, "three decimals"],
    ["1.2.3.", 6, "the last decimal is missing"],
    [".1.2.3", 0, "the first decimal is missing"],
    ["1..2.3", 2, "a decimal in the middle is missing"],
    ["1.2.3.4.", 7, "a final dot"],
    ["1.2.3.4.5", 7, "five decimals"],
    ["256.1.1.1", 2, "a decimal above 255"],
    ["999.1.1.1", 2, "three nines"],
    ["1.1.1.256", 8, "the last decimal above 255"],
    ["01.2.3.4", 1, "a leading zero: some read octal"],
    ["1.2.3.00", 7, "two zeros"],
    ["0x7f.0.0.1", 1, "a hex prefix"],
    ["127.1", 5, "the short form of inet_aton"],
    ["2130706433", 3, "the integer form of inet_aton"],
    ["1.2.3.4 ", 7, "a space after it"],
    [" 1.2.3.4", 0, "a space before"],
    ["+1.2.3.4", 0, "a sign"],
    ["1.2.3.-4", 6, "a negative decimal"],
    ["1.2.3.4/8", 7, "a prefix length"],
    ["1.2.3.4:5", 7, "a port"],
    ["1.2.3.\u0664", 6, "an Arabic-Indic digit"],
    ["1.2.3.4\u0000", 7, "a NUL after it"],
    ["::1", 0, "an IPv6 address"],
    ["1111.111.111.111", 3, "16 characters"],
  ])("%p stops at offset %i: %s", (text, position) => {
    expect(tryParseIpv4(text)).toBeNull();
    expect(slowParseIpv4(text)).toBeNull();
    expect(readIpv4(text)).toEqual({ reason: expect.any(String), position: position + 1 });
  });
});
