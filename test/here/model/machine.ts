/** A simulated machine: what its kernel has, and what a look at it sees, follow from what is true of it and its link. */
import { formatIpv6 } from "../../../src/addr/format.ts";
import { equalIpv6 } from "../../../src/addr/ipv6.ts";
import { parsePrefix, prefixContains, prefixOf } from "../../../src/addr/prefix.ts";
import { type DnsServer, tryParseDnsServer } from "../../../src/dns/server.ts";
import type { AdvertisedPrefix, Advertisement } from "../../../src/here/discovery.ts";
import type { Interface, OwnAddress, Route, Settings } from "../../../src/here/kernel.ts";
import type { Drop } from "../../../src/here/listener.ts";
import type { Machine, Way } from "../../../src/here/machine.ts";
import type { ResolverTry } from "../../../src/tools/here/tries.ts";
import type { Facts } from "../../../src/tools/here/verdict.ts";
import { parseIpv6 } from "../../addr/parse.ts";

/** Seconds that a look takes. */
const LOOK_SECONDS = 3.6;
const [LOOPBACK, LINK, SECOND] = [1, 2, 3];
const MTU = 1500;

/** The addresses of the machine. */
export const OWN = {
  linkLocal: "fe80::5",
  global: "2001:db8:1::5",
  deprecated: "2001:db8:1::6",
  dhcp: "2001:db8:1::7",
  ula: "fd00:1::5",
} as const;

/** A router of the link. */
export interface SimulatedRouter {
  readonly ip: string;
  /** Whether it advertises itself when it is asked, and whether it answers its neighbors and forwards. */
  sends: boolean;
  isThere: boolean;
  lifetimeSeconds: number;
  prefixes: AdvertisedPrefix[];
  managed: boolean;
  mtu: number | null;
}

/** A resolver of the machine. */
export interface SimulatedResolver {
  readonly text: string;
  /** `unroutable`: a route of its own stops packets to it. */
  readonly place: "beyond" | "link" | "here" | "ipv4" | "unroutable";
  readonly health: "answers" | "echoes" | "port-closed" | "dead";
}

/** A default route that was set by hand. */
export interface StaticRoute {
  readonly prefix: string;
  /** Null on a link that needs no gateway. */
  readonly via: string | null;
  readonly table: number;
}

/** What is true of a machine and its link. */
export interface Simulated {
  readonly name: string;
  hasIpv6: boolean;
  hasRaw: boolean;
  link: "up" | "down" | "no-carrier" | "none" | "vanishes" | "loses-carrier";
  /** By whom IPv6 is switched off; `mtu`: by an MTU below 1280 bytes, with which it is not there at all. */
  switchedOff: "interface" | "all" | "itself" | "mtu" | null;
  /** A link without neighbors, on which the way out needs no gateway. */
  readonly isPointToPoint: boolean;
  readonly addressing: "slaac" | "static" | "dhcp";
  hasGlobal: boolean;
  hasUla: boolean;
  hasDeprecated: boolean;
  hasTemporary: boolean;
  isLinkLocalDuplicate: boolean;
  /** The state of the global addresses before and after the look. */
  states: readonly [OwnAddress["state"], OwnAddress["state"]];
  /** Another machine has the address that this one makes of a prefix. */
  isSlaacDuplicate: boolean;
  /** The kernel accepts advertisements, and makes no address of their prefixes. */
  makesNoAddress: boolean;
  /** How long addresses that were set by hand or by DHCPv6 stay; null for ever. */
  validSeconds: number | null;
  /** How long default routes stay that were set by hand; null for ever. */
  routeSeconds: number | null;
  settings: Settings;
  /** A program such as systemd-networkd takes advertisements in the place of the kernel, which ignores them. */
  isRenewedByProgram: boolean;
  /** How long before the look the kernel took the last advertisement; null if it never did. */
  learnedSecondsAgo: number | null;
  /** How long after its begin the routers answer. */
  answersAfterSeconds: number;
  routers: SimulatedRouter[];
  staticRoutes: StaticRoute[];
  /** The kind of a default route that stops all packets. */
  deadEnd: Route["kind"] | null;
  /** True if the default routes vanish during the look, or have expired before it. */
  losesRoutes: boolean;
  hasExpired: boolean;
  /** The kernel sends to a gateway that is not there, though another is. */
  picksDead: boolean;
  drops: Drop[];
  source: "right" | "ula" | "deprecated";
  resolvers: SimulatedResolver[];
  beyond: "passes" | "silent" | "narrow";
  /** Another interface with a default route of a higher metric. */
  second: {
    readonly ip: string;
    readonly isThere: boolean;
    readonly drops: readonly Drop[];
  } | null;
}

