/** Simulated runs and documents, for the tests of changes and `scripts/simulate-changes.ts`. */
import type { LevelRun } from "../../src/watch/level.ts";

/** What a path does to probes. */
export interface Level {
  /** Milliseconds. */
  readonly rtt: number;
  /** The part of it by which the daily swing goes up and down. */
  readonly swing: number;
  /** The share of probes that are lost. */
  readonly loss: number;
}

/** Runs of ten rounds every five minutes. */
export const RUNS = { rounds: 10, aDay: 288, aMonth: 288 * 30 } as const;

/** A run of ten rounds: noise of 3 % with a heavy tail, as queues make it. */
export function simulateRun(
  { rtt, swing, loss }: Level,
  at: number,
  random: () => number,
): LevelRun {
  const base = rtt * (1 + swing * Math.sin((2 * Math.PI * at) / RUNS.aDay));
  const times: number[] = [];
  let lost = 0;
  for (let round = 0; round < RUNS.rounds; round++) {
    const isLost = random() < loss;
    const noise = 1 + 0.03 * Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(6.283 * random());
    // Pareto with an infinite variance, for one probe of ten.
    const tail = random() < 0.1 ? 0.2 * ((1 - random()) ** (-1 / 1.5) - 1) : 0;
    if (isLost) lost++;
    else times.push(base * (noise + tail));
  }
  const sorted = times.sort((a, b) => a - b);
  const [low = 0, high = 0] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
  const median = sorted.length === 0 ? null : Math.round(500 * (low + high));
  return { sent: RUNS.rounds, lost, median };
}

/** How routers choose among equal ways. */
export type Choice = "flow" | "packet";

const WAYS = 8;
const TARGET = "2001:db8:ffff::80";

/** A network of six hops whose middle two have eight equal ways, of which one router may be replaced. */
export interface Network {
  readonly choice: Choice;
  /** The chance that a router does not answer a probe. */
  readonly silence: number;
  /** The hop and the way of a router that has another address. */
  readonly replaced?: { readonly hop: number; readonly way: number };
}

const HOPS = 6;
const hasWays = (hop: number) => hop === 3 || hop === 4;

function routerAt(hop: number, way: number, { replaced }: Network): string {
  if (hop === HOPS) return TARGET;
  const own = hasWays(hop) ? way : 0;
  const isOther = replaced?.hop === hop && replaced.way === own;
  return `2001:db8:${hop}::${own + 1}${isOther ? ":99" : ""}`;
}

/** The way that routers choose for a flow label. */
export const wayOf = (flowLabel: number) => Math.imul(flowLabel, 2_654_435_761) >>> 29;

const common = (flowLabel: number) => ({
  ...{ startedAt: "2026-11-27T00:00:00.000Z", version: "1.0.0", source: "2001:db8::1" },
  ...{ verdict: { code: "reached", text: "The target replied." }, reached: true, flowLabel },
});

/** The document of a trace. */
export function traceOf(network: Network, flowLabel: number, random: () => number) {
  const hops = Array.from({ length: HOPS }, (_, at) => {
    const hop = at + 1;
    const way = network.choice === "flow" ? wayOf(flowLabel) : Math.floor(random() * WAYS);
    const isSilent = hop < HOPS && random() < network.silence;
    return { hop, ip: isSilent ? null : routerAt(hop, way, network), hostname: null, rtt: null };
  });
  return { target: TARGET, ip: TARGET, hops, details: { ...common(flowLabel), reason: "reached" } };
}

/** The document of an mtr of ten rounds. */
export function mtrOf(network: Network, flowLabel: number, random: () => number) {
  const hops = Array.from({ length: HOPS }, (_, at) => {
    const counts = new Map<string, number>();
    for (let round = 0; round < RUNS.rounds; round++) {
      const { ip } = traceOf(network, flowLabel, random).hops[at] ?? {};
      if (ip) counts.set(ip, (counts.get(ip) ?? 0) + 1);
    }
    const addresses = [...counts].map(([ip, received]) => ({ ip, received }));
    return { hop: at + 1, ip: addresses[0]?.ip ?? null, addresses };
  });
  const { target, ip, details } = traceOf(network, flowLabel, random);
  return { target, ip, rounds: RUNS.rounds, hops, details };
}

/** The document of a search for all paths: as many flow labels as show every next hop with 95 % confidence. */
export function pathsOf(network: Network, firstLabel: number, random: () => number) {
  const labels = Array.from({ length: 43 }, () => 1 + Math.floor(random() * 0xfffff));
  const seen = new Map<string, { hop: number; ip: string }>();
  for (const label of [firstLabel, ...labels]) {
    for (const { hop, ip } of traceOf(network, label, random).hops)
      if (ip) seen.set(`${hop} ${ip}`, { hop, ip });
  }
  const trace = traceOf(network, firstLabel, random);
  const graph = { nodes: [...seen.values()], edges: [] };
  return { ...trace, details: { ...trace.details, complete: true, graph } };
}
