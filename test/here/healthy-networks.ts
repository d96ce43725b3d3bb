/** Networks in which IPv6 works, of which nothing else may be said. */
import { nat64Option } from "./advertiser.ts";
import { type NetworkDescription, RESOLVER, RESOLVER_IPV4, SILENT } from "./description.ts";
import {
  BARE_PROC,
  BESIDE,
  BY_ROUTER_1,
  BY_ROUTER_2,
  DHCPV6,
  drop,
  FIRST,
  NARROW,
  OWN,
  PREFIX,
  PROVIDER,
  renamed,
  SLAAC,
  STATIC,
  setting,
  type Trial,
  TWO,
  TWO_LINKS,
  ULA,
  ULA_OWN,
} from "./trial.ts";

const WITHOUT_RAW = ["setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw", "--"];

/** Faults of which nothing may be said where there are none. */
const NO_FAULT = [/does not answer|drops? |ignores|silent|expired|deprecated|duplicate/];

const healthy = (
  name: string,
  network: NetworkDescription,
  others: Partial<Trial> = {},
): Trial => ({ name, network, code: "works", reaches: true, lacks: NO_FAULT, ...others });

/** All of them. */
export const HEALTHY: readonly Trial[] = [
  healthy("SLAAC", SLAAC, { ...FIRST, has: ["eth0", OWN, "fe80::1", RESOLVER] }),
  healthy("SLAAC with duplicate address detection", { ...SLAAC, detectsDuplicates: true }),
  healthy("static", STATIC, { ...FIRST, has: ["2001:db8:1::5"] }),
  healthy("static beside SLAAC", {
    ...SLAAC,
    ip: ["addr add 2001:db8:1::5/64 dev eth0"],
  }),
  healthy("static, with a prefix that is not autonomous", {
    ...STATIC,
    routers: [{ radvd: "prefix 2001:db8:1::/64 { AdvAutonomous off; };" }],
  }),
  healthy("DHCPv6 with /128", DHCPV6, FIRST),
  healthy("a gateway fe80::1 outside any prefix of a router that is silent", {
    ...STATIC,
    routers: [{ addresses: ["fe80::1/64"], first: "ip route add 2001:db8:1::/64 dev eth0" }],
  }),
  healthy("one address of a provider, with the gateway fe80::1", PROVIDER, FIRST),
  healthy("a global gateway of another prefix, with a route of its own", {
    routers: [{ addresses: ["fe80::1/64", "2001:db8:9::1/64", "2001:db8:1::1/64"] }],
    ip: [
      "addr add 2001:db8:1::5/128 dev eth0",
      "route add 2001:db8:9::1/128 dev eth0",
      "route add default via 2001:db8:9::1 dev eth0",
    ],
    settled: ["default via 2001:db8:9::1"],
  }),
  healthy("a global gateway that is in no prefix of the link, and answers", {
    routers: [{ addresses: ["fe80::1/64", "2001:db8:9::1/64", "2001:db8:1::1/64"] }],
    ip: [
      "addr add 2001:db8:1::5/64 dev eth0",
      "route add default via 2001:db8:9::1 dev eth0 onlink",
    ],
    settled: ["default via 2001:db8:9::1"],
  }),
  healthy(
    "forwarding with accept_ra 2",
    {
      ...SLAAC,
      first: `${setting("all/forwarding", 1)}; ${setting("eth0/accept_ra", 2)}`,
    },
    FIRST,
  ),
  healthy("forwarding with accept_ra 1, where all is static", {
    ...STATIC,
    routers: [{ radvd: PREFIX }],
    first: setting("all/forwarding", 1),
  }),
  healthy("accept_ra 0, where all is static", {
    ...STATIC,
    routers: [{ radvd: PREFIX }],
    first: setting("eth0/accept_ra", 0),
  }),
  healthy("autoconf 0, where the address is static", {
    ...SLAAC,
    first: setting("eth0/autoconf", 0),
    ip: ["addr add 2001:db8:1::5/64 dev eth0"],
    settled: ["eth0 2001:db8:1::5/64", BY_ROUTER_1],
  }),
  healthy("accept_ra 0, and a program that renews in the kernel's place", {
    ...SLAAC,
    later: [
      [
        "client",
        `${setting("eth0/accept_ra", 0)}
        (while sleep 0.5; do
          ip addr change ${OWN}/64 dev eth0 valid_lft 86400 preferred_lft 14400
          ip route replace default via fe80::1 dev eth0 proto ra metric 1024 expires 1800
        done) >/dev/null 2>&1 &`,
      ],
    ],
  }),
  healthy("two routers that agree", TWO),
  healthy("two routers, on two interfaces", TWO_LINKS),
  healthy("a default route with two gateways", {
    ...TWO,
    routers: [{}, { addresses: ["fe80::2/64", "2001:db8:1::2/64"] }],
    ip: [
      "addr add 2001:db8:1::5/64 dev eth0",
      "route add default nexthop via fe80::1 dev eth0 nexthop via fe80::2 dev eth0",
    ],
    settled: ["eth0 2001:db8:1::5/64"],
  }),
  healthy("a second router that has another prefix and is no default router", {
    ...SLAAC,
    routers: [{ radvd: PREFIX }, { radvd: `AdvDefaultLifetime 0; AdvManagedFlag on; ${ULA}` }],
    settled: [...(SLAAC.settled ?? []), `eth0 ${ULA_OWN}/64`],
  }),
  healthy("two routers of different preference, one of which tells an MTU", {
    ...TWO,
    routers: [
      { radvd: `AdvDefaultPreference high; AdvLinkMTU 1500; ${PREFIX}` },
      {
        radvd: `AdvDefaultPreference low; ${PREFIX}`,
        addresses: ["fe80::2/64", "2001:db8:1::2/64"],
      },
    ],
  }),
  healthy("a unique local address beside a global one", {
    ...SLAAC,
    routers: [{ radvd: PREFIX + ULA }],
    settled: [...(SLAAC.settled ?? []), `eth0 ${ULA_OWN}/64`],
  }),
  healthy("a unique local address before a global one", {
    ...SLAAC,
    routers: [{ radvd: ULA + PREFIX }],
    ip: ["addr add fd00:1::5/64 dev eth0"],
    settled: [...(SLAAC.settled ?? []), `eth0 ${ULA_OWN}/64`],
  }),
  healthy("a second router, with a unique local prefix only", {
    ...SLAAC,
    routers: [{ radvd: PREFIX }, { radvd: ULA, serves: [] }],
    settled: [...(SLAAC.settled ?? []), `eth0 ${ULA_OWN}/64`, BY_ROUTER_2],
  }),
  healthy("a gateway that drops echo requests to itself", {
    ...SLAAC,
    routers: [{ radvd: PREFIX, first: drop("input", "icmpv6 type echo-request") }],
  }),
  healthy("a firewall that lets in only answers and Neighbor Discovery", {
    ...SLAAC,
    first: `nft 'table ip6 lab { chain input { type filter hook input priority 0; policy drop; iif lo accept; ct state established,related accept; icmpv6 type { packet-too-big, nd-router-advert, nd-neighbor-solicit, nd-neighbor-advert } accept; }; }'`,
  }),
  healthy(
    "a firewall that drops echo requests in both directions, and their replies",
    {
      ...SLAAC,
      later: [
        ["client", drop("input", "icmpv6 type { echo-request, echo-reply }")],
        ["client", drop("output", "icmpv6 type { echo-request, echo-reply }")],
      ],
    },
    { reaches: false },
  ),
  healthy("a container behind it, to which it forwards what says Packet Too Big", {
    interfaces: ["eth0", "eth1"],
    first: setting("all/forwarding", 1),
    routers: [
      {
        serves: ["2001:db8:1::/64", "2001:db8:2::/64"],
        first:
          "ip route add 2001:db8:ffff:1::/64 via fe80::ff dev out mtu 1280; ip route add 2001:db8:2::/64 via fe80::ff:fe00:5 dev eth0",
      },
      {
        ...{ link: "eth1", serves: [] },
        first: "ip route add 2001:db8:ffff:1::/64 via fe80::ff:fe00:6 dev eth0",
      },
    ],
    ip: [...(STATIC.ip ?? []), "addr add 2001:db8:2::6/64 dev eth1"],
    settled: [...(STATIC.settled ?? []), "eth1 2001:db8:2::6/64"],
    later: [
      [
        "router2",
        // Each destination is told once.
        "(for each in $(seq 30); do sleep 0.2; ping -6 -n -c 1 -W 1 -M do -s 1400 2001:db8:ffff:1::$each; done) >/dev/null 2>&1 &",
      ],
    ],
  }),
  healthy(
    "resolvers in the advertisement",
    {
      ...SLAAC,
      routers: [{ radvd: `${PREFIX} RDNSS ${RESOLVER} { AdvRDNSSLifetime 900; };` }],
    },
    {
      document: {
        interfaces: [
          {},
          { routers: [{ ip: "fe80::1", resolvers: [{ ip: RESOLVER, lifetimeSeconds: 900 }] }] },
        ],
      },
    },
  ),
  healthy(
    "a NAT64 prefix in the advertisement",
    {
      ...SLAAC,
      routers: [
        {
          says: {
            prefixes: [
              { prefix: "2001:db8:1::/64", preferredSeconds: 14_400, validSeconds: 86_400 },
            ],
            options: nat64Option("64:ff9b::", 1800),
          },
        },
      ],
    },
    {
      document: {
        interfaces: [
          {},
          {
            routers: [
              { answers: true, nat64Prefixes: [{ prefix: "64:ff9b::/96", lifetimeSeconds: 1800 }] },
            ],
          },
        ],
      },
    },
  ),
  healthy(
    "a router that takes two seconds to answer",
    {
      ...SLAAC,
      routers: [
        {
          says: {
            delayMs: 2000,
            prefixes: [
              { prefix: "2001:db8:1::/64", preferredSeconds: 14_400, validSeconds: 86_400 },
            ],
          },
        },
      ],
    },
    { document: { interfaces: [{}, { routers: [{ ip: "fe80::1" }] }] } },
  ),
  healthy("temporary addresses", {
    ...SLAAC,
    first: setting("eth0/use_tempaddr", 2),
  }),
  healthy("2000::/3 in place of a default route", {
    ...STATIC,
    ip: ["addr add 2001:db8:1::5/64 dev eth0", "route add 2000::/3 via fe80::1 dev eth0"],
    settled: ["eth0 2001:db8:1::5/64"],
  }),
  healthy("a default route without a gateway", {
    routers: [
      {
        first: `${setting("eth0/proxy_ndp", 1)}; ip neigh add proxy ${RESOLVER} dev eth0`,
      },
    ],
    ip: ["addr add 2001:db8:1::5/64 dev eth0", "route add default dev eth0"],
    settled: ["eth0 2001:db8:1::5/64"],
  }),
  healthy(
    "a point-to-point tunnel beside a link without IPv6",
    {
      tunnel: "tun0",
      routers: [{ addresses: ["fe80::1/64"] }],
      first: setting("eth0/disable_ipv6", 1),
      ip: ["link set tun0 up", "addr add 2001:db8:1::5/64 dev tun0", "route add default dev tun0"],
      later: [["router1", "ip route add 2001:db8:1::/64 dev tun0"]],
      settled: ["tun0 2001:db8:1::5/64"],
    },
    { has: ["tun0"], needs: "tun" },
  ),
  healthy("a default route of another table", {
    ...STATIC,
    ip: [
      "addr add 2001:db8:1::5/64 dev eth0",
      "rule add from all lookup 77",
      "route add default via fe80::1 dev eth0 table 77",
    ],
  }),
  healthy(
    "a default route of another table, by a rule for the own source",
    {
      ...STATIC,
      ip: [
        "addr add 2001:db8:1::5/64 dev eth0",
        "rule add from 2001:db8:1::/64 lookup 77",
        "route add default via fe80::1 dev eth0 table 77",
      ],
      settled: ["eth0 2001:db8:1::5/64"],
    },
    { has: ["fe80::1", RESOLVER] },
  ),
  healthy("a default route for the own source alone", {
    ...STATIC,
    ip: [
      "addr add 2001:db8:1::5/64 dev eth0",
      "route add default from 2001:db8:1::/64 via fe80::1 dev eth0",
    ],
    settled: ["eth0 2001:db8:1::5/64"],
  }),
  healthy("a dead default route in a table of which no rule knows", {
    ...STATIC,
    ip: [...(STATIC.ip ?? []), "route add default via fe80::dead dev eth0 table 100"],
  }),
  healthy("addresses on loopback, and none but a link-local one on the link", {
    routers: [
      {
        first: "ip route add 2001:db8:7::5/128 via fe80::ff:fe00:5 dev eth0",
        serves: ["2001:db8:7::/64"],
      },
    ],
    ip: ["addr add 2001:db8:7::5/128 dev lo", "route add default via fe80::1 dev eth0"],
    settled: ["lo 2001:db8:7::5/128", "eth0 fe80::ff:fe00:5/64"],
  }),
  healthy(
    "an address on loopback, from which packets leave, and a unique local one on the link",
    {
      routers: [
        {
          first: "ip route add 2001:db8:7::5/128 via fe80::ff:fe00:5 dev eth0",
          serves: ["2001:db8:7::/64"],
        },
      ],
      ip: ["addr add 2001:db8:7::5/128 dev lo", "addr add fd00:1::5/64 dev eth0"],
      settled: ["lo 2001:db8:7::5/128", "eth0 fd00:1::5/64"],
      later: [["client", "ip -6 route add default via fe80::1 dev eth0 src 2001:db8:7::5"]],
    },
    { has: ["lo has 2001:db8:7::5,"], lacks: [...NO_FAULT, "fd00:"] },
  ),
  healthy("an interface whose name has a dot", renamed("eth0.7"), { has: ["eth0.7"] }),
  healthy("an interface whose name has an @", renamed("wan@home"), { has: ["wan@home"] }),
  healthy("an interface whose name is not ASCII", renamed("ét0"), { has: ["ét0"] }),
  healthy(
    "a bridge",
    {
      ...SLAAC,
      ip: [
        "link add br0 type bridge",
        "link set eth0 master br0",
        "link set br0 address 02:00:00:00:00:05 up",
      ],
      settled: [`br0 ${OWN}/64`, "default via fe80::1 dev br0"],
    },
    { has: ["br0"] },
  ),
  healthy(
    "a bridge behind 72 other interfaces",
    {
      ...STATIC,
      first: "for each in $(seq 35); do ip link add v$each type veth peer name w$each; done",
      ip: [
        "link add br0 type bridge",
        "link set eth0 master br0",
        "link set br0 address 02:00:00:00:00:05 up",
        "addr add 2001:db8:1::5/64 dev br0",
        "route add default via fe80::1 dev br0",
      ],
      settled: ["br0 2001:db8:1::5/64"],
    },
    { has: ["br0"] },
  ),
  healthy("a second interface that is down, and one without a router", {
    ...SLAAC,
    interfaces: ["eth0", "eth1", "eth2"],
    later: [["client", "ip link set eth1 down"]],
  }),
  healthy(
    "a way out on the second interface, and a silent link on the first",
    {
      interfaces: ["eth0", "eth1"],
      routers: [{ radvd: PREFIX, link: "eth1" }],
      settled: ["eth1 2001:db8:1::ff:fe00:6/64", "default via fe80::1 dev eth1"],
    },
    { has: ["eth1"], lacks: [...NO_FAULT, "eth0"] },
  ),
  healthy(
    "a resolver over a VPN that has a unique local address, beside a way out",
    {
      interfaces: ["eth0", "eth1"],
      routers: [
        {},
        {
          ...{ link: "eth1", addresses: ["fe80::2/64", "fd00:9::1/64"], serves: ["fd00:9::/64"] },
          first: "ip addr add fd00:53::53/128 dev lo nodad",
        },
      ],
      ip: [
        ...(STATIC.ip ?? []),
        ...["addr add fd00:9::5/64 dev eth1", "route add fd00:53::/32 via fd00:9::1 dev eth1"],
      ],
      settled: [...(STATIC.settled ?? []), "eth1 fd00:9::5/64"],
      resolvers: ["fd00:53::53"],
      answering: [["router2", "fd00:53::53"]],
    },
    { has: ["eth0 has 2001:db8:1::5", "fe80::1 on eth0", "fd00:53::53"] },
  ),
  healthy(
    "a resolver by another interface than the way out",
    { ...BESIDE, ip: [...(BESIDE.ip ?? []), `route add ${RESOLVER}/128 via fe80::2 dev eth1`] },
    { has: ["eth1 has 2001:db8:2::6", "fe80::1 on eth0"] },
  ),
  healthy(
    "a way out that moves to another interface meanwhile",
    {
      ...BESIDE,
      later: [
        [
          "client",
          "(sleep 2; ip -6 route add default via fe80::2 dev eth1 metric 1; ip -6 route del default via fe80::1) >/dev/null 2>&1 &",
        ],
      ],
    },
    { has: ["eth1 has 2001:db8:2::6"], lacks: [...NO_FAULT, "fe80::1", "eth0"] },
  ),
  healthy("lifetimes without an end", {
    ...SLAAC,
    routers: [
      {
        radvd:
          "AdvDefaultLifetime 9000; prefix 2001:db8:1::/64 { AdvValidLifetime infinity; AdvPreferredLifetime infinity; };",
      },
    ],
  }),
  healthy("a router of low preference", {
    ...SLAAC,
    routers: [{ radvd: `AdvDefaultPreference low; AdvDefaultLifetime 9000; ${PREFIX}` }],
  }),
  healthy("short lifetimes that are renewed in time", {
    ...SLAAC,
    routers: [
      {
        radvd:
          "MinRtrAdvInterval 3; MaxRtrAdvInterval 4; AdvDefaultLifetime 12; prefix 2001:db8:1::/64 { AdvValidLifetime 12; AdvPreferredLifetime 8; };",
      },
    ],
  }),
  healthy("an advertised MTU of 1280", {
    ...SLAAC,
    routers: [{ radvd: `AdvLinkMTU 1280; ${PREFIX}`, first: NARROW }],
  }),
  healthy("a narrow link beyond the gateway, which says so", {
    ...SLAAC,
    routers: [{ radvd: PREFIX, first: NARROW }],
  }),
  healthy("a resolver of IPv4 beside one of IPv6", {
    ...SLAAC,
    hasIpv4: true,
    resolvers: [RESOLVER_IPV4, RESOLVER],
    answering: [
      ["beyond", RESOLVER],
      ["beyond", RESOLVER_IPV4],
    ],
  }),
  healthy(
    "a resolver that is silent beside one that answers",
    {
      ...SLAAC,
      resolvers: ["2001:db8:ffff::99", RESOLVER],
    },
    { lacks: [] },
  ),
  healthy("a resolver on the link", {
    ...SLAAC,
    resolvers: ["2001:db8:1::1"],
    answering: [["router1", "2001:db8:1::1"]],
  }),
  healthy("a resolver at a link-local address", {
    ...SLAAC,
    neighbours: ["fe80::53/64"],
    resolvers: ["fe80::53%eth0"],
    answering: [["host", "fe80::53%eth0"]],
  }),
  healthy("a resolver on this machine", {
    ...SLAAC,
    resolvers: ["::1"],
    answering: [["client", "::1"]],
  }),
  healthy("a deprecated address beside a preferred one, which ends soon", {
    ...SLAAC,
    ip: ["addr add 2001:db8:1::6/64 dev eth0 valid_lft 60 preferred_lft 0"],
  }),
  healthy("a duplicate address beside a good one", {
    ...STATIC,
    detectsDuplicates: true,
    neighbours: ["2001:db8:1::66/64"],
    ip: [...(STATIC.ip ?? []), "addr add 2001:db8:1::66/64 dev eth0"],
    settled: [...(STATIC.settled ?? []), "eth0 duplicate 2001:db8:1::66/64"],
  }),
  healthy("an address of DHCPv6 that ends in an hour, and static routes", {
    ...PROVIDER,
    ip: [
      "addr add 2001:db8:1::5/128 dev eth0 valid_lft 3600 preferred_lft 1800",
      "route add default via fe80::1 dev eth0",
    ],
  }),
  healthy("an advertisement less than a second before", {
    ...SLAAC,
    later: [["client", "rdisc6 -1 eth0 >/dev/null"]],
  }),
  healthy("a router that advertises no more, beside an address and a route by hand", {
    ...SLAAC,
    ip: [
      "addr add 2001:db8:1::5/64 dev eth0",
      "route add default via fe80::1 dev eth0 metric 2048",
    ],
    later: [["router1", SILENT]],
  }),
  healthy(
    "a resolver that answers no echo request",
    { ...SLAAC, later: [["beyond", drop("input", "icmpv6 type echo-request")]] },
    { reaches: false },
  ),
  healthy("nothing but processes in /proc", { ...SLAAC, wrapper: BARE_PROC }, { needs: "root" }),
  healthy("root without raw sockets", { ...SLAAC, wrapper: WITHOUT_RAW }),
  healthy(
    "a gateway that cannot be asked, of which nothing is known",
    {
      ip: ["addr add 2001:db8:1::5/64 dev eth0", "route add default via fe80::dead dev eth0"],
      settled: ["eth0 2001:db8:1::5/64"],
      resolvers: ["::1"],
      answering: [["client", "::1"]],
      wrapper: WITHOUT_RAW,
    },
    { reaches: false, has: ["eth0", "fe80::dead", /not known/], lacks: [/answers|IPv6 works/] },
  ),
  healthy(
    "an ordinary user without raw sockets",
    {
      ...SLAAC,
      wrapper: ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"],
    },
    { needs: "root" },
  ),
];
