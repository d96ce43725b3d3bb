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
import type { Traced, TraceOptions, TraceOutcome, TraceRequest, Traceroute } from "./traceroute.ts";

/** What a search for paths may cost: flow labels for each path that is wanted, probes, and milliseconds in which traces begin. */
const LABELS_PER_PATH = 16;
const MAX_SENT = 10_000;
export const MAX_SEARCH_MS = 60_000;
/** Traces at once: routers limit their errors, Linux to a burst of six and then ten a second. */
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
  /** Whether every next hop of every node was seen with 95 % confidence, and all paths are listed. */
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
  { signal, onHop, onPath }: PathsOptions = {},
): Promise<PathsOutcome> {
  const endMs = prober.clock.nowMs() + MAX_SEARCH_MS;
  const first = await traceroute(request, { signal, onHop });
  if (first.kind !== "done") return first;
  const trace = (wanted: Partial<TraceRequest>) =>
    traceroute({ ...request, ...wanted }, { signal });
  const search = new PathSearch(prober, trace, request, first, endMs, onPath);
  const running = new Set<Promise<void>>();
  for (;;) {
    const doubtful = search.doubtful();
    while (doubtful === undefined && running.size < search.wanted()) {
      const one: Promise<void> = search.tryLabel().finally(() => running.delete(one));
      running.add(one);
    }
    if (running.size > 0) await Promise.race(running);
    else if (doubtful) await search.tryAgain(doubtful);
    else break;
  }
  const perPacket = await search.changingHops();
  return search.failure?.kind === "aborted" ? search.failure : { ...search.result(), perPacket };
}

/** A search under way. */
class PathSearch {
  /** Why a trace had no result; then the search ends. */
  failure: NoResult | null = null;
  readonly #prober: Prober;
  readonly #trace: (wanted: Partial<TraceRequest>) => Promise<TraceOutcome>;
  readonly #request: PathsRequest;
  readonly #endMs: number;
  readonly #onPath: PathsOptions["onPath"];
  #traced: readonly [Traced, ...Traced[]];
  #paths: readonly TracedPath[] = [];
  #missing = 0;
  #sent: number;
  #labelsLeft: number;
  /** Labels that were traced again. */
  readonly #certain = new Set<number>();
  /** What was told of each path, by its label. */
  readonly #told = new Map<number, string>();

  constructor(
    prober: Prober,
    trace: (wanted: Partial<TraceRequest>) => Promise<TraceOutcome>,
    request: PathsRequest,
    first: Traced,
    endMs: number,
    onPath: PathsOptions["onPath"],
  ) {
    this.#prober = prober;
    this.#trace = trace;
    this.#request = request;
    this.#endMs = endMs;
    this.#onPath = onPath;
    this.#labelsLeft = request.paths * LABELS_PER_PATH - 1;
    this.#sent = first.sent;
    this.#traced = [first];
    this.#describe();
  }

  /** How many labels more are to be traced at once now. */
  wanted(): number {
    return this.#isOver() || this.#labelsLeft === 0 ? 0 : Math.min(this.#missing, TRACES_AT_ONCE);
  }

  /** Traces one label more. */
  async tryLabel(): Promise<void> {
    this.#labelsLeft--;
    const lengths = this.#paths.map(({ end, nodes }) => (end === "reached" ? nodes.length : 0));
    const maxHops = Math.max(...lengths) || this.#request.maxHops;
    const found = await this.#ask({ flowLabel: this.#prober.randomLabel(), maxHops });
    // Another program leaves us no label but 0.
    if (found?.flowLabel === 0) this.#labelsLeft = 0;
    else if (found) this.#traced = [...this.#traced, found];
    this.#describe();
  }

  /**
   * A path whose first label did not reach the target, or only behind silent hops, though others reached it:
   * the target may answer too seldom for so many traces, or the path is longer.
   */
  doubtful(): TracedPath | undefined {
    const reaching = this.#paths.filter(({ end }) => end === "reached");
    const shortest = Math.min(...reaching.map(({ nodes }) => nodes.length));
    const seemsFar = ({ nodes }: TracedPath) => nodes.length > shortest && nodes.at(-2) === null;
    if (reaching.length === 0 || this.#isOver()) return undefined;
    return this.#paths.find(
      (path) =>
        (path.end === null || seemsFar(path)) && !this.#certain.has(path.labels[0].flowLabel),
    );
  }

  /** Traces a path's first label again, alone and as far as a trace goes, in place of the first time. */
  async tryAgain({ labels: [before] }: TracedPath): Promise<void> {
    this.#certain.add(before.flowLabel);
    const found = await this.#ask({ flowLabel: before.flowLabel });
    const [first, ...others] = this.#traced;
    const latest = (label: Traced) => (label === before && found) || label;
    this.#traced = [latest(first), ...others.map(latest)];
    this.#describe();
  }

  /** The hops at which one label meets different addresses: it is traced as often as shows two with 95 % confidence. */
  async changingHops(): Promise<number[]> {
    // One that reached the target, because it takes seconds to find that a path goes silent.
    const first = this.#traced.find(({ reached }) => reached) ?? this.#traced[0];
    const traces = [first];
    while (this.#paths.length > 1 && traces.length < labelsToRuleOut(2) && !this.#isOver()) {
      const found = await this.#ask({ flowLabel: first.flowLabel });
      if (found) traces.push(found);
    }
    const isChanging = (hop: number) => {
      const addresses = traces.flatMap(({ hops }) => hops[hop - 1]?.addresses ?? []);
      return new Set(addresses.map(formatIpv6)).size > 1;
    };
    return first.hops.map(({ hop }) => hop).filter(isChanging);
  }

  result(): Omit<TracedPaths, "perPacket"> {
    const { paths: wanted } = this.#request;
    return {
      ...this.#traced[0],
      sent: this.#sent,
      paths: this.#paths.slice(0, wanted),
      graph: graphOf(this.#paths),
      labels: this.#traced.length,
      isComplete: this.#missing === 0 && this.#paths.length <= wanted,
    };
  }

  #isOver(): boolean {
    const isLate = this.#prober.clock.nowMs() > this.#endMs;
    return this.failure !== null || isLate || this.#sent >= MAX_SENT;
  }

  async #ask(wanted: Partial<TraceRequest>): Promise<Traced | null> {
    const outcome = await this.#trace(wanted);
    if (outcome.kind !== "done") {
      this.failure = outcome;
      return null;
    }
    this.#sent += outcome.sent;
    return outcome;
  }

  #describe(): void {
    this.#paths = groupByPath(this.#traced);
    this.#missing = missingLabels(this.#paths);
    for (const path of this.#paths) {
      const { flowLabel, reason, hops } = path.labels[0];
      const text = JSON.stringify([reason, hops.map(({ address }) => address)]);
      if (this.#told.get(flowLabel) !== text) this.#onPath?.(path);
      this.#told.set(flowLabel, text);
    }
  }
}
