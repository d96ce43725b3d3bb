import type { TraceResult } from "../../../tools/trace/result.ts";

/** A path in a result. */
export type Path = NonNullable<TraceResult["details"]["paths"]>[number];

/** The most threads that a closed bundle shows; more are shown in proportion. */
const MOST_CLOSED = 16;

/** The most paths of a bundle that opens; more are listed. */
export const MOST_OPEN = 32;

/** Pixels between two threads, from the outer threads to the edge, and for the cross of a lost thread. */
const APART = 9;
const EDGE = 10;
const CROSS = 3;

/** The part of a way where its paths differ. */
export interface Bundle {
  /** The path whose hops the way shows: the first that reaches the target, or else the first. */
  readonly main: Path;
  /** The last common hop before the bundle, 0 for this machine. */
  readonly near: number;
  /** The hop of the main path at which the paths join again. */
  readonly far: number;
  /** The paths, those that end inside first. */
  readonly threads: readonly {
    /** The index of the path. */
    readonly path: number;
    readonly isLost: boolean;
    /** The places of routers that no other path has, as shares of its length. */
    readonly routers: readonly number[];
  }[];
}

/** Where paths part and join; null for one path, and if they do not join. */
export function bundleOf(paths: readonly Path[]): Bundle | null {
  const main = paths.find(({ reached }) => reached) ?? paths[0];
  if (main === undefined || paths.length < 2) return null;
  const ways = paths.map(({ addresses }) => addresses);
  // If no path reaches the target, all may still reach one last router.
  const joined = paths.filter(({ reached }) => reached === main.reached);
  const shortest = Math.min(...joined.map(({ addresses }) => addresses.length));
  const isAt = (hop: number) => ways.every((way) => way[hop - 1] === main.addresses[hop - 1]);
  const isBefore = (hops: number) =>
    joined.every(({ addresses }) => addresses.at(-hops) === main.addresses.at(-hops));
  let near = 0;
  while (near < shortest - 1 && isAt(near + 1)) near++;
  while (near > 0 && main.addresses[near - 1] === null) near--;
  let rest = 0;
  while (rest < shortest - near && isBefore(rest + 1)) rest++;
  if (rest === 0) return null;
  // Paths that end on the way must end inside the bundle.
  const lost = paths.filter((path) => !joined.includes(path));
  const longest = Math.max(0, ...lost.map(({ addresses }) => addresses.length));
  rest = Math.min(rest, Math.max(1, main.addresses.length - longest));
  while (rest > 1 && main.addresses.at(-rest) === null) rest--;
  const threads = paths.map(({ addresses, reached }, path) => {
    const isLost = reached !== main.reached;
    const inside = addresses.slice(near, isLost ? undefined : -rest);
    const isOwn = (ip: string | null, hop: number) =>
      ip !== null && ways.every((way, other) => other === path || way[hop - 1] !== ip);
    const routers = inside.flatMap((ip, at) =>
      isOwn(ip, near + at + 1) ? (at + 1) / (inside.length + 1) : [],
    );
    return { path, isLost, routers };
  });
  threads.sort((a, b) => Number(b.isLost) - Number(a.isLost));
  return { main, near, far: main.addresses.length - rest + 1, threads };
}

/** Pixels from the middle of a bundle to its edge. */
export const halfOf = ({ threads }: Bundle, isOpen: boolean, band: number) =>
  isOpen ? Math.max(band / 2, ((threads.length - 1) * APART) / 2 + EDGE) : band / 2;

/** The threads of a bundle between two places, each with its line, its routers, and its end inside. */
export function layBundle(
  { threads }: Bundle,
  { from, to, y, half, isOpen }: Record<"from" | "to" | "y" | "half", number> & { isOpen: boolean },
) {
  const count = isOpen ? threads.length : Math.min(threads.length, MOST_CLOSED);
  const apart = Math.min(APART, (2 * half - 2 * CROSS) / Math.max(1, count - 1));
  const bend = Math.min(36, (to - from) / 3);
  const [start, end] = [from + bend, to - bend];
  return Array.from({ length: count }, (_, at) => {
    const { path, isLost, routers } = threads[
      Math.floor((at * threads.length) / count)
    ] as (typeof threads)[number];
    const own = y + (at - (count - 1) / 2) * apart;
    const line = `M${from} ${y}C${from + bend / 2} ${y} ${from + bend / 2} ${own} ${start} ${own}H${end}`;
    return {
      ...{ path, isLost, y: own, end },
      d: isLost ? line : `${line}C${to - bend / 2} ${own} ${to - bend / 2} ${y} ${to} ${y}`,
      routers: isOpen ? routers.map((share) => start + (end - start) * share) : [],
    };
  });
}
