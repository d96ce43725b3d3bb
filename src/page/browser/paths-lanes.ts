import type { Hop, PathGraph, TracePath } from "./types.ts";

/** A node of the graph, as a row of the picture. */
export interface Row {
  readonly node: Hop;
  /** Its column, from 0; nodes of one hop have different ones. */
  readonly lane: number;
  /** Which paths lead through it, by their indexes. */
  readonly on: readonly number[];
  readonly hasPrevious: boolean;
  readonly hasNext: boolean;
}

/** A line from a row to one of the next hop. */
export interface Link {
  readonly from: Row;
  readonly to: Row;
  readonly on: readonly number[];
}

/** A hop of the picture: its rows, and the links that lead there. */
export interface Level {
  readonly rows: readonly Row[];
  readonly links: readonly Link[];
}

/** Lays the graph out from top to bottom, with the first path at the left. */
export function levelsOf(paths: readonly TracePath[], { nodes, edges }: PathGraph): Level[] {
  const isOn = ({ addresses }: TracePath, { hop, ip }: Hop) =>
    hop <= addresses.length && addresses[hop - 1] === ip;
  const pathsOn = (...wanted: readonly Hop[]) =>
    [...paths.keys()].filter((index) =>
      wanted.every((node) => isOn(paths[index] as TracePath, node)),
    );
  const found = nodes.map((node, index) => ({
    node,
    on: pathsOn(node),
    hasPrevious: edges.some(({ to }) => to === index),
    hasNext: edges.some(({ from }) => from === index),
  }));
  const rows: Row[] = [];
  const levels = [...new Set(nodes.map(({ hop }) => hop))].map((hop) => {
    const level = [...found.entries()].filter(([, { node }]) => node.hop === hop);
    level.sort(([, a], [, b]) => (a.on[0] ?? paths.length) - (b.on[0] ?? paths.length));
    return level.map(([index, row], lane) => {
      rows[index] = { ...row, lane };
      return rows[index];
    });
  });
  const links = edges.flatMap(({ from, to }) => {
    const [near, far] = [rows[from], rows[to]];
    return near && far ? [{ from: near, to: far, on: pathsOn(near.node, far.node) }] : [];
  });
  return levels.map((level) => ({
    rows: level,
    links: links.filter(({ to }) => level.includes(to)),
  }));
}

/** Whether only paths that do not reach the target lead there, and others do. */
export function isLossy(on: readonly number[], paths: readonly TracePath[]): boolean {
  const isReached = (index: number) => paths[index]?.reached ?? false;
  return on.length > 0 && !on.some(isReached) && paths.some(({ reached }) => reached);
}
