/** Networks in which a link, its routers' advertisements or the addresses are at fault. */
import { RESOLVER } from "./description.ts";
import {
  BARE_PROC,
  BY_ROUTER_1,
  broken,
  DHCPV6,
  FIRST,
  OWN,
  PREFIX,
  renamed,
  SLAAC,
  STATIC,
  setting,
  type Trial,
  ULA,
  ULA_OWN,
} from "./trial.ts";

/** So long after an advertisement, the whole seconds of lifetimes say whether another has renewed them. */
const LATER = "sleep 3";

const LINKS: readonly Trial[] = [
  broken(
    "IPv6 is disabled on the interface",
    "disabled",
    ["eth0", "disable_ipv6"],
    {
      ...SLAAC,
      later: [["client", setting("eth0/disable_ipv6", 1)]],
    },
    FIRST,
  ),
  broken("IPv6 is disabled on all", "disabled", ["conf.all.disable_ipv6"], {
    ...SLAAC,
    later: [["client", setting("all/disable_ipv6", 1)]],
  }),
  broken(
    "IPv6 is disabled by the kernel itself, because of a duplicate link-local address",
    "disabled",
    ["eth0", "disable_ipv6", "accept_dad"],
    {
      detectsDuplicates: true,
      neighbours: ["fe80::ff:fe00:5/64"],
      routers: [{ radvd: PREFIX }],
      first: setting("eth0/accept_dad", 2),
      later: [
        ["client", "until grep -q 1 /proc/sys/net/ipv6/conf/eth0/disable_ipv6; do sleep 0.1; done"],
      ],
    },
  ),
  broken(
    "a link that is set down",
    "link-down",
    ["eth0", "down"],
    {
      ...SLAAC,
      later: [["client", "ip link set eth0 down"]],
    },
    FIRST,
  ),
  broken("a link without carrier", "link-down", ["eth0", "carrier"], {
    ...STATIC,
    later: [["switch", "ip link set client0 down"]],
  }),
  broken(
    "an interface whose name has a dot, disabled",
    "disabled",
    ["net/ipv6/conf/eth0.7/disable_ipv6"],
    {
      ...renamed("eth0.7"),
      later: [["client", setting("eth0.7/disable_ipv6", 1)]],
    },
  ),
];

/** Settings that make the kernel ignore advertisements, each with what remains of those before. */
const IGNORING: readonly (readonly [string, string, ends: "route" | "address" | null])[] = [
  ["accept_ra", setting("eth0/accept_ra", 0), "route"],
  ["forwarding", setting("eth0/forwarding", 1), null],
  ["autoconf", setting("eth0/autoconf", 0), "address"],
  ["accept_ra_pinfo", setting("eth0/accept_ra_pinfo", 0), "address"],
  ["accept_ra_defrtr", setting("eth0/accept_ra_defrtr", 0), "route"],
];

const ROUTERS: readonly Trial[] = [
  broken(
    "a link without a router",
    "no-router",
    ["eth0"],
    {
      settled: ["eth0 fe80::ff:fe00:5/64"],
    },
    FIRST,
  ),
  broken("advertisements from beyond the link", "no-router", ["eth0"], {
    routers: [
      {
        says: {
          hopLimit: 64,
          prefixes: [{ prefix: "2001:db8:1::/64", preferredSeconds: 600, validSeconds: 600 }],
        },
      },
    ],
    settled: ["eth0 fe80::ff:fe00:5/64"],
  }),
  broken("advertisements with an option of no length", "no-router", ["eth0"], {
    routers: [{ says: { options: "0000000000000000" } }],
    settled: ["eth0 fe80::ff:fe00:5/64"],
  }),
  ...IGNORING.map(([name, script]) =>
    broken(
      `${name} ignores advertisements from the first`,
      "ra-ignored",
      ["eth0", name, "fe80::1"],
      {
        ...SLAAC,
        first: script,
        settled: ["eth0 fe80::ff:fe00:5/64"],
      },
      { ...(["accept_ra", "forwarding"].includes(name) && FIRST) },
    ),
  ),
  ...IGNORING.map(([name, script, ends]) =>
    broken(
      `${name} ignores advertisements after one`,
      "ra-ignored",
      ["eth0", name, "fe80::1"],
      {
        ...SLAAC,
        later: [["client", `${LATER}; ${script}`]],
      },
      ends ? { reaches: true, ends } : {},
    ),
  ),
  broken(
    "forwarding ignores advertisements, with nothing but processes in /proc",
    "ra-ignored",
    ["eth0", "forwarding", "fe80::1"],
    {
      ...SLAAC,
      first: setting("eth0/forwarding", 1),
      settled: ["eth0 fe80::ff:fe00:5/64"],
      wrapper: BARE_PROC,
    },
    { needs: "root" },
  ),
  broken(
    "forwarding of all interfaces, as a container engine sets it after an advertisement",
    "ra-ignored",
    ["eth0", "forwarding", "accept_ra", "fe80::1"],
    { ...SLAAC, later: [["client", setting("all/forwarding", 1)]] },
  ),
  broken(
    "forwarding ignores advertisements after one, and the route is static",
    "ra-ignored",
    ["eth0", "forwarding"],
    {
      ...SLAAC,
      later: [
        [
          "client",
          `${LATER}; ${setting("eth0/forwarding", 1)}; ip route add default via fe80::1 dev eth0`,
        ],
      ],
    },
    { reaches: true, ends: "address" },
  ),
  broken(
    "an advertisement without a prefix",
    "ra-without-prefix",
    ["eth0", "fe80::1"],
    {
      routers: [{ says: {} }],
      settled: [BY_ROUTER_1],
    },
    FIRST,
  ),
  broken("a prefix that is not autonomous", "ra-without-prefix", ["eth0", "fe80::1"], {
    routers: [{ radvd: "prefix 2001:db8:1::/64 { AdvAutonomous off; };" }],
    settled: [BY_ROUTER_1],
  }),
  broken(
    "an advertisement that leaves addresses to DHCPv6, which gives none",
    "ra-without-prefix",
    ["eth0", "fe80::1", "DHCPv6"],
    {
      ...DHCPV6,
      ip: [],
      settled: [BY_ROUTER_1],
    },
  ),
  ...[63, 80].map((bits) =>
    broken(`a prefix of ${bits} bits`, "prefix-not-usable", ["eth0", "fe80::1", `/${bits}`], {
      routers: [{ radvd: `prefix 2001:db8:8::/${bits} {};` }],
      settled: [BY_ROUTER_1],
    }),
  ),
  broken(
    "a prefix that is preferred for longer than it is valid",
    "prefix-not-usable",
    ["eth0", "2001:db8:1::/64"],
    {
      routers: [
        {
          says: {
            prefixes: [{ prefix: "2001:db8:1::/64", preferredSeconds: 900, validSeconds: 600 }],
          },
        },
      ],
      settled: [BY_ROUTER_1],
    },
  ),
];

