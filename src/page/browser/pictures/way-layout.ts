import type { WayHop } from "./segments.ts";

/** Pixels: the middle of the disc for this machine, the least to the first hop, and the least between two hops. */
export const LEFT = 10;
const FIRST = 44;
const LEAST = 15;

/** Pixels between the bars of a break. */
export const BREAK = 62;

/** The least pixels of a bundle of paths. */
const BUNDLE = 150;

/** Silent hops in a row that are shown one each; more are shown as one. */
const FOLDED = 3;

/** A hop at its place, or several silent ones at one. */
export interface Placed<Hop extends WayHop = WayHop> {
  readonly hop: Hop;
  /** The number of hops at this place: one, or several silent ones. */
  readonly count: number;
  readonly x: number;
}

interface Options {
  /** Pixels that the way may take. */
  readonly width: number;
  /** Milliseconds at the end of the scale, which all ways of a view share. */
  readonly mostMs: number;
  /** The hop before the break, 0 for this machine; null without a break. */
  readonly breakAfter: number | null;
  /** The hops between which there are several paths. */
  readonly bundle?: { readonly near: number; readonly far: number } | null;
  /** Pixels to the first hop, and between two, at least. */
  readonly first?: number | undefined;
  readonly least?: number | undefined;
  /** Pixels a millisecond, at most. */
  readonly mostPerMs?: number;
}

/**
 * Places the hops of a way by their times. A hop stands behind the one before it, even if it answered faster. Silent hops
 * share the distance to the next answer. If there is too little room, the scale shrinks.
 *
 * @param endMs the time of the site; null if it was not reached, which puts it at the end
 * @returns the hops, the place of the site, the begin of the break, and pixels for a millisecond
 */
export function layWay<Hop extends WayHop>(
  hops: readonly Hop[],
  endMs: number | null,
  { width, mostMs, breakAfter, bundle, mostPerMs = Infinity, ...distances }: Options,
) {
  const { first = FIRST, least = LEAST } = distances;
  const rows = folded(hops);
  const room = Math.min(least, (width - first - BREAK - (bundle ? BUNDLE : 0)) / (rows.length + 2));
  const lay = (perMs: number) => {
    const xs: number[] = [];
    let [x, shift, silent, nearX] = [LEFT, 0, 0, LEFT];
    let breakAt: number | null = null;
    /** Moves on to a place, and puts the silent hops in between. */
    const go = (to: number) => {
      const from = x;
      for (let at = 1; at <= silent; at++) xs.push(from + ((to - from) * at) / (silent + 1));
      [x, silent] = [to, 0];
    };
    const leastTo = (hop: number) => {
      const gap = (xs.length + silent === 0 ? first : room) + room * silent;
      return Math.max(x + gap, bundle && hop >= bundle.far ? nearX + BUNDLE : 0);
    };
    const interrupt = (hop: number) => {
      if (breakAfter === null || breakAt !== null || hop <= breakAfter) return;
      go(x + room * (silent + 1));
      breakAt = x;
      x += BREAK;
      shift = BREAK;
    };
    for (const { hop } of rows) {
      interrupt(hop.hop);
      if (hop.rtt === null) silent++;
      else {
        go(Math.max(leastTo(hop.hop), LEFT + hop.rtt * perMs + shift));
        xs.push(x);
        if (bundle && hop.hop <= bundle.near) nearX = x;
      }
    }
    interrupt(Infinity);
    const least = leastTo(Infinity);
    go(endMs === null ? Math.max(width, least) : Math.max(least, LEFT + endMs * perMs + shift));
    return { xs, breakAt, end: x };
  };
  const free = Math.max(0, width - LEFT - (breakAfter === null ? 0 : BREAK));
  let perMs = Math.min(free / (mostMs || 1), mostPerMs);
  let laid = lay(perMs);
  // The least distances may push the end beyond the width.
  for (let tries = 0; tries < 24 && laid.end > width; tries++) {
    perMs *= 0.85;
    laid = lay(perMs);
  }
  const { xs, breakAt, end } = laid;
  const placed = rows.map((row, at): Placed<Hop> => ({ ...row, x: xs[at] ?? 0 }));
  return { placed, breakAt, end, perMs };
}

/** The hops, with more than three silent ones in a row as one. */
function folded<Hop extends WayHop>(hops: readonly Hop[]): { hop: Hop; count: number }[] {
  const rows: { hop: Hop; count: number }[] = [];
  let start = 0;
  while (start < hops.length) {
    const end = hops.findIndex(({ ip }, at) => at >= start && ip !== null);
    const silent = (end === -1 ? hops.length : end) - start;
    if (silent > FOLDED) rows.push({ hop: hops[start] as Hop, count: silent });
    else for (const hop of hops.slice(start, start + silent)) rows.push({ hop, count: 1 });
    const next = hops[start + silent];
    if (next) rows.push({ hop: next, count: 1 });
    start += silent + 1;
  }
  return rows;
}
