/** The conclusion about this machine: each step judges the facts, and the nearest cause wins. */
import { classifyIpv6 } from "../../addr/classify.ts";
import { formatIpv6 } from "../../addr/format.ts";
import type { IpAddress } from "../../addr/ip.ts";
import { equalIpv6, type Ipv6Address, isLinkLocal } from "../../addr/ipv6.ts";
import { formatPrefix, prefixContains } from "../../addr/prefix.ts";
import { hostnameOf } from "../../dns/server.ts";
import { type AdvertisedPrefix, type Advertisement, TYPE } from "../../here/discovery.ts";
import type { Interface, OwnAddress, Route, Settings } from "../../here/kernel.ts";
import { defaultRoutes, type Gateway, type Observation } from "../../here/observe.ts";
import { firstTrue, listText } from "../../util/text.ts";
import { CODES, STEPS } from "./codes.ts";
import type { HereStep } from "./result.ts";
import { isLoopback, isOutside, type ResolverTry } from "./tries.ts";
import words from "./words.json" with { type: "json" };

/** Keys of the sentences: the finding or the step that a sentence is about, perhaps with a case behind a slash. */
type Words = keyof typeof words;

type Values = Readonly<Record<string, string | number | null | undefined>>;

/** All that is known when a verdict is made. */
export interface Facts extends Observation {
  /** The interface that is judged; null if there is none but loopback. */
  readonly judged: Interface | null;
  readonly resolvers: readonly ResolverTry[];
}

/** Seconds below which a lifetime is reported if nobody is known to renew it. */
const SOON_SECONDS = 120;
/** Seconds by which equal lifetimes may differ: half of the time between two advertisements of a router. */
const UNCERTAIN_SECONDS = 1.5;
/** Rows that a sentence names. */
const MAX_NAMED = 3;
/** The length of a prefix from which addresses are made; RFC 4862 section 5.5.3. */
const PREFIX_LENGTH = 64;
/** The length of the shortest prefix that one link may have: a provider has a /32 for all of its links. */
const LINK_PREFIX_LENGTH = 32;
const MAX_STEP_TEXT = 300;
const MAX_VERDICT_TEXT = 400;

/** A list that names the first few. */
function some<Row>(rows: readonly Row[], text: (row: Row) => string = String): string {
  const named = rows.slice(0, MAX_NAMED).map(text);
  const more = rows.length - named.length;
  return listText(more > 0 ? [...named, `${more} more`] : named);
}

type WithIp = Pick<OwnAddress, "ip">;
const ipOf = ({ ip }: WithIp) => formatIpv6(ip);
const isUla = ({ ip }: { readonly ip: IpAddress | null | undefined }) =>
  ip?.version === 6 && classifyIpv6(ip) === "UniqueLocal";
const isSame = (a: Ipv6Address | null, b: Ipv6Address | null) =>
  a !== null && b !== null && equalIpv6(a, b);
type Hop = Route["hops"][number];
/** True if a way or a hop leads to a gateway. */
const isVia = (hop: Hop | null, { ip, index }: Pick<Gateway, "ip" | "index">) =>
  hop?.index === index && isSame(hop.via, ip);
const isAlive = ({ outcome, echoes }: ResolverTry) => outcome === "answers" || echoes;
const nameOf = ({ server }: ResolverTry) => hostnameOf(server);
const isAdvertised = ({ origin }: Route) => origin === "ra";
const isMadeOfPrefix = ({ origin }: OwnAddress) => origin === "slaac" || origin === "temporary";

/** A setting as sysctl(8) takes it: with slashes, the name of an interface may have dots. */
const settingText = (name: string, key: string) =>
  name.includes(".") ? `net/ipv6/conf/${name}/${key}` : `net.ipv6.conf.${name}.${key}`;

