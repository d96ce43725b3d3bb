import { formatIpv6 } from "./format.ts";
import { type Ipv6Address, ipv6FromWords } from "./ipv6.ts";
import { formatPrefix, type Prefix, PrefixTable, parsePrefix, prefixOf } from "./prefix.ts";

/** The names of the scopes by number, RFC 7346 section 2; all others are unassigned. */
const SCOPES: Readonly<Record<number, string>> = {
  0: "Reserved",
  1: "Interface-Local",
  2: "Link-Local",
  3: "Realm-Local",
  4: "Admin-Local",
  5: "Site-Local",
  8: "Organization-Local",
  14: "Global",
  15: "Reserved",
};

/** Block, name, RFC (0 if no RFC defines it); an `x` in the block means every scope. */
const GROUPS: readonly (readonly [string, string, number])[] = [
  ["ff01::1/128", "All Nodes", 4291],
  ["ff01::2/128", "All Routers", 4291],
  ["ff02::1/128", "All Nodes", 4291],
  ["ff02::2/128", "All Routers", 4291],
  ["ff02::5/128", "OSPF Routers", 5340],
  ["ff02::6/128", "OSPF Designated Routers", 5340],
  ["ff02::9/128", "RIP Routers", 2080],
  ["ff02::a/128", "EIGRP Routers", 7868],
  ["ff02::d/128", "All PIM Routers", 7761],
  ["ff02::12/128", "VRRP", 9568],
  ["ff02::16/128", "All MLDv2-capable Routers", 3810],
  ["ff02::1a/128", "All RPL Nodes", 6550],
  ["ff02::6a/128", "All Snoopers", 4286],
  ["ff02::1:2/128", "All DHCP Agents", 8415],
  ["ff02::1:3/128", "Link-local Multicast Name Resolution", 4795],
  ["ff02::1:6/128", "Babel", 8966],
  ["ff02::1:ff00:0/104", "Solicited-Node", 4291],
  ["ff02::2:ff00:0/104", "Node Information Queries", 4620],
  ["ff05::2/128", "All Routers", 4291],
  ["ff05::1:3/128", "All DHCP Servers", 8415],
  ["ff0x::/128", "Reserved", 4291],
  ["ff0x::c/128", "SSDP", 0],
  ["ff0x::fb/128", "mDNSv6", 6762],
  ["ff0x::fc/128", "All MPL Forwarders", 7731],
  ["ff0x::fd/128", "All CoAP Nodes", 7252],
  ["ff0x::101/128", "Network Time Protocol (NTP)", 5905],
  ["ff0x::db8:0:0/96", "Documentation", 6676],
];

/** The well-known groups, each row with an `x` expanded to its 16 scopes. */
export const MULTICAST_GROUPS = new PrefixTable(() =>
  GROUPS.flatMap(([block, name, rfc]) => {
    const scopes = block.includes("x") ? [..."0123456789abcdef"] : [""];
    return scopes.map((scope) => ({ prefix: parsePrefix(block.replace("x", scope)), name, rfc }));
  }),
);

/** The name of a multicast address's scope. */
export function multicastScope({ word0 }: Ipv6Address): string {
  return SCOPES[(word0 >>> 16) & 0xf] ?? "Unassigned";
}

/** What a multicast address, one of ff00::/8, says about itself (RFC 4291 section 2.7); keys that do not apply are absent. */
export function multicastDetails(address: Ipv6Address) {
  const { word0 } = address;
  const flags = {
    transient: (word0 & 0x0010_0000) !== 0,
    prefixBased: (word0 & 0x0020_0000) !== 0,
    rendezvousPoint: (word0 & 0x0040_0000) !== 0,
  };
  const group = MULTICAST_GROUPS.find(address);
  // P has no meaning without T, and R none without both; RFC 3306 section 4, RFC 3956 section 2.
  const network = flags.prefixBased && flags.transient ? networkPrefix(address) : null;
  const rendezvousPoint = network && flags.rendezvousPoint ? rendezvousOf(address, network) : null;
  return {
    flags,
    ...(group && { group: { name: group.name, ...(group.rfc && { rfc: `RFC ${group.rfc}` }) } }),
    ...((word0 & 0xfff0_ffff) >>> 0 === 0xff30_0000 && { sourceSpecific: true as const }),
    ...(network && { networkPrefix: formatPrefix(network) }),
    ...(rendezvousPoint && { rendezvousPointAddress: formatIpv6(rendezvousPoint) }),
  };
}

/** The group that a node joins for a unicast or anycast address, `ff02::1:ff00:0/104` and its last 24 bits; RFC 4291 section 2.7.1. */
export function solicitedNodeGroup({ word3 }: Ipv6Address): Ipv6Address {
  return ipv6FromWords(0xff02_0000, 0, 1, 0xff00_0000 | (word3 & 0x00ff_ffff));
}

/** Bits 24 to 31 are the length of the prefix in bits 32 to 95; null unless that is 1 to 64. */
function networkPrefix({ word0, word1, word2 }: Ipv6Address): Prefix | null {
  const length = word0 & 0xff;
  if (length === 0 || length > 64) return null;
  return prefixOf(ipv6FromWords(word1, word2, 0, 0), length);
}

/** The network prefix with the four bits before its length as the interface ID, which must not be 0. */
function rendezvousOf({ word0 }: Ipv6Address, { network }: Prefix): Ipv6Address | null {
  const interfaceId = (word0 >>> 8) & 0xf;
  if (interfaceId === 0 || network.version === 4) return null;
  return { ...network, word3: interfaceId };
}
