/** Messages of neighbor discovery in hex, and what an advertisement says in short lines. */
import { formatIpv6 } from "../../src/addr/format.ts";
import { formatPrefix } from "../../src/addr/prefix.ts";
import type { Advertisement, Arrived } from "../../src/here/discovery.ts";
import { parseIpv6 } from "../addr/parse.ts";
import { hexAddress } from "../icmp/hex.ts";

const ROUTER = parseIpv6("fe80::1");

export const arrived = (message: Uint8Array, changes: Partial<Arrived> = {}): Arrived => ({
  source: ROUTER,
  hopLimit: 255,
  message,
  ...changes,
});

/** What an advertisement says, in lines that are short enough for a table. */
export function saidIn(advertisement: Advertisement | null): Record<string, unknown> | null {
  if (advertisement === null) return null;
  const { prefixes, resolvers, nat64Prefixes, managed, other, ...rest } = advertisement;
  const flags = { managed, other };
  return {
    ...rest,
    flags: Object.entries(flags).flatMap(([name, isSet]) => (isSet ? name : [])),
    prefixes: prefixes.map(({ prefix, onLink, autonomous, ...lifetimes }) =>
      [
        formatPrefix(prefix),
        ...(onLink ? ["on-link"] : []),
        ...(autonomous ? ["autonomous"] : []),
        lifetimes.preferredSeconds,
        lifetimes.validSeconds,
      ].join(" "),
    ),
    resolvers: resolvers.map(({ ip, lifetimeSeconds }) => `${formatIpv6(ip)} ${lifetimeSeconds}`),
    nat64Prefixes: nat64Prefixes.map(
      ({ prefix, lifetimeSeconds }) => `${formatPrefix(prefix)} ${lifetimeSeconds}`,
    ),
  };
}

/** An advertisement of 16 bytes: hop limit 64, no flags, a lifetime of 1,800 s. */
export const HEAD = "86 00 abcd 40 00 0708 00000000 00000000";
export const LINK_LAYER = "01 01 020000000001";
export const PREFIX = `03 04 40 c0 00000e10 00000708 00000000 ${hexAddress("2001:db8:1::")}`;
export const MTU = "05 01 0000 000005dc";
export const RESOLVER = `19 03 0000 00000708 ${hexAddress("2001:db8::53")}`;
export const NAT64 = "26 02 0708 0064ff9b 00000000 00000000";
export const CAPTIVE_PORTAL = "25 02 7777 772e 6578 616d 706c 652e 0000";
export const ROUTE = `18 03 40 08 00000708 ${hexAddress("2001:db8:5::")}`;

/** An advertisement of a neighbor, RFC 4861 section 4.4: solicited, for 2001:db8:1::1. */
export const NEIGHBOUR = `88 00 abcd 60000000 ${hexAddress("2001:db8:1::1")}`;
export const TARGET_LINK_LAYER = "02 01 020000000001";
