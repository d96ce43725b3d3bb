import { describe, expect, test } from "bun:test";
import { formatIpv6 } from "../../src/addr/format.ts";
import {
  MULTICAST_GROUPS,
  multicastDetails,
  multicastScope,
  solicitedNodeGroup,
} from "../../src/addr/multicast.ts";
import { edgesOf } from "./blocks.ts";
import { parseIpv6 } from "./parse.ts";

/** The name of the group, or "". */
function groupOf(text: string): string {
  return multicastDetails(parseIpv6(text)).group?.name ?? "";
}

describe("multicastScope, RFC 7346", () => {
  test.each([
    ["ff00::1", "Reserved"],
    ["ff01::1", "Interface-Local"],
    ["ff02::1", "Link-Local"],
    ["ff03::1", "Realm-Local"],
    ["ff04::1", "Admin-Local"],
    ["ff05::1", "Site-Local"],
    ["ff06::1", "Unassigned"],
    ["ff07::1", "Unassigned"],
    ["ff08::1", "Organization-Local"],
    ["ff09::1", "Unassigned"],
    ["ff0d::1", "Unassigned"],
    ["ff0e::1", "Global"],
    ["ff0f::1", "Reserved"],
    ["ff3e::8000:1", "Global"],
  ])("%s: %s", (text, scope) => {
    expect(multicastScope(parseIpv6(text)) as string).toBe(scope);
  });
});

describe("the group of a multicast address", () => {
  test.each([
    ["ff01::1", "All Nodes"],
    ["ff01::2", "All Routers"],
    ["ff02::1", "All Nodes"],
    ["ff02::2", "All Routers"],
    ["ff02::3", ""],
    ["ff02::5", "OSPF Routers"],
    ["ff02::6", "OSPF Designated Routers"],
    ["ff02::9", "RIP Routers"],
    ["ff02::a", "EIGRP Routers"],
    ["ff02::d", "All PIM Routers"],
    ["ff02::12", "VRRP"],
    ["ff02::16", "All MLDv2-capable Routers"],
    ["ff02::1a", "All RPL Nodes"],
    ["ff02::6a", "All Snoopers"],
    ["ff02::1:2", "All DHCP Agents"],
    ["ff02::1:3", "Link-local Multicast Name Resolution"],
    ["ff02::1:6", "Babel"],
    ["ff05::2", "All Routers"],
    ["ff05::1", ""],
    ["ff05::1:3", "All DHCP Servers"],
    ["ff05::1:2", ""],
    ["ff02::1:feff:ffff", ""],
    ["ff02::1:ff00:0", "Solicited-Node"],
    ["ff02::1:ffff:ffff", "Solicited-Node"],
    ["ff02::2:0:0", ""],
    ["ff02::2:ff00:0", "Node Information Queries"],
    ["ff02::2:ffff:ffff", "Node Information Queries"],
    ["ff02::", "Reserved"],
    ["ff0e::", "Reserved"],
    ["ff02::c", "SSDP"],
    ["ff00::fb", "mDNSv6"],
    ["ff02::fb", "mDNSv6"],
    ["ff0f::fb", "mDNSv6"],
    ["ff12::fb", ""],
    ["ff02::fc", "All MPL Forwarders"],
    ["ff05::fd", "All CoAP Nodes"],
    ["ff0e::101", "Network Time Protocol (NTP)"],
    ["ff0e::102", ""],
    ["ff0e::db7:ffff:ffff", ""],
    ["ff0e::db8:0:0", "Documentation"],
    ["ff0e::db8:ffff:ffff", "Documentation"],
    ["ff0e::db9:0:0", ""],
  ])("%s: %p", (text, name) => {
    expect(groupOf(text)).toBe(name);
  });

  test("every row of the table is found at its first and its last address, and no further", () => {
    for (const { prefix, name } of MULTICAST_GROUPS.rows) {
      const { first, last, before, after } = edgesOf(prefix);
      expect(groupOf(formatIpv6(first))).toBe(name);
      expect(groupOf(formatIpv6(last))).toBe(name);
      const named = MULTICAST_GROUPS.rows.map((group) => formatIpv6(edgesOf(group.prefix).first));
      const lasts = MULTICAST_GROUPS.rows.map((group) => formatIpv6(edgesOf(group.prefix).last));
      if (before && !lasts.includes(formatIpv6(before)))
        expect(groupOf(formatIpv6(before))).toBe("");
      if (after && !named.includes(formatIpv6(after))) expect(groupOf(formatIpv6(after))).toBe("");
    }
  });

  test("has its RFC if an RFC defines it", () => {
    expect(multicastDetails(parseIpv6("ff02::1")).group).toEqual({
      name: "All Nodes",
      rfc: "RFC 4291",
    });
    expect(multicastDetails(parseIpv6("ff02::c")).group).toEqual({ name: "SSDP" });
  });
});

