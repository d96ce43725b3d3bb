/** What a small network around one client is, and the commands of ip(8) that make it so. */
import type { Advertisement } from "./advertiser.ts";

/** A router of the link: the k-th is `router<k>`, with `eth0` on the link and `out` to the Internet. */
export interface Router {
  /** The interface of the client whose link it is on; default the first. */
  readonly link?: string;
  /** Its addresses on the link; default fe80::<k>/64 and 2001:db8:<k>::1/64. */
  readonly addresses?: readonly string[];
  /** The prefixes that the Internet reaches through it; default 2001:db8:<k>::/64. */
  readonly serves?: readonly string[];
  /** What it advertises: lines of an interface in radvd.conf(5), options of dnsmasq(8), or what neither can say. */
  readonly radvd?: string;
  readonly dnsmasq?: readonly string[];
  readonly says?: Advertisement;
  /** Shell commands in it before it advertises. */
  readonly first?: string;
}

/** What makes a network; each part has a healthy default. */
export interface NetworkDescription {
  /** Default one that is silent. */
  readonly routers?: readonly Router[];
  /** Addresses of other hosts on the first link. */
  readonly neighbours?: readonly string[];
  /** The names of the client's interfaces; default `eth0`. */
  readonly interfaces?: readonly string[];
  /** A point-to-point link of the client and the first router, which has no addresses on it. */
  readonly tunnel?: string;
  /** True if the client detects duplicate addresses, which takes one or two seconds for each. */
  readonly detectsDuplicates?: boolean;
  /** Shell commands in the client before its interfaces are up. */
  readonly first?: string;
  /** Commands of ip(8) in the client when they are. */
  readonly ip?: readonly string[];
  /** Beginnings of lines of the client's state for which the network waits; see `readState`. */
  readonly settled?: readonly string[];
  /** Shell commands in nodes after that; `SILENT` for a router that advertises no more. */
  readonly later?: readonly (readonly [node: string, script: string])[];
  /** Those for which it waits then. */
  readonly settledLater?: readonly string[];
  /** The name servers in the client's /etc/resolv.conf; default `RESOLVER`. */
  readonly resolvers?: readonly string[];
  /** Where a resolver answers; default `RESOLVER` beyond the routers. */
  readonly answering?: readonly (readonly [node: string, address: string])[];
  /** How long a resolver takes for an answer, in milliseconds; default none. */
  readonly answersAfterMs?: number;
  /** True if the link and the Internet have IPv4 too. */
  readonly hasIpv4?: boolean;
  /** A command before the one that runs in the client. */
  readonly wrapper?: readonly string[];
}

/** The resolver of the Internet, and its address of IPv4. */
export const RESOLVER = "2001:db8:ffff::53";
/** See `hasIpv4`. */
export const RESOLVER_IPV4 = "192.0.2.53";
/** A script that makes a router advertise no more, without a word of farewell. */
export const SILENT = "silent";

const DEFAULT_ROUTERS: readonly Router[] = [{}];

/** The routers of a network, each with the name of its node and its number. */
export function routersOf({ routers = DEFAULT_ROUTERS }: NetworkDescription) {
  return routers.map((router, at) => ({ ...router, number: at + 1, node: `router${at + 1}` }));
}

/** The names of the client's interfaces. */
export const interfacesOf = ({ interfaces = ["eth0"] }: NetworkDescription) => interfaces;

const hasHost = ({ neighbours = [] }: NetworkDescription) => neighbours.length > 0;

/** The nodes of a network, each of which is a namespace. */
export const nodesOf = (description: NetworkDescription): string[] => [
  ...["client", "switch", "beyond"],
  ...routersOf(description).map(({ node }) => node),
  ...(hasHost(description) ? ["host"] : []),
];

/**
 * The commands that make the namespaces of a network and the links between them.
 *
 * @param nameOf the name of the namespace of a node
 */
