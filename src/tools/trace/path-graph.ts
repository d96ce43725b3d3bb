import type { Traced } from "./engine.ts";
import { describeHop, type TraceHop } from "./responses.ts";
import type { TraceReason } from "./result.ts";

/** The greatest chance that a next hop of a node remains unseen. */
const MAX_CHANCE = 0.05;

/** The findings of one flow label: the trace that found the end of the path, and the rows of all its traces. */
export interface Label extends Traced {
  /** The rows by hop; undefined for hops that were not asked. */
  readonly rows: (TraceHop | undefined)[];
  /** How often each hop was asked. */
  readonly asked: number[];
  /** The hops that another trace found unchanged, together with the next hop. */
  readonly confirmed: Set<number>;
  /** The hop that ends the path; null if none does. */
  end: number | null;
  /** True if it was traced from end to end. */
  isWhole: boolean;
  /** Its nodes, hop 1 first, up to the end or the last that answered; null for silence. */
  nodes: readonly (string | null)[];
  /** Its nodes from the source at 0 to `END` behind the last one; null where the label shows nothing. */
  shown: readonly (string | null)[];
}

/** A path that one or more flow labels took from end to end. */
export interface Path {
  /** Its labels in the order of their traces; the first one represents the path. */
  readonly labels: [Label, ...Label[]];
  /** Why the path ends at its last node; null if only silence is behind it. */
  readonly end: TraceReason | null;
  /** The nodes that its labels found, hop 1 first; null where all of them found silence. */
  readonly nodes: (string | null)[];
}

const SOURCE = "source";
const SILENT = "silent";
/** The node behind the last one of a path. */
export const END = "end";

/**
 * The findings of a search: `add` keeps the findings of each flow label, and `sort` derives paths, nodes and links from
 * them. Traces of one label may ask different hops, and the same hops again.
 */
export class PathFindings {
  readonly labels = new Map<number, Label>();
  /** The labels that were traced from end to end, in the order of their traces. */
  readonly #whole = new Set<Label>();
  /** In the order in which they were found. */
  paths: Path[] = [];
  /** The nodes of each hop by name, and the labels that show them; hop 0 is the source. */
  levels: Map<string, Set<Label>>[] = [];
  /** Hops that are silent on all paths. */
  silent = new Set<number>();
  /** Hops that were silent to a label and answered it later, so that silence there says nothing. */
  readonly limited = new Set<number>();
  /** Hops at which different addresses answered one label. */
  readonly changing = new Set<number>();
  /** The longest round-trip time in milliseconds; null without any. */
  longestRttMs: number | null = null;

  /**
   * Adds the findings of a trace at the hops that it asked.
   *
   * @param isWhole true if its label has now been traced from end to end
   */
  add(found: Traced, asked: readonly number[], isWhole: boolean): void {
    const label = this.labels.getOrInsertComputed(found.flowLabel, () => ({
      ...{ ...found, rows: [], asked: [], confirmed: new Set<number>(), end: null },
      ...{ isWhole: false, nodes: [], shown: [] },
    }));
    this.#merge(label, found, asked);
    label.isWhole ||= isWhole;
    if (label.isWhole) this.#whole.add(label);
  }