type When = "before" | "after";

/** A prefix as a router advertises it. */
export const advertised = (
  prefix: string,
  changes: Partial<AdvertisedPrefix> = {},
): AdvertisedPrefix => ({
  prefix: parsePrefix(prefix),
  onLink: true,
  autonomous: true,
  preferredSeconds: 1800,
  validSeconds: 3600,
  ...changes,
});

const isOn = ({ hasIpv6, link, switchedOff }: Simulated) =>
  hasIpv6 && switchedOff === null && !["down", "none"].includes(link);

const isDropped = ({ drops }: Simulated, type: number) => drops.some((drop) => drop.type === type);

/** True if a packet socket sees the advertisement of a router. */
export const isHeard = (machine: Simulated, { sends }: SimulatedRouter) =>
  sends && machine.link !== "no-carrier" && isOn(machine) && !isDropped(machine, 133);

const takes = (machine: Simulated, router: SimulatedRouter) => {
  const { accept_ra = 1, forwarding = 0 } = machine.settings;
  const isAccepted =
    machine.isRenewedByProgram || accept_ra === 2 || (accept_ra === 1 && forwarding === 0);
  return isAccepted && isHeard(machine, router) && !isDropped(machine, 134);
};

/** Seconds since the kernel took an advertisement of a router; null if it has taken none. */
function ageOf(
  machine: Simulated,
  router: SimulatedRouter,
  when: When,
  switches: readonly (keyof Settings)[],
): number | null {
  const { settings, learnedSecondsAgo, answersAfterSeconds } = machine;
  const isTaken = takes(machine, router) && switches.every((each) => settings[each] !== 0);
  if (when === "after" && isTaken) return LOOK_SECONDS - answersAfterSeconds;
  return learnedSecondsAgo && learnedSecondsAgo + (when === "after" ? LOOK_SECONDS : 0);
}

const less = (seconds: number | null, age: number) => seconds && Math.trunc(seconds - age);

const isUsable = ({ prefix, autonomous, preferredSeconds, validSeconds }: AdvertisedPrefix) =>
  autonomous &&
  prefix.length === 64 &&
  validSeconds !== 0 &&
  (validSeconds === null || (preferredSeconds !== null && preferredSeconds <= validSeconds));

function addressesAt(machine: Simulated, when: When): OwnAddress[] {
  const { addressing, routers, validSeconds, states } = machine;
  if (!machine.hasIpv6) return [];
  const row = (ip: string, changes: Partial<OwnAddress> = {}): OwnAddress => ({
    ip: parseIpv6(ip),
    index: LINK,
    prefixLength: 64,
    isGlobal: true,
    state: "preferred",
    origin: "static",
    preferredSeconds: null,
    validSeconds: null,
    updated: 1000,
    ...changes,
  });
  const loopback = row("::1", { index: LOOPBACK, prefixLength: 128, isGlobal: false });
  const ofSecond = machine.second ? [row("2001:db8:e::5", { index: SECOND })] : [];
  const isGone = !isOn(machine) || (when === "after" && machine.link === "vanishes");
  if (isGone) return [loopback, ...ofSecond];
  const state = states[when === "before" ? 0 : 1];
  const linkLocal = row(OWN.linkLocal, {
    isGlobal: false,
    origin: "kernel",
    state: machine.isLinkLocalDuplicate ? "duplicate" : "preferred",
  });
  const learned = routers.flatMap((router) => {
    const age = ageOf(machine, router, when, ["autoconf", "accept_ra_pinfo"]);
    return age === null ? [] : router.prefixes.filter(isUsable).map((prefix) => ({ prefix, age }));
  });
  const made = learned.flatMap(({ prefix: { prefix, ...lifetimes }, age }) => {
    const network = formatIpv6(prefix.network as OwnAddress["ip"]);
    const about = {
      preferredSeconds: less(lifetimes.preferredSeconds, age),
      validSeconds: less(lifetimes.validSeconds, age),
      updated: Math.round((when === "after" ? LOOK_SECONDS - age : -age) * 100),
    };
    const isUla = network.startsWith("fd");
    if (machine.makesNoAddress || (!isUla && machine.isSlaacDuplicate)) return [];
    const main = row(`${network}5`, { ...about, origin: "slaac", ...(!isUla && { state }) });
    return machine.hasTemporary && !isUla
      ? [main, row(`${network}1234`, { ...about, origin: "temporary", state })]
      : [main];
  });
  const lifetimes = {
    preferredSeconds: less(validSeconds, when === "after" ? LOOK_SECONDS : 0),
    validSeconds: less(validSeconds, when === "after" ? LOOK_SECONDS : 0),
  };
  const byHand = [
    ...(addressing === "static" ? [row(OWN.global, { ...lifetimes, state })] : []),
    ...(addressing === "dhcp"
      ? [row(OWN.dhcp, { ...lifetimes, state, origin: "dhcp" as const, prefixLength: 128 })]
      : []),
    ...(machine.hasDeprecated
      ? [
          row(OWN.deprecated, {
            state: "deprecated",
            origin: addressing === "slaac" ? "slaac" : "static",
          }),
        ]
      : []),
  ];
  const ula = machine.hasUla ? [row(OWN.ula)] : [];
  const own = [...made, ...(machine.hasGlobal ? byHand : []), ...ula];
  const unique = own.filter((each, at) => own.findIndex(({ ip }) => equalIpv6(ip, each.ip)) === at);
  return [loopback, linkLocal, ...unique, ...ofSecond];
}