export function linkCommands(
  description: NetworkDescription,
  nameOf: (node: string) => string,
): string[] {
  const link = (node: string, name: string, peerNode: string, peer: string) =>
    `link add ${name} netns ${nameOf(node)} type veth peer name ${peer} netns ${nameOf(peerNode)}`;
  return [
    ...nodesOf(description).map((node) => `netns add ${nameOf(node)}`),
    ...interfacesOf(description).map((name, at) => link("client", name, "switch", `client${at}`)),
    ...routersOf(description).flatMap(({ node }) => [
      link(node, "eth0", "switch", node),
      link(node, "out", "beyond", node),
    ]),
    ...(hasHost(description) ? [link("host", "eth0", "switch", "host")] : []),
  ];
}

/** The address of the Internet on the link to each router. */
const BEYOND = "fe80::ff";

/** The commands for the inside of each node. */
export function nodeCommands(
  description: NetworkDescription,
): readonly (readonly [node: string, commands: readonly string[]])[] {
  const { neighbours = [], tunnel, hasIpv4 = false } = description;
  const ipv4 = (...commands: string[]) => (hasIpv4 ? commands : []);
  const interfaces = interfacesOf(description);
  const routers = routersOf(description);
  const servedOf = ({ serves, number }: (typeof routers)[number]) =>
    serves ?? [`2001:db8:${number}::/64`];
  const served = new Map(
    routers
      .toReversed()
      .flatMap((router) => servedOf(router).map((prefix) => [prefix, router] as const)),
  );
  return [
    [
      "client",
      // The hardware address of the first interface ends in 05.
      interfaces.map((name, at) => `link set ${name} address 02:00:00:00:00:0${5 + at}`),
    ],
    [
      "switch",
      [
        ...interfaces.map((_, at) => `link add bridge${at} up type bridge mcast_snooping 0`),
        ...interfaces.map((_, at) => `link set client${at} master bridge${at} up`),
        ...routers.map(({ node, link = interfaces[0] ?? "" }) => {
          return `link set ${node} master bridge${interfaces.indexOf(link)} up`;
        }),
        ...(hasHost(description) ? ["link set host master bridge0 up"] : []),
      ],
    ],
    [
      "beyond",
      [
        "link set lo up",
        `addr add ${RESOLVER}/128 dev lo`,
        // What is sent to others is counted as packets without a route.
        "route add blackhole 2001:db8:ffff::/64",
        ...routers.flatMap(({ node }) => [
          `link set ${node} addrgenmode none up`,
          `addr add ${BEYOND}/64 dev ${node} nodad`,
        ]),
        ...Array.from(served, ([prefix, { node, number }]) => {
          return `route add ${prefix} via fe80::${number} dev ${node}`;
        }),
        ...ipv4(
          `addr add ${RESOLVER_IPV4}/32 dev lo`,
          "addr add 192.0.2.1/31 dev router1",
          "route add 198.51.100.0/24 via 192.0.2.0",
        ),
      ],
    ],
    ...routers.map(({ node, number, addresses }) => {
      const own = addresses ?? [`fe80::${number}/64`, `2001:db8:${number}::1/64`];
      return [
        node,
        [
          "link set lo up",
          "link set eth0 addrgenmode none up",
          "link set out addrgenmode none up",
          ...own.map((address) => `addr add ${address} dev eth0 nodad`),
          `addr add fe80::${number}/64 dev out nodad`,
          `route add default via ${BEYOND} dev out`,
          ...(number > 1
            ? []
            : ipv4(
                "addr add 198.51.100.1/24 dev eth0",
                "addr add 192.0.2.0/31 dev out",
                `route add ${RESOLVER_IPV4}/32 via 192.0.2.1`,
              )),
          ...(tunnel ? [`link set ${tunnel} up`] : []),
        ],
      ] as const;
    }),
    ...(hasHost(description)
      ? [
          [
            "host",
            [
              "link set eth0 addrgenmode none up",
              ...neighbours.map((address) => `addr add ${address} dev eth0 nodad`),
            ],
          ] as const,
        ]
      : []),
  ];
}

/** The shell script that brings the client up; its input are commands of `ip -6 -batch`. */
export const clientScript = (description: NetworkDescription): string =>
  [
    description.first ?? "true",
    ...["lo", ...interfacesOf(description)].map((name) => `ip link set ${name} up`),
    ...(description.hasIpv4
      ? ["ip addr add 198.51.100.5/24 dev eth0", "ip route add default via 198.51.100.1"]
      : []),
    "ip -6 -batch -",
  ].join("\n");
