import { describe, expect, test } from "bun:test";
import { parseHostname } from "../../src/dns/hostname.ts";
import { RECORD_TYPES, type RecordType } from "../../src/dns/message/record.ts";

const L63 = "a".repeat(63);
const NAME_253 = `${L63}.${L63}.${L63}.${"a".repeat(61)}`;
const NIBBLES_OF_1 = `1${".0".repeat(31)}.ip6.arpa`;

describe("accepted", () => {
  test.each<[string, string, string, RecordType?]>([
    ["a name", "www.example.com", "www.example.com"],
    ["a final dot is dropped", "www.example.com.", "www.example.com"],
    ["case is kept", "WwW.Example.COM", "WwW.Example.COM"],
    ["the root", ".", "."],
    ["the root as an ideographic full stop", "。", "."],
    ["the root as a full-width full stop", "．", "."],
    ["the root as a half-width ideographic full stop", "｡", "."],
    ["an ideographic full stop at the end is dropped", "www.example.com。", "www.example.com"],
    ["a single label", "localhost", "localhost"],
    ["a number", "1", "1"],
    ["three numbers", "1.2.3", "1.2.3"],
    ["a hexadecimal number", "0x7f.1", "0x7f.1"],
    ["underscores", "_dmarc._tcp.example.com", "_dmarc._tcp.example.com"],
    ["hyphens anywhere", "-a-.--.example", "-a-.--.example"],
    ["a wildcard", "*.example.com", "*.example.com"],
    ["an asterisk inside", "a.*.example.com", "a.*.example.com"],
    ["a slash (RFC 2317)", "0/25.2.0.192.in-addr.arpa", "0/25.2.0.192.in-addr.arpa"],
    ["a label of 63", L63, L63],
    ["253 in all", NAME_253, NAME_253],
    ["253 and the final dot", `${NAME_253}.`, NAME_253],
    ["non-transitional UTS 46", "straße.de", "xn--strae-oqa.de"],
    ["upper case beyond ASCII", "BÜCHER.example", "xn--bcher-kva.example"],
    ["decomposed", "bu\u0308cher.example", "xn--bcher-kva.example"],
    ["final sigma", "βόλος.com", "xn--nxasmm1c.com"],
    ["full-width letters", "ｅｘａｍｐｌｅ.com", "example.com"],
    ["ideographic full stops", "例え。テスト。", "xn--r8jz45g.xn--zckzah"],
    ["a full-width digit is a name, not an address", "１", "1"],
    ["a soft hyphen disappears", "ex\u00adample.com", "example.com"],
    ["1,024 characters beyond ASCII", `é${"\u00ad".repeat(1023)}`, "xn--9ca"],
    ["right to left", "דוגמה.קום", "xn--6dbbec0c.xn--9dbq2a"],
    ["an emoji", "☃.net", "xn--n3h.net"],
    [
      "underscore and wildcard beside letters beyond ASCII",
      "*._x.straße.de",
      "*._x.xn--strae-oqa.de",
    ],
    ["a slash beside letters beyond ASCII", "0/25.straße。_x", "0/25.xn--strae-oqa._x"],
    [
      "an ASCII form beside letters beyond ASCII",
      "straße.xn--strae-oqa.de",
      "xn--strae-oqa.xn--strae-oqa.de",
    ],
    ["an ASCII form is not decoded", "xn--a.example", "xn--a.example"],
    ["a letter of two code points, one of them in ASCII", "=\u0338.example", "xn--1ch.example"],
    [
      "presentation form as results have it",
      "we\\.ird\\032label.example.",
      "we\\.ird\\032label.example",
    ],
    ["presentation form without its final dot", "a\\.b.example", "a\\.b.example"],
    ["presentation form in another spelling", "\\119\\w\\W.example", "wwW.example"],
    ["other bytes than those of hosts", "a+b!#%?[.example.", "a+b!#%?[.example"],
    ["an escaped dot at the end", "a\\.", "a\\."],
    ["an asterisk inside a label, in presentation form", "a*\\.b", "a*\\.b"],
    ["IPv6 with PTR", "::1", NIBBLES_OF_1, "PTR"],
    ["IPv6 in another notation with PTR", "0:0::0:0001", NIBBLES_OF_1, "PTR"],
    ["IPv6 with dotted decimal with PTR", "::0.0.0.1", NIBBLES_OF_1, "PTR"],
    ["IPv4 with PTR", "192.0.2.1", "1.2.0.192.in-addr.arpa", "PTR"],
    ["IPv6 and a final dot with PTR", "::1.", NIBBLES_OF_1, "PTR"],
    ["IPv4 and a final dot with PTR", "192.0.2.1.", "1.2.0.192.in-addr.arpa", "PTR"],
    ["a reverse name with PTR", "1.2.0.192.in-addr.arpa.", "1.2.0.192.in-addr.arpa", "PTR"],
    ["any name with PTR", "www.example.com", "www.example.com", "PTR"],
  ])("%s", (_, input, name, type = "AAAA") => {
    expect(parseHostname(input, type)).toEqual({ ok: true, name });
  });
});

