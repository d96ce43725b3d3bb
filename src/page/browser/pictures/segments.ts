import { type Host, networkName } from "../../../tools/report.ts";

/** Where a way breaks. */
export interface Break {
  /** The hop before the break, 0 for this machine. */
  readonly after: number;
  /** What is wrong there, in a few words. */
  readonly text: string;
  /** True if small packets pass. */
  readonly isNarrow?: boolean;
}

/** A hop of a way; `rtt` is null for a silent one. */
export interface WayHop extends Host {
  /** The position, from 1. */
  readonly hop: number;
  /** Milliseconds. */
  readonly rtt: number | null;
  readonly details?: {
    readonly network?: { readonly asn: number | null; readonly name: string | null } | undefined;
  };
}

/** Successive hops in one network. */
export interface Segment<Hop extends WayHop = WayHop> {
  /** `Here` for the near side; null if the network is not known. */
  readonly name: string | null;
  /** The number of its colour, 0 to 4; null if the network is not known. */
  readonly tint: number | null;
  readonly hops: readonly [Hop, ...Hop[]];
}

/** The colours of networks beside that of the near side. */
const TINTS = 4;

const nameOf = ({ details: { network } = {} }: WayHop) => (network ? networkName(network) : null);

/** The colour of each network: the same wherever it is shown in one view. */
export function tintsOf(ways: readonly (readonly WayHop[])[]): ReadonlyMap<string, number> {
  const names = new Set(ways.flatMap((hops) => hops.flatMap((hop) => nameOf(hop) ?? [])));
  return new Map([...names].map((name, at) => [name, (at % TINTS) + 1]));
}

/**
 * The hops of a way by network. The near side is the first hops whose network is not known, or only the first hop if no
 * network is known. Silent hops between two hops of one network belong to that network.
 */
export function segmentsOf<Hop extends WayHop>(
  hops: readonly Hop[],
  tints: ReadonlyMap<string, number>,
): Segment<Hop>[] {
  const firstKnown = hops.findIndex((hop) => nameOf(hop) !== null);
  const nearHops = firstKnown === -1 ? Math.min(1, hops.length) : firstKnown;
  const heard = (hop: Hop) => hop.ip !== null;
  const names = hops.map((hop, at) => {
    if (at < nearHops) return "Here";
    if (heard(hop)) return nameOf(hop);
    const [before, after] = [hops.slice(0, at).findLast(heard), hops.slice(at).find(heard)];
    return before && after && nameOf(before) === nameOf(after) ? nameOf(before) : null;
  });
  const segments: { name: string | null; tint: number | null; hops: [Hop, ...Hop[]] }[] = [];
  for (const [at, hop] of hops.entries()) {
    const name = names[at] ?? null;
    const last = segments.at(-1);
    const isNear = at < nearHops;
    if (at > 0 && last?.name === name && isNear === at - 1 < nearHops) last.hops.push(hop);
    else {
      const tint = isNear ? 0 : name === null ? null : (tints.get(name) ?? null);
      segments.push({ name, tint, hops: [hop] });
    }
  }
  return segments;
}