/** The facts, and the conclusions from them that several steps need. */
function know(facts: Facts) {
  const { before, after, heard, gateways, judged, resolvers, withoutRaw } = facts;
  const { way } = after;
  const isHere = ({ index }: { readonly index: number }) => index === judged?.index;
  const mine = heard.find(isHere);
  const canHear = mine !== undefined;
  const { routers = [], duplicates = [] } = mine ?? {};
  const { source = null, via = null } = way ?? {};
  const on = after.addresses.filter(isHere);
  const global = on.filter(({ isGlobal }) => isGlobal);
  // A router may have its address on another interface, such as loopback, and a VPN only a unique local one.
  const elsewhere = after.addresses.filter((row) => row.isGlobal && isSame(row.ip, source));
  const all = global.every(isUla) ? [...new Set([...global, ...elsewhere])] : global;
  // The addresses from which the Internet can be reached, if there are any.
  const own = all.every(isUla) ? all : all.filter((row) => !isUla(row));
  const usable = own.filter(({ state }) => state === "preferred");
  const defaults = defaultRoutes(after);
  const hops = defaults.flatMap((route) => route.hops);
  // On a point-to-point link, a route without a gateway leads to all that is behind its other end.
  const hasNeighbors = (at: number) =>
    after.interfaces.some(({ index, isPointToPoint }) => index === at && !isPointToPoint);
  const isOnLink = (ip: IpAddress, at: number) =>
    (ip.version === 6 && isLinkLocal(ip)) ||
    after.routes.some(
      ({ prefix, hops }) =>
        prefix.length >= LINK_PREFIX_LENGTH &&
        prefixContains(prefix, ip) &&
        hops.some((hop) => hop.via === null && hop.index === at && hasNeighbors(at)),
    );
  const six = resolvers.filter(({ server }) => isOutside(server));
  const far = six.filter(({ server, way }) => way && !isOnLink(server.address, way.index));
  const answering = six.filter(({ outcome }) => outcome === "answers");
  const silent = six.filter((each) => !answering.includes(each));
  const interfaceName = (at: number) =>
    [...after.interfaces, ...before.interfaces].find(({ index }) => index === at)?.name;
  /** The interface and gateway of an address or a way, for a sentence; the interface need not be the judged one. */
  const about = (row: (Pick<Hop, "index"> & Partial<Hop>) | null = null): Values =>
    row ? { name: interfaceName(row.index), ...(row.via && { via: formatIpv6(row.via) }) } : {};
  const viaText = ({ index, via }: Hop) => {
    const where = index === judged?.index ? "" : ` on ${interfaceName(index)}`;
    return via ? [formatIpv6(via) + where] : [];
  };
  /** The values that sentences name. */
  const values: Values = {
    ...{ name: judged?.name ?? "this machine", routers: some(routers, ipOf), withoutRaw },
    ...{ ips: some(own, ipOf), usable: some(usable, ipOf) },
    ...{ all: some(resolvers, nameOf), answering: some(answering, nameOf) },
    silent: some(silent, nameOf),
    via: some((way?.via ? [way] : hops).flatMap(viaText)),
  };
  /** The outcome of a step; the words of a failure or warning begin with its finding, if it has one. */
  const see = (key: Words, more: Values = {}, isWarning = false) => {
    const all: Values = { ...values, ...more };
    const name = String(all["name"]);
    const status = isWarning ? "warn" : (words[key].status as HereStep["status"]);
    const isWrong = status === "fail" || status === "warn";
    const finding = CODES.find((code) => isWrong && code === key.split("/")[0]);
    const text = words[key].text.replace(/\{(\w+)\}/g, (_, name: string) => `${all[name]}`);
    const isEnding = words[key].text.includes("{inSeconds}");
    /** Seconds until IPv6 ends because of it. */
    const inSeconds = isEnding ? Number(all["inSeconds"]) : null;
    return { status, finding, text, inSeconds, name };
  };
  const link = judged && after.interfaces.find(isHere);
  const isBeyondSilent = far.length > 0 && !far.some(isAlive);
  /** Whether the gateway of a way answers; null if it was not asked. */
  const gatewayAnswers = (hop: Hop | null) =>
    gateways.find((each) => isVia(hop, each))?.answers ?? null;
  return {
    ...{ ...facts, way, gatewayAnswers, canHear, routers, duplicates, link },
    ...{ on, own, usable, source, via, defaults, hops, six, far, answering, isBeyondSilent },
    ...{ isHere, isOnLink, interfaceName, about, viaText, see },
    addressEnd: lastEnd(usable.map((row) => addressLife(row, facts, canHear))),
    routeEnd: lastEnd(defaults.map((row) => routeLife(row, facts, canHear))),
  };
}

type Known = ReturnType<typeof know>;

/** The outcome of a step. */
type Seen = ReturnType<Known["see"]>;