  #merge(label: Label, found: Traced, asked: readonly number[]): void {
    const { rows } = label;
    const isEnded = found.hops.at(-1)?.end != null;
    const again = new Set<number>();
    for (const hop of asked) {
      label.asked[hop] = (label.asked[hop] ?? 0) + 1;
      if (isEnded && hop > found.hops.length) continue;
      const row = found.hops[hop - 1] ?? describeHop(hop, [], found.source, found.source);
      if (row.rtt !== null) this.longestRttMs = Math.max(this.longestRttMs ?? 0, row.rtt);
      const before = rows[hop];
      const addresses = [...new Set([...addressesOf(before), ...addressesOf(row)])];
      const answered = before?.ip ? before : row;
      const details = { ...answered.details, ...(addresses.length > 1 && { addresses }) };
      rows[hop] = answered.ip ? { ...answered, details } : answered;
      if (before?.ip === null && row.ip !== null) this.limited.add(hop);
      if (addresses.length > 1) this.changing.add(hop);
      else if (before && !before.ip === !row.ip) again.add(hop);
    }
    for (const hop of again) if (again.has(hop + 1)) label.confirmed.add(hop);
    const ending = rows.filter((row) => row?.end != null);
    label.end = (ending.find((row) => row?.end === "reached") ?? ending[0])?.hop ?? null;
    label.nodes = nodesOf(label);
    const hasEnd = (hops: Traced["hops"]) => label.end !== null && hops[label.end - 1]?.end != null;
    const isLonger = !label.isWhole || found.hops.length > label.hops.length;
    const isBetter = hasEnd(found.hops) || (isLonger && !hasEnd(label.hops));
    const { hops, ...base } = isBetter ? found : label;
    Object.assign(label, base, { hops: hops.map((row) => rows[row.hop] ?? row) });
  }

  /** Sorts the labels by path, and by the nodes that they show. */
  sort(): void {
    this.paths = [];
    this.levels = [];
    const pathOf = new Map([...this.#whole].map((label) => [label, this.#assign(label)]));
    const isSilent = (at: number) => this.paths.every(({ nodes }) => nodes[at] === null);
    const first = this.paths[0]?.nodes ?? [];
    this.silent = new Set(first.flatMap((_, at) => (isSilent(at) ? at + 1 : [])));
    for (const label of this.labels.values()) {
      label.shown = this.#shownBy(label, pathOf.get(label));
      for (const [hop, name] of label.shown.entries()) {
        this.levels[hop] ??= new Map();
        if (name) this.levels[hop].getOrInsertComputed(name, () => new Set()).add(label);
      }
    }
  }

  /** The path of a label: the first with the same end and no other address, or a new one. */
  #assign(label: Label): Path {
    const { nodes } = label;
    const end = label.end === null ? null : label.reason;
    const path = this.paths.find(
      (each) =>
        each.end === end &&
        (end === null || each.nodes.length === nodes.length) &&
        nodes.every((node, at) => (node ?? each.nodes[at] ?? node) === (each.nodes[at] ?? node)),
    );
    if (path === undefined) {
      const added: Path = { labels: [label], end, nodes: [...nodes] };
      this.paths.push(added);
      return added;
    }
    path.labels.push(label);
    for (const [at, node] of nodes.entries()) path.nodes[at] ??= node;
    return path;
  }

  /** True if a label must be traced from end to end: it met silence, or its end may be nearer. */
  isUnclear({ rows, end, isWhole }: Label): boolean {
    const last = rows.findLastIndex((row) => row?.ip);
    const says = (hop: number) => hop > last || !(this.silent.has(hop) || this.limited.has(hop));
    const isSilent = (row: TraceHop | undefined) => row?.ip === null && says(row.hop);
    const mayEndNearer = end !== null && end > 1 && !rows[end - 1] && says(end - 1);
    return !isWhole && (rows.some(isSilent) || mayEndNearer);
  }

  /** The nodes that a label shows. Its silence shows a silent node only if no label of its path knows more. */
  #shownBy(label: Label, path: Path | undefined): readonly (string | null)[] {
    const nodes = label.nodes.map((node, at) => node ?? (this.silent.has(at + 1) ? SILENT : null));
    if (this.isUnclear(label))
      return [SOURCE, ...nodes.slice(0, label.end === null ? undefined : -1)];
    const isSilent = (at: number) => path?.nodes[at] === null && !this.limited.has(at + 1);
    const all = path?.nodes.map((_, at) => nodes[at] ?? (isSilent(at) ? SILENT : null));
    return [SOURCE, ...(all ?? nodes), ...(all || label.end !== null ? [END] : [])];
  }

  /** The next hop that is not silent on all paths. */
  after(hop: number): number {
    return this.silent.has(hop + 1) ? this.after(hop + 1) : hop + 1;
  }

  /** The name of the only node that labels pass at a hop; null if there are several, or if some labels end before. */
  onlyAt(hop: number): string | null {
    const [name = null] = this.levels[hop]?.size === 1 ? this.levels[hop].keys() : [];
    return this.levels.slice(0, hop + 1).some((level) => level.has(END)) ? null : name;
  }

  /** The nodes that follow a node, each with the labels that show it; all nodes of the next hop if labels pass no other node. */
  nextOf(hop: number, name: string): ReadonlyMap<string, Iterable<Label>> {
    if (this.onlyAt(hop) === name) return this.levels[hop + 1] ?? new Map();
    const labels = [...(this.levels[hop]?.get(name) ?? [])].filter(({ shown }) => shown[hop + 1]);
    return Map.groupBy(labels, ({ shown }) => shown[hop + 1] as string);
  }

  /**
   * How many more labels a node needs until every next hop has been seen with 95 % confidence; 0 if it needs none, or
   * delivers to the target.
   */
  missingAt(hop: number, name: string): number {
    const next = this.nextOf(hop, name);
    const labels = [...next.values()].flatMap((each) => [...each]);
    const delivers = ({ rows, end }: Label) =>
      end !== null && end <= hop + 1 && rows[end]?.end === "reached";
    const isEnd = name === END || labels.some(delivers);
    return isEnd ? 0 : Math.max(0, labelsToRuleOut(next.size + 1) - labels.length);
  }

  /** The most labels that any node still needs; 0 if all next hops of all nodes have been seen. */
  get missing(): number {
    const missing = this.levels.flatMap((level, hop) =>
      [...level.keys()].map((name) => this.missingAt(hop, name)),
    );
    return Math.max(0, ...missing);
  }

  /** True if a link certainly exists: one label showed it twice, or several did and all labels pass one of its nodes. */
  isSure(hop: number, name: string, to: string, labels: readonly Label[]): boolean {
    if (labels.some(({ confirmed }) => confirmed.has(hop))) return true;
    return labels.length > 1 && (this.onlyAt(hop) === name || this.onlyAt(hop + 1) === to);
  }

  /** All nodes, and the certain links, except links from hops at which one label met several nodes. */
  graph() {
    const found = this.levels.flatMap((level, hop) =>
      [...level].flatMap(([name, labels]) => {
        const row = name === END ? undefined : [...labels][0]?.rows[hop];
        return row ? [{ key: `${hop} ${name}`, hop, name, labels, row }] : [];
      }),
    );
    const indexes = new Map(found.map(({ key }, index) => [key, index]));
    const edges = found.flatMap(({ hop, name, labels }, from) =>
      [...Map.groupBy(labels, ({ shown }) => shown[hop + 1])].flatMap(([next, alike]) => {
        const to = indexes.get(`${hop + 1} ${next}`);
        const isShown = !this.changing.has(hop) && next && this.isSure(hop, name, next, alike);
        return isShown && to !== undefined ? [{ from, to, labels: alike.length }] : [];
      }),
    );
    return {
      /** In the order of their hops; a silent one has no address. */
      nodes: found.map(({ row }) => row),
      /** Each from one node to another, by their indexes, and how many labels showed it. */
      edges,
    };
  }
}

