/** Networks in which the way out is at fault: routes, gateways, the own firewall, and what is beyond. */
import { RESOLVER, RESOLVER_IPV4, SILENT } from "./description.ts";
import {
  BY_ROUTER_1,
  BY_ROUTER_2,
  broken,
  DHCPV6,
  drop,
  FIRST,
  NARROW,
  OWN,
  PREFIX,
  SLAAC,
  STATIC,
  type Trial,
  TWO,
  TWO_LINKS,
} from "./trial.ts";

/** A router of which nothing more is heard, and which lets no packet pass. */
const DEAD = "ip link set eth0 down";

const ROUTES: readonly Trial[] = [
  broken(
    "a router that is no default router",
    "no-route",
    ["eth0", "fe80::1"],
    {
      ...SLAAC,
      routers: [{ radvd: `AdvDefaultLifetime 0; ${PREFIX}` }],
      settled: [`eth0 ${OWN}/64`],
    },
    FIRST,
  ),
  broken("a static address without a route", "no-route", ["eth0"], {
    ...STATIC,
    ip: ["addr add 2001:db8:1::5/64 dev eth0"],
    settled: ["eth0 2001:db8:1::5/64"],
  }),
  ...["unreachable", "prohibit", "blackhole"].map((type) =>
    broken(
      `a default route of type ${type}`,
      "no-route",
      [type],
      {
        ...STATIC,
        ip: ["addr add 2001:db8:1::5/64 dev eth0", `route add ${type} default metric 1`],
        settled: ["eth0 2001:db8:1::5/64"],
      },
      { ...(type === "unreachable" && FIRST) },
    ),
  ),
  ...(
    [
      ["a rule", "ip -6 rule add pref 100 prohibit"],
      ["a route to all of the Internet", "ip -6 route add blackhole 2000::/3"],
    ] as const
  ).map(([what, command]) =>
    broken(
      `a default route that ${what} hides`,
      "no-route",
      ["default route of eth0", "ip -6 rule"],
      { ...STATIC, later: [["client", command]] },
      { lacks: ["has no default route"] },
    ),
  ),
  broken(
    "a default route that has expired",
    "no-route",
    ["eth0", "expired"],
    {
      ...STATIC,
      ip: [
        "addr add 2001:db8:1::5/64 dev eth0",
        "route add default via fe80::1 dev eth0 expires 1",
      ],
      later: [["client", `while ip -6 route get ${RESOLVER} >/dev/null 2>&1; do sleep 0.1; done`]],
    },
    FIRST,
  ),
  broken(
    "a gateway that is in no prefix of the link",
    "gateway-not-on-link",
    ["eth0", "2001:db8:9::1"],
    {
      ...STATIC,
      ip: [
        "addr add 2001:db8:1::5/64 dev eth0",
        "route add default via 2001:db8:9::1 dev eth0 onlink",
      ],
      settled: ["default via 2001:db8:9::1 dev eth0"],
    },
    FIRST,
  ),
  broken("a gateway that does not exist", "gateway-silent", ["eth0", "fe80::99"], {
    ...STATIC,
    ip: ["addr add 2001:db8:1::5/64 dev eth0", "route add default via fe80::99 dev eth0"],
    settled: ["default via fe80::99 dev eth0"],
  }),
  broken(
    "a gateway of the own prefix that does not exist",
    "gateway-silent",
    ["eth0", "2001:db8:1::99"],
    {
      ...STATIC,
      ip: ["addr add 2001:db8:1::5/64 dev eth0", "route add default via 2001:db8:1::99 dev eth0"],
      settled: ["default via 2001:db8:1::99 dev eth0"],
    },
  ),
  ...(
    [
      ["::/1", ["route add ::/1 via fe80::dead dev eth0"], ""],
      [
        "a default route that comes meanwhile",
        [],
        "(sleep 2; ip -6 route add default via fe80::dead dev eth0) >/dev/null 2>&1 &",
      ],
      [
        "a route of a next hop object",
        [],
        "echo 0 > /proc/sys/net/ipv4/nexthop_compat_mode; ip nexthop add id 1 via fe80::dead dev eth0; ip -6 route add default nhid 1",
      ],
    ] as const
  ).map(([name, routes, later]) =>
    broken(
      `a gateway that does not exist, by ${name}`,
      "gateway-silent",
      ["eth0", "fe80::dead"],
      {
        ip: ["addr add 2001:db8:1::5/64 dev eth0", ...routes],
        settled: ["eth0 2001:db8:1::5/64"],
        later: [["client", later]],
      },
      { lacks: ["fe80::1"] },
    ),
  ),
  broken(
    "a router that went down after its advertisement",
    "gateway-silent",
    ["eth0", "fe80::1"],
    {
      ...SLAAC,
      later: [["router1", DEAD]],
    },
    FIRST,
  ),
  broken(
    "one of two routers is dead",
    "router-dead",
    ["eth0", "fe80::2", "fe80::1"],
    {
      ...TWO,
      later: [["router2", DEAD]],
    },
    { ...FIRST, reaches: null },
  ),
  broken(
    "one of two routers is dead, the one that the route prefers",
    "router-dead",
    ["eth0", "fe80::2"],
    {
      ...TWO,
      routers: [
        { radvd: PREFIX },
        {
          radvd: `AdvDefaultPreference high; ${PREFIX}`,
          addresses: ["fe80::2/64", "2001:db8:1::2/64"],
        },
      ],
      later: [["router2", DEAD]],
    },
    { reaches: null },
  ),
  broken(
    "one of two routers is dead, on another interface",
    "router-dead",
    ["eth1", "fe80::2", "fe80::1"],
    {
      ...TWO_LINKS,
      later: [["router2", DEAD]],
    },
    { reaches: null },
  ),
  broken(
    "one of two gateways of a route is dead",
    "router-dead",
    ["eth0", "fe80::2", "fe80::1"],
    {
      routers: [{}, { addresses: ["fe80::2/64", "2001:db8:1::2/64"] }],
      ip: [
        "addr add 2001:db8:1::5/64 dev eth0",
        "route add default nexthop via fe80::1 dev eth0 nexthop via fe80::2 dev eth0",
      ],
      settled: ["eth0 2001:db8:1::5/64"],
      later: [["router2", DEAD]],
    },
    { reaches: null },
  ),
  broken(
    "two routers with different prefixes",
    "routers-disagree",
    ["eth0", "fe80::1", "fe80::2", "2001:db8:1::/64", "2001:db8:2::/64"],
    {
      routers: [{ radvd: PREFIX }, { radvd: "prefix 2001:db8:2::/64 {};" }],
      settled: [`eth0 ${OWN}/64`, "eth0 2001:db8:2::ff:fe00:5/64", BY_ROUTER_1, BY_ROUTER_2],
    },
    { ...FIRST, reaches: null },
  ),
  ...(
    [
      ["MTU", "AdvLinkMTU 1400;", "AdvLinkMTU 1500;", [/1400/, /1500/]],
      ["managed flag", "AdvManagedFlag on;", "", [/managed/]],
    ] as const
  ).map(([name, one, other, has]) =>
    broken(
      `two routers with different ${name}`,
      "routers-disagree",
      ["eth0", "fe80::1", "fe80::2", ...has],
      {
        ...TWO,
        routers: [
          { radvd: one + PREFIX },
          { radvd: other + PREFIX, addresses: ["fe80::2/64", "2001:db8:1::2/64"] },
        ],
      },
      { reaches: true },
    ),
  ),
];

