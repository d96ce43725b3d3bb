import type { TraceResult } from "../../../tools/trace/result.ts";

/** A path, as results show it. */
export type Path = NonNullable<TraceResult["details"]["paths"]>[number];

/** All nodes and edges of the paths. */
export type Graph = NonNullable<TraceResult["details"]["graph"]>;

/** A node of the graph, as a row of the picture. */
export type NodeRow = ReturnType<typeof levelsOf>[number]["rows"][number];

/**
 * Lays the graph out from top to bottom, with the first path at the left: by hop its rows, and the links that
 * lead there.
 */
export function levelsOf(paths: readonly Path[], { nodes, edges }: Graph) {
  const pathsOn = (...wanted: Graph["nodes"]) =>
    [...paths.entries()].flatMap(([index, { addresses }]) =>
      wanted.every(({ hop, ip }) => addresses[hop - 1] === ip) ? [index] : [],
    );
  const found = nodes.map((node, index) => ({
    node,
    /** Which paths lead through it, by their indexes. */
    on: pathsOn(node),
    hasPrevious: edges.some(({ to }) => to === index),
    hasNext: edges.some(({ from }) => from === index),
  }));
  /** With the column of each, from 0; nodes of one hop have different ones. */
  const rows: ((typeof found)[number] & { readonly lane: number })[] = [];
  const levels = [...Map.groupBy(found.entries(), ([, { node }]) => node.hop).values()];
  for (const level of levels) {
    level.sort(([, a], [, b]) => (a.on[0] ?? paths.length) - (b.on[0] ?? paths.length));
    for (const [lane, [index, row]] of level.entries()) rows[index] = { ...row, lane };
  }
  const links = edges.flatMap(({ from, to }) => {
    const [near, far] = [rows[from], rows[to]];
    return near && far ? [{ from: near, to: far, on: pathsOn(near.node, far.node) }] : [];
  });
  return levels.map((level) => {
    const own = level.flatMap(([index]) => rows[index] ?? []);
    return { rows: own, links: links.filter(({ to }) => own.includes(to)) };
  });
}

/** True if every path that leads there misses the target, and another path reaches it. */
export function isLossy(on: readonly number[], paths: readonly Path[]): boolean {
  const isReached = (index: number) => paths[index]?.reached ?? false;
  return on.length > 0 && !on.some(isReached) && paths.some(({ reached }) => reached);
}