describe("refused", () => {
  test.each<[string, string, string, RecordType?]>([
    ["nothing", "", "it is empty"],
    ["two dots", "a..b", "it has an empty label"],
    ["a dot before", ".a", "it has an empty label"],
    ["dots alone", "..", "it has an empty label"],
    ["two final dots", "a..", "it has an empty label"],
    ["a label of 64", `${L63}a.example`, "it has a label of more than 63 characters"],
    ["254 in all", `${NAME_253}a`, "it has more than 253 characters"],
    ["a very long text", "a.".repeat(5000), "it has more than 253 characters"],
    ["white space", "exam ple.com", "it contains a space"],
    ["white space around", " example.com", "it contains a space"],
    ["a tab", "a\tb", "it contains the character U+0009"],
    ["a line end", "example.com\n", "it contains the character U+000A"],
    ["a NUL", "a\0b", "it contains the character U+0000"],
    ["DEL", "a\x7fb", "it contains the character U+007F"],
    ["a percent sign", "%41", "it contains the character %"],
    ["a question mark", "a?b", "it contains the character ?"],
    ["a hash", "a#b", "it contains the character #"],
    ["an at sign", "user@example.com", "it contains the character @"],
    ["a colon", "example.com:53", "it contains the character :"],
    ["a scheme", "https://example.com", "it contains the character :"],
    ["a character that needs an escape", "a@b.example.", "it contains the character @"],
    [
      "an escape above 255",
      "a\\256.example",
      "it is not a name in presentation form: a name has an escape that is not \\ and three digits up to 255",
    ],
    [
      "white space beside an escape",
      "a\\.b\t.example",
      "it is not a name in presentation form: a name has a character that is not printable ASCII",
    ],
    [
      "an empty label beside an escape",
      "a\\.b..example",
      "it is not a name in presentation form: a name has an empty label",
    ],
    ["a quote", 'a"b', 'it contains the character "'],
    ["brackets", "[::1]", "it contains the character ["],
    ["a plus sign", "a+b", "it contains the character +"],
    ["an asterisk in a label", "a*.example", "it has an asterisk that is not a whole label"],
    ["two asterisks", "**.example", "it has an asterisk that is not a whole label"],
    ["IPv6", "::1", "it is an IP address; ask for its name with type=PTR"],
    ["IPv4", "192.0.2.1", "it is an IP address; ask for its name with type=PTR"],
    ["what looks like IPv4", "192.0.2.256", "it looks like an IPv4 address"],
    ["IPv4 with a leading zero", "192.0.2.01", "it looks like an IPv4 address"],
    ["IPv4 and a final dot", "192.0.2.1.", "it looks like an IPv4 address"],
    ["IPv4 and an ideographic full stop", "192.0.2.1。", "it looks like an IPv4 address"],
    ["IPv4 and a full-width full stop", "192.0.2.1．", "it looks like an IPv4 address"],
    [
      "IPv4 in full-width digits and an ideographic full stop",
      "１９２.0.2.1。",
      "it is an IP address; ask for its name with type=PTR",
    ],
    ["two ideographic full stops at the end", "例え。。", "it has an empty label"],
    ["two ideographic full stops alone", "。。", "it has an empty label"],
    [
      "IPv4 in full-width digits",
      "１９２.0.2.1",
      "it is an IP address; ask for its name with type=PTR",
    ],
    ["a control among letters beyond ASCII", "é\tb", "it contains the character U+0009"],
    ["a percent sign among letters beyond ASCII", "é%41", "it contains the character %"],
    ["a slash in a label beyond ASCII", "é/b", "it is not a valid internationalized name (UTS 46)"],
    [
      "1,025 characters, although all but one disappear",
      `é${"\u00ad".repeat(1024)}`,
      "it is not a valid internationalized name (UTS 46)",
    ],
    ["a full-width slash", "a／b", "it is not a valid internationalized name (UTS 46)"],
    ["a full-width percent sign", "％41", "it is not a valid internationalized name (UTS 46)"],
    ["an ideographic space", "a\u3000b", "it is not a valid internationalized name (UTS 46)"],
    [
      "a joiner in the wrong place",
      "a\u200db",
      "it is not a valid internationalized name (UTS 46)",
    ],
    ["a combining mark first", "\u0301a", "it is not a valid internationalized name (UTS 46)"],
    [
      "a broken ASCII form beside letters",
      "é.xn--a",
      "it is not a valid internationalized name (UTS 46)",
    ],
    ["directions mixed", "דוגמה1a.a", "it is not a valid internationalized name (UTS 46)"],
    [
      "half a surrogate pair",
      "\ud800.example",
      "it is not a valid internationalized name (UTS 46)",
    ],
    ["a soft hyphen alone", "\u00ad", "it is empty"],
    ["a label that disappears", "a.\u00ad.b", "it has an empty label"],
    ["two ideographic full stops", "例え。。テスト", "it has an empty label"],
    [
      "a label of 64 after conversion",
      `${"é".repeat(60)}.x`,
      "it has a label of more than 63 characters",
    ],
    [
      "more than can become 253",
      "é".repeat(1025),
      "it is not a valid internationalized name (UTS 46)",
    ],
    ["a port after an ideographic name", "例え:80", "it contains the character :"],
  ])("%s", (_, input, reason, type = "AAAA") => {
    expect(parseHostname(input, type)).toEqual({
      ok: false,
      code: "INVALID_HOSTNAME",
      isAddress: / IP(v4)? address/.test(reason),
      reason,
    });
  });

  test.each([
    ["IPv6 with a zone", "fe80::1%eth0"],
    ["IPv6 in brackets", "[::1]"],
    ["IPv6 with a prefix length", "::/0"],
    ["IPv6 with a white space", "::1 "],
    ["three colons", ":::"],
    ["IPv4 with a decimal above 255", "192.0.2.256"],
    ["IPv4 with a leading zero", "192.0.2.01"],
    ["a port", "192.0.2.1:53"],
    ["IPv4 with an ideographic full stop", "192.0.2.1。"],
    ["IPv4 with two final dots", "192.0.2.1.."],
  ])("with PTR, not an address: %s", (_, input) => {
    expect(parseHostname(input, "PTR")).toMatchObject({
      ok: false,
      code: "INVALID_ADDRESS",
      reason: "it is not a valid IPv4 or IPv6 address",
    });
  });

  test("an address with every type except PTR", () => {
    const refusing = RECORD_TYPES.filter((type) => !parseHostname("2001:db8::1", type).ok);
    expect(refusing).toEqual(RECORD_TYPES.filter((type) => type !== "PTR"));
  });
});
