import { describe, expect, test } from "bun:test";
import { NEVER_TARGETS, objectionTo } from "../../src/addr/policy.ts";
import { type Prefix, parsePrefix } from "../../src/addr/prefix.ts";
import { parseIpv6 } from "./parse.ts";

/**
 * The objection to a target, or `allowed`.
 *
 * @param lists such as `allow fd00::/64 deny fd00::/8 10.0.0.0/8`
 */
function judge(target: string, mode: "any" | "global", lists = ""): string {
  const prefixes = { allow: [] as Prefix[], deny: [] as Prefix[] };
  let list = prefixes.allow;
  for (const word of lists.split(" ").filter(Boolean)) {
    if (word === "allow" || word === "deny") list = prefixes[word];
    else list.push(parsePrefix(word));
  }
  return objectionTo(parseIpv6(target), { mode, ...prefixes }) ?? "allowed";
}

/** The rule that an objection comes from, or `allowed`. */
function ruleOf(objection: string): string {
  if (objection === "allowed") return objection;
  if (Object.values(NEVER_TARGETS).includes(objection.slice("it is ".length))) return "unicast";
  return objection.includes("is in the denied prefix") ? "deny" : "global";
}

describe("what is globally reachable, with IPv4 addresses behind a translator", () => {
  const judgeGlobal = (text: string) =>
    judge(text.includes(":") ? text : `64:ff9b::${text}`, "global");

  test.each([
    ["2606:4700:4700::1111", "a public resolver"],
    ["2001:4860:4860::8888", "in a RIR's block after 2001::/23"],
    ["2001:1::1", "PCP anycast: the registry says so, though 2001::/23 does not"],
    ["2001:20::1", "ORCHIDv2: the registry says so"],
    ["2620:4f:8000::1", "AS112"],
    ["64:ff9b::8.8.8.8", "NAT64 of a public address"],
    ["64:ff9b::192.88.98.1", "NAT64 beside the deprecated block"],
    ["2002:808:808::1", "6to4 of a public address"],
    ["2001:0:808:808:8000:63bf:f7f7:f7f7", "Teredo, client and server public"],
    ["2606:4700::5efe:8.8.8.8", "ISATAP of a public address"],
    ["2d00::1", "unallocated: a new allocation must not wait for a new release"],
    ["8.8.8.8", "IPv4"],
    ["192.0.0.9", "IPv4, PCP anycast inside 192.0.0.0/24"],
    ["223.255.255.255", "the last IPv4 address before multicast"],
    ["172.32.0.0", "after 172.16.0.0/12"],
  ])("%s: %s", (text) => {
    expect(judgeGlobal(text)).toBe("allowed");
  });

  test.each([
    ["::", "unspecified"],
    ["::1", "loopback"],
    ["::127.0.0.1", "compatible"],
    ["::8.8.8.8", "compatible, even of a public address"],
    ["::ffff:10.0.0.1", "mapped"],
    ["::ffff:8.8.8.8", "mapped, even of a public address: the registry says no"],
    ["::ffff:0:8.8.8.8", "translated"],
    ["64:ff9b::7f00:1", "NAT64 of loopback"],
    ["64:ff9b::10.0.0.1", "NAT64 of a private address"],
    ["64:ff9b::169.254.169.254", "NAT64 of a metadata service"],
    ["64:ff9b::224.0.0.1", "NAT64 of multicast"],
    ["64:ff9b::255.255.255.255", "NAT64 of broadcast"],
    ["64:ff9b::192.88.99.1", "NAT64 of the deprecated 6to4 relay"],
    ["64:ff9b:1::8.8.8.8", "local-use NAT64"],
    ["2002:7f00:1::", "6to4 of loopback"],
    ["2002:a00:1::1", "6to4 of a private address"],
    ["2002:c058:6301::", "6to4 of the deprecated relay"],
    ["2001:0:808:808:8000:63bf:f5ff:fffe", "Teredo, client 10.0.0.1"],
    ["2001:0:a00:1:8000:63bf:f7f7:f7f7", "Teredo, server 10.0.0.1"],
    ["2001:0:7f00:1:8000:63bf:f7f7:f7f7", "Teredo, server 127.0.0.1"],
    ["2606:4700::5efe:10.0.0.1", "ISATAP of a private address"],
    ["2606:4700::200:5efe:192.168.1.1", "ISATAP of a private address, universal bit set"],
    ["2002:808:808:1:0:5efe:10.0.0.1", "ISATAP of a private address over 6to4 of a public one"],
    ["100::1", "discard only"],
    ["100:0:0:1::1", "dummy prefix"],
    ["2001:2::1", "benchmarking"],
    ["2001:10::1", "the first ORCHID, its flags are empty"],
    ["2001:5::1", "protocol assignment without a row of its own"],
    ["2001:db8::1", "documentation"],
    ["3fff::1", "the newer documentation"],
    ["5f00::1", "segment routing"],
    ["fc00::1", "unique-local"],
    ["fd12:3456::1", "unique-local, locally assigned"],
    ["fe80::1", "link-local"],
    ["fec0::1", "site-local"],
    ["ff0e::1", "multicast of global scope"],
    ["4000::1", "reserved"],
    ["200::1", "reserved"],
    ["0.0.0.0", "this host"],
    ["10.0.0.1", "private"],
    ["100.64.0.1", "shared"],
    ["127.0.0.1", "loopback"],
    ["169.254.0.1", "link-local"],
    ["172.31.255.255", "private"],
    ["192.0.0.8", "dummy address"],
    ["192.0.2.1", "documentation"],
    ["192.168.0.1", "private"],
    ["198.19.255.255", "benchmarking"],
    ["198.51.100.1", "documentation"],
    ["203.0.113.1", "documentation"],
    ["224.0.0.1", "multicast"],
    ["239.255.255.255", "multicast"],
    ["240.0.0.1", "reserved"],
    ["255.255.255.255", "broadcast"],
  ])("not %s: %s", (text) => {
    expect(judgeGlobal(text)).not.toBe("allowed");
  });
});