/** Seconds until a row ends; null if it stays or is renewed, or if that is not known and the end is far off. */
type Life = number | null;

/** The seconds until the last of some rows ends; null if one stays. */
const lastEnd = (lives: readonly Life[]): Life =>
  lives.length === 0 || lives.includes(null) ? null : Math.max(0, ...lives.map(Number));

/** The life of a row that was not renewed. `isHeard` is true if its renewal would have been heard, and null if nobody is known to renew it. */
const endOf = (seconds: Life, isHeard: boolean | null): Life =>
  seconds !== null && (isHeard ?? seconds < SOON_SECONDS) ? seconds : null;

function addressLife(row: OwnAddress, { before }: Facts, canHear: boolean): Life {
  const earlier = before.addresses.find(
    ({ ip, index }) => index === row.index && equalIpv6(ip, row.ip),
  );
  if (earlier?.updated !== row.updated) return null;
  return endOf(row.validSeconds, isMadeOfPrefix(row) ? canHear : null);
}

function routeLife(row: Route, { before, after, heard }: Facts, canHear: boolean): Life {
  const keyOf = ({ prefix, hops, metric, table }: Route) =>
    JSON.stringify([prefix, metric, table, hops]);
  const earlier = before.routes.find((each) => keyOf(each) === keyOf(row));
  const [was, now] = [earlier?.expiresSeconds ?? null, row.expiresSeconds];
  if (was === null || now === null) return null;
  // A route with the lifetime of an advertisement that was heard was renewed, by the kernel or by a program.
  const senders = heard.flatMap(({ index, routers }) =>
    routers.filter(
      ({ ip }) => isAdvertised(row) && row.hops.some((hop) => isVia(hop, { ip, index })),
    ),
  );
  const kept = { lifetimeSeconds: was + 2 * UNCERTAIN_SECONDS, heardMs: before.readMs };
  const isRenewed = [kept, ...senders].some(
    ({ lifetimeSeconds, heardMs }) =>
      now > lifetimeSeconds - (after.readMs - heardMs) / 1000 - UNCERTAIN_SECONDS,
  );
  return isRenewed ? null : endOf(now, isAdvertised(row) ? canHear : null);
}

const isOfInternet = ({ prefix: { network } }: AdvertisedPrefix) =>
  network.version === 6 && !isUla({ ip: network }) && !isLinkLocal(network);

/** The setting that makes the kernel ignore advertisements or these parts of them, and the remedy; null if it accepts them. */
function ignoredBy({ settings, name }: Interface, ...parts: (keyof Settings)[]) {
  const { accept_ra = 1, forwarding = 0 } = settings;
  const [accept, forward] = [settingText(name, "accept_ra"), settingText(name, "forwarding")];
  if (accept_ra === 0)
    return { setting: `${accept} is 0`, remedy: `it to ${forwarding === 0 ? 1 : 2}` };
  if (accept_ra === 1 && forwarding !== 0)
    return { setting: `${forward} is 1, and ${accept} is 1, not 2`, remedy: `${accept} to 2` };
  const part = parts.find((key) => settings[key] === 0);
  return part ? { setting: `${settingText(name, part)} is 0`, remedy: "it to 1" } : null;
}

/** True if the kernel accepts advertisements on an interface. */
export const acceptsAdvertisements = (each: Interface) => ignoredBy(each) === null;

/** Why no address can be made of a prefix, RFC 4862 section 5.5.3; null if one can. */
function objectionTo({ prefix, preferredSeconds, validSeconds }: AdvertisedPrefix): string | null {
  if (prefix.network.version === 6 && isLinkLocal(prefix.network)) return "is link-local";
  if (prefix.length !== PREFIX_LENGTH) return `is no /${PREFIX_LENGTH}`;
  if (validSeconds === 0) return "has a valid lifetime of 0";
  const isInverted = validSeconds !== null && (preferredSeconds ?? Infinity) > validSeconds;
  return isInverted ? "is preferred for longer than it is valid" : null;
}

const kernel = ({ after, see }: Known) => see(after.hasIpv6 ? "kernel" : "kernel-without-ipv6");