const ADDRESSES: readonly Trial[] = [
  broken(
    "a static address that another machine has",
    "address-duplicate",
    ["eth0", "2001:db8:1::5"],
    {
      ...STATIC,
      detectsDuplicates: true,
      neighbours: ["2001:db8:1::5/64"],
      settled: ["eth0 duplicate 2001:db8:1::5/64"],
    },
    FIRST,
  ),
  broken(
    "an address by SLAAC that another machine has",
    "address-duplicate",
    ["eth0", OWN],
    {
      ...SLAAC,
      detectsDuplicates: true,
      neighbours: [`${OWN}/64`],
      settled: [BY_ROUTER_1],
    },
    FIRST,
  ),
  broken(
    "a link-local address that another machine has",
    "address-duplicate",
    ["eth0", "fe80::ff:fe00:5"],
    {
      ...SLAAC,
      detectsDuplicates: true,
      neighbours: ["fe80::ff:fe00:5/64"],
      settled: ["eth0 duplicate fe80::ff:fe00:5/64"],
    },
  ),
  broken(
    "duplicate address detection without an end",
    "address-tentative",
    ["eth0", "2001:db8:1::5"],
    {
      settled: ["eth0 fe80::ff:fe00:5/64"],
      later: [
        [
          "client",
          `${setting("eth0/dad_transmits", 500)}; ip addr add 2001:db8:1::5/64 dev eth0; ip route add default via fe80::1 dev eth0`,
        ],
      ],
      settledLater: ["eth0 tentative 2001:db8:1::5/64"],
    },
  ),
  broken(
    "a static address that is deprecated",
    "address-deprecated",
    ["eth0", "2001:db8:1::5"],
    {
      ...STATIC,
      ip: [
        "addr add 2001:db8:1::5/64 dev eth0 preferred_lft 0",
        "route add default via fe80::1 dev eth0",
      ],
    },
    { ...FIRST, reaches: true },
  ),
  broken(
    "a prefix that its router deprecates",
    "address-deprecated",
    ["eth0", OWN],
    {
      ...SLAAC,
      routers: [{ radvd: "prefix 2001:db8:1::/64 { AdvPreferredLifetime 0; };" }],
    },
    { reaches: true },
  ),
  broken(
    "only a unique local prefix",
    "only-ula",
    ["eth0", ULA_OWN],
    {
      routers: [{ radvd: ULA }],
      settled: [`eth0 ${ULA_OWN}/64`, BY_ROUTER_1],
    },
    FIRST,
  ),
  broken(
    "only a unique local prefix, which is translated",
    "only-ula",
    ["eth0", ULA_OWN, RESOLVER, "NAT66"],
    {
      routers: [{ radvd: ULA, addresses: ["fe80::1/64", "fd00:1::1/64"], serves: ["fd00:1::/64"] }],
      settled: [`eth0 ${ULA_OWN}/64`, BY_ROUTER_1],
    },
    { reaches: true, lacks: ["cannot be reached"] },
  ),
  broken("only a static unique local address", "only-ula", ["eth0", "fd00:1::5"], {
    ip: ["addr add fd00:1::5/64 dev eth0", "route add default via fe80::1 dev eth0"],
    settled: ["eth0 fd00:1::5/64"],
  }),
];

/** All of them. */
export const LINK_FAULTS: readonly Trial[] = [...LINKS, ...ROUTERS, ...ADDRESSES];
