/** A run of `here`: reads the kernel's tables, listens on the links while it asks the resolvers, and judges. */
import { formatIpv6 } from "../../addr/format.ts";
import { formatIp } from "../../addr/ip.ts";
import { equalIpv6, type Ipv6Address } from "../../addr/ipv6.ts";
import { formatPrefix, type Prefix } from "../../addr/prefix.ts";
import { type DnsServer, parseResolvConf } from "../../dns/server.ts";
import type { Interface } from "../../here/kernel.ts";
import { type Machine, readMachine, wayTo } from "../../here/machine.ts";
import { defaultRoutes, type Observation, observe } from "../../here/observe.ts";
import type { Prober } from "../../icmp/prober/prober.ts";
import { tryRead } from "../../platform/regular-file.ts";
import { firstTrue } from "../../util/text.ts";
import { STEPS } from "./codes.ts";
import type { HereStep } from "./result.ts";
import { isOutside, tryResolvers } from "./tries.ts";
import { acceptsAdvertisements, type Facts, judge, judgeStep } from "./verdict.ts";

/** The stub of systemd-resolved, and the file with the resolvers that it asks. */
const STUB = /^127\.0\.0\.5[34]$/;
const BEHIND_STUB = "/run/systemd/resolve/resolv.conf";

/** Called as each step begins, and as its outcome is known. */
export type OnStep = (name: "begin" | "step", data: object) => void;

/**
 * Looks at this machine.
 *
 * @param servers the configured resolvers
 * @param wanted the name of the interface that is judged; null for that of the way to the first resolver
 */
export async function lookHere(
  servers: readonly DnsServer[],
  wanted: string | null,
  prober: Prober | null,
  signal: AbortSignal,
  onStep?: OnStep,
) {
  const startMs = performance.now();
  const told = new Map<HereStep["name"], HereStep>();
  const tell = (step: Omit<HereStep, "ms">) => {
    const before = told.get(step.name);
    const known = { ...step, ms: before?.ms ?? Math.round(performance.now() - startMs) };
    told.set(step.name, known);
    if (before?.text !== step.text) onStep?.("step", known);
    return known;
  };
  const before = readMachine();
  const { hasIpv6 } = before;
  const asked = hasIpv6 ? behindStub(servers) : [];
  const candidates = candidatesOf(before);
  const targets = asked.filter(isOutside).filter(({ zone }) => !zone);
  /** The next hops of this machine: to the first resolver, to the Internet, and to the other resolvers. */
  const hopsOf = (machine: Machine) => {
    const [first = null, ...others] = targets.map(({ address }) => wayTo(address));
    const hops = defaultRoutes(machine).flatMap((route) => route.hops);
    return [first, machine.way, ...hops, ...others].filter((hop) => hop !== null);
  };
  const onWay = (machine: Machine) =>
    hopsOf(machine).flatMap((hop) =>
      candidatesOf(machine).filter(({ index }) => index === hop.index),
    );
  const named = candidates.filter(({ name }) => name === wanted);
  /** The interface that is judged, by what is known before anything was heard. */
  const [first = null] = wanted === null ? onWay(before) : named;
  const tellEarly = (name: HereStep["name"], resolvers: Facts["resolvers"] = []) => {
    const unheard = { before, after: before, heard: [], gateways: [], withoutRaw: null };
    const judged = first ?? candidates[0] ?? null;
    const step = judgeStep(name, { ...unheard, judged, resolvers });
    // A failure may have its cause in another step, which is not known yet.
    if (step.status === "ok") tell(step);
  };
  for (const name of STEPS) onStep?.("begin", { name });
  for (const name of ["kernel", "link"] as const) tellEarly(name);
  const trying = tryResolvers(asked, prober, signal);
  const isTold = trying.then((resolvers) => tellEarly("resolvers", resolvers));
  const links = [...new Set(first === null ? candidates : [first, ...onWay(before)])].filter(
    isUsable,
  );
  const observation = await observe(links, hopsOf, isTold, signal);
  signal.throwIfAborted();
  const [later = null] = likelyOf(observation).flatMap((fits) => candidates.filter(fits));
  // A way out may have come or gone meanwhile.
  const [last = first ?? later] = wanted === null ? onWay(observation.after) : named;
  const resolvers = await trying;
  const { steps, verdict } = judge({ ...observation, judged: last, resolvers });
  return { ...tablesOf(observation), steps: steps.map(tell), verdict };
}

/** The interfaces that can be judged. */
export const candidatesOf = ({ interfaces }: Machine) =>
  interfaces.filter(({ isLoopback, isPort }) => !isLoopback && !isPort);

const isUsable = ({ isUp, hasCarrier, settings }: Interface) =>
  isUp && hasCarrier && settings.disable_ipv6 !== 1;

/** The resolvers behind the stub of this machine, in its place. */
function behindStub(servers: readonly DnsServer[]): readonly DnsServer[] {
  const isStub = servers.length > 0 && servers.every(({ address }) => STUB.test(formatIp(address)));
  const found = parseResolvConf((isStub && tryRead(BEHIND_STUB)) || "");
  return found.length > 0 ? found : servers;
}

/** Signs that an interface is the one for IPv6 where no route leads out, the strongest first. */
const likelyOf = ({ heard, after }: Observation) => [
  ({ index }: Interface) => heard.some((each) => each.index === index && each.routers.length > 0),
  ({ index }: Interface) => after.addresses.some((each) => each.index === index && each.isGlobal),
  ({ isUp, hasCarrier }: Interface) => isUp && hasCarrier,
  () => true,
];

/** Rows with texts in place of addresses and prefixes. */
const ipText = <Row extends { readonly ip: Ipv6Address }>({ ip, ...row }: Row) => ({
  ip: formatIpv6(ip),
  ...row,
});
const prefixText = <Row extends { readonly prefix: Prefix }>({ prefix, ...row }: Row) => ({
  prefix: formatPrefix(prefix),
  ...row,
});

/** The tables of the document. */
function tablesOf({ after, heard, gateways }: Observation) {
  const interfaces = after.interfaces.map((each) => {
    const { index: at, name, settings } = each;
    const routers = heard.find(({ index }) => index === at)?.routers ?? [];
    const answersOf = (ip: Ipv6Address) =>
      gateways.find((row) => row.index === at && equalIpv6(row.ip, ip))?.answers ?? null;
    return {
      name,
      mtu: settings.mtu ?? null,
      state: firstTrue({ up: each.isUp && each.hasCarrier, down: true }),
      ra: firstTrue({
        none: routers.length === 0,
        accepted: acceptsAdvertisements(each),
        ignored: true,
      }),
      addresses: after.addresses
        .filter(({ index }) => index === at)
        .map(({ index, isGlobal, updated, ...address }) => ipText(address)),
      routers: routers.map(({ ip, heardMs, ...said }) => ({
        ...ipText({ ip, answers: answersOf(ip), ...said }),
        prefixes: said.prefixes.map(prefixText),
        resolvers: said.resolvers.map(ipText),
        nat64Prefixes: said.nat64Prefixes.map(prefixText),
      })),
    };
  });
  const nameOf = (at: number) =>
    after.interfaces.find(({ index }) => index === at)?.name ?? String(at);
  const routes = after.routes
    .filter(({ kind }) => kind === "unicast")
    .flatMap(({ hops, table, kind, expiresSeconds, ...route }) =>
      hops.map(({ index, via }) => ({
        ...prefixText(route),
        via: via && formatIpv6(via),
        interface: nameOf(index),
        expiresSeconds: expiresSeconds && Math.max(0, expiresSeconds),
      })),
    );
  return { interfaces, routes };
}