function link({ judged, link, on, after, see }: Known): Seen {
  const { isUp, hasCarrier, name = "", settings = {} }: Partial<Interface> = link ?? {};
  const isAll = after.all.disable_ipv6 === 1;
  const key = firstTrue({
    "link-down/none": judged === null,
    "link-down/vanished": !link,
    "link-down/down": !isUp,
    "link-down/carrier": !hasCarrier,
    "disabled/mtu": settings.mtu === undefined && on.length === 0,
    link: settings.disable_ipv6 !== 1,
    // The kernel disables IPv6 by itself.
    "disabled/duplicate": !isAll && settings.accept_dad === 2,
    disabled: true,
  });
  const setting = settingText(isAll ? "all" : name, "disable_ipv6");
  return see(key, { mtu: settings.mtu, setting });
}

function address(known: Known): Seen {
  const { on, own, usable, source, duplicates, addressEnd, routeEnd, withoutRaw, see } = known;
  const failed = on.filter(({ state, isGlobal }) => !isGlobal && state === "duplicate");
  /** Resolvers of the Internet that have answered to a unique local address. */
  const reached = known.far.filter(
    (tried) =>
      isAlive(tried) && isUla({ ip: tried.way?.source }) && !isUla({ ip: tried.server.address }),
  );
  const are = (state: OwnAddress["state"]) =>
    own.length > 0 && own.every((each) => each.state === state);
  const key = firstTrue({
    "address-duplicate": failed.length > 0 || are("duplicate"),
    "address-duplicate/slaac": duplicates.length > 0 && own.every(isUla),
    "address/none": own.length === 0 && withoutRaw === null,
    "no-router/unseen": own.length === 0,
    "address-tentative": are("tentative"),
    "address-deprecated": usable.length === 0,
    "only-ula/translated": usable.every(isUla) && reached.length > 0,
    "only-ula": usable.every(isUla),
    "ending/address": addressEnd !== null && addressEnd <= (routeEnd ?? Infinity),
    address: true,
  });
  // A unique local address is preferred to deprecated ones, RFC 6724 section 5.
  const isUlaUsed = isUla({ ip: source });
  const rows = failed.length > 0 ? failed : own;
  const values = {
    ...{ ...known.about(rows[0]), ips: some(rows, ipOf), duplicates: some(duplicates) },
    ...{ origins: some(own, (row) => `${ipOf(row)} (${row.origin})`), inSeconds: addressEnd },
    reached: some(reached, nameOf),
  };
  const isHarmless = key === "only-ula" ? !isInternetSilent(known) : !isUlaUsed;
  return see(key, values, ["only-ula", "address-deprecated"].includes(key) && isHarmless);
}

/** True if the gateway is there and all that is asked beyond it is silent, or if there is no way at all. */
const isInternetSilent = ({ way, via, isBeyondSilent, gatewayAnswers }: Known) =>
  way === null || (isBeyondSilent && (via === null || gatewayAnswers(way) === true));

function routers(known: Known): Seen {
  const { link, routers, own, usable, on, source, defaults, addressEnd, routeEnd, see } = known;
  if (known.withoutRaw !== null) return see("routers/unseen");
  if (!known.canHear || !link) return see("routers/unheard");
  const isNeeded = own.length === 0 && on.length > 0 && !link.isPointToPoint;
  if (routers.length === 0) return see(isNeeded ? "no-router" : "routers/none");
  const prefixes = routers.flatMap((each) => each.prefixes).filter(({ autonomous }) => autonomous);
  const good = prefixes.filter((each) => objectionTo(each) === null);
  const isOver = (row: OwnAddress) => row.state === "deprecated" && isMadeOfPrefix(row);
  const isGlobalMissing =
    own.every((row) => isUla(row) || isOver(row)) &&
    good.some((each) => isOfInternet(each) && each.preferredSeconds !== 0);
  const isDefault = routers.some(({ lifetimeSeconds }) => lifetimeSeconds > 0);
  const addressOff = good.length > 0 ? ignoredBy(link, "accept_ra_pinfo", "autoconf") : null;
  const routeOff = isDefault ? ignoredBy(link, "accept_ra_defrtr") : null;
  const missing =
    ((own.length === 0 || isGlobalMissing) && addressOff) || (defaults.length === 0 && routeOff);
  const isWorking =
    defaults.length > 0 && source !== null && !isUla({ ip: source }) && own.length > 0;
  if (missing && !isWorking) return see("ra-ignored", missing);
  const ends = [
    { ...addressOff, inSeconds: addressOff && usable.some(isMadeOfPrefix) ? addressEnd : null },
    { ...routeOff, inSeconds: routeOff && defaults.some(isAdvertised) ? routeEnd : null },
  ];
  const [end] = ends
    .filter(({ inSeconds }) => inSeconds !== null)
    .toSorted((a, b) => Number(a.inSeconds) - Number(b.inSeconds));
  if (end) return see("ra-ignored/ending", end);
  if (missing) return see("ra-ignored", missing, true);
  if (own.length > 0) {
    const contradicting = contradiction(known);
    return contradicting ? see("routers-disagree", contradicting) : see("routers");
  }
  const isManaged = routers.some(({ managed }) => managed);
  const [unused] = [...good, ...prefixes];
  if (!unused) return see(isManaged ? "ra-without-prefix/managed" : "ra-without-prefix");
  const values = { prefix: formatPrefix(unused.prefix), objection: objectionTo(unused) };
  return see(values.objection ? "prefix-not-usable" : "prefix-not-usable/unused", values);
}

