import { formatIpv6 } from "../addr/format.ts";
import {
  graphOf,
  groupByPath,
  labelsToRuleOut,
  missingLabels,
  type PathGraph,
  type TracedPath,
} from "./path-graph.ts";
import type { NoResult } from "./ping.ts";
import type { Prober } from "./prober.ts";
import { ENOUGH, UNBOUNDED } from "./run-budget.ts";
import type { Traced, TraceOptions, TraceRequest, Traceroute } from "./traceroute.ts";

/** The bounds of a search for paths: flow labels for each path that is wanted, probes, and milliseconds in which traces begin. */
const LABELS_PER_PATH = 16;
const MAX_SENT = 10_000;
export const MAX_SEARCH_MS = 60_000;
/** Traces at once: routers rate-limit their errors, Linux to a burst of six and then ten a second. */
const TRACES_AT_ONCE = 16;

/** A search for the paths to one target. */
export interface PathsRequest extends TraceRequest {
  /** How many paths are wanted. */
  readonly paths: number;
}

/** How the caller takes part in a search. */
export interface PathsOptions extends TraceOptions {
  /** Called with each path when it is found, and again if its first label found more. */
  readonly onPath?: ((path: TracedPath) => void) | undefined;
}

/** The paths to a target; the trace is that of the first. */
export interface TracedPaths extends Traced {
  /** At most as many as were wanted, in the order in which they were found. */
  readonly paths: readonly TracedPath[];
  /** All nodes and edges that were found, also those of further paths. */
  readonly graph: PathGraph;
  /** Flow labels that were traced. */
  readonly labels: number;
  /** True if every next hop of every node was seen with 95 % confidence, and all paths are listed. */
  readonly isComplete: boolean;
  /** Hops at which different addresses answered one flow label. */
  readonly perPacket: readonly number[];
}

/** How a search ended. */
export type PathsOutcome = TracedPaths | NoResult;

/**
 * Finds the paths among which routers choose by flow label: traces the target with one flow label after
 * another, until the next hops of every node are known with 95 % confidence.
 */
export async function tracePaths(
  prober: Prober,
  traceroute: Traceroute,
  request: PathsRequest,
  { signal, budget = UNBOUNDED, onHop, onPath }: PathsOptions = {},
): Promise<PathsOutcome> {
  const endMs = prober.clock.nowMs() + MAX_SEARCH_MS;
  const first = await traceroute(request, { signal, onHop });
  if (first.kind !== "done") return first;
  const { clock } = prober;
  const stop = prober.signalFor(signal, budget.enough);
  let traced: readonly [Traced, ...Traced[]] = [first];
  let paths: readonly TracedPath[] = [];
  let missing = 0;
  let { sent } = first;
  let labelsLeft = request.paths * LABELS_PER_PATH - 1;
  /** Why traces had no result; one of them ends the search. */
  const failures: NoResult[] = [];
  /** Labels that were traced again. */
  const certain = new Set<number>();
  /** The last call of `onPath` for each path, by its label. */
  const told = new Map<number, string>();

  const isAdmitted = ({ hops }: Traced) =>
    hops.every(({ hop, addresses }) => addresses.every((each) => budget.admit(hop, each)));

  const isOver = () => failures.length > 0 || clock.nowMs() > endMs || sent >= MAX_SENT;

  const trace = async (wanted: Partial<TraceRequest>): Promise<Traced | null> => {
    const outcome = await traceroute({ ...request, ...wanted }, { signal: stop });
    if (outcome.kind !== "done") {
      failures.push(outcome);
      return null;
    }
    sent += outcome.sent;
    return isAdmitted(outcome) ? outcome : null;
  };

  const describe = () => {
    paths = groupByPath(traced);
    missing = missingLabels(paths);
    for (const path of paths) {
      const { flowLabel, reason, hops } = path.labels[0];
      const text = JSON.stringify([reason, hops.map(({ address }) => address)]);
      if (told.get(flowLabel) !== text) onPath?.(path);
      told.set(flowLabel, text);
    }
  };

  /** How many labels more are to be traced at once now. */
  const wanted = () => (isOver() || labelsLeft === 0 ? 0 : Math.min(missing, TRACES_AT_ONCE));

  /** Traces one label more. */
  const tryLabel = async () => {
    labelsLeft--;
    const lengths = paths.map(({ end, nodes }) => (end === "reached" ? nodes.length : 0));
    const maxHops = Math.max(...lengths) || request.maxHops;
    const found = await trace({ flowLabel: prober.randomLabel(), maxHops });
    // Another program leaves us no label but 0.
    if (found?.flowLabel === 0) labelsLeft = 0;
    else if (found) traced = [...traced, found];
    budget.work(describe);
  };

  /**
   * A path whose first label did not reach the target, or only behind silent hops, though others reached it:
   * the target may answer too seldom for all these traces, or the path is longer.
   */
  const findDoubtful = () => {
    const reaching = paths.filter(({ end }) => end === "reached");
    const shortest = Math.min(...reaching.map(({ nodes }) => nodes.length));
    const seemsFar = ({ nodes }: TracedPath) => nodes.length > shortest && nodes.at(-2) === null;
    if (reaching.length === 0 || isOver()) return undefined;
    return paths.find(
      (path) => (path.end === null || seemsFar(path)) && !certain.has(path.labels[0].flowLabel),
    );
  };

  /** Traces a path's first label again, alone and as far as a trace goes, in place of the first time. */
  const tryAgain = async ({ labels: [before] }: TracedPath) => {
    certain.add(before.flowLabel);
    const found = await trace({ flowLabel: before.flowLabel });
    const latest = (label: Traced) => (label === before && found) || label;
    const [oldest, ...others] = traced;
    traced = [latest(oldest), ...others.map(latest)];
    budget.work(describe);
  };

  /** The hops at which one label meets different addresses: it is traced as often as shows two with 95 % confidence. */
  const changingHops = async () => {
    // One that reached the target, because it takes seconds to find that a path goes silent.
    const label = traced.find(({ reached }) => reached) ?? traced[0];
    const traces = [label];
    while (paths.length > 1 && traces.length < labelsToRuleOut(2) && !isOver()) {
      const found = await trace({ flowLabel: label.flowLabel });
      if (found) traces.push(found);
    }
    const isChanging = (hop: number) => {
      const addresses = traces.flatMap(({ hops }) => hops[hop - 1]?.addresses ?? []);
      return new Set(addresses.map(formatIpv6)).size > 1;
    };
    return label.hops.map(({ hop }) => hop).filter(isChanging);
  };

  isAdmitted(first);
  budget.work(describe);
  const running = new Set<Promise<void>>();
  for (;;) {
    const doubtful = findDoubtful();
    while (doubtful === undefined && running.size < wanted()) {
      const one: Promise<void> = tryLabel().finally(() => running.delete(one));
      running.add(one);
    }
    if (running.size > 0) await Promise.race(running);
    else if (doubtful) await tryAgain(doubtful);
    else break;
  }
  const perPacket = await changingHops();
  if (stop.aborted && stop.reason !== ENOUGH) return { kind: "aborted" };
  return {
    ...traced[0],
    sent,
    paths: paths.slice(0, request.paths),
    graph: graphOf(paths),
    labels: traced.length,
    isComplete: missing === 0 && paths.length <= request.paths,
    perPacket,
  };
}