/** The addresses that answered at a hop. */
export function addressesOf(row: Pick<TraceHop, "ip" | "details"> | undefined): readonly string[] {
  return row?.details?.addresses ?? (row?.ip ? [row.ip] : []);
}

function nodeOf(row: TraceHop | undefined): string | null {
  return row?.ip ? `${row.ip}%${row.details?.zone ?? ""}` : null;
}

function nodesOf({ rows, end }: Label): readonly (string | null)[] {
  const last = end ?? rows.findLastIndex((row) => row?.ip != null);
  return Array.from({ length: Math.max(0, last) }, (_, at) => nodeOf(rows[at + 1]));
}

/** More next hops than this need more labels than a search has. */
const MAX_NEXT_HOPS = 64;

/**
 * How many flow labels through a node rule out that it has `nextHops` next hops, if they have shown fewer: if the node
 * chooses all equally often, so many labels show all of them in 95 % of cases. The stopping rule of the multipath
 * detection algorithm (Veitch, Augustin, Teixeira, Friedman: Failure Control in Multipath Route Tracing, 2009).
 * Infinite for more than `MAX_NEXT_HOPS`.
 */
export function labelsToRuleOut(nextHops: number): number {
  if (nextHops > MAX_NEXT_HOPS) return Infinity;
  RULED_OUT[nextHops] ??= countLabels(nextHops);
  return RULED_OUT[nextHops];
}

const RULED_OUT: number[] = [];

function countLabels(nextHops: number): number {
  /** The chance that exactly so many next hops have been seen, by their number. */
  let chances = [1, ...Array<number>(nextHops).fill(0)];
  for (let labels = 0; ; labels++) {
    if ((chances[nextHops] ?? 0) >= 1 - MAX_CHANCE) return labels;
    chances = chances.map((chance, seen) => {
      const before = chances[seen - 1] ?? 0;
      return (chance * seen + before * (nextHops - seen + 1)) / nextHops;
    });
  }
}