/** The values of which the default routers of a link must share at least one. A router without values contradicts none. */
const COMMON: Readonly<Record<string, (of: Advertisement) => readonly (string | number)[]>> = {
  // ULAs contradict nothing.
  "the prefix": ({ prefixes }) =>
    prefixes.filter(isOfInternet).map(({ prefix }) => formatPrefix(prefix)),
  "the MTU": ({ mtu }) => (mtu === null ? [] : [mtu]),
  "the managed flag": ({ managed }) => [managed ? "on" : "off"],
};

/** Two default routers that contradict each other; null if none do. */
function contradiction({ routers }: Known) {
  const defaults = routers.filter(({ lifetimeSeconds }) => lifetimeSeconds > 0);
  for (const [at, a] of defaults.entries()) {
    for (const b of defaults.slice(at + 1)) {
      for (const [what, valuesOf] of Object.entries(COMMON)) {
        const [values, others] = [valuesOf(a), valuesOf(b)];
        const isOpen = values.length === 0 || others.length === 0;
        if (isOpen || values.some((value) => others.includes(value))) continue;
        const [firstValue, secondValue] = [some(values), some(others)];
        return { what, first: ipOf(a), second: ipOf(b), firstValue, secondValue };
      }
    }
  }
  return null;
}

/** Kinds of routes that stop packets. */
const DEAD_ENDS: readonly Route["kind"][] = ["unreachable", "prohibit", "blackhole"];

function route({ way, routers, after, via, hops, routeEnd, addressEnd, about, see }: Known): Seen {
  const all = after.routes.filter(({ prefix }) => prefix.length === 0);
  const dead = all.find(({ kind }) => DEAD_ENDS.includes(kind));
  const isNoDefault = routers.every(({ lifetimeSeconds }) => lifetimeSeconds === 0);
  const isEnding = routeEnd !== null && routeEnd < (addressEnd ?? Infinity);
  const key = firstTrue({
    "ending/route": way !== null && isEnding,
    route: way !== null,
    "no-route/dead-end": dead !== undefined,
    "no-route/rule": hops.length > 0,
    "no-route/lifetime": routers.length > 0 && isNoDefault,
    "no-route/expired": all.some(({ expiresSeconds }) => (expiresSeconds ?? 1) <= 0),
    "no-route": true,
  });
  const leads = via ? `via ${formatIpv6(via)}` : "out";
  const shown = about(way ?? hops[0]);
  return see(key, { ...shown, way: leads, inSeconds: routeEnd, kind: dead?.kind });
}

