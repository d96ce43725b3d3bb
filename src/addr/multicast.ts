import { formatIpv6 } from "./format.ts";
import { type Ipv6Address, ipv6FromWords } from "./ipv6.ts";
import multicast from "./multicast.json" with { type: "json" };
import { formatPrefix, type Prefix, parsePrefix, prefixOf, prefixTable } from "./prefix.ts";

/** The names of the scopes by number, RFC 7346 section 2; all others are unassigned. */
const SCOPES: Readonly<Record<string, string>> = multicast.scopes;

/** The well-known groups, RFC 0 if none defines one; a row with an `x` in its block means all 16 scopes. */
export const MULTICAST_GROUPS = prefixTable(
  (multicast.groups as [block: string, name: string, rfc: number][]).flatMap(
    ([block, name, rfc]) => {
      const scopes = block.includes("x") ? [..."0123456789abcdef"] : [""];
      return scopes.map((scope) => ({ prefix: parsePrefix(block.replace("x", scope)), name, rfc }));
    },
  ),
);

/** The name of a multicast address's scope. */
export function multicastScope({ word0 }: Ipv6Address): string {
  return SCOPES[(word0 >>> 16) & 0xf] ?? "Unassigned";
}

/** The properties of a multicast address, of ff00::/8, by its bits (RFC 4291 section 2.7); keys that do not apply are absent. */
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
