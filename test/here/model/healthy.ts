/** Machines on which IPv6 works, as different as they are. */
import {
  advertised,
  type Simulated,
  type SimulatedResolver,
  type SimulatedRouter,
} from "./machine.ts";

export type Random = () => number;

export const pick = <Row>(rows: readonly Row[], random: Random) =>
  rows[Math.floor(random() * rows.length)] as Row;

const LIFETIMES = [
  {},
  { preferredSeconds: null, validSeconds: null },
  { preferredSeconds: 30, validSeconds: 60 },
];

/** The routers of a link, which agree, but for one that is no default router. */
function routersOf(addressing: Simulated["addressing"], hasUla: boolean, random: Random) {
  const isStatic = addressing === "static";
  const first: SimulatedRouter = {
    ip: "fe80::1",
    ...{ sends: !isStatic || random() < 0.5, isThere: true, managed: addressing === "dhcp" },
    lifetimeSeconds: pick([1800, 9000, 30], random),
    prefixes: [
      advertised("2001:db8:1::/64", {
        autonomous: addressing !== "dhcp",
        ...pick(LIFETIMES, random),
      }),
      ...(hasUla && random() < 0.5 ? [advertised("fd00:1::/64")] : []),
    ],
    mtu: 1500,
  };
  const prefixes = [...first.prefixes.slice(0, pick([0, 1], random)), advertised("fd00:2::/64")];
  // Unique local prefixes may differ.
  const second = { ...first, ip: "fe80::2", ...(hasUla && { prefixes }) };
  const noDefault = { ip: "fe80::3", lifetimeSeconds: 0, managed: !first.managed, mtu: 1280 };
  return [
    first,
    ...(random() < 0.3 ? [second] : []),
    ...(random() < 0.2 ? [{ ...first, ...noDefault, prefixes: [] }] : []),
  ];
}

/** How the kernel is told to treat advertisements. */
function settingsOf(addressing: Simulated["addressing"], random: Random): Simulated["settings"] {
  const forwarding = random() < 0.3 ? 1 : 0;
  const accept_dad = pick([1, 2], random);
  // A machine that needs none may ignore them.
  if (addressing === "static" && random() < 0.5) return { accept_ra: 0, forwarding, accept_dad };
  const autoconf = addressing === "static" ? 0 : 1;
  return { accept_ra: forwarding === 1 ? 2 : 1, forwarding, autoconf, accept_dad };
}

/** A machine on which IPv6 works. */
export function healthyMachine(random: Random): Simulated {
  const addressing = pick(["slaac", "slaac", "static", "dhcp"] as const, random);
  const isStatic = addressing === "static";
  const hasUla = random() < 0.3;
  const isPointToPoint = isStatic && random() < 0.3;
  const routers = isPointToPoint ? [] : routersOf(addressing, hasUla, random);
  const settings = settingsOf(addressing, random);
  const isRenewedByProgram = addressing === "slaac" && random() < 0.2;
  const inFirst = { text: "2001:db8:ffff::53", place: "beyond", health: "answers" } as const;
  const onLink: SimulatedResolver[] = [
    ...(addressing === "dhcp" || isPointToPoint ? [] : ["2001:db8:1::53"]),
    ...(hasUla && !isPointToPoint ? ["fd00:1::53"] : []),
  ].map((text) => ({ text, place: "link", health: "answers" }));
  const others: SimulatedResolver[] = [
    { text: "2001:db8:ffff::54", place: "beyond", health: "dead" },
    { text: "192.0.2.53", place: "ipv4", health: pick(["answers", "dead"] as const, random) },
    { text: "::1", place: "here", health: "answers" },
    { text: "fd00:99::53", place: "unroutable", health: "dead" },
    ...onLink,
  ];
  const other = random() < 0.5 ? [pick(others, random)] : [];
  const alone = onLink.length > 0 ? onLink : [inFirst];
  const staticRoute = {
    prefix: pick(["::/0", "::/0", "2000::/3"], random),
    via: isPointToPoint ? null : "fe80::1",
    table: pick([254, 254, 100], random),
  };
  return {
    name: pick(["eth0", "eth0.7", "ét@0", "enx0123456789ab"], random),
    ...{ hasIpv6: true, hasRaw: true, link: "up", switchedOff: null, isPointToPoint, addressing },
    ...{ hasGlobal: true, hasUla, hasDeprecated: random() < 0.2, hasTemporary: random() < 0.3 },
    states: [
      addressing === "slaac" ? "preferred" : pick(["preferred", "tentative"], random),
      "preferred",
    ],
    ...{ isLinkLocalDuplicate: false, isSlaacDuplicate: false, makesNoAddress: false },
    routeSeconds: null,
    validSeconds: addressing === "dhcp" ? 7200 : pick([null, null, 86_400], random),
    settings: isRenewedByProgram ? { ...settings, accept_ra: 0 } : settings,
    isRenewedByProgram,
    // Short lifetimes have been renewed in time, and a machine that has just started knows nothing yet.
    learnedSecondsAgo: isStatic ? null : pick([null, 0.2, 1, 5, 20], random),
    answersAfterSeconds: pick([0.01, 0.3, 1.2, 3], random),
    routers,
    staticRoutes: isStatic ? [staticRoute] : [],
    ...{ deadEnd: null, losesRoutes: false, hasExpired: false, picksDead: false, drops: [] },
    source: "right",
    resolvers: pick([[inFirst, ...other], [...other, inFirst], alone], random),
    ...{ beyond: "passes", second: null },
  };
}
