import { formatIpv6 } from "../addr/format.ts";
import type { TraceHop, TraceReason } from "./trace-report.ts";
import type { Traced } from "./traceroute.ts";

/** The greatest chance that a next hop of a node remains unseen. */
const MAX_CHANCE = 0.05;

/** A path that one or more flow labels took. */
export interface TracedPath {
  /** In the order in which they were traced; the first one represents the path. */
  readonly labels: readonly [Traced, ...Traced[]];
  /** Why the path ends with its last node; null if only silence is behind it. */
  readonly end: TraceReason | null;
  /** The nodes that its labels found, hop 1 first; null where all of them found silence. */
  readonly nodes: readonly (string | null)[];
}

/** The nodes and edges that the labels of some paths found. */
export interface PathGraph {
  /** In the order of their hops; a silent one has no address. */
  readonly nodes: readonly TraceHop[];
  /** Each from one node to another, by their indexes, and how many labels showed it. */
  readonly edges: readonly Edge[];
}

interface Edge {
  readonly from: number;
  readonly to: number;
  labels: number;
}

/** The hops of a trace up to the last one with an address. */
export function answeredHops({ hops }: Traced): readonly TraceHop[] {
  return hops.slice(0, hops.findLastIndex(({ address }) => address !== null) + 1);
}

/**
 * Sorts traces with different flow labels by the path that they took. Silence agrees with every address:
 * a router that rate-limits its errors is not another way.
 */
export function groupByPath(traced: readonly Traced[]): readonly TracedPath[] {
  const paths: {
    labels: [Traced, ...Traced[]];
    end: TraceReason | null;
    nodes: (string | null)[];
  }[] = [];
  for (const label of traced) {
    const nodes = nodesOf(label);
    const end = endOfPath(label);
    const known = paths.find(
      (path) =>
        path.end === end &&
        (end === null || path.nodes.length === nodes.length) &&
        nodes.every((node, at) => (node ?? path.nodes[at] ?? node) === (path.nodes[at] ?? node)),
    );
    if (known === undefined) {
      paths.push({ labels: [label], end, nodes: [...nodes] });
      continue;
    }
    known.labels.push(label);
    nodes.forEach((node, at) => {
      known.nodes[at] ??= node;
    });
  }
  return paths;
}

/** The nodes of each trace, because paths are grouped anew after each. */
const knownNodes = new WeakMap<Traced, readonly (string | null)[]>();

function nodesOf(label: Traced): readonly (string | null)[] {
  return knownNodes.getOrInsertComputed(label, () => answeredHops(label).map(nodeOf));
}

function nodeOf({ address, scopeId }: TraceHop): string | null {
  return address && `${formatIpv6(address)}%${scopeId}`;
}

const WITHOUT_END: readonly TraceReason[] = ["gap-limit", "max-hops", "not-sent", "loop"];

function endOfPath({ reason }: Traced): TraceReason | null {
  return WITHOUT_END.includes(reason) ? null : reason;
}

/**
 * How many more labels some node needs at least, until every next hop of every node has been seen with the
 * confidence of `labelsToRuleOut`; 0 if they have. The source and the end of a path count as nodes.
 */
export function missingLabels(paths: readonly TracedPath[]): number {
  const nodes = new Map<string, { labels: number; readonly next: Set<string> }>();
  for (const { hop, from, to } of paths.flatMap(linksOf)) {
    const node = nodes.getOrInsert(`${hop} ${from}`, { labels: 0, next: new Set() });
    node.labels++;
    node.next.add(to);
  }
  const missing = [...nodes.values()].map(
    ({ labels, next }) => labelsToRuleOut(next.size + 1) - labels,
  );
  return Math.max(0, ...missing);
}

const SOURCE = "source";
const END = "end";
const SILENT = "silent";

/** The links that each label of a path showed: a node at a hop and the next node. Silence shows nothing where another label found more. */
function linksOf({ labels, nodes }: TracedPath) {
  return labels.flatMap((label) => {
    const own = [SOURCE, ...nodesOf(label)];
    const shown = [SOURCE, ...nodes, END].map((node, hop) =>
      hop > nodes.length ? END : (own[hop] ?? (node === null ? SILENT : null)),
    );
    return shown.flatMap((from, hop) => {
      const to = shown[hop + 1];
      return from && to ? [{ hop, from, to }] : [];
    });
  });
}

/** The results of `labelsToRuleOut`, because it is asked for every node after each trace. */
const knownLabels: number[] = [];

/**
 * How many flow labels through a node rule out that it has `nextHops`, if they have shown fewer: if it has them,
 * equally likely, all are seen in 95 % of cases. The stopping rule of the multipath detection
 * algorithm (Veitch, Augustin, Teixeira, Friedman: Failure Control in Multipath Route Tracing, 2009).
 */
export function labelsToRuleOut(nextHops: number): number {
  const known = knownLabels[nextHops];
  if (known !== undefined) return known;
  /** By the number of next hops, how likely it is that exactly this many have been seen. */
  let chances = [1, ...Array<number>(nextHops).fill(0)];
  for (let labels = 0; ; labels++) {
    if ((chances[nextHops] ?? 0) >= 1 - MAX_CHANCE) {
      knownLabels[nextHops] = labels;
      return labels;
    }
    chances = chances.map((chance, seen) => {
      const before = chances[seen - 1] ?? 0;
      return (chance * seen + before * (nextHops - seen + 1)) / nextHops;
    });
  }
}

/** The nodes and edges that the labels of some paths found. */
export function graphOf(paths: readonly TracedPath[]): PathGraph {
  const rows = new Map<string, TraceHop>();
  for (const { labels, nodes } of paths) {
    for (const row of labels.flatMap(answeredHops)) {
      const node = nodeOf(row) ?? (nodes[row.hop - 1] === null ? SILENT : null);
      const key = `${row.hop} ${node}`;
      if (node !== null && !rows.has(key)) rows.set(key, row);
    }
  }
  const sorted = [...rows].toSorted(([, a], [, b]) => a.hop - b.hop);
  const indexes = new Map(sorted.map(([key], index) => [key, index]));
  const edges = new Map<string, Edge>();
  for (const { hop, from: near, to: far } of paths.flatMap(linksOf)) {
    const from = indexes.get(`${hop} ${near}`);
    const to = indexes.get(`${hop + 1} ${far}`);
    if (from === undefined || to === undefined) continue;
    edges.getOrInsert(`${from} ${to}`, { from, to, labels: 0 }).labels++;
  }
  return { nodes: sorted.map(([, row]) => row), edges: [...edges.values()] };
}