describe("objectionTo without lists", () => {
  test.each([
    ["2606:4700:4700::1111", "allowed"],
    ["::1", "it is Loopback Address (::1/128, RFC 4291)"],
    ["fec0::1", "it is SiteLocal (fec0::/10, RFC 3879)"],
    ["64:ff9b::7f00:1", "it embeds 127.0.0.1 (NAT64), which is Loopback (127.0.0.0/8, RFC 1122)"],
    ["64:ff9b::e000:1", "it embeds 224.0.0.1 (NAT64), which is Multicast (224.0.0.0/4, RFC 5771)"],
    [
      "2001:0:808:808:8000:63bf:f5ff:fffe",
      "it embeds 10.0.0.1 (Teredo), which is Private-Use (10.0.0.0/8, RFC 1918)",
    ],
  ])("%s under global: %s", (target, expected) => {
    expect(judge(target, "global")).toBe(expected);
  });

  test.each(["::1", "fe80::1", "fd00::1", "fec0::1", "4000::1", "2600::"])(
    "%s is allowed under any",
    (target) => {
      expect(judge(target, "any")).toBe("allowed");
    },
  );

  test.each([
    ["ff02::1", "Multicast"],
    ["ff0e::1", "Multicast"],
    ["::", "Unspecified"],
    ["::ffff:8.8.8.8", "IPv4Mapped"],
    ["::ffff:127.0.0.1", "IPv4Mapped"],
  ] as const)("%s is never a target, in any mode, even if a list allows it", (target, type) => {
    const refused = `it is ${NEVER_TARGETS[type]}`;
    expect(judge(target, "any")).toBe(refused);
    expect(judge(target, "global")).toBe(refused);
    expect(judge(target, "any", `allow ::/0 ${target}`)).toBe(refused);
  });
});

