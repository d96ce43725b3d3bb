/** Pure parsers of the rows of the kernel's tables in rtnetlink; they skip messages that they do not understand. */
import { ipv6FromBytes } from "../addr/ipv6.ts";
import { prefixOf } from "../addr/prefix.ts";
import { firstTrue } from "../util/text.ts";

/** A message without its header. */
export interface KernelMessage {
  readonly type: number;
  /** The fixed part and the attributes behind it. */
  readonly body: Uint8Array;
}

/** The type of the message that ends a table (errors have lower types), and the bytes of every header; linux/netlink.h. */
export const MESSAGE = { done: 3, headerBytes: 16 } as const;

/** The types of the rows of each table, and the bytes of their fixed part; linux/rtnetlink.h. */
export const TABLES = {
  link: { type: 16, bytes: 16 },
  address: { type: 20, bytes: 8 },
  route: { type: 24, bytes: 12 },
} as const;

/** The messages in the bytes of one call, up to the first that is not whole. */
export const splitMessages = (bytes: Uint8Array): KernelMessage[] =>
  recordsOf(bytes, MESSAGE.headerBytes, word).map((record) => ({
    type: half(record, 4),
    body: record.subarray(MESSAGE.headerBytes),
  }));

/** Numbers of the kernel, little-endian on every machine that sixscope runs on; 0 beyond the end. */
const byte = (bytes: Uint8Array | undefined, at: number): number => bytes?.[at] ?? 0;
const half = (bytes: Uint8Array | undefined, at = 0): number =>
  byte(bytes, at) | (byte(bytes, at + 1) << 8);
const word = (bytes: Uint8Array | undefined, at = 0): number =>
  (half(bytes, at) | (half(bytes, at + 2) << 16)) >>> 0;

/** Records that begin with their length, at multiples of four bytes, up to the first that is not whole. */
function recordsOf(bytes: Uint8Array, headerBytes: number, lengthOf: typeof word): Uint8Array[] {
  const records: Uint8Array[] = [];
  for (let rest = bytes; rest.length >= headerBytes; ) {
    const length = lengthOf(rest);
    if (length < headerBytes || length > rest.length) break;
    records.push(rest.subarray(0, length));
    rest = rest.subarray((length + 3) & ~3);
  }
  return records;
}

/** Attributes by their types, without NLA_F_NESTED and NLA_F_NET_BYTEORDER. */
const attributesOf = (bytes: Uint8Array): ReadonlyMap<number, Uint8Array> =>
  new Map(recordsOf(bytes, 4, half).map((each) => [half(each, 2) & 0x3fff, each.subarray(4)]));

/** The attributes of a row; null if the message is not of this table. */
function attributesIn({ type, body }: KernelMessage, table: keyof typeof TABLES) {
  const { type: wanted, bytes } = TABLES[table];
  return type === wanted && body.length >= bytes ? attributesOf(body.subarray(bytes)) : null;
}

const addressIn = (bytes: Uint8Array | undefined) =>
  bytes?.length === 16 ? ipv6FromBytes(bytes) : null;

/** Flags of a link; linux/if.h. */
const LINK = { up: 0x1, loopback: 0x8, pointToPoint: 0x10, noArp: 0x80, lowerUp: 0x10000 } as const;

/** A network interface with the kernel's settings for it. */
export type Interface = NonNullable<ReturnType<typeof parseLink>>;

/** Reads a row of the table of links; null if it is not one. */
export function parseLink(message: KernelMessage) {
  const attributes = attributesIn(message, "link");
  const name = attributes?.get(3);
  if (!attributes || !name) return null;
  const has = (flag: number) => (word(message.body, 8) & flag) !== 0;
  return {
    index: word(message.body, 4),
    name: new TextDecoder().decode(name.subarray(0, Math.max(0, name.indexOf(0)))),
    isUp: has(LINK.up),
    /** False if nothing is at the other end of the cable. */
    hasCarrier: has(LINK.lowerUp),
    isLoopback: has(LINK.loopback),
    /** True if it has no neighbours to discover, as a tunnel. */
    isPointToPoint: has(LINK.pointToPoint | LINK.noArp),
    /** True for a port of a bridge or a member of a bond, which has no addresses of its own. */
    isPort: word(attributes.get(10)) > 0,
    /** Its link-layer address; empty if it has none. */
    hardware: attributes.get(1) ?? new Uint8Array(),
    settings: settingsIn(message.body.subarray(TABLES.link.bytes)),
  };
}

/** The index of each setting among the settings of a link; linux/ipv6.h, DEVCONF_*. */
const SETTINGS = {
  ...{ accept_ra: 3, accept_ra_pinfo: 18, accept_ra_defrtr: 17, accept_dad: 27 },
  ...{ autoconf: 5, disable_ipv6: 26, forwarding: 0, mtu: 2 },
} as const;
/** IFLA_AF_SPEC, AF_INET6 and IFLA_INET6_CONF, each within the one before; linux/if_link.h. */
const TO_SETTINGS = [26, 10, 2];

/** The settings of an interface, as /proc/sys/net/ipv6/conf names them; one that is not known is absent. */
export type Settings = Readonly<Partial<Record<keyof typeof SETTINGS, number>>>;