function routesAt(machine: Simulated, when: When): Route[] {
  const route = (prefix: string, changes: Partial<Route> = {}): Route => ({
    prefix: parsePrefix(prefix),
    hops: [{ index: LINK, via: null }],
    metric: 256,
    table: 254,
    origin: "kernel",
    kind: "unicast",
    expiresSeconds: null,
    ...changes,
  });
  const via = (ip: string | null, index = LINK) => [
    { index, via: ip === null ? null : parseIpv6(ip) },
  ];
  const { second, deadEnd, losesRoutes, hasExpired, addressing, routers } = machine;
  const ofSecond = second
    ? [route("::/0", { hops: via(second.ip, SECOND), metric: 2048, origin: "static" })]
    : [];
  const isGone = !isOn(machine) || (when === "after" && machine.link === "vanishes");
  if (isGone) return ofSecond;
  const onLink = addressesAt(machine, when)
    .filter(({ index }) => index === LINK)
    .map(({ ip, prefixLength }) => route("::/0", { prefix: prefixOf(ip, prefixLength) }));
  const advertisedOnLink = routers.flatMap((router) =>
    router.prefixes
      .filter((each) => each.onLink && ageOf(machine, router, when, ["accept_ra_pinfo"]) !== null)
      .map(({ prefix }) => route("::/0", { prefix })),
  );
  const stop = deadEnd
    ? [route("::/0", { kind: deadEnd, hops: via(null, LOOPBACK), metric: 100, origin: "static" })]
    : [];
  const isLost = losesRoutes && when === "after";
  const ofRouters = routers.flatMap((router) => {
    const age = ageOf(machine, router, when, ["accept_ra_defrtr"]);
    if (age === null || router.lifetimeSeconds === 0 || addressing === "static") return [];
    const expiresSeconds = hasExpired ? -2 : (less(router.lifetimeSeconds, age) ?? 0);
    return [route("::/0", { hops: via(router.ip), metric: 1024, origin: "ra", expiresSeconds })];
  });
  const expiresSeconds = less(machine.routeSeconds, when === "after" ? LOOK_SECONDS : 0);
  const byHand = machine.staticRoutes.map(({ prefix, table, ...hop }) =>
    route(prefix, { hops: via(hop.via), table, metric: 1024, origin: "static", expiresSeconds }),
  );
  return [
    ...onLink,
    ...advertisedOnLink,
    ...stop,
    ...(isLost ? [] : [...ofRouters, ...byHand]),
    ...ofSecond,
  ];
}

function machineAt(machine: Simulated, when: When): Machine {
  const { hasIpv6, link, switchedOff, settings, name } = machine;
  const about = { isUp: true, hasCarrier: true, isPort: false, isPointToPoint: false } as const;
  const each = (index: number, name: string, changes: Partial<Interface> = {}): Interface => ({
    ...{ index, name, ...about, isLoopback: false },
    hardware: Uint8Array.of(2, 0, 0, 0, 0, index),
    settings: { accept_ra: 1, accept_dad: 1, mtu: MTU },
    ...changes,
  });
  const isThere = link !== "none" && !(link === "vanishes" && when === "after");
  const dad = switchedOff === "itself" && { accept_dad: 2 };
  const ofLink: Settings = { accept_ra: 1, accept_dad: 1, mtu: MTU, ...settings, ...dad };
  const off = switchedOff === null ? {} : { disable_ipv6: 1 };
  const main = each(LINK, name, {
    isPointToPoint: machine.isPointToPoint,
    isUp: link !== "down",
    hasCarrier:
      !["down", "no-carrier"].includes(link) && !(link === "loses-carrier" && when === "after"),
    settings: switchedOff === "mtu" ? {} : { ...ofLink, ...off },
  });
  return {
    hasIpv6,
    all: switchedOff === "all" ? { disable_ipv6: 1 } : {},
    interfaces: hasIpv6
      ? [
          each(LOOPBACK, "lo", { isLoopback: true }),
          ...(isThere ? [main] : []),
          ...(machine.second ? [each(SECOND, "eth1")] : []),
        ]
      : [],
    addresses: addressesAt(machine, when),
    routes: routesAt(machine, when),
    way: hasIpv6 ? wayTo(machine, ANYWHERE) : null,
    readMs: 1000 + (when === "after" ? LOOK_SECONDS * 1000 : 0),
  };
}

