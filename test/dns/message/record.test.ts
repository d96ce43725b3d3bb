import { describe, expect, test } from "bun:test";
import { DnsFormatError } from "../../../src/dns/message/name.ts";
import {
  canonicalData,
  decodeRecord,
  RECORD_TYPES,
  type ResourceRecord,
  tryParseRecordType,
  typeCode,
} from "../../../src/dns/message/record.ts";
import { ByteReader, FormatError } from "../../../src/util/bytes.ts";
import { programMissing, testWith } from "../../lab/lab.ts";
import { encodeData, hex } from "../messages.ts";

function decode(code: number, data: Uint8Array): ResourceRecord {
  const record = { owner: "example.", code, ttl: 300 };
  return decodeRecord({ ...record, data: new ByteReader(data) });
}

/** Types that IANA has registered after some releases of BIND. */
const NEWER = ["AVC", "RESINFO", "WALLET", "CLA", "IPN", "DSYNC", "HHIT", "BRID"];

testWith(programMissing("named-rrchecker"))("the types are those that BIND lists", () => {
  const listed = Bun.spawnSync(["named-rrchecker", "-T"]).stdout.toString().trim().split(/\s+/);
  expect(listed.length).toBeGreaterThan(80);
  const ours: readonly string[] = RECORD_TYPES;
  expect(listed.filter((type) => !ours.includes(type))).toEqual([]);
  const further = ours.filter((type) => !listed.includes(type));
  expect(further.filter((type) => !NEWER.includes(type))).toEqual([]);
});

test("the types are in the order of the interface, with their numbers; all others follow", () => {
  expect(RECORD_TYPES.slice(0, 18).map((type) => [type, typeCode(type)])).toEqual([
    ["AAAA", 28],
    ["A", 1],
    ["MX", 15],
    ["TXT", 16],
    ["NS", 2],
    ["CNAME", 5],
    ["SOA", 6],
    ["PTR", 12],
    ["SRV", 33],
    ["CAA", 257],
    ["HTTPS", 65],
    ["SVCB", 64],
    ["DS", 43],
    ["DNSKEY", 48],
    ["TLSA", 52],
    ["SSHFP", 44],
    ["NAPTR", 35],
    ["RRSIG", 46],
  ]);
});

describe("a type as text", () => {
  test.each([
    ["in upper case", "AAAA", "AAAA"],
    ["in any case", "https", "HTTPS"],
    ["the number of a type with a name", "TYPE28", "AAAA"],
    ["another number", "type65280", "TYPE65280"],
    ["the last number", "TYPE65534", "TYPE65534"],
  ] as const)("%s", (_, text, type) => {
    expect(tryParseRecordType(text)).toBe(type);
  });

  test.each([
    ["nothing", ""],
    ["an unknown name", "LOCATION"],
    ["a pseudo-record", "OPT"],
    ["a type of answers alone", "NXNAME"],
    ["a property of every object", "constructor"],
    ["all types", "ANY"],
    ["no number", "TYPE"],
    ["a leading zero", "TYPE028"],
    ["zero", "TYPE0"],
    ["OPT", "TYPE41"],
    ["a zone transfer", "TYPE252"],
    ["all types as a number", "TYPE255"],
    ["the reserved number", "TYPE65535"],
    ["too large", "TYPE65536"],
    ["white space", "A "],
  ])("refused: %s", (_, text) => {
    expect(tryParseRecordType(text)).toBeNull();
  });
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
    ["SRV", "a server", "000a 0014 01bb 0161 00", "10 20 443 a."],
    ["SRV", "no service", "0000 0000 0000 00", "0 0 0 ."],
    ["CAA", "quotes and high bytes", "80 05 6973737565 61 22 5c c8", '128 issue "a\\"\\\\\\200"'],
    ["CAA", "an empty value", "00 01 78", '0 x ""'],
    ["HTTPS", "an alias", "0000 0161 00", "0 a."],
    [
      "HTTPS",
      "every parameter",
      "0001 00 0000 0004 00010003 0001 0006 026832 026833 0002 0000 0003 0002 20fb 0004 0008 c0000201 c0000202 0005 0003 010203 0006 0010 20010db8 00000000 00000000 00000001",
      '1 . mandatory=alpn,port alpn="h2,h3" no-default-alpn port=8443 ipv4hint=192.0.2.1,192.0.2.2 ech=AQID ipv6hint=2001:db8::1',
    ],
    [
      "SVCB",
      "separators in a protocol, and parameters without a name",
      "0001 00 0001 0007 06 66 2c 22 5c 20 80 0007 0002 2f22 029b 0000",
      '1 . alpn="f\\\\,\\"\\\\\\\\\\032\\128" key7="/\\"" key667',
    ],
    [
      "DS",
      "a hash of more than 56 characters",
      `0001 0d 02 ${"ab".repeat(32)}`,
      `1 13 2 ${"AB".repeat(28)} ${"AB".repeat(4)}`,
    ],
    ["DNSKEY", "a key", "0101 03 0d 000102", "257 3 13 AAEC"],
    ["TLSA", "a hash", "03 01 01 00ff", "3 1 1 00FF"],
    ["SSHFP", "a hash", "04 02 00ff", "4 2 00FF"],
    ["NAPTR", "empty texts", "0064 000a 01 53 00 02 215c 00", '100 10 "S" "" "!\\\\" .'],
    [
      "RRSIG",
      "a signature of a type without a name",
      "ff00 0d 03 0000012c 70dbd880 5e0be100 3039 0161 00 00ff",
      "TYPE65280 13 3 300 20300101000000 20200101000000 12345 a. AP8=",
    ],
    ["TYPE65280", "some bytes", "0a000001", "\\# 4 0A000001"],
    ["TYPE65280", "no bytes", "", "\\# 0"],
  ] as const)("%s: %s", (type, _, data, value) => {
    const record = decode(typeCode(type), hex(data));
    expect(record).toEqual({ owner: "example.", type, value, ttl: 300 });
    expect(encodeData(type, value)).toEqual(hex(data));
  });
});

