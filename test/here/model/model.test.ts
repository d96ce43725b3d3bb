/** Verdicts about simulated machines, on which several things are wrong at a time. A failure names its seed. */
import { describe, expect, test } from "bun:test";
import type { Route } from "../../../src/here/kernel.ts";
import { defaultRoutes, type Gateway } from "../../../src/here/observe.ts";
import { judge } from "../../../src/tools/here/verdict.ts";
import { parseIpv6 } from "../../addr/parse.ts";
import { randomFrom } from "../../lab/simulation.ts";
import { type Fault, hasFar, hasNeighbors, isStatic } from "./fault.ts";
import { healthyMachine } from "./healthy.ts";
import { factsOf, type Simulated } from "./machine.ts";
import { ALL_FAULTS, areTogether, CODES, chooseFaults, nearest } from "./mixtures.ts";

const MIXTURES = 600;
const MOST_FAULTS = 4;
/** Machines that have each fault, and those that have none. */
const [OF_EACH, HEALTHY] = [20, 200];
const [MOST_STEP_TEXT, MOST_VERDICT_TEXT] = [300, 400];

const machineOf = (seed: number) => healthyMachine(randomFrom(seed));

/** The machine of a seed with faults; the same changes of it at random each time. */
function withFaults(seed: number, faults: readonly Fault[]): Simulated {
  const machine = machineOf(seed);
  for (const fault of faults) fault.inject(machine, randomFrom(seed));
  return machine;
}

function mixtureOf(seed: number): Fault[] {
  const random = randomFrom(seed + 1e6);
  return chooseFaults(machineOf(seed), 1 + Math.floor(random() * MOST_FAULTS), random);
}

/** The codes whose verdict is about the machine, and not about an interface. */
const OF_MACHINE = [
  "kernel-without-ipv6",
  "resolvers-none",
  "resolvers-ipv4-only",
  "resolvers-silent",
];

/** What is not as it must be in the verdict about a machine with faults, and its code. */
function look(seed: number, faults: readonly Fault[]) {
  const machine = withFaults(seed, faults);
  const expected = nearest(machine, faults);
  const { steps, verdict } = judge(factsOf(machine));
  const { code, text } = verdict;
  const failed = steps.filter(({ status }) => status === "fail");
  const ends = expected?.endsInSeconds?.(machine) ?? Number.POSITIVE_INFINITY;
  const isNamed =
    OF_MACHINE.includes(code) ||
    [machine.name, "eth1", "This machine"].some((name) => text.includes(name));
  const objections: Record<string, boolean> = {
    [`must be ${expected?.code ?? "works"}`]: code !== (expected?.code ?? "works"),
    [`must name ${expected?.culprits}`]: !expected?.culprits.every((each) => text.includes(each)),
    "must name the interface": !isNamed,
    [`must end in ${ends} s`]: Math.abs((verdict.inSeconds ?? Number.POSITIVE_INFINITY) - ends) > 1,
    [`must have failed alone: ${failed.map(({ name }) => name)}`]:
      failed.length > 1 || failed.some(({ finding }) => finding !== code),
    "must not accuse": expected?.innocents?.some((each) => text.includes(each)) === true,
    "a text is too long or cut": text.length > MOST_VERDICT_TEXT || text.includes("…"),
    "a step is too long": steps.some((step) => step.text.length > MOST_STEP_TEXT),
    "a text has no value": [verdict, ...steps].some((each) =>
      /undefined|null|NaN|Infinity|[{}\n[\]]/.test(each.text),
    ),
  };
  if (expected === undefined) delete objections["must name undefined"];
  const names = faults.map(({ name }) => name).join(" and ") || "nothing wrong";
  const wrong = Object.keys(objections).filter((each) => objections[each]);
  return {
    code,
    problems: wrong.map((each) => `seed ${seed}, ${names}: ${each}; ${code}: ${text}`),
  };
}

const seeds = (count: number) => Array.from({ length: count }, (_, seed) => seed);

test("nothing wrong: works", () => {
  expect(seeds(HEALTHY).flatMap((seed) => look(seed, []).problems)).toEqual([]);
});

test.each(ALL_FAULTS.map((fault) => [fault.name, fault] as const))("%s", (_name, fault) => {
  const suited = seeds(10 * OF_EACH).filter((seed) => fault.suits?.(machineOf(seed)) ?? true);
  const looks = suited.slice(0, OF_EACH).map((seed) => look(seed, [fault]));
  expect(looks.flatMap(({ problems }) => problems)).toEqual([]);
  expect(looks.map(({ code }) => code)).toContain(fault.code);
});