/** The default routes of the kernel at the end of a look. */
export const defaultRoutesOf = (machine: Simulated, when: When = "after") =>
  routesAt(machine, when).filter(
    ({ prefix, kind, expiresSeconds }) =>
      prefix.length <= 3 && kind === "unicast" && (expiresSeconds ?? 1) > 0,
  );

/** True for a unique local address, fc00::/7. */
export const isUla = ({ ip }: Pick<OwnAddress, "ip">) => ip.word0 >>> 25 === 0x7e;

/** The global addresses of the kernel at the end of a look, of which some may be unique local. */
export const globalsOf = (machine: Simulated) =>
  addressesAt(machine, "after").filter(({ index, isGlobal }) => index === LINK && isGlobal);

const routerOf = ({ routers }: Simulated, ip: Route["hops"][number]["via"]) =>
  routers.find((router) => ip && equalIpv6(parseIpv6(router.ip), ip));

/** The gateway that the kernel sends to. */
export function gatewayOf(machine: Simulated) {
  const hops = defaultRoutesOf(machine).flatMap((route) => route.hops);
  const isFirst = ({ index, via }: (typeof hops)[number]) =>
    index === LINK && (via === null || routerOf(machine, via)?.isThere === !machine.picksDead);
  return hops.find(isFirst) ?? hops[0];
}

/** The source that RFC 6724 section 5 selects, or that the machine is told to use. */
function sourceFor(machine: Simulated, isUlaTarget: boolean) {
  const own = addressesAt(machine, "after").filter(({ index }) => index === LINK);
  const usable = own.filter(({ state }) => state === "preferred" || state === "deprecated");
  const forced = usable.find(({ ip, state }) =>
    machine.source === "ula"
      ? isUla({ ip })
      : machine.source === "deprecated" && state === "deprecated",
  );
  const rank = (each: OwnAddress) =>
    (each.isGlobal ? 4 : 0) +
    (each.state === "preferred" ? 2 : 0) +
    (isUla(each) === isUlaTarget ? 1 : 0);
  const [best] = usable.toSorted((a, b) => rank(b) - rank(a));
  return (isUlaTarget ? undefined : forced) ?? best;
}

function wayTo(machine: Simulated, target: OwnAddress["ip"]): Way | null {
  const source = sourceFor(machine, isUla({ ip: target }))?.ip ?? null;
  const isOnLink = routesAt(machine, "after").some(
    ({ prefix, hops }) =>
      prefix.length > 3 && prefixContains(prefix, target) && hops[0]?.index === LINK,
  );
  const about = { source, mtu: MTU, table: machine.staticRoutes[0]?.table ?? 254 };
  if (isOnLink) return { index: LINK, via: null, ...about };
  if (machine.deadEnd !== null && isOn(machine)) return null;
  const hop = gatewayOf(machine);
  return hop ? { ...hop, ...about } : null;
}

/** True if packets go to a gateway and come back. */
const canReach = (machine: Simulated) =>
  isOn(machine) && machine.link === "up" && !isDropped(machine, 135) && !isDropped(machine, 136);

/** True if packets to the Internet come back. */
export function reachesInternet(machine: Simulated): boolean {
  const hop = gatewayOf(machine);
  if (machine.link !== "up" || hop === undefined || machine.deadEnd !== null) return false;
  const isGatewayThere =
    hop.index === SECOND
      ? machine.second?.isThere === true
      : hop.via === null || (routerOf(machine, hop.via)?.isThere === true && canReach(machine));
  const source = sourceFor(machine, false);
  const isRoutable = source?.isGlobal === true && !isUla(source);
  return isGatewayThere && isRoutable && machine.beyond !== "silent";
}