describe("data as text alone", () => {
  test.each([
    [
      "NSEC3",
      "the example of RFC 5155",
      "01 01 000c 04 aabbccdd 14 174eb2409fe28bcb4887a1836f957f0a8425e27b 00 07 22 01 00 00 00 02 90",
      "1 1 12 AABBCCDD 2T7B4G4VSA5SMI47K61MV5BV1A22BOJR NS SOA MX RRSIG DNSKEY NSEC3PARAM",
    ],
    ["NSEC3", "no salt and no types", "01 00 0000 00 01 ff", "1 0 0 - VS"],
    ["NSEC3PARAM", "a salt", "01 00 000a 02 aabb", "1 0 10 AABB"],
    ["NSEC3PARAM", "no salt", "01 00 0000 00", "1 0 0 -"],
    ["NSEC", "types in two windows", "0161 00 00 01 40 ff 01 80", "a. A TYPE65280"],
    ["LOC", "another version", "01 00", "\\# 2 0100"],
    ["APL", "another family", "0003 08 01 ff", "\\# 5 00030801FF"],
    ["WKS", "a type with a name and no form", "00ff", "\\# 2 00FF"],
    ["IPSECKEY", "a gateway of another form", "0a 04 02 c0000201", "10 4 2 \\# 4 C0000201"],
    ["IPSECKEY", "no key", "0a 00 00", "10 0 0 ."],
    ["AMTRELAY", "a relay of another form", "0a 84 c0000201", "10 1 4 \\# 4 C0000201"],
    ["HIP", "two servers", "01 02 0002 ff aabb 0161 00 0162 00", "2 FF qrs= a. b."],
    ["RESINFO", "keys", "08 716e616d656d696e 07 6578746572723d", '"qnamemin" "exterr="'],
  ] as const)("%s: %s", (type, _, data, value) => {
    expect(decode(typeCode(type), hex(data)).value).toBe(value);
  });
});

