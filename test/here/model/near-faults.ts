/** What can be wrong with a simulated machine up to its addresses. */
import {
  all,
  type Fault,
  hasDefaultRoute,
  hasFar,
  hasGateway,
  hasOnly,
  isAnyHeard,
  isFarSilent,
  isGateway,
  isGatewayThere,
  isSlaac,
  isStatic,
  isTakenByKernel,
  lacks,
  lastEnd,
  leavesWithUla,
  type Part,
  publicOf,
} from "./fault.ts";
import { advertised, isHeard, OWN, reachesInternet, type Simulated } from "./machine.ts";

/** What has to do with addresses that are deprecated. */
const DEPRECATED: readonly Part[] = ["address", "source"];

/** Since when an advertisement is ignored: what it gave then is not there, lasts for a while, or is deprecated. */
const SINCE = ["ever", "a while", "long"] as const;

/** An advertisement is ignored because of a setting; IPv6 goes on for a while if it was taken before. */
const ignored = (
  settings: Simulated["settings"],
  setting: string,
  what: readonly ("address" | "route")[],
): Fault[] =>
  SINCE.filter((since) => since !== "long" || what.includes("address")).map((since) => ({
    name: `${setting} since ${since}`,
    code: "ra-ignored",
    parts: ["advertisement", "gateway", ...(since === "long" ? DEPRECATED : [])],
    suits: isTakenByKernel,
    inject: (machine) => {
      machine.settings = { ...machine.settings, ...settings };
      machine.learnedSecondsAgo = since === "ever" ? null : 5;
      if (since === "long") machine.states = ["deprecated", "deprecated"];
    },
    culprits: [setting, "fe80::1"],
    isThere: (machine) =>
      isAnyHeard(machine) && (since !== "a while" || Number.isFinite(lastEnd(machine, what))),
    breaks: (machine) => since !== "a while" && (lacks(machine, what) || leavesWithUla(machine)),
    ...(since !== "ever" && {
      endsInSeconds: (machine: Simulated) =>
        leavesWithUla(machine) ? Number.POSITIVE_INFINITY : lastEnd(machine, what),
    }),
  }));

const drop = (
  type: number,
  direction: "in" | "out",
  isThere: (machine: Simulated) => boolean,
): Fault => ({
  name: `a firewall that drops type ${type} ${direction}`,
  code: "firewall",
  parts: ["firewall"],
  inject: (machine) => {
    machine.drops = [{ type, direction }];
  },
  culprits: [`type ${type}`, direction],
  isThere,
});