describe("objectionTo with lists", () => {
  test.each([
    ["fd00::1", "global", "allow fd00::/64", "allowed", "allow wins over global"],
    ["fd00:0:0:1::1", "global", "allow fd00::/64", "global", "outside of what is allowed"],
    ["fd00::1", "any", "deny fd00::/8", "deny", "deny wins over any"],
    ["2600::1", "global", "deny 2600::/16", "deny", "deny wins over global"],
    ["fd00::1", "any", "allow fd00::/64 deny fd00::/8", "deny", "deny wins over allow"],
    ["fd00::1", "any", "allow fd00::1 deny ::/0", "deny", "even if the allowed prefix is longer"],
    ["64:ff9b::10.0.0.1", "any", "deny 10.0.0.0/8", "deny", "an embedded address is denied"],
    ["64:ff9b::10.0.0.1", "any", "deny 11.0.0.0/8", "allowed", "another one is not"],
    ["64:ff9b:1::10.0.0.1", "any", "deny 10.0.0.0/8", "deny", "local NAT64 after a /96"],
    ["64:ff9b:1:2:3:4:10.0.0.1", "any", "deny 10.0.0.0/8", "deny", "after another /96"],
    ["64:ff9b:1:2:a:0:100::", "any", "deny 10.0.0.0/8", "deny", "local NAT64 after a /64"],
    ["64:ff9b:1:20a:0:1::", "any", "deny 10.0.0.0/8", "deny", "local NAT64 after a /56"],
    ["64:ff9b:1:a00:0:100::", "any", "deny 10.0.0.0/8", "deny", "local NAT64 after a /48"],
    [
      "64:ff9b:1:a00:0:100::",
      "any",
      "allow 64:ff9b:1::/48 deny 10.0.0.0/8",
      "deny",
      "though allowed as a whole",
    ],
    [
      "64:ff9b:1::8.8.8.8",
      "any",
      "deny 10.0.0.0/8",
      "allowed",
      "local NAT64 of an address that is not denied",
    ],
    [
      "64:ff9b:2::10.0.0.1",
      "any",
      "deny 10.0.0.0/8",
      "allowed",
      "beside the prefix of local NAT64",
    ],
    [
      "64:ff9b:1::8.8.8.8",
      "global",
      "",
      "global",
      "local NAT64 is not globally reachable, whatever it embeds",
    ],
    [
      "64:ff9b:1::8.8.8.8",
      "global",
      "allow 8.8.8.8",
      "global",
      "not even if that address is allowed",
    ],
    [
      "64:ff9b:1::10.0.0.1",
      "global",
      "allow 64:ff9b:1::/48",
      "allowed",
      "local NAT64 allowed as a whole",
    ],
    ["::ffff:10.0.0.1", "any", "allow 10.0.0.0/8", "unicast", "mapped, never a target"],
    ["::ffff:10.0.0.1", "any", "deny 10.0.0.0/8", "unicast", "mapped, whatever is denied"],
    ["fd00::5efe:10.0.0.1", "any", "deny 10.0.0.0/8", "deny", "ISATAP"],
    ["2001:0:a00:1::", "any", "deny 10.0.0.0/8", "deny", "a Teredo server"],
    [
      "64:ff9b::10.0.0.1",
      "any",
      "allow 64:ff9b::/96 deny 10.0.0.0/8",
      "deny",
      "a denied IPv4 address in an allowed IPv6 prefix",
    ],
    ["64:ff9b::10.0.0.1", "global", "allow 10.0.0.0/8", "allowed", "an embedded one allowed"],
    ["64:ff9b::10.0.0.1", "global", "allow 64:ff9b::/96", "allowed", "allowed as a whole"],
    ["64:ff9b::10.0.0.1", "global", "allow 11.0.0.0/8", "global", "another one allowed"],
    [
      "fd00::5efe:198.51.100.1",
      "global",
      "allow 198.51.100.0/24",
      "global",
      "an allowed IPv4 address in the low bits opens no IPv6 network",
    ],
    [
      "2001:0:a00:1:8000:63bf:f5ff:fffd",
      "global",
      "allow 10.0.0.1",
      "global",
      "the Teredo server is allowed, the client 10.0.0.2 is not",
    ],
  ] as const)("%s under %s, %s: %s, %s", (target, mode, lists, expected) => {
    expect(ruleOf(judge(target, mode, lists))).toBe(expected);
  });

  test("names the denied prefix", () => {
    expect(judge("fd00::1", "any", "deny fd00::/64 fc00::/7")).toBe(
      "it is in the denied prefix fd00::/64",
    );
    expect(judge("64:ff9b::10.0.0.1", "any", "deny 10.0.0.0/8")).toBe(
      "it embeds 10.0.0.1 (NAT64), which is in the denied prefix 10.0.0.0/8",
    );
    expect(judge("64:ff9b:1::10.0.0.1", "any", "deny 10.0.0.0/8")).toBe(
      "it may embed 10.0.0.1 (local-use NAT64), which is in the denied prefix 10.0.0.0/8",
    );
  });
});
