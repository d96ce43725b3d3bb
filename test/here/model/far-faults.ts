/** What can be wrong with a simulated machine from its default route on. */

import {
  all,
  type Fault,
  hasDefaultRoute,
  hasFar,
  hasGateway,
  hasNeighbors,
  isAnyHeard,
  isEveryResolverSilent,
  isFarSilent,
  isSlaac,
  isStatic,
  isTakenByKernel,
  lastEnd,
  never,
  type Part,
  preferredOf,
} from "./fault.ts";
import { pick } from "./healthy.ts";
import { advertised, gatewayOf, OWN, reachesInternet, type SimulatedRouter } from "./machine.ts";

/** Faults of the way out and of what is beyond it, the nearest cause first. */
export const FAR_FAULTS: readonly Fault[] = [
  {
    name: "a router with a lifetime of 0",
    code: "no-route",
    parts: ["route", "advertisement", "gateway"],
    suits: (machine) => !isStatic(machine),
    inject: (machine, random) => {
      // The setting does not matter then.
      machine.settings = { ...machine.settings, accept_ra_defrtr: pick([0, 1], random) };
      all(machine, (each) => {
        each.lifetimeSeconds = 0;
      });
    },
    culprits: ["fe80::1", "0"],
  },
  {
    name: "no default route",
    code: "no-route",
    parts: ["route", "gateway"],
    suits: isStatic,
    inject: (machine) => {
      machine.staticRoutes = [];
      all(machine, (each) => {
        each.sends = false;
      });
    },
    culprits: ["default route"],
  },
  ...(["unreachable", "blackhole", "prohibit"] as const).map(
    (deadEnd): Fault => ({
      name: `a default route of type ${deadEnd}`,
      code: "no-route",
      parts: ["route", "gateway"],
      inject: (machine) => {
        machine.deadEnd = deadEnd;
        // A route of a table that is asked before would be taken.
        machine.staticRoutes = machine.staticRoutes.map((each) => ({ ...each, table: 254 }));
      },
      culprits: [deadEnd],
    }),
  ),
  {
    name: "a default route that has expired",
    code: "no-route",
    parts: ["route", "gateway", "advertisement"],
    suits: isTakenByKernel,
    inject: (machine) => {
      machine.hasExpired = true;
      machine.learnedSecondsAgo = 5;
      all(machine, (each) => {
        each.sends = false;
      });
    },
    culprits: ["expired"],
  },
  {
    name: "a default route that vanishes meanwhile",
    code: "no-route",
    parts: ["route", "gateway", "advertisement"],
    suits: ({ isRenewedByProgram }) => !isRenewedByProgram,
    inject: (machine) => {
      machine.losesRoutes = true;
      if (isStatic(machine)) all(machine, (each) => (each.sends = false));
    },
    culprits: ["default route"],
  },
  {
    name: "a gateway that is in no prefix",
    code: "gateway-not-on-link",
    parts: ["gateway"],
    suits: (machine) => isStatic(machine) && hasNeighbors(machine),
    inject: (machine) => {
      machine.staticRoutes = [{ prefix: "::/0", via: "2001:db8:99::1", table: 254 }];
    },
    culprits: ["2001:db8:99::1"],
    isThere: (machine) => hasGateway(machine),
  },
  {
    name: "a gateway that is gone",
    code: "gateway-silent",
    parts: ["gateway", "advertisement", "route"],
    suits: hasNeighbors,
    inject: (machine) => {
      if (!isStatic(machine)) machine.learnedSecondsAgo = 5;
      if (isStatic(machine))
        machine.staticRoutes = [{ prefix: "::/0", via: "fe80::1", table: 254 }];
      all(machine, (each) => {
        each.sends = false;
        each.isThere = false;
      });
    },
    culprits: ["fe80::1"],
  },
  ...[false, true].map(
    (picksDead): Fault => ({
      name: `one of two routers that is gone${picksDead ? ", which the kernel uses" : ""}`,
      code: "router-dead",
      parts: ["gateway", "advertisement", "route"],
      suits: hasNeighbors,
      inject: (machine) => {
        const [first] = machine.routers;
        if (!isStatic(machine)) machine.learnedSecondsAgo = 5;
        machine.picksDead = picksDead;
        machine.routers = [
          { ...(first as SimulatedRouter), ip: "fe80::1" },
          { ...(first as SimulatedRouter), ip: "fe80::9", sends: false, isThere: false },
        ];
        if (isStatic(machine)) {
          machine.staticRoutes = ["fe80::1", "fe80::9"].map((via) => ({
            prefix: "::/0",
            via,
            table: 254,
          }));
        }
      },
      culprits: ["fe80::9", "fe80::1"],
      breaks: (machine) => isFarSilent(machine) || isEveryResolverSilent(machine),
    }),
  ),
  {
    name: "packets that leave with a unique local address",
    code: "source-wrong",
    parts: ["source", "address"],
    inject: (machine) => {
      machine.hasUla = true;
      machine.source = "ula";
    },
    culprits: ["fd00:", "2001:db8:1::"],
    isThere: (machine) => hasDefaultRoute(machine) && preferredOf(machine).length > 0,
  },
  {
    name: "packets that leave with a deprecated address",
    code: "source-wrong",
    parts: ["source", "address", "advertisement"],
    inject: (machine) => {
      machine.hasDeprecated = true;
      machine.source = "deprecated";
    },
    culprits: [OWN.deprecated, "2001:db8:1::"],
    isThere: (machine) => hasDefaultRoute(machine) && preferredOf(machine).length > 0,
  },
  ...(
    [
      ["other prefixes", { prefixes: [advertised("2001:db8:2::/64")] }, "2001:db8:2::/64"],
      ["other MTUs", { mtu: 1280 }, "1280"],
      ["other managed flags", { managed: true }, "managed"],
    ] as [string, Partial<SimulatedRouter>, string][]
  ).map(
    ([name, changes, culprit]): Fault => ({
      name: `two routers with ${name}`,
      code: "routers-disagree",
      parts: ["gateway", "advertisement", "route"],
      suits: isSlaac,
      inject: (machine) => {
        const [first] = machine.routers;
        machine.routers = [
          { ...(first as SimulatedRouter), ip: "fe80::1", mtu: 1500 },
          { ...(first as SimulatedRouter), ip: "fe80::9", mtu: 1500, ...changes },
        ];
      },
      culprits: [culprit, "fe80::1", "fe80::9"],
      isThere: (machine) => isAnyHeard(machine) && machine.hasGlobal,
      breaks: never,
    }),
  ),
  {
    name: "no resolver",
    code: "resolvers-none",
    parts: ["resolver"],
    inject: (machine) => {
      machine.resolvers = [];
    },
    culprits: ["resolv.conf"],
  },
  ...(["answers", "dead"] as const).map(
    (health): Fault => ({
      name: `one resolver of IPv4 (${health})`,
      code: "resolvers-ipv4-only",
      parts: ["resolver"],
      inject: (machine) => {
        machine.resolvers = [{ text: "192.0.2.53", place: "ipv4", health }];
      },
      culprits: ["192.0.2.53"],
      breaks: () => health === "dead",
    }),
  ),
  ...(["echoes", "port-closed"] as const).map(
    (health): Fault => ({
      name: `a resolver whose host is there (${health})`,
      code: "resolvers-silent",
      parts: ["resolver"],
      inject: (machine) => {
        machine.resolvers = [{ text: "2001:db8:ffff::53", place: "beyond", health }];
      },
      culprits: ["2001:db8:ffff::53"],
      isThere: reachesInternet,
    }),
  ),
  {
    name: "a resolver on the link that is gone",
    code: "resolvers-silent",
    parts: ["resolver", "address", "source", "advertisement"],
    suits: (machine) => machine.addressing !== "dhcp" && hasNeighbors(machine),
    inject: (machine) => {
      machine.resolvers = [{ text: "2001:db8:1::53", place: "link", health: "dead" }];
    },
    culprits: ["2001:db8:1::53"],
  },
  {
    name: "a resolver to which no route leads",
    code: "resolvers-silent",
    parts: ["resolver"],
    inject: (machine) => {
      machine.resolvers = [{ text: "fd00:99::53", place: "unroutable", health: "dead" }];
    },
    culprits: ["fd00:99::53", "route"],
  },
  {
    name: "a next network that is silent",
    code: "beyond-silent",
    parts: ["beyond"],
    inject: (machine) => {
      machine.beyond = "silent";
    },
    culprits: ["2001:db8:ffff::53"],
    isThere: hasFar,
  },
  {
    name: "a next network that is narrow",
    code: "beyond-narrow",
    parts: ["beyond"],
    inject: (machine) => {
      machine.beyond = "narrow";
    },
    culprits: ["1500", "2001:db8:ffff::53"],
    isThere: (machine) =>
      reachesInternet(machine) &&
      gatewayOf(machine)?.via != null &&
      machine.resolvers.some(({ place, health }) => place === "beyond" && health === "answers"),
  },
  {
    name: "advertisements that have ended",
    code: "ending",
    parts: ["advertisement", "gateway", "route"],
    suits: isSlaac,
    inject: (machine, random) => {
      machine.learnedSecondsAgo = pick([5, 12, 25], random);
      all(machine, (each) => {
        each.sends = false;
      });
    },
    culprits: ["ends in"],
    breaks: never,
    endsInSeconds: (machine) => lastEnd(machine, ["address", "route"]),
  },
  {
    name: "an address that nobody renews",
    code: "ending",
    parts: ["address", "source"],
    suits: (machine) => !isSlaac(machine),
    inject: (machine, random) => {
      machine.hasDeprecated = false;
      machine.validSeconds = pick([20, 60, 119], random);
    },
    culprits: ["ends in", "2001:db8:1::"],
    breaks: never,
    endsInSeconds: (machine) => lastEnd(machine, ["address"]),
  },
  {
    name: "a route that nobody renews",
    code: "ending",
    parts: ["route", "gateway"],
    suits: isStatic,
    inject: (machine, random) => {
      machine.routeSeconds = pick([20, 60, 119], random);
    },
    culprits: ["ends in", "default route"],
    breaks: never,
    endsInSeconds: (machine) => lastEnd(machine, ["route"]),
  },
];

/** What has to do with an interface that is judged. */
const JUDGED: readonly Part[] = [
  ...(["link", "address", "advertisement", "route", "gateway", "firewall", "source"] as const),
];

/** Faults of another interface, which explain nothing about the one that is judged. */
export const FAULTS_ELSEWHERE: readonly Fault[] = [
  {
    name: "another interface whose router is gone",
    code: "router-dead",
    parts: JUDGED,
    inject: (machine) => {
      machine.second = { ip: "fe80::1", isThere: false, drops: [] };
    },
    culprits: ["fe80::1", "eth1"],
    isThere: (machine) => hasDefaultRoute(machine) && machine.hasRaw,
    breaks: never,
  },
  {
    name: "another interface whose firewall drops advertisements",
    code: "firewall",
    parts: JUDGED,
    inject: (machine) => {
      machine.second = { ip: "fe80::1", isThere: true, drops: [{ type: 134, direction: "in" }] };
    },
    culprits: ["eth1", "134"],
    breaks: never,
  },
];