const NAMES = {
  2: "packet-too-big",
  133: "nd-router-solicit",
  134: "nd-router-advert",
  135: "nd-neighbor-solicit",
  136: "nd-neighbor-advert",
} as const;

/** What a firewall must let out before anything else. */
const DISCOVERY = "icmpv6 type { nd-router-solicit, nd-neighbor-solicit, nd-neighbor-advert }";

/** The command of a table of nft with rules, of which the last may end them. */
const filter = (hook: string, rules: string) =>
  `nft 'table ip6 lab { chain ${hook} { type filter hook ${hook} priority 0; ${rules} }; }'`;

const firewall = (
  type: keyof typeof NAMES,
  direction: "in" | "out",
  hook: string,
  others: Partial<Trial> = {},
) =>
  broken(
    `a firewall drops type ${type} at ${hook}`,
    "firewall",
    ["eth0", new RegExp(`\\b${type}\\b.*\\b${direction}\\b`)],
    {
      ...SLAAC,
      ...(type === 2 && { routers: [{ radvd: PREFIX, first: NARROW }] }),
      later: [["client", drop(hook, `icmpv6 type ${NAMES[type]}`)]],
    },
    { reaches: null, ...others },
  );

const FIREWALLS: readonly Trial[] = [
  firewall(133, "out", "output"),
  firewall(133, "out", "egress"),
  firewall(134, "in", "input", FIRST),
  firewall(134, "in", "prerouting"),
  firewall(134, "in", "ingress"),
  firewall(135, "out", "output", FIRST),
  firewall(135, "out", "postrouting"),
  firewall(135, "out", "egress"),
  firewall(136, "in", "input"),
  firewall(136, "in", "ingress"),
  firewall(2, "in", "input"),
  firewall(2, "in", "prerouting"),
  broken(
    "a firewall drops advertisements from the first",
    "firewall",
    ["eth0", /\b134\b.*\bin\b/],
    {
      ...SLAAC,
      first: drop("input", "icmpv6 type nd-router-advert"),
      settled: ["eth0 fe80::ff:fe00:5/64"],
    },
    { lacks: [/no router/i] },
  ),
  ...(
    [
      ["drops DNS", "udp dport 53 drop;", /DNS queries/, true],
      ["rejects DNS", "udp dport 53 reject;", /DNS queries/, true],
      ["drops all but neighbor discovery", `${DISCOVERY} accept; drop;`, /DNS queries/, false],
      ["drops full size", "meta length > 1400 drop;", /packets of 1500 bytes/, true],
    ] as const
  ).map(([what, rules, refused, reaches]) =>
    broken(
      `a firewall ${what} on the way out`,
      "firewall",
      [/firewall of this machine/, refused, RESOLVER],
      { ...SLAAC, later: [["client", filter("output", rules)]] },
      { reaches, lacks: [/next network/, /gateway/] },
    ),
  ),
  broken("a firewall drops all ICMPv6 that comes in", "firewall", ["eth0", /\b136\b/, /\b134\b/], {
    ...SLAAC,
    later: [["client", drop("input", "meta l4proto icmpv6")]],
  }),
];

