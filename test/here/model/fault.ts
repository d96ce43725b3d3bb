/** What a fault of a simulated machine is, and what its rules ask of the machine. */
import { formatIpv6 } from "../../../src/addr/format.ts";
import type { Finding } from "../../../src/tools/here/codes.ts";
import type { Random } from "./healthy.ts";
import {
  defaultRoutesOf,
  gatewayOf,
  globalsOf,
  isHeard,
  isUla,
  outsideOf,
  reachesInternet,
  type Simulated,
  type SimulatedRouter,
} from "./machine.ts";

/** A part of a machine with which at most one fault has to do. */
export type Part =
  | "link"
  | "address"
  | "advertisement"
  | "route"
  | "gateway"
  | "firewall"
  | "source"
  | "resolver"
  | "beyond";

/** Something that is wrong. */
export interface Fault {
  readonly name: string;
  readonly code: Finding;
  readonly parts: readonly Part[];
  /** True if a machine can have it. */
  readonly suits?: (machine: Simulated) => boolean;
  readonly inject: (machine: Simulated, random: Random) => void;
  /** What the verdict must name, and what it must not. */
  readonly culprits: readonly string[];
  readonly innocents?: readonly string[];
  /** True if nothing nearer keeps it from being there; always, unless it says otherwise. */
  readonly isThere?: (machine: Simulated) => boolean;
  /** True if the Internet cannot be reached or something fails because of it; always, unless it says otherwise. */
  readonly breaks?: (machine: Simulated) => boolean;
  /** When IPv6 ends because of it, in seconds. */
  readonly endsInSeconds?: (machine: Simulated) => number;
}

export const all = (machine: Simulated, change: (router: SimulatedRouter) => void) => {
  for (const each of machine.routers) change(each);
};
export const isSlaac = ({ addressing }: Simulated) => addressing === "slaac";
/** True if the kernel takes what routers say, and no program in its place. */
export const isTakenByKernel = (machine: Simulated) =>
  isSlaac(machine) && !machine.isRenewedByProgram;
export const hasNeighbors = ({ isPointToPoint }: Simulated) => !isPointToPoint;
export const isStatic = ({ addressing }: Simulated) => addressing === "static";
export const isAnyHeard = (machine: Simulated) =>
  machine.routers.some((each) => isHeard(machine, each));
export const hasDefaultRoute = (machine: Simulated) => defaultRoutesOf(machine).length > 0;
export const hasGateway = (machine: Simulated) =>
  defaultRoutesOf(machine, "before").some(({ hops }) => hops.some(({ via }) => via !== null));
export const isGateway = (machine: Simulated, { ip }: SimulatedRouter) =>
  defaultRoutesOf(machine, "before").some(({ hops }) =>
    hops.some(({ via }) => via && formatIpv6(via) === ip),
  );
/** True if what is asked beyond the gateway is all silent. */
export const isFarSilent = (machine: Simulated) => {
  const far = machine.resolvers.filter(({ place }) => place === "beyond");
  const isAnswered = reachesInternet(machine) && far.some(({ health }) => health !== "dead");
  return far.length > 0 && !isAnswered;
};
export const isEveryResolverSilent = (machine: Simulated) => {
  const six = outsideOf(machine);
  return six.length > 0 && six.every(({ health }) => health !== "answers");
};
/** True if the way out has a gateway that is there, or needs none. */
export const isGatewayThere = (machine: Simulated) => {
  const via = gatewayOf(machine)?.via;
  return (
    via === null ||
    machine.routers.some(({ ip, isThere }) => via && isThere && ip === formatIpv6(via))
  );
};
export const hasFar = ({ resolvers }: Simulated) =>
  resolvers.some(({ place }) => place === "beyond");
export const publicOf = (machine: Simulated) => globalsOf(machine).filter((each) => !isUla(each));
export const preferredOf = (machine: Simulated) =>
  publicOf(machine).filter(({ state }) => state === "preferred");
/** True if packets to the Internet leave with a unique local address, which RFC 6724 section 5 prefers to a deprecated one. */
export const leavesWithUla = (machine: Simulated) =>
  globalsOf(machine).some(isUla) &&
  publicOf(machine).every(({ state }) => state === "deprecated") &&
  hasDefaultRoute(machine) &&
  machine.deadEnd === null;
/** True if all global addresses, or all default routes, are missing. */
export const lacks = (machine: Simulated, what: readonly ("address" | "route")[]) =>
  (what.includes("address") && publicOf(machine).length === 0) ||
  (what.includes("route") && !hasDefaultRoute(machine));
/** Leaves a machine the addresses that advertisements give, of which a fault takes some. */
export const hasOnly = (machine: Simulated) => {
  machine.hasUla = false;
  machine.hasDeprecated = false;
};
export const never = () => false;

/** The second in which all that advertisements gave is over, if nothing renews it. */
export const lastEnd = (machine: Simulated, what: readonly ("address" | "route")[]) => {
  const ends = {
    address: preferredOf(machine).map((each) => each.validSeconds ?? Number.POSITIVE_INFINITY),
    route: defaultRoutesOf(machine).map((each) => each.expiresSeconds ?? Number.POSITIVE_INFINITY),
  };
  // What is not there does not end.
  return Math.min(
    ...what.map((each) =>
      ends[each].length > 0 ? Math.max(...ends[each]) : Number.POSITIVE_INFINITY,
    ),
  );
};
