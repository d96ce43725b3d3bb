/** A run of `here`: reads the kernel's tables, listens on the links while it asks the resolvers, and judges. */
import { formatIp } from "../../addr/ip.ts";
import { equalIpv6, type Ipv6Address } from "../../addr/ipv6.ts";
import { formatPrefix, type Prefix } from "../../addr/prefix.ts";
import { type DnsServer, tryParseDnsServer } from "../../dns/server.ts";
import { type Interface, type Machine, readMachine, type Way } from "../../here/machine.ts";
import { defaultRoutes, type Observation, observe } from "../../here/observe.ts";
import type { Prober } from "../../icmp/prober/prober.ts";
import { tryRead } from "../../platform/regular-file.ts";
import { firstTrue } from "../../util/text.ts";
import { STEPS } from "./codes.ts";
import { type Facts, NO_WAY } from "./facts.ts";
import type { HereStep } from "./result.ts";
import { tryResolvers, wayOut } from "./tries.ts";
import { acceptsAdvertisements, judge, judgeStep } from "./verdict.ts";

/** The stub of systemd-resolved, and where the resolvers are that it asks. */
const STUB = /^127\.0\.0\.5[34]$/;
const BEHIND_STUB = "/run/systemd/resolve/resolv.conf";

/** Told as each step begins, and as it is known. */
export type OnStep = (name: "begin" | "step", data: object) => void;

/** Steps that are known before anything is asked. */
const AT_ONCE: readonly HereStep["name"][] = ["kernel", "link"];

/**
 * Looks at this machine.
 *
 * @param servers the configured resolvers
 * @param wanted the name of the interface that is judged; null for that of the way out
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
  const wayFor = (some: typeof asked) => (hasIpv6 ? wayOut(some) : NO_WAY);
  const candidates = candidatesOf(before);
  const first = firstOf(before, wayFor(asked), wanted);
  const tellEarly = (name: HereStep["name"], resolvers: Facts["resolvers"] = []) => {
    const observation = { before, after: before, heard: [], gateways: [], withoutRaw: null };
    const judged = first ?? candidates[0] ?? null;
    const step = judgeStep(name, { observation, judged, resolvers, way: wayFor([]) });
    // Another may explain why one fails.
    if (step.status === "ok") tell(step);
  };
  for (const name of STEPS) onStep?.("begin", { name });
  for (const name of AT_ONCE) tellEarly(name);
  const trying = tryResolvers(asked, prober, signal);
  const isTold = trying.then((resolvers) => tellEarly("resolvers", resolvers));
  const ways = defaultRoutes(before).flatMap(({ hops }) => hops.map(({ index }) => index));
  const others = candidates.filter(({ index }) => first === null || ways.includes(index));
  const links = [...new Set(first === null ? others : [first, ...others])].filter(isUsable);
  const observation = await observe(links, isTold, signal);
  signal.throwIfAborted();
  const judged = first ?? laterOf(observation, candidates);
  const resolvers = await trying;
  const { steps, verdict } = judge({ observation, judged, resolvers, way: wayFor([]) });
  return { ...tablesOf(observation), steps: steps.map(tell), verdict };
}

/** The interfaces that can be judged. */
export const candidatesOf = ({ interfaces }: Machine) =>
  interfaces.filter(({ isLoopback, isPort }) => !isLoopback && !isPort);

const isUsable = ({ isUp, hasCarrier, settings }: Interface) =>
  isUp && hasCarrier && settings.disable_ipv6 !== 1;

/** The resolvers that a stub on this machine asks, in its place. */
function behindStub(servers: readonly DnsServer[]): readonly DnsServer[] {
  const isStub = servers.length > 0 && servers.every(({ address }) => STUB.test(formatIp(address)));
  const lines = (isStub && tryRead(BEHIND_STUB)) || "";
  const found = Array.from(lines.matchAll(/^nameserver[ \t]+(\S+)/gm), ([, text = ""]) =>
    tryParseDnsServer(text),
  ).filter((server) => server !== null);
  return found.length > 0 ? found : servers;
}

/** The interface that is judged, as far as that is known before anything was heard; null if it is not. */
function firstOf(machine: Machine, way: Way | string, wanted: string | null): Interface | null {
  const candidates = candidatesOf(machine);
  if (wanted !== null) return candidates.find(({ name }) => name === wanted) ?? null;
  const hops = [way, ...defaultRoutes(machine).flatMap((route) => route.hops)];
  const found = hops.map((hop) =>
    candidates.find(({ index }) => typeof hop === "object" && hop.index === index),
  );
  return found.find((each) => each !== undefined) ?? null;
}

/** The interface that is judged where no route leads out: where a router is, else a global address, else one that is up. */
function laterOf(
  { heard, after }: Observation,
  candidates: readonly Interface[],
): Interface | null {
  const tests = [
    ({ index }: Interface) => heard.some((each) => each.index === index && each.routers.length > 0),
    ({ index }: Interface) => after.addresses.some((each) => each.index === index && each.isGlobal),
    ({ isUp, hasCarrier }: Interface) => isUp && hasCarrier,
    () => true,
  ];
  return tests.map((is) => candidates.find(is)).find((each) => each !== undefined) ?? null;
}

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
        .map(({ index, isGlobal, updated, ...address }) => address),
      routers: routers.map(({ ip, advertisement }) => ({
        ...{ ip, answers: answersOf(ip) },
        ...advertisement,
      })),
    };
  });
  const nameOf = (at: number) =>
    after.interfaces.find(({ index }) => index === at)?.name ?? String(at);
  const routes = after.routes
    .filter(({ kind }) => kind === "unicast")
    .flatMap(({ hops, table, kind, expiresSeconds: seconds, ...route }) =>
      hops.map(({ index, via }) => ({
        ...{ ...route, via, interface: nameOf(index) },
        expiresSeconds: seconds && Math.max(0, seconds),
      })),
    );
  return textsOf({ interfaces, routes });
}

/** A value with a text in place of each address and prefix. */
type Texts<Value> = Value extends Ipv6Address | Prefix
  ? string
  : Value extends object
    ? { [Key in keyof Value]: Texts<Value[Key]> }
    : Value;

function textsOf<Value>(value: Value): Texts<Value> {
  const text = (each: unknown): unknown => {
    if (typeof each !== "object" || each === null) return each;
    if (Array.isArray(each)) return each.map(text);
    if ("word0" in each) return formatIp(each as Ipv6Address);
    if ("network" in each) return formatPrefix(each as Prefix);
    return Object.fromEntries(Object.entries(each).map(([key, part]) => [key, text(part)]));
  };
  return text(value) as Texts<Value>;
}