const BEYOND: readonly Trial[] = [
  broken(
    "a route whose source is a unique local address",
    "source-wrong",
    ["eth0", "fd00:1::5", "2001:db8:1::5"],
    {
      ...STATIC,
      ip: ["addr add 2001:db8:1::5/64 dev eth0", "addr add fd00:1::5/64 dev eth0"],
      later: [["client", "ip route add default via fe80::1 dev eth0 src fd00:1::5"]],
      settled: ["eth0 2001:db8:1::5/64", "eth0 fd00:1::5/64"],
    },
    FIRST,
  ),
  broken(
    "a route whose source is deprecated",
    "source-wrong",
    ["eth0", "2001:db8:1::6", "2001:db8:1::5"],
    {
      ...STATIC,
      ip: [
        "addr add 2001:db8:1::5/64 dev eth0",
        "addr add 2001:db8:1::6/64 dev eth0 preferred_lft 0",
      ],
      later: [["client", "ip route add default via fe80::1 dev eth0 src 2001:db8:1::6"]],
      settled: ["eth0 2001:db8:1::5/64", "eth0 2001:db8:1::6/64"],
    },
    { reaches: true },
  ),
  broken(
    "a policy that prefers unique local addresses",
    "source-wrong",
    ["eth0", "fd00:1::5", "2001:db8:1::5"],
    {
      ...STATIC,
      ip: [
        ...(STATIC.ip ?? []),
        "addr add fd00:1::5/64 dev eth0",
        "addrlabel add prefix fd00:1::/64 label 1",
        "addrlabel add prefix 2001:db8:1::/64 label 99",
      ],
    },
  ),
  broken(
    "no resolver",
    "resolvers-none",
    ["resolv.conf"],
    { ...SLAAC, resolvers: [] },
    { ...FIRST, reaches: true },
  ),
  broken(
    "only a resolver of IPv4",
    "resolvers-ipv4-only",
    [RESOLVER_IPV4],
    {
      ...SLAAC,
      hasIpv4: true,
      resolvers: [RESOLVER_IPV4],
      answering: [["beyond", RESOLVER_IPV4]],
    },
    { reaches: true },
  ),
  broken(
    "only a resolver of IPv4, which is silent",
    "resolvers-ipv4-only",
    [RESOLVER_IPV4],
    {
      ...SLAAC,
      hasIpv4: true,
      resolvers: [RESOLVER_IPV4],
      answering: [],
    },
    { reaches: true },
  ),
  broken(
    "a resolver whose port is closed",
    "resolvers-silent",
    [RESOLVER],
    { ...SLAAC, answering: [] },
    { ...FIRST, reaches: true },
  ),
  broken(
    "two resolvers, of which one drops questions and one is not there",
    "resolvers-silent",
    [RESOLVER, "2001:db8:ffff::99"],
    {
      ...SLAAC,
      answering: [],
      resolvers: ["2001:db8:ffff::99", RESOLVER],
      later: [["beyond", drop("input", "udp dport 53")]],
    },
    { reaches: true },
  ),
  broken(
    "a resolver on the link whose port is closed",
    "resolvers-silent",
    ["2001:db8:1::1"],
    {
      ...SLAAC,
      resolvers: ["2001:db8:1::1"],
      answering: [],
    },
    { reaches: true },
  ),
  broken("a router that forwards nothing", "beyond-silent", ["eth0", "fe80::1", RESOLVER], {
    ...SLAAC,
    routers: [{ radvd: PREFIX, first: drop("forward", "counter") }],
  }),
  broken(
    "a router that answers that it has no route",
    "beyond-silent",
    ["eth0", "fe80::1", RESOLVER],
    { ...SLAAC, later: [["router1", "ip route add unreachable 2001:db8:ffff::/48"]] },
  ),
  broken(
    "a router that answers that the port of the resolver is closed",
    "beyond-silent",
    ["eth0", "fe80::1", RESOLVER],
    {
      ...SLAAC,
      later: [["router1", filter("forward", "reject with icmpv6 type port-unreachable;")]],
    },
  ),
  ...(
    [
      ["all of the Internet", [], ["route add 2000::/4 dev tun0", "route add 3000::/4 dev tun0"]],
      ["the network of a resolver", STATIC.ip ?? [], ["route add 2001:db8:ffff::/48 dev tun0"]],
    ] as const
  ).map(([name, before, routes]) =>
    broken(
      `a tunnel that is to lead to ${name}, and does not`,
      "beyond-silent",
      ["tun0", RESOLVER],
      {
        tunnel: "tun0",
        ip: [...before, ...["link set tun0 up", "addr add 2001:db8:5::5/64 dev tun0"], ...routes],
        settled: ["tun0 2001:db8:5::5/64"],
        later: [["router1", "ip route add blackhole 2001:db8:5::/64"]],
      },
      { needs: "tun" },
    ),
  ),
  broken("a router whose own uplink is down", "beyond-silent", ["eth0", "fe80::1"], {
    ...SLAAC,
    later: [["router1", "ip link set out down"]],
  }),
  broken(
    "a narrow link beyond the gateway, which does not say so",
    "beyond-narrow",
    ["eth0", RESOLVER],
    {
      ...SLAAC,
      routers: [
        { radvd: PREFIX, first: `${NARROW}; ${drop("output", "icmpv6 type packet-too-big")}` },
      ],
    },
    { ...FIRST, reaches: true },
  ),
];