describe("multicastDetails", () => {
  const none = { transient: false, prefixBased: false, rendezvousPoint: false };
  const flagsT = { ...none, transient: true };
  const flagsPT = { ...flagsT, prefixBased: true };
  const flagsRPT = { ...flagsPT, rendezvousPoint: true };

  const rows: readonly (readonly [string, ReturnType<typeof multicastDetails>, string])[] = [
    ["ff02::99", { flags: none }, "well-known, without a name"],
    ["ff15::99", { flags: flagsT }, "transient"],
    ["ff85::99", { flags: none }, "the reserved flag says nothing"],
    [
      "ff3e:30:3ffe:ffff:1::",
      { flags: flagsPT, networkPrefix: "3ffe:ffff:1::/48" },
      "RFC 3306: 48 bits of prefix",
    ],
    [
      "ff3e:20:2001:db8:ffff:ffff::1",
      { flags: flagsPT, networkPrefix: "2001:db8::/32" },
      "only the bits within the length",
    ],
    ["ff3e::8000:1", { flags: flagsPT, sourceSpecific: true }, "RFC 4607: length 0"],
    ["ff30::1", { flags: flagsPT, sourceSpecific: true }, "any scope"],
    ["ff3e:1::1", { flags: flagsPT, networkPrefix: "::/1" }, "after ff3e::/32"],
    ["ff32:ff:1:2:3:4::1", { flags: flagsPT }, "RFC 4489: length 255 is not a prefix length"],
    ["ff3e:41:2001:db8::1", { flags: flagsPT }, "a length of 65"],
    ["ff2e:30:2001:db8::1", { flags: { ...none, prefixBased: true } }, "P without T"],
    ["ff4e:330:2001:db8::1", { flags: { ...none, rendezvousPoint: true } }, "R without P and T"],
    [
      "ff7e:340:2001:db8:beef:feed:1234:5678",
      {
        flags: flagsRPT,
        networkPrefix: "2001:db8:beef:feed::/64",
        rendezvousPointAddress: "2001:db8:beef:feed::3",
      },
      "RFC 3956: 64 bits of prefix",
    ],
    [
      "ff7e:f20:2001:db8:dead::1",
      {
        flags: flagsRPT,
        networkPrefix: "2001:db8::/32",
        rendezvousPointAddress: "2001:db8::f",
      },
      "RFC 3956: 32 bits of prefix",
    ],
    [
      "ff7e:20:2001:db8::1",
      { flags: flagsRPT, networkPrefix: "2001:db8::/32" },
      "RFC 3956: interface ID 0 is not allowed",
    ],
  ];

  test.each(rows.map(([text, expected, why]) => [text, why, expected] as const))(
    "%s: %s",
    (text, _, expected) => {
      expect(multicastDetails(parseIpv6(text))).toEqual(expected);
    },
  );
});

test.each([
  ["4037::1:800:200e:8c6c", "ff02::1:ff0e:8c6c", "RFC 4291 2.7.1"],
  ["fe80::", "ff02::1:ff00:0", "zeros"],
  ["ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ff02::1:ffff:ffff", "ones"],
])("solicitedNodeGroup(%s) is %s: %s", (text, group) => {
  expect(formatIpv6(solicitedNodeGroup(parseIpv6(text)))).toBe(group);
});
