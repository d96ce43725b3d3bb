import { describe, expect, test } from "bun:test";
import { DnsFormatError, NameReader } from "../../src/dns/name.ts";
import {
  RECORD_TYPES,
  type ResourceRecord,
  tryDecodeRecord,
  typeCode,
} from "../../src/dns/record.ts";
import { ByteReader, OutOfBoundsError } from "../../src/util/bytes.ts";
import { encodeData, hex } from "./messages.ts";

function decode(code: number, data: Uint8Array): ResourceRecord | null {
  const record = { owner: "example.", code, ttl: 300 };
  return tryDecodeRecord(record, new ByteReader(data), new NameReader());
}

test("the types are in the order of the interface, with their numbers", () => {
  expect(RECORD_TYPES.map((type) => [type, typeCode(type)])).toEqual([
    ["AAAA", 28],
    ["A", 1],
    ["MX", 15],
    ["TXT", 16],
    ["NS", 2],
    ["CNAME", 5],
    ["SOA", 6],
    ["PTR", 12],
  ]);
  expect(decode(46, hex("00"))).toBeNull();
});

describe("data and its text", () => {
  test.each([
    ["AAAA", "compressed", "20010db8 00000000 00000000 00000001", "2001:db8::1"],
    ["AAAA", "mapped", "00000000 00000000 0000ffff c0000201", "::ffff:192.0.2.1"],
    ["AAAA", "embedded without ::ffff", "00000000 00000000 00000000 c0000201", "::c000:201"],
    ["A", "dotted", "c0000201", "192.0.2.1"],
    ["MX", "an exchange", "000a 046d61696c 076578616d706c65 00", "10 mail.example."],
    ["MX", "null MX", "0000 00", "0 ."],
    ["MX", "largest preference", "ffff 0161 00", "65535 a."],
    ["TXT", "one string", "03 616263", '"abc"'],
    ["TXT", "several strings", "01 61 02 6263", '"a" "bc"'],
    ["TXT", "an empty string", "00", '""'],
    ["TXT", "empty strings among others", "00 01 61 00", '"" "a" ""'],
    ["TXT", "quote and backslash", "03 22 5c 3b", '"\\"\\\\;"'],
    [
      "TXT",
      "controls and high bytes are escaped, a space is not",
      "06 20 00 09 7e 7f ff",
      '" \\000\\009~\\127\\255"',
    ],
    ["TXT", "UTF-8 is not decoded", "02 c3a9", '"\\195\\169"'],
    ["NS", "a name", "026e73 00", "ns."],
    ["CNAME", "a name with a dot inside a label", "03 612e62 00", "a\\.b."],
    ["PTR", "the root", "00", "."],
    [
      "SOA",
      "a mailbox with a dot, the largest numbers",
      "026e73 00 04 612e6262 0178 00 ffffffff 00000001 00000002 00000003 80000000",
      "ns. a\\.bb.x. 4294967295 1 2 3 2147483648",
    ],
  ] as const)("%s: %s", (type, _, data, value) => {
    const record = decode(typeCode(type), hex(data));
    expect(record).toEqual({ owner: "example.", type, value, ttl: 300 });
    expect(encodeData(type, value)).toEqual(hex(data));
  });
});

describe("data that is cut short or too long", () => {
  test.each([
    ["AAAA", "15 bytes", "20010db8 00000000 00000000 000000", OutOfBoundsError],
    ["AAAA", "17 bytes", "20010db8 00000000 00000000 00000001 00", DnsFormatError],
    ["A", "3 bytes", "c00002", OutOfBoundsError],
    ["A", "5 bytes", "c0000201 00", DnsFormatError],
    ["A", "nothing", "", OutOfBoundsError],
    ["MX", "no name", "000a", DnsFormatError],
    ["MX", "a byte after the name", "000a 00 00", DnsFormatError],
    ["TXT", "no string", "", DnsFormatError],
    ["TXT", "a string cut short", "05 616263", DnsFormatError],
    ["TXT", "a second string cut short", "01 61 02 62", DnsFormatError],
    ["NS", "nothing", "", DnsFormatError],
    ["CNAME", "two names", "0161 00 0162 00", DnsFormatError],
    ["SOA", "four numbers", "00 00 00000001 00000002 00000003 00000004", OutOfBoundsError],
  ] as const)("%s: %s", (type, _, data, error) => {
    expect(() => decode(typeCode(type), hex(data))).toThrow(error);
  });
});