const ENDING: readonly Trial[] = [
  broken(
    "a router that advertises no more",
    "ending",
    ["eth0", "fe80::1"],
    {
      ...SLAAC,
      later: [["router1", SILENT]],
    },
    { ...FIRST, reaches: true, ends: "route" },
  ),
  broken(
    "an address by SLAAC that is not renewed",
    "ending",
    ["eth0", OWN],
    {
      ...SLAAC,
      routers: [
        { radvd: "prefix 2001:db8:1::/64 { AdvValidLifetime 300; AdvPreferredLifetime 200; };" },
      ],
      later: [["router1", SILENT]],
    },
    { reaches: true, ends: "address" },
  ),
  broken(
    "a static address that ends in a minute",
    "ending",
    ["eth0", "2001:db8:1::5"],
    {
      ...STATIC,
      ip: [
        "addr add 2001:db8:1::5/64 dev eth0 valid_lft 60 preferred_lft 60",
        "route add default via fe80::1 dev eth0",
      ],
    },
    { reaches: true, ends: "address" },
  ),
  broken(
    "a static route that ends in a minute",
    "ending",
    ["eth0", "fe80::1"],
    {
      ...STATIC,
      ip: [
        "addr add 2001:db8:1::5/64 dev eth0",
        "route add default via fe80::1 dev eth0 expires 60",
      ],
    },
    { reaches: true, ends: "route" },
  ),
  broken(
    "an address of DHCPv6 that ends in less than two minutes",
    "ending",
    ["eth0", "2001:db8:1::100"],
    {
      ...DHCPV6,
      ip: ["addr add 2001:db8:1::100/128 dev eth0 valid_lft 110 preferred_lft 110"],
    },
    { reaches: true, ends: "address" },
  ),
];

/** All of them. */
export const PATH_FAULTS: readonly Trial[] = [...ROUTES, ...FIREWALLS, ...BEYOND, ...ENDING];