function gateway(known: Known): Seen {
  const { way, via, hops, defaults, resolvers, six, answering, withoutRaw, isBeyondSilent, see } =
    known;
  const leads = (route: Pick<Route, "hops">, each: Gateway) =>
    route.hops.some((hop) => isVia(hop, each));
  const isDefault = (each: Gateway) => isVia(way, each) || leads({ hops }, each);
  const asked = known.gateways.filter(
    (each) =>
      each.answers !== null && (isDefault(each) || six.some((tried) => isVia(tried.way, each))),
  );
  // The kernel chooses among the hops of a route by flow, so an answer may have come through another hop.
  const isShared = (each: Gateway) =>
    defaults.some(
      (route) => leads(route, each) && asked.some((other) => other.answers && leads(route, other)),
    );
  const isUsed = (each: Gateway) =>
    resolvers.some((tried) => isAlive(tried) && isVia(tried.way, each)) && !isShared(each);
  const dead = asked.filter((each) => each.answers === false && !isUsed(each));
  const alive = asked.filter((each) => !dead.includes(each));
  const isAnyAlive = alive.some(isDefault);
  const direct = hops.find((hop) => hop.via === null) ?? null;
  const areDefault = dead.every(isDefault);
  const key = firstTrue({
    "gateway/none": asked.length === 0 && direct !== null && hops.every((hop) => hop.via === null),
    "gateway/unseen": withoutRaw !== null && (via !== null || hops.length > 0),
    "gateway/unasked": asked.length === 0 && via !== null,
    "gateway/absent": asked.length === 0,
    gateway: dead.length === 0,
    "router-dead": isAnyAlive && areDefault,
    "router-dead/link": direct !== null && areDefault,
    "gateway-silent": dead.every(({ ip, index }) => known.isOnLink(ip, index)),
    "gateway-not-on-link": true,
  });
  const isSilent = isBeyondSilent || (six.length > 0 && answering.length === 0);
  const isHarmless = !(dead.some(known.isHere) && isSilent);
  const isNeeded = dead.some(isDefault) && !isAnyAlive && direct === null;
  const isWarning = dead.length > 0 && isHarmless && !isNeeded;
  const values = {
    alive: some(alive.flatMap(({ index, ip }) => known.viaText({ index, via: ip }))),
    dead: some(dead, (each) => `${ipOf(each)} on ${known.interfaceName(each.index)}`),
  };
  return see(key, { ...known.about(isAnyAlive ? way : (direct ?? way)), ...values }, isWarning);
}

function firewall({ heard, six, answering, isHere, interfaceName, withoutRaw, see }: Known): Seen {
  const drops = heard.flatMap(({ index, drops }) => drops.map((drop) => ({ ...drop, index })));
  const refused = six.filter((tried) => tried.refused !== null);
  const key = firstTrue({
    firewall: drops.length > 0,
    "firewall/refused": refused.length > 0,
    "firewall/unseen": withoutRaw !== null,
    "firewall/unheard": heard.length === 0,
    "firewall/none": true,
  });
  const text = ({ type, direction, index }: (typeof drops)[number]) => {
    const [name] = Object.entries(TYPE).find(([, each]) => each === type) ?? [];
    return `${name} (type ${type}) on its way ${direction} on ${interfaceName(index)}`;
  };
  const refusedText = some(refused, (tried) => `${tried.refused} to ${nameOf(tried)}`);
  const isHarmless = answering.some((tried) => tried.refused === null);
  const isWarning = drops.length > 0 ? !drops.some(isHere) : refused.length > 0 && isHarmless;
  return see(key, { drops: some(drops, text), refused: refusedText }, isWarning);
}

function source({ way, source, after, about, see }: Known): Seen {
  if (source === null) return see("source/none");
  const own = after.addresses.find(({ ip }) => isSame(ip, source));
  const isDeprecated = own?.state === "deprecated";
  const isLocal = isUla({ ip: source });
  const fault = isLocal ? "a unique local address" : isDeprecated ? "deprecated" : null;
  const better = after.addresses.find(
    (row) =>
      [way?.index, own?.index].includes(row.index) &&
      row.isGlobal &&
      row.state === "preferred" &&
      !isUla(row) &&
      !isSame(row.ip, source),
  );
  const values = {
    ...about(way),
    source: formatIpv6(source),
    fault,
    better: better && ipOf(better),
  };
  return see(fault && better ? "source-wrong" : "source", values);
}

function resolversStep({ resolvers, six, far, answering, withoutRaw, see }: Known): Seen {
  const isAnswered = resolvers.some(({ outcome }) => outcome === "answers");
  const areLocal = resolvers.every(({ server }) => isLoopback(server));
  const echoing = six.filter(({ echoes }) => echoes);
  const key = firstTrue({
    "resolvers-none": resolvers.length === 0,
    "resolvers/some": answering.length > 0 && answering.length < six.length,
    resolvers: answering.length > 0,
    "resolvers/local": areLocal && isAnswered,
    "resolvers-silent/local": areLocal,
    "resolvers-ipv4-only": six.length === 0 && isAnswered,
    "resolvers-ipv4-only/silent": six.length === 0,
    "resolvers-silent": echoing.length > 0,
    "resolvers-silent/unseen": withoutRaw !== null,
    "resolvers/silent": far.length > 0,
    "resolvers-silent/link": six.some(({ way }) => way !== null),
    "resolvers-silent/route": true,
  });
  return see(key, { echoing: some(echoing, nameOf) });
}

