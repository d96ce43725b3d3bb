/** What a trial of `sixscope here` is, and the parts that networks of several trials share. */
import type { NetworkDescription } from "./description.ts";

/** A network, and the right verdict. */
export interface Trial {
  readonly name: string;
  readonly network: NetworkDescription;
  readonly code: string;
  /** What the verdict's text must and must not have. */
  readonly has?: readonly (string | RegExp)[];
  readonly lacks?: readonly (string | RegExp)[];
  /** Whether an echo request reaches the Internet; null if that may change meanwhile. */
  readonly reaches: boolean | null;
  /** What ends first; `ip` knows in which second. */
  readonly ends?: "address" | "route";
  /** Parts that the document has. */
  readonly document?: object;
  /** True for the 29 networks of the first trial. */
  readonly firstTrial?: true;
  /** Why it cannot be built here; null if it can. */
  readonly needs?: "root" | "tun";
}

/** The address that the client makes of the prefix of the first router, which says `PREFIX`. */
export const OWN = "2001:db8:1::ff:fe00:5";
/** See `OWN`. */
export const PREFIX = "prefix 2001:db8:1::/64 {};";
/** The line of the client's state for the route of each of two routers. */
export const BY_ROUTER_1 = "default via fe80::1 dev eth0";
/** See `BY_ROUTER_1`. */
export const BY_ROUTER_2 = "default via fe80::2 dev eth0";
/** A unique local prefix that a router says, and the address that the client makes of it. */
export const ULA = "prefix fd00:1::/64 {};";
/** See `ULA`. */
export const ULA_OWN = "fd00:1::ff:fe00:5";

/** A wrapper that leaves nothing but processes in /proc, as the unit does. */
export const BARE_PROC = [
  ...["sh", "-ec", 'mount -t proc -o subset=pid proc /proc; [ ! -e /proc/sys ]; exec "$@"', "sh"],
];

/** An address and a route of the one router's advertisements. */
export const SLAAC: NetworkDescription = {
  routers: [{ radvd: PREFIX }],
  settled: [`eth0 ${OWN}/64`, BY_ROUTER_1],
};

/** An address and a route by hand, with a router that is silent. */
export const STATIC: NetworkDescription = {
  ip: ["addr add 2001:db8:1::5/64 dev eth0", "route add default via fe80::1 dev eth0 metric 100"],
  settled: ["eth0 2001:db8:1::5/64", BY_ROUTER_1],
};

/** Two routers that agree. */
export const TWO: NetworkDescription = {
  routers: [{ radvd: PREFIX }, { radvd: PREFIX, addresses: ["fe80::2/64", "2001:db8:1::2/64"] }],
  settled: [`eth0 ${OWN}/64`, BY_ROUTER_1, BY_ROUTER_2],
};

/** A router on each of two interfaces. */
export const TWO_LINKS: NetworkDescription = {
  interfaces: ["eth0", "eth1"],
  routers: [{ radvd: PREFIX }, { radvd: "prefix 2001:db8:2::/64 {};", link: "eth1" }],
  settled: [
    ...[`eth0 ${OWN}/64`, "eth1 2001:db8:2::ff:fe00:6/64"],
    ...[BY_ROUTER_1, "default via fe80::2 dev eth1"],
  ],
};

/** Beside a static way out, an interface that has an address and no default route. */
export const BESIDE: NetworkDescription = {
  interfaces: ["eth0", "eth1"],
  routers: [{}, { link: "eth1" }],
  ip: [...(STATIC.ip ?? []), "addr add 2001:db8:2::6/64 dev eth1"],
  settled: [...(STATIC.settled ?? []), "eth1 2001:db8:2::6/64"],
};

/** One address of a provider, whose gateway is outside any prefix. */
export const PROVIDER: NetworkDescription = {
  ip: ["addr add 2001:db8:1::5/128 dev eth0", "route add default via fe80::1 dev eth0"],
  settled: ["eth0 2001:db8:1::5/128", BY_ROUTER_1],
};

/** An address of DHCPv6, and a route of advertisements without an autonomous prefix. */
export const DHCPV6: NetworkDescription = {
  routers: [{ dnsmasq: ["--enable-ra", "--dhcp-range=2001:db8:1::100,2001:db8:1::1ff,64,1h"] }],
  ip: ["addr add 2001:db8:1::100/128 dev eth0 valid_lft 3600 preferred_lft 1800"],
  settled: ["eth0 2001:db8:1::100/128", BY_ROUTER_1],
};

/** The shell command that sets a number of net.ipv6.conf. */
export const setting = (name: string, value: number) =>
  `echo ${value} > /proc/sys/net/ipv6/conf/${name}`;

/** The command of a table of nft with one rule. */
export const drop = (hook: string, rule: string) => {
  const family = /gress/.test(hook) ? "netdev" : "ip6";
  const device = family === "netdev" ? "device eth0" : "";
  return `nft 'table ${family} lab { chain ${hook} { type filter hook ${hook} ${device} priority 0; ${rule} drop; }; }'`;
};

/** The Internet's link is narrower than that of the client. */
export const NARROW = "ip link set out mtu 1280";
/** SLAAC on an interface of another name. */
export const renamed = (name: string): NetworkDescription => ({
  ...SLAAC,
  interfaces: [name],
  settled: [`${name} ${OWN}/64`, `default via fe80::1 dev ${name}`],
});

/** A trial of a network in which something is wrong: its code, and what the text must have. */
export const broken = (
  name: string,
  code: string,
  has: readonly (string | RegExp)[],
  network: NetworkDescription,
  others: Partial<Trial> = {},
): Trial => ({ name, network, code, has, reaches: false, ...others });

/** Marks a trial as one of the first. */
export const FIRST = { firstTrial: true } as const;