describe("data that is cut short or too long", () => {
  test.each([
    ["AAAA", "15 bytes", "20010db8 00000000 00000000 000000", FormatError],
    ["AAAA", "17 bytes", "20010db8 00000000 00000000 00000001 00", DnsFormatError],
    ["A", "3 bytes", "c00002", FormatError],
    ["A", "5 bytes", "c0000201 00", DnsFormatError],
    ["A", "nothing", "", FormatError],
    ["MX", "no name", "000a", DnsFormatError],
    ["MX", "a byte after the name", "000a 00 00", DnsFormatError],
    ["TXT", "no string", "", DnsFormatError],
    ["CAA", "a tag without a letter", "00 00 61", DnsFormatError],
    ["CAA", "a blank in the tag", "00 02 2061 62", DnsFormatError],
    ["TXT", "a string cut short", "05 616263", FormatError],
    ["TXT", "a second string cut short", "01 61 02 62", FormatError],
    ["NS", "nothing", "", DnsFormatError],
    ["CNAME", "two names", "0161 00 0162 00", DnsFormatError],
    ["SOA", "four numbers", "00 00 00000001 00000002 00000003 00000004", FormatError],
    ["SRV", "no name", "000a 0014 01bb", DnsFormatError],
    ["CAA", "a tag cut short", "00 05 6973", FormatError],
    ["HTTPS", "a parameter cut short", "0001 00 0003 0002 20", FormatError],
    ["HTTPS", "half an address", "0001 00 0004 0006 c0000201 c000", FormatError],
    ["HTTPS", "a port of three bytes", "0001 00 0003 0003 20fb00", DnsFormatError],
    ["SVCB", "a protocol cut short", "0001 00 0001 0003 056832", FormatError],
    ["DS", "no digest type", "0001 0d", FormatError],
    ["NAPTR", "a byte after the name", "0064 000a 00 00 00 00 00", DnsFormatError],
    ["EUI48", "five bytes", "0000000000", FormatError],
    ["EUI64", "nine bytes", "0000000000000000 00", DnsFormatError],
    ["LOC", "no altitude", "00 000000 80000000 80000000", FormatError],
    ["APL", "a prefix cut short", "0001 08 02 ff", FormatError],
    ["NSEC", "an empty window", "00 00 00", DnsFormatError],
    ["NSEC", "a window of 33 bytes", `00 00 21 ${"00".repeat(33)}`, DnsFormatError],
    ["NSEC", "windows out of order", "00 01 01 80 00 01 80", DnsFormatError],
    [
      "NSEC",
      "more types than any name has",
      `00 ${[0, 1, 2, 3, 4].map((at) => `0${at} 20 ${"ff".repeat(32)}`).join("")}`,
      DnsFormatError,
    ],
    ["RRSIG", "no key tag", "0001 0d 03 0000012c 70dbd880 5e0be100", FormatError],
  ] as const)("%s: %s", (type, _, data, error) => {
    expect(() => decode(typeCode(type), hex(data))).toThrow(error);
  });
});

/** RFC 4034 section 6.2 lists the types whose names are changed, RFC 6840 section 5.1 takes NSEC from it. */
describe("the canonical form has names in lower case", () => {
  const [upper, lower] = ["0141 00", "0161 00"];
  const signature = "0001 0d 01 0000012c 00000000 00000000 0001";

  // biome-ignore format: a table
  test.each<[ResourceRecord["type"], data: string, canonical: string]>([
    ["NS", upper, lower],
    ["MD", upper, lower],
    ["DNAME", upper, lower],
    ["SOA", `${upper} ${upper} ${"00000001".repeat(5)}`, `${lower} ${lower} ${"00000001".repeat(5)}`],
    ["RP", `${upper} ${upper}`, `${lower} ${lower}`],
    ["MX", `0041 ${upper}`, `0041 ${lower}`],
    ["PX", `0041 ${upper} ${upper}`, `0041 ${lower} ${lower}`],
    ["SRV", `0041 0041 0041 ${upper}`, `0041 0041 0041 ${lower}`],
    ["NAPTR", `0041 0041 0141 0141 0141 ${upper}`, `0041 0041 0141 0141 0141 ${lower}`],
    ["RRSIG", `${signature} ${upper} 4142`, `${signature} ${lower} 4142`],
    // The others stay as they are.
    ["NSEC", `${upper} 0001 40`, `${upper} 0001 40`],
    ["LP", `0041 ${upper}`, `0041 ${upper}`],
    ["SVCB", `0001 ${upper}`, `0001 ${upper}`],
    ["HINFO", "0141 0141", "0141 0141"],
    ["TXT", "0141", "0141"],
    ["TYPE65280", upper, upper],
  ])("%s %s", (type, data, canonical) => {
    expect(canonicalData(type, new ByteReader(hex(data))).toHex()).toBe(
      hex(canonical).toHex(),
    );
  });

  test("and uncompressed", () => {
    const message = hex(`${upper} 0041 c000`);
    const data = new ByteReader(message, 3);
    expect(canonicalData("MX", data).toHex()).toBe(hex(`0041 ${lower}`).toHex());
  });
});