function beyond(known: Known): Seen {
  const { far, isBeyondSilent, withoutRaw, gatewayAnswers, about, see } = known;
  const narrow = far.filter(({ large }) => large === false);
  const [first = null] = [...narrow, ...far.filter((each) => gatewayAnswers(each.way)), ...far];
  const way = first?.way ?? null;
  const answers = gatewayAnswers(way);
  const key = firstTrue({
    "beyond-narrow": narrow.length > 0,
    "beyond/none": far.length === 0,
    beyond: !isBeyondSilent,
    "beyond/unseen": withoutRaw !== null,
    "beyond-silent/link": way?.via === null,
    "beyond/gateway": answers === false,
    "beyond-silent/unasked": answers === null,
    "beyond-silent": true,
  });
  if (way === null) return see(key);
  const { index, via, mtu } = way;
  const behind = via ? far.filter((each) => isVia(each.way, { index, ip: via })) : far;
  const named = { narrow: some(narrow, nameOf), silent: some(behind, nameOf) };
  return see(key, { ...about(way), mtu, ...named });
}

/** The conclusion where no step has found anything. */
function works({ way, via, gatewayAnswers, usable, answering, about, see }: Known): Seen {
  const isAnswered = answering.length > 0;
  const isGatewayThere = gatewayAnswers(way) === true;
  const key = firstTrue({
    "works/both": isGatewayThere && isAnswered,
    "works/gateway": isGatewayThere,
    "works/resolver": isAnswered,
    "works/unasked": via !== null,
    works: true,
  });
  return see(key, about(usable[0]));
}

const JUDGES: Readonly<Record<HereStep["name"], (known: Known) => Seen>> = {
  ...{ kernel, link, address, routers, route, gateway, firewall, source },
  ...{ resolvers: resolversStep, beyond },
};

/** The steps that are about no interface. */
const OF_MACHINE: readonly HereStep["name"][] = ["kernel", "firewall", "resolvers"];

const cut = (text: string, most: number) =>
  text.length > most ? `${text.slice(0, most - 1)}…` : text;

/** A step of the document, without its time. */
function stepOf(name: HereStep["name"], seen: Seen, { judged }: Facts) {
  const { status, finding, text } = seen;
  const ofInterface = judged && !OF_MACHINE.includes(name) && { interface: seen.name };
  const step = { name, ...ofInterface, status, ...(finding && { finding }) };
  return { ...step, text: cut(text, MAX_STEP_TEXT) };
}

/** Judges one step by what is known, without regard to the others. */
export const judgeStep = (name: HereStep["name"], facts: Facts) =>
  stepOf(name, JUDGES[name](know(facts)), facts);

/** All steps, of which only the nearest cause fails, and the verdict. A failure outranks a warning. */
export function judge(facts: Facts) {
  const known = know(facts);
  const all = STEPS.map((name) => ({ name, seen: JUDGES[name](known) }));
  const rankOf = ({ seen: { finding, status } }: (typeof all)[number]) =>
    CODES.indexOf(finding ?? "works") + (status === "fail" ? 0 : CODES.length);
  const [cause] = all.filter(({ seen }) => seen.finding).toSorted((a, b) => rankOf(a) - rankOf(b));
  const steps = all.map(({ name, seen }) => {
    if (cause === undefined || name === cause.name || seen.status !== "fail")
      return stepOf(name, seen, facts);
    const text = `${seen.text} The step ${cause.name} explains it.`;
    return stepOf(name, { ...seen, status: "skipped", finding: undefined, text }, facts);
  });
  const { finding, text, inSeconds } = cause?.seen ?? works(known);
  const ends = inSeconds !== null && { inSeconds };
  return {
    steps,
    verdict: { code: finding ?? "works", text: cut(text, MAX_VERDICT_TEXT), ...ends } as const,
  };
}