/** The settings for IPv6 among the attributes of a link. They are readable even if /proc/sys is hidden. */
function settingsIn(attributes: Uint8Array): Settings {
  const inner = (bytes: Uint8Array, type: number) =>
    attributesOf(bytes).get(type) ?? new Uint8Array();
  const settings = TO_SETTINGS.reduce(inner, attributes);
  const entries = Object.entries(SETTINGS)
    .filter(([, at]) => settings.length >= 4 * at + 4)
    .map(([name, at]) => [name, word(settings, 4 * at) | 0]);
  return Object.fromEntries(entries);
}

/** Flags of an address; linux/if_addr.h. */
const ADDRESS = {
  temporary: 0x01,
  dadFailed: 0x08,
  deprecated: 0x20,
  tentative: 0x40,
  permanent: 0x80,
  managesTemporary: 0x100,
} as const;
/** IFA_PROTO of an address from a router advertisement; kernels before 5.18 do not have it. */
const FROM_ADVERTISEMENT = 2;
const FOR_EVER = 0xffff_ffff;

/** An IPv6 address of this machine. */
export type OwnAddress = NonNullable<ReturnType<typeof parseAddress>>;

/** Reads a row of the table of addresses; null if it is not one. */
export function parseAddress(message: KernelMessage) {
  const attributes = attributesIn(message, "address");
  // IFA_LOCAL is this machine's end of a point-to-point link.
  const ip = addressIn(attributes?.get(2) ?? attributes?.get(1));
  const { body } = message;
  const [prefixLength, scope] = [byte(body, 1), byte(body, 3)];
  if (!attributes || !ip || prefixLength > 128) return null;
  const flags = attributes.has(8) ? word(attributes.get(8)) : byte(body, 2);
  const has = (flag: number) => (flags & flag) !== 0;
  const lifetimes = attributes.get(6);
  const isForEver = has(ADDRESS.permanent) || lifetimes === undefined;
  const isFromRouter = byte(attributes.get(11), 0) === FROM_ADVERTISEMENT;
  const seconds = (at: number) =>
    isForEver || word(lifetimes, at) === FOR_EVER ? null : word(lifetimes, at);
  return {
    index: word(body, 4),
    ip,
    prefixLength,
    isGlobal: scope === 0,
    state: firstTrue({
      duplicate: has(ADDRESS.dadFailed),
      tentative: has(ADDRESS.tentative),
      deprecated: has(ADDRESS.deprecated),
      preferred: true,
    }),
    origin: firstTrue({
      temporary: has(ADDRESS.temporary),
      slaac: isFromRouter || has(ADDRESS.managesTemporary),
      kernel: scope !== 0,
      static: isForEver || prefixLength !== 128,
      dhcp: true,
    }),
    /** Seconds after the table was read; null for ever. */
    preferredSeconds: seconds(0),
    validSeconds: seconds(4),
    /** The last time that its lifetimes were set, in hundredths of a second since the machine started. */
    updated: word(lifetimes, 12),
  };
}

/** Numbers of rtm_protocol and rtm_type, and RTM_F_CLONED of rtm_flags; linux/rtnetlink.h. */
const ORIGINS = { 2: "kernel", 3: "static", 4: "static", 9: "ra" } as const;
const KINDS = { 1: "unicast", 6: "blackhole", 7: "unreachable", 8: "prohibit" } as const;
const CLONED = 0x200;

const nameIn = <Name extends string>(
  names: Readonly<Record<number, Name>>,
  number: number,
): Name | "other" => names[number] ?? "other";

/** A route of this machine. */
export type Route = NonNullable<ReturnType<typeof parseRoute>>;

/** Reads a row of the routing table; null if it is not one, or one of the cache. */
export function parseRoute(message: KernelMessage) {
  const attributes = attributesIn(message, "route");
  const { body } = message;
  const length = byte(body, 1);
  const destination = addressIn(attributes?.get(1) ?? new Uint8Array(16));
  // The kernel clones a route for one destination.
  const isClone = (word(body, 8) & CLONED) !== 0 && length !== 128;
  if (!attributes || !destination || isClone || length > 128) return null;
  const hopOf = (index: number, of: typeof attributes) => ({
    index,
    /** Null if the destination is on the link. */
    via: addressIn(of.get(5)),
  });
  // RTA_MULTIPATH has a `struct rtnexthop` for each, with attributes behind it.
  const hops = recordsOf(attributes.get(9) ?? new Uint8Array(), 8, half).map((each) =>
    hopOf(word(each, 4), attributesOf(each.subarray(8))),
  );
  // In hundredths of a second; 0 for none.
  const expires = word(attributes.get(12), 8) | 0;
  return {
    prefix: prefixOf(destination, length),
    hops: [hopOf(word(attributes.get(4)), attributes), ...hops].filter(({ index }) => index > 0),
    metric: word(attributes.get(6)),
    table: attributes.has(15) ? word(attributes.get(15)) : byte(body, 4),
    origin: nameIn(ORIGINS, byte(body, 5)),
    kind: nameIn(KINDS, byte(body, 7)),
    /** Seconds after the table was read, 0 or less if it has expired; null for ever. */
    expiresSeconds: expires === 0 ? null : Math.trunc(expires / 100),
  };
}