/** Faults of the kernel, the link, its routers and the own addresses, the nearest cause first. */
export const NEAR_FAULTS: readonly Fault[] = [
  {
    name: "a kernel without IPv6",
    code: "kernel-without-ipv6",
    parts: ["link"],
    inject: (machine) => {
      machine.hasIpv6 = false;
    },
    culprits: ["ipv6.disable"],
  },
  ...(["interface", "all", "itself"] as const).map(
    (switchedOff): Fault => ({
      name: `IPv6 switched off by ${switchedOff}`,
      code: "disabled",
      parts: ["link"],
      inject: (machine) => {
        machine.switchedOff = switchedOff;
      },
      ...(switchedOff === "all" && { innocents: ["accept_dad"] }),
      culprits: ["disable_ipv6", ...(switchedOff === "all" ? ["conf.all."] : [])],
    }),
  ),
  {
    name: "a link that is too narrow for IPv6",
    code: "disabled",
    parts: ["link"],
    inject: (machine) => {
      machine.switchedOff = "mtu";
    },
    culprits: ["1280"],
  },
  ...(["down", "no-carrier", "none", "vanishes", "loses-carrier"] as const).map(
    (link): Fault => ({
      name: `a link that is or goes: ${link}`,
      code: "link-down",
      parts: ["link"],
      inject: (machine) => {
        machine.link = link;
      },
      culprits: [],
    }),
  ),
  {
    name: "a duplicate link-local address",
    code: "address-duplicate",
    parts: ["address"],
    inject: (machine) => {
      machine.isLinkLocalDuplicate = true;
    },
    culprits: [OWN.linkLocal],
  },
  {
    name: "a duplicate static address",
    code: "address-duplicate",
    parts: ["address", "source"],
    suits: ({ addressing }) => addressing !== "slaac",
    inject: (machine) => {
      machine.hasDeprecated = false;
      machine.states = ["duplicate", "duplicate"];
    },
    culprits: ["2001:db8:1::"],
  },
  {
    name: "a duplicate SLAAC address",
    code: "address-duplicate",
    // A firewall that drops neighbor discovery hides it, and a setting too.
    parts: ["address", "firewall", "advertisement"],
    suits: isSlaac,
    inject: (machine) => {
      machine.hasDeprecated = false;
      machine.isSlaacDuplicate = true;
    },
    culprits: [OWN.global],
  },
  drop(133, "out", () => true),
  drop(135, "out", (machine) => isAnyHeard(machine) || hasGateway(machine)),
  drop(134, "in", isAnyHeard),
  drop(136, "in", (machine) =>
    machine.routers.some(
      (each) => each.isThere && (isHeard(machine, each) || isGateway(machine, each)),
    ),
  ),
  drop(2, "in", (machine) => reachesInternet(machine) && hasFar(machine)),
  ...ignored({ accept_ra: 0, forwarding: 0 }, "accept_ra is 0", ["address", "route"]),
  ...ignored({ accept_ra: 1, forwarding: 1 }, "forwarding is 1", ["address", "route"]),
  ...ignored({ autoconf: 0 }, "autoconf is 0", ["address"]),
  ...ignored({ accept_ra_pinfo: 0 }, "accept_ra_pinfo is 0", ["address"]),
  ...ignored({ accept_ra_defrtr: 0 }, "accept_ra_defrtr is 0", ["route"]),
  {
    name: "no router",
    code: "no-router",
    parts: ["advertisement", "gateway", "address", "route"],
    suits: isSlaac,
    inject: (machine) => {
      hasOnly(machine);
      machine.learnedSecondsAgo = null;
      all(machine, (each) => {
        each.sends = false;
      });
    },
    culprits: [],
  },
  ...[false, true].map(
    (managed): Fault => ({
      name: `advertisements without a prefix${managed ? ", with the managed flag" : ""}`,
      code: "ra-without-prefix",
      parts: ["advertisement", "address", "source"],
      suits: isSlaac,
      inject: (machine) => {
        hasOnly(machine);
        all(machine, (each) => {
          each.prefixes = managed ? [advertised("2001:db8:1::/64", { autonomous: false })] : [];
          each.managed = managed;
        });
      },
      culprits: ["fe80::1", ...(managed ? ["anaged"] : [])],
    }),
  ),
  ...[
    ["a /63", "2001:db8::/63", {}] as const,
    ["a /80", "2001:db8:1::/80", {}] as const,
    [
      "a prefix that is preferred for longer than valid",
      "2001:db8:1::/64",
      { preferredSeconds: 7200 },
    ] as const,
    [
      "a prefix that is not valid",
      "2001:db8:1::/64",
      { preferredSeconds: 0, validSeconds: 0 },
    ] as const,
  ].map(
    ([name, prefix, lifetimes]): Fault => ({
      name: `advertisements of ${name}`,
      code: "prefix-not-usable",
      parts: ["advertisement", "address", "source"],
      suits: isSlaac,
      inject: (machine) => {
        hasOnly(machine);
        all(machine, (each) => {
          each.prefixes = [advertised(prefix, lifetimes)];
        });
      },
      culprits: ["fe80::1", prefix],
    }),
  ),
  {
    name: "a kernel that makes no address of a prefix",
    code: "prefix-not-usable",
    parts: ["advertisement", "address", "source", "firewall"],
    suits: isTakenByKernel,
    inject: (machine) => {
      hasOnly(machine);
      machine.makesNoAddress = true;
    },
    culprits: ["fe80::1", "2001:db8:1::/64"],
  },
  {
    name: "tentative addresses",
    code: "address-tentative",
    parts: ["address", "source"],
    inject: (machine) => {
      machine.hasDeprecated = false;
      machine.states = ["tentative", "tentative"];
    },
    culprits: ["2001:db8:1::"],
    isThere: (machine) => publicOf(machine).length > 0,
  },
  ...(["deprecated", "preferred"] as const).map(
    (before): Fault => ({
      name: `addresses that are deprecated, ${before} before`,
      code: "address-deprecated",
      parts: [...DEPRECATED, "advertisement"],
      inject: (machine) => {
        machine.states = [before, "deprecated"];
        all(machine, (each) => {
          const preferred = isStatic(machine) ? {} : { preferredSeconds: 0 };
          each.prefixes = each.prefixes.map((row) => ({ ...row, ...preferred }));
        });
      },
      culprits: ["2001:db8:1::"],
      isThere: (machine) => publicOf(machine).length > 0,
      breaks: leavesWithUla,
    }),
  ),
  {
    name: "only a unique local address",
    code: "only-ula",
    parts: ["address", "source", "advertisement"],
    inject: (machine) => {
      machine.hasGlobal = false;
      machine.hasUla = true;
      all(machine, (each) => {
        each.prefixes = isSlaac(machine)
          ? ["fd00:1::/64", "fd00:2::/64"].map((each) => advertised(each))
          : [];
      });
    },
    culprits: ["fd00:1::5"],
    breaks: (machine) =>
      !hasDefaultRoute(machine) ||
      machine.deadEnd !== null ||
      (isFarSilent(machine) && isGatewayThere(machine)),
  },
];
