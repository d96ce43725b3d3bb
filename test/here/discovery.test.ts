import { describe, expect, test } from "bun:test";
import { formatIpv6 } from "../../src/addr/format.ts";
import { type Arrived, parseAdvertisement, parseNeighbour } from "../../src/here/discovery.ts";
import { parseIpv6 } from "../addr/parse.ts";
import { hex, hexAddress } from "../icmp/hex.ts";
import {
  arrived,
  CAPTIVE_PORTAL,
  HEAD,
  LINK_LAYER,
  MTU,
  NAT64,
  NEIGHBOUR,
  PREFIX,
  RESOLVER,
  ROUTE,
  saidIn,
  TARGET_LINK_LAYER,
} from "./discovery-bytes.ts";

const EMPTY = {
  ...{ lifetimeSeconds: 1800, preference: "medium", hopLimit: 64, mtu: null },
  ...{ flags: [], prefixes: [], resolvers: [], nat64Prefixes: [] },
};
type Said = Partial<Record<keyof typeof EMPTY, unknown>> | null;

describe("an advertisement of a router", () => {
  test.each<[name: string, message: string, said: Said, changes?: Partial<Arrived>]>([
    ["of 16 bytes", HEAD, {}],
    ["with options that say nothing here", `${HEAD} ${LINK_LAYER} ${ROUTE} ${CAPTIVE_PORTAL}`, {}],
    [
      "with an option of a type that nobody knows",
      `${HEAD} fe 01 000000000000 ${MTU}`,
      { mtu: 1500 },
    ],

    // RFC 4861 section 6.1.2
    ["with the hop limit 254: not of this link", HEAD, null, { hopLimit: 254 }],
    ["from a global address", HEAD, null, { source: parseIpv6("2001:db8::1") }],
    ["from a unique local address", HEAD, null, { source: parseIpv6("fd00::1") }],
    ["from no address", HEAD, null, { source: parseIpv6("::") }],
    ["from the last link-local address", HEAD, {}, { source: parseIpv6("febf:ffff::1") }],
    ["from an address behind it", HEAD, null, { source: parseIpv6("fec0::1") }],
    ["with the code 1", HEAD.replace("86 00", "86 01"), null],
    ["of another type", HEAD.replace("86 00", "85 00"), null],
    ["of 15 bytes", HEAD.slice(0, -2), null],
    ["of no bytes", "", null],
    ["with an option of the length 0", `${HEAD} 05 00 0000 000005dc`, null],
    ["with one of the length 0 behind a good one", `${HEAD} ${MTU} 03 00 00000000 0000`, null],
    ["with an option that ends behind the message", `${HEAD} 05 02 0000 000005dc`, null],
    ["with half of the head of an option", `${HEAD} 05`, null],
    ["with 7 bytes of an option of 8", `${HEAD} 05 01 0000 0000 05`, null],

    // RFC 4861 section 4.2 and RFC 4191 section 2.2
    ["of no default router", HEAD.replace("0708", "0000"), { lifetimeSeconds: 0 }],
    ["with the longest lifetime", HEAD.replace("0708", "ffff"), { lifetimeSeconds: 65_535 }],
    ["with the hop limit 0 for none", HEAD.replace("40 00", "00 00"), { hopLimit: 0 }],
    ["with the managed flag", HEAD.replace("40 00", "40 80"), { flags: ["managed"] }],
    ["with the other flag", HEAD.replace("40 00", "40 40"), { flags: ["other"] }],
    ["with the preference 01", HEAD.replace("40 00", "40 08"), { preference: "high" }],
    ["with the preference 11", HEAD.replace("40 00", "40 18"), { preference: "low" }],
    ["with the preference 10, which is reserved", HEAD.replace("40 00", "40 10"), {}],
    [
      "with flags of others: home agent, proxy, and one that is free",
      HEAD.replace("40 00", "40 27"),
      {},
    ],

    // RFC 4861 section 4.6.2
    [
      "with a prefix",
      `${HEAD} ${PREFIX}`,
      { prefixes: ["2001:db8:1::/64 on-link autonomous 1800 3600"] },
    ],
    [
      "with a prefix without flags",
      `${HEAD} ${PREFIX.replace("40 c0", "40 3f")}`,
      { prefixes: ["2001:db8:1::/64 1800 3600"] },
    ],
    [
      "with a prefix for ever",
      `${HEAD} ${PREFIX.replace("00000e10 00000708", "ffffffff ffffffff")}`,
      { prefixes: ["2001:db8:1::/64 on-link autonomous  "] },
    ],
    [
      "with a prefix of almost for ever",
      `${HEAD} ${PREFIX.replace("00000e10", "fffffffe")}`,
      { prefixes: ["2001:db8:1::/64 on-link autonomous 1800 4294967294"] },
    ],
    [
      "with a prefix that is over",
      `${HEAD} ${PREFIX.replace("00000e10 00000708", "00000000 00000000")}`,
      { prefixes: ["2001:db8:1::/64 on-link autonomous 0 0"] },
    ],
    [
      "with a prefix of 0 bits",
      `${HEAD} ${PREFIX.replace("04 40", "04 00")}`,
      { prefixes: ["::/0 on-link autonomous 1800 3600"] },
    ],
    [
      "with a prefix of 128 bits",
      `${HEAD} ${PREFIX.replace("04 40", "04 80")}`,
      { prefixes: ["2001:db8:1::/128 on-link autonomous 1800 3600"] },
    ],
    ["with a prefix of 129 bits", `${HEAD} ${PREFIX.replace("04 40", "04 81")}`, {}],
    [
      "with a prefix of 255 bits beside a good one",
      `${HEAD} ${PREFIX.replace("04 40", "04 ff")} ${PREFIX}`,
      { prefixes: ["2001:db8:1::/64 on-link autonomous 1800 3600"] },
    ],
    [
      "with a prefix that has bits behind its length",
      `${HEAD} ${PREFIX.replace("04 40", "04 1f")}`,
      { prefixes: ["2001:db8::/31 on-link autonomous 1800 3600"] },
    ],
    ["with a prefix option of 8 bytes", `${HEAD} 03 01 40 c0 00000e10 ${MTU}`, { mtu: 1500 }],
    [
      "with a prefix option of 24 bytes",
      `${HEAD} 03 03 40 c0 00000e10 00000708 00000000 20010db800010000`,
      {},
    ],

    // RFC 4861 section 4.6.4
    ["with an MTU", `${HEAD} ${MTU}`, { mtu: 1500 }],
    [
      "with two MTUs, of which the last counts",
      `${HEAD} ${MTU} ${MTU.replace("05dc", "0500")}`,
      { mtu: 1280 },
    ],
    [
      "with the largest MTU",
      `${HEAD} ${MTU.replace("000005dc", "ffffffff")}`,
      { mtu: 0xffff_ffff },
    ],

    // RFC 8106 section 5.1
    ["with a resolver", `${HEAD} ${RESOLVER}`, { resolvers: ["2001:db8::53 1800"] }],
    [
      "with a resolver for ever",
      `${HEAD} ${RESOLVER.replace("00000708", "ffffffff")}`,
      { resolvers: ["2001:db8::53 null"] },
    ],
    [
      "with a resolver that must no more be used",
      `${HEAD} ${RESOLVER.replace("00000708", "00000000")}`,
      { resolvers: ["2001:db8::53 0"] },
    ],
    [
      "with two resolvers in an option",
      `${HEAD} ${RESOLVER.replace("19 03", "19 05")} ${hexAddress("fe80::53")}`,
      { resolvers: ["2001:db8::53 1800", "fe80::53 1800"] },
    ],
    [
      "with two options of resolvers",
      `${HEAD} ${RESOLVER} ${MTU} ${RESOLVER.replace("0708", "0e10")}`,
      { mtu: 1500, resolvers: ["2001:db8::53 1800", "2001:db8::53 3600"] },
    ],
    ["with an option of no resolver", `${HEAD} 19 01 0000 00000708`, {}],
    [
      "with an option of one and a half resolvers",
      `${HEAD} ${RESOLVER.replace("19 03", "19 04")} 20010db800000000`,
      {},
    ],

    // RFC 8781 section 4
    ...[96, 64, 56, 48, 40, 32].map((length, code): [string, string, Said] => [
      `with a prefix of a translator of ${length} bits`,
      `${HEAD} 26 02 070${(8 + code).toString(16)} 20010db8 12345678 9abcdef0`,
      {
        nat64Prefixes: [
          `${["2001:db8:1234:5678:9abc:def0::", "2001:db8:1234:5678::", "2001:db8:1234:5600::", "2001:db8:1234::", "2001:db8:1200::", "2001:db8::"][code]}/${length} 1800`,
        ],
      },
    ]),
    [
      "with the well-known prefix of translators",
      `${HEAD} ${NAT64}`,
      { nat64Prefixes: ["64:ff9b::/96 1800"] },
    ],
    [
      "with a prefix of a translator that must no more be used",
      `${HEAD} ${NAT64.replace("0708", "0000")}`,
      { nat64Prefixes: ["64:ff9b::/96 0"] },
    ],
    [
      "with one of the longest lifetime",
      `${HEAD} ${NAT64.replace("0708", "fff8")}`,
      { nat64Prefixes: ["64:ff9b::/96 65528"] },
    ],
    ["with the reserved prefix length code 6", `${HEAD} ${NAT64.replace("0708", "070e")}`, {}],
    ["with the reserved prefix length code 7", `${HEAD} ${NAT64.replace("0708", "070f")}`, {}],
    ["with an option of a translator of 8 bytes", `${HEAD} 26 01 0708 0064ff9b`, {}],
    [
      "with an option of a translator of 24 bytes",
      `${HEAD} ${NAT64.replace("26 02", "26 03")} 0000000000000000`,
      {},
    ],
  ])("%s", (_name, message, said, changes = {}) => {
    const advertisement = parseAdvertisement(arrived(hex(message), changes));
    expect(saidIn(advertisement)).toEqual(said && { ...EMPTY, ...said });
  });

  test.each([
    ["prefixes", PREFIX],
    ["resolvers", RESOLVER],
    ["nat64Prefixes", NAT64],
  ] as const)("with as many %s as fit is cut", (kind, option) => {
    const options = hex(option.repeat(1000)).subarray(0, 65_000 - (65_000 % hex(option).length));
    const advertisement = parseAdvertisement(arrived(Uint8Array.of(...hex(HEAD), ...options)));
    expect(advertisement?.[kind].length).toBeWithin(1, 33);
  });
});

describe("an advertisement of a neighbor", () => {
  test.each<[name: string, message: string, target: string | null, hopLimit?: number]>([
    ["of 24 bytes", NEIGHBOUR, "2001:db8:1::1"],
    ["with a link-layer address", `${NEIGHBOUR} ${TARGET_LINK_LAYER}`, "2001:db8:1::1"],
    // RFC 4861 section 7.1.2
    ["with the hop limit 254", NEIGHBOUR, null, 254],
    ["with the code 1", NEIGHBOUR.replace("88 00", "88 01"), null],
    ["of another type", NEIGHBOUR.replace("88 00", "87 00"), null],
    ["of 23 bytes", NEIGHBOUR.slice(0, -2), null],
    ["of a multicast target", `88 00 abcd 60000000 ${hexAddress("ff02::1")}`, null],
    ["with an option of the length 0", `${NEIGHBOUR} 02 00 020000000001`, null],
    ["with an option that ends behind the message", `${NEIGHBOUR} 02 02 020000000001`, null],
    ["of no bytes", "", null],
  ])("%s", (_name, message, target, hopLimit = 255) => {
    const ip = parseNeighbour(arrived(hex(message), { hopLimit }));
    expect(ip && formatIpv6(ip)).toBe(target);
  });
});