const serverOf = (text: string) => tryParseDnsServer(text) as DnsServer;
const targetOf = ({ text }: SimulatedResolver) => serverOf(text).address as OwnAddress["ip"];

/** The resolvers that are asked over IPv6. */
export const outsideOf = ({ resolvers }: Simulated) =>
  resolvers.filter(({ place }) => place !== "ipv4" && place !== "here");

function tryOf(machine: Simulated, resolver: SimulatedResolver): ResolverTry {
  const { text, place, health } = resolver;
  const isOutside = outsideOf(machine).includes(resolver);
  const way = isOutside && place !== "unroutable" ? wayTo(machine, targetOf(resolver)) : null;
  const isFound = {
    beyond: reachesInternet(machine),
    // It is on the link only while the machine has a prefix of it.
    link: canReach(machine) && way?.via === null,
    here: true,
    ipv4: true,
    unroutable: false,
  }[place];
  const silence = isOutside && way === null ? "not-sent" : "silent";
  const outcome = isFound && (health === "answers" || health === "port-closed") ? health : silence;
  const isEchoed = isFound && health !== "dead" && place !== "ipv4" && machine.hasRaw;
  const isLargeTried = outcome === "answers" && isEchoed && way?.via;
  return {
    ...{ server: serverOf(text), way, outcome },
    // Who says that a port is closed is seen by a raw socket.
    echoes: isEchoed || (outcome === "port-closed" && machine.hasRaw),
    refused: null,
    large: isLargeTried ? machine.beyond !== "narrow" : null,
  };
}

const ANYWHERE = parseIpv6("2000::1");

/** What a look at the machine sees. */
export function factsOf(machine: Simulated): Facts {
  const { routers, second, hasRaw, hasIpv6 } = machine;
  const before = machineAt(machine, "before");
  const after = machineAt(machine, "after");
  const canListen = hasRaw && isOn(machine) && machine.link !== "no-carrier";
  const known = routers.filter((router) => isHeard(machine, router));
  const advertisementOf = ({ ip, sends, isThere, ...said }: SimulatedRouter): Advertisement => ({
    ...said,
    ...{ preference: "medium", other: false, hopLimit: 64, resolvers: [], nat64Prefixes: [] },
  });
  const vias = defaultRoutesOf(machine, "before")
    .flatMap(({ hops }) => hops)
    .flatMap(({ index, via }) => (index === LINK && via ? [formatIpv6(via)] : []));
  const asked = canListen ? [...new Set([...vias, ...known.map(({ ip }) => ip)])] : [];
  const isAnswered = (ip: string) =>
    routers.some((router) => router.ip === ip && router.isThere) && !isDropped(machine, 135);
  const seen: Record<number, boolean> = {
    133: true,
    135: asked.length > 0,
    134: known.length > 0,
    136: asked.some(isAnswered),
    2: reachesInternet(machine) && outsideOf(machine).some(({ place }) => place === "beyond"),
  };
  const drops = machine.drops.filter(({ type }) => seen[type]);
  const duplicates = machine.isSlaacDuplicate && known.length > 0 ? [OWN.global] : [];
  const heard = known.map((router) => ({
    ip: parseIpv6(router.ip),
    ...advertisementOf(router),
    heardMs: before.readMs + machine.answersAfterSeconds * 1000,
  }));
  const [first] = outsideOf(machine);
  const wayNow = (target: OwnAddress["ip"]) => (hasIpv6 ? wayTo(machine, target) : null);
  const firstWay =
    first?.place === "unroutable" ? null : wayNow(first ? targetOf(first) : ANYWHERE);
  // The engine looks for a default route where the first resolver has no way.
  const isFirst = ({ index }: Interface) =>
    index === (firstWay ?? gatewayOf(machine) ?? { index: LINK }).index;
  return {
    ...{ before, after, withoutRaw: hasRaw ? null : "socket: EPERM" },
    heard: hasRaw
      ? [
          ...(canListen ? [{ index: LINK, routers: heard, duplicates, drops }] : []),
          ...(second
            ? [{ index: SECOND, routers: [], duplicates: [], drops: [...second.drops] }]
            : []),
        ]
      : [],
    gateways: [
      ...asked.map((ip) => ({ index: LINK, ip: parseIpv6(ip), answers: isAnswered(ip) })),
      ...(second && hasRaw
        ? [{ index: SECOND, ip: parseIpv6(second.ip), answers: second.isThere }]
        : []),
    ],
    judged: before.interfaces.find(isFirst) ?? null,
    resolvers: machine.resolvers.map((resolver) => tryOf(machine, resolver)),
  };
}