describe("several faults at a time", () => {
  test(`the nearest is named in each of ${MIXTURES} mixtures`, () => {
    const looks = seeds(MIXTURES).map((seed) => look(seed, mixtureOf(seed)));
    const counts = Object.groupBy(looks, ({ code }) => code);
    const rows = Object.entries(counts).map(([code, rows = []]) => `${rows.length} ${code}`);
    console.log(`${MIXTURES} mixtures: ${rows.join(", ")}`);
    expect(looks.flatMap(({ problems }) => problems)).toEqual([]);
    expect(CODES.filter((code) => (counts[code]?.length ?? 0) === 0)).toEqual([]);
  });

  test("the nearest is named of every two that can be together", () => {
    const pairs = ALL_FAULTS.flatMap((first, at) =>
      ALL_FAULTS.slice(at + 1).map((second) => [first, second]),
    );
    const looks = pairs.flatMap((pair) => {
      const seed = seeds(20).find((each) => areTogether(machineOf(each), pair));
      return seed === undefined ? [] : look(seed, pair);
    });
    console.log(`${looks.length} pairs`);
    expect(looks.flatMap(({ problems }) => problems)).toEqual([]);
  });

  test("a farther one changes nothing", () => {
    const changed = seeds(MIXTURES).flatMap((seed) => {
      const faults = mixtureOf(seed);
      const cause = nearest(withFaults(seed, faults), faults);
      // Some are there only because of another.
      if (!cause || !nearest(withFaults(seed, [cause]), [cause])) return [];
      const [alone, together] = [look(seed, [cause]).code, look(seed, faults).code];
      return alone === together ? [] : [`seed ${seed}: ${alone} alone, ${together} with others`];
    });
    expect(changed).toEqual([]);
  });
});

/** One route whose hops are those of some. */
function together(routes: readonly Route[]): Route[] {
  const isDefault = ({ prefix }: Route) => prefix.length === 0;
  const [first] = routes.filter(isDefault);
  const hops = routes.filter(isDefault).flatMap((route) => route.hops);
  return [...routes.filter((each) => !isDefault(each)), { ...(first as Route), hops }];
}

test.each([
  ["is silent", "silent"],
  ["answers", "answers"],
] as const)(
  "the dead one of two hops of a route is named where a resolver %s, for each flow takes its own",
  (_name, outcome) => {
    const fault = ALL_FAULTS.find(
      ({ name }) => name === "one of two routers that is gone",
    ) as Fault;
    const fits = (seed: number) => {
      const machine = machineOf(seed);
      return isStatic(machine) && hasFar(machine) && !machine.second && fault.suits?.(machine);
    };
    const facts = factsOf(withFaults(seeds(1000).find(fits) as number, [fault]));
    const { before, after, resolvers } = facts;
    const dead = facts.gateways.find(({ answers }) => !answers) as Gateway;
    const { verdict } = judge({
      ...facts,
      before: { ...before, routes: together(before.routes) },
      after: { ...after, routes: together(after.routes) },
      // The kernel tells the way of another flow.
      resolvers: resolvers.map((tried) => ({
        ...{ ...tried, outcome, echoes: true },
        way: tried.way && { ...tried.way, via: dead.ip },
      })),
    });
    expect(verdict.code, verdict.text).toBe("router-dead");
  },
);

// On a network, the kernel leaves it for the default router as soon as anybody has asked for it in vain.
test("the dead gateway of the route to a resolver is named, and not the default router", () => {
  const fits = (seed: number) => {
    const machine = machineOf(seed);
    const areFar = machine.resolvers.every(({ place }) => place === "beyond");
    return isStatic(machine) && hasNeighbors(machine) && areFar;
  };
  const facts = factsOf(machineOf(seeds(1000).find(fits) as number));
  const dead = { ip: parseIpv6("fe80::dead"), index: facts.judged?.index ?? 0, answers: false };
  const { verdict } = judge({
    ...facts,
    gateways: [...facts.gateways, dead],
    resolvers: facts.resolvers.map((tried) => ({
      ...{ ...tried, outcome: "silent", echoes: false },
      way: tried.way && { ...tried.way, via: dead.ip },
    })),
  });
  expect(verdict.code, verdict.text).toBe("gateway-silent");
  expect(verdict.text).toContain("fe80::dead");
  expect(verdict.text).not.toContain("fe80::1");
});

/** What only a raw socket shows. */
const HEARD: readonly string[] = [
  ...["firewall", "ra-ignored", "ra-without-prefix", "prefix-not-usable", "routers-disagree"],
  ...["gateway-not-on-link", "gateway-silent", "router-dead", "beyond-silent", "beyond-narrow"],
];

test("without raw sockets, nothing is concluded from what was not seen", () => {
  const wrong = seeds(MIXTURES).flatMap((seed) => {
    const faults = seed % 4 === 0 ? [] : mixtureOf(seed);
    const machine = withFaults(seed, faults);
    machine.hasRaw = false;
    const facts = factsOf(machine);
    const { steps, verdict } = judge(facts);
    const { code, text } = verdict;
    const gateway = steps.find(({ name }) => name === "gateway")?.text ?? "";
    const hasGateway = defaultRoutes(facts.after).some(({ hops }) => hops.some(({ via }) => via));
    const isWrong =
      HEARD.includes(code) ||
      (faults.length === 0 && code !== "works") ||
      gateway.includes("answered") ||
      (hasGateway && gateway.includes("no gateway"));
    return isWrong ? [`seed ${seed}: ${code}: ${text} ${gateway}`] : [];
  });
  expect(wrong).toEqual([]);
});
