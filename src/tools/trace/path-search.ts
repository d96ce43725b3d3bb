import type { Prober } from "../../icmp/prober/prober.ts";
import { ENOUGH, MAX_SEARCH_MS, UNBOUNDED } from "../budget.ts";
import { type Traced, type TraceOptions, type TraceRequest, traceroute } from "./engine.ts";
import { addressesOf, labelsToRuleOut, type Path, PathFindings } from "./path-graph.ts";
import { doubtfulPaths, hopsTo, planSteps, type Step } from "./path-plan.ts";
import type { TracePath } from "./result.ts";

/** The bounds of a search beside its time: flow labels for each wanted path, and probes. */
const LABELS_PER_PATH = 16;
const MAX_SENT = 10_000;
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
  readonly onPath?: ((path: TracePath) => void) | undefined;
}

/** The paths to a target; the trace is that of the first. */
export type TracedPaths = Extract<Awaited<ReturnType<typeof tracePaths>>, { kind: "done" }>;

/**
 * Finds the paths among which routers choose by flow label: traces the target with one flow label after
 * another, until the next hops of every node are known with 95 % confidence.
 */
export async function tracePaths(
  prober: Prober,
  request: PathsRequest,
  { signal, budget = UNBOUNDED, onHop, onPath }: PathsOptions = {},
) {
  const { clock } = prober;
  const endMs = clock.nowMs() + MAX_SEARCH_MS;
  const longest = { longestMs: MAX_SEARCH_MS };
  const first = await traceroute(prober, { ...request, ...longest }, { signal, onHop });
  if (first.kind !== "done") return first;
  const stop = prober.signalFor(signal, budget.enough);
  const found = new PathFindings();
  let { sent } = first;
  let labelsLeft = request.paths * LABELS_PER_PATH - 1;
  /** True if a trace had no result, which ends the search. */
  let hasFailed = false;
  /** The last call of `onPath` for each path, by its label. */
  const told = new Map<number, string>();
  const tell = (path: Path) => {
    const shown = describePath(path);
    const { flowLabel, reason, addresses } = shown;
    const text = JSON.stringify([reason, addresses]);
    if (told.get(flowLabel) !== text) onPath?.(shown);
    told.set(flowLabel, text);
  };

  const isAdmitted = ({ hops }: Traced) =>
    hops.every((row) => addressesOf(row).every((ip) => budget.admit(row.hop, ip)));

  const run = async (step: Step) => {
    const { label, hops, isWhole } = step;
    if (label === undefined) labelsLeft--;
    const flowLabel = label?.flowLabel ?? prober.randomLabel();
    const wanted = {
      ...{ flowLabel, hops, maxHops: Math.max(...hops), knownRttMs: found.longestRttMs },
      ...{ longestMs: endMs - clock.nowMs(), awaitsRouters: request.awaitsRouters && isWhole },
    };
    const outcome = await traceroute(prober, { ...request, ...wanted }, { signal: stop });
    if (outcome.kind !== "done") {
      hasFailed = true;
      return;
    }
    sent += outcome.sent;
    // A hop that has not answered by then need not be silent.
    if (isLate()) return;
    // Another program has reserved flow labels, so the prober can use only 0.
    if (outcome.flowLabel !== flowLabel) labelsLeft = 0;
    else if (isAdmitted(outcome)) budget.work(() => found.add(outcome, hops, isWhole));
  };

  const isLate = () => clock.nowMs() >= endMs;
  const isOver = () => stop.aborted || hasFailed || isLate() || sent >= MAX_SENT;

  // Kept even if it is not admitted: there is nothing else to show.
  isAdmitted(first);
  found.add(first, hopsTo(request.maxHops), true);
  let steps: readonly Step[] = [];
  const plan = () =>
    budget.work(() => {
      found.sort();
      found.paths.forEach(tell);
      steps = planSteps(found, request.maxHops, TRACES_AT_ONCE, labelsLeft);
    });
  plan();
  while (steps.length > 0 && !isOver()) {
    await Promise.all(steps.map(run));
    plan();
  }
  if (stop.aborted && stop.reason !== ENOUGH) return { kind: "aborted" as const };
  // Paths that wait for another trace when the time is over are not known.
  const open = new Set(steps.length > 0 ? doubtfulPaths(found, request.maxHops, true) : []);
  const paths = found.paths.filter((path) => !open.has(path));
  const isSearched = steps.length === 0 && found.labels.size >= labelsToRuleOut(2);
  return {
    ...(paths[0]?.labels[0] ?? first),
    sent,
    /** True if the time was over before the search was. */
    isLate: steps.length > 0 && isLate(),
    /** True if every next hop of every node was seen with 95 % confidence, and all paths are listed. */
    complete: isSearched && found.missing === 0 && paths.length <= request.paths,
    /** Flow labels that were traced. */
    labels: found.labels.size,
    /** Hops at which different addresses answered one flow label. */
    perPacket: [...found.changing].toSorted((a, b) => a - b),
    /** In the order in which they were found, at most as many as were wanted. */
    paths: paths.slice(0, request.paths).map(describePath),
    /** All nodes that were found, also those of further paths, and the certain edges. */
    graph: found.graph(),
  };
}

/** A path by the findings of its first flow label. */
function describePath({ labels }: Path): TracePath {
  const [{ flowLabel, reached, reason, hops }] = labels;
  const answered = hops.slice(0, hops.findLastIndex(({ ip }) => ip !== null) + 1);
  const addresses = answered.map(({ ip }) => ip);
  return { flowLabel, labels: labels.length, reached, reason, addresses };
}
