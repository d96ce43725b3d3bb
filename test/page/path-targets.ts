/** Paths of the stage that lose, change or narrow. */
import type { Destination, Path, Router } from "../lab/internet-description.ts";

/** Numbers of packets, as many as a whole suite sends, chosen by their position in each `period`. */
const ofEach = (period: number, isMeant: (at: number) => boolean) =>
  Array.from({ length: 20_000 }, (_, at) => at + 1).filter((at) => isMeant(at % period));

const LIMITED: Partial<Router> = { rateLimit: { intervalMs: 1000, burst: 3 } };

/** The special properties of the routers of a path, by hop. */
const SPECIAL = {
  /** Loses a quarter behind the third router; the second limits its answers. */
  losing: { 2: LIMITED, 3: { forwardLoss: ofEach(4, (at) => at === 0) } },
  /** Loses nothing, but the second router limits its answers. */
  limited: { 2: LIMITED },
  /** The second router answers from two addresses in turn. */
  changing: { 2: { rules: [{ probes: ofEach(8, (at) => at > 4), change: "source" }] } },
  /** The fifth link carries 1420 bytes; the second router claims too little. */
  tunnel: { 2: { mtu: 1480, claimedMtu: 1000 }, 4: { mtu: 1420 } },
  /** A silent router drops what is larger than 1400 bytes. */
  blackhole: { 3: { mtu: 1400, silent: true } },
  /** A link carries less than every link has to. */
  below1280: { 3: { mtu: 1000 } },
} as const satisfies Readonly<Record<string, Readonly<Record<number, Partial<Router>>>>>;

const paths = Object.entries<Readonly<Record<number, Partial<Router>>>>(SPECIAL).map(
  ([name, special], at) => ({ name, special, block: 20 + at }),
);

const routersOf = ({ block, special }: (typeof paths)[number]): Router[] =>
  [0.4, 2.1, 8.7, 9.2, 11.8].map((rttMs, at) => ({
    address: `2001:db8:100:${block}${at + 1}::1`,
    rttMs,
    jitterMs: rttMs / 3,
    ...special[at + 1],
  }));

/** Routers by their names, which are the same on each path that has them. */
const way = (block: number, names: string): Router[] =>
  [...names].map((name, at) => ({ address: `2001:db8:100:${block}::${name}`, rttMs: 2 * at + 1 }));

const END = { rttMs: 12, jitterMs: 2 };

/** Four equal paths: the first hop has two next hops, and the second of these has three; one path loses everything. */
const equalPaths: readonly Path[] = [
  { routers: way(30, "abd17"), end: END },
  { routers: way(30, "ace17"), end: END },
  { routers: way(30, "acf17"), end: END },
  { routers: way(30, "ac9"), end: "blackhole" },
];

/** The targets by their names. */
export const PATH_TARGETS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(paths.map(({ name, block }) => [name, `2001:db8:${block}::1`])),
  equal: "2001:db8:30::1",
  /** Sixteen equal paths. */
  wide: "2001:db8:31::1",
};

/** The ways to them. */
export const pathDestinations: readonly Destination[] = [
  ...paths.map((path) => ({
    to: `2001:db8:${path.block}::/48`,
    routers: routersOf(path),
    end: END,
  })),
  { to: "2001:db8:30::/48", equalPaths },
  {
    to: "2001:db8:31::/48",
    equalPaths: Array.from({ length: 16 }, (_, at) => ({
      routers: way(31, `a${at.toString(16)}b`),
      end: END,
    })),
  },
];

/** The names of their routers. */
export const pathNames = paths.flatMap((path) =>
  routersOf(path).map(({ address }, at) => [address, `core${at + 1}.example.test`] as const),
);
