import { END, type Label, labelsToRuleOut, type Path, type PathFindings } from "./path-graph.ts";

/** How often a label may be asked for one hop: to confirm a link, and because answers may be lost. */
const MAX_ASKED = 4;

/** A trace to come. */
export interface Step {
  /** Undefined for a new label. */
  readonly label: Label | undefined;
  readonly hops: readonly number[];
  /** True if its label is then traced from end to end. */
  readonly isWhole: boolean;
}

/** The hops to the target on each path that reaches it. */
const lengthsOf = ({ paths }: PathFindings) =>
  paths.flatMap(({ end, nodes }) => (end === "reached" ? nodes.length : []));

/** The hop of a path at which the target may be. */
const openHop = ({ end, nodes }: Path) => nodes.length + (end === null ? 1 : -1);

/**
 * The paths that did not reach the target, or only behind silent hops, though others reached it. The target may answer
 * too seldom for all these traces, or the path is longer, so the first label of such a path is traced again, alone.
 *
 * @param isOver true if no more traces follow
 */
export function doubtfulPaths(found: PathFindings, maxHops: number, isOver = false) {
  const shortest = Math.min(...lengthsOf(found));
  return found.paths.filter((path) => {
    const { end, nodes, labels } = path;
    const { asked } = labels[0];
    const seemsFar = nodes.length > shortest && nodes.at(-2) === null;
    const open = openHop(path);
    const isAsked = (asked[open] ?? 0) > 1 && asked[maxHops] !== undefined;
    const isKnown = open > maxHops || (isAsked && !(isOver && found.limited.has(open)));
    return shortest < Infinity && (end === null || seemsFar) && !isKnown;
  });
}

/**
 * The traces of a search that can run at once now: first a few labels on the whole path, then only the hops at which a
 * node has not been seen with enough labels (the multipath detection algorithm with node control, hop by hop as
 * in Vermeulen and others: Multilevel MDA-Lite Paris Traceroute, 2018). One label of each node is traced
 * from end to end, and one label of each link is asked for it again.
 *
 * @param most how many traces there may be
 * @param left how many of them may have new labels
 */
export function planSteps(found: PathFindings, maxHops: number, most: number, left: number) {
  const lengths = lengthsOf(found);
  const [doubtful] = doubtfulPaths(found, maxHops);
  if (doubtful) {
    const [label] = doubtful.labels;
    const at = openHop(doubtful);
    const hops = doubtful.end === null && (label.asked[at] ?? 0) < 3 ? [at] : hopsTo(maxHops);
    return [{ label, hops, isWhole: true }];
  }
  const idle = new Set(found.labels.values());
  let news = Math.min(left, most);
  // Steps are planned one by one as they are taken: a search has many plans, and each blocks the service.
  return [...all().take(most)];

  function* begin(label: Label | undefined, hops: readonly number[], isWhole = false) {
    if (label === undefined && --news < 0) return;
    if (label) idle.delete(label);
    yield { label, hops, isWhole };
  }

  function finish(label: Label) {
    const last = label.end ?? (Math.max(...lengths, 0) || maxHops);
    const silent = hopsTo(last).filter((hop) => !label.rows[hop]?.ip);
    return begin(label, silent.length > 0 ? silent : [last], true);
  }

  function* all(): Generator<Step> {
    // Silence or an end counts only if a trace of the whole path shows it.
    for (const label of [...idle].filter((each) => found.isUnclear(each))) yield* finish(label);
    const missing = labelsToRuleOut(2) - found.labels.size;
    // Only silence can be behind the last hop of a path.
    const hops = hopsTo(lengths.length > 0 ? Math.max(1, Math.max(...lengths) - 1) : maxHops);
    for (let nth = 0; nth < missing; nth++) yield* begin(undefined, hops, lengths.length === 0);
    if (missing > 0) return;
    yield* confirm(true);
    for (const [name, labels] of found.levels.flatMap((level) => [...level])) {
      const label = [...labels].find((each) => idle.has(each));
      if (name !== END && label && ![...labels].some(({ isWhole }) => isWhole))
        yield* finish(label);
    }
    for (const [hop, level] of found.levels.entries()) yield* explore(level, hop);
    yield* confirm(false);
    for (const [hop, level] of found.levels.entries()) yield* choose(level, hop);
  }

  /** Asks for the next hops of the nodes of a hop. */
  function* explore(level: ReadonlyMap<string, unknown>, hop: number) {
    const needed = new Map([...level.keys()].map((name) => [name, found.missingAt(hop, name)]));
    const wanted = () => needed.values().reduce((sum, count) => sum + count, 0);
    if (wanted() === 0) return;
    const only = found.onlyAt(hop);
    const after = found.after(hop);
    const parts = () => [...idle].filter(({ isWhole, end }) => !isWhole && end === null);
    for (const label of parts()) {
      const name = label.shown[hop] ?? only ?? "";
      const count = needed.get(name) ?? 0;
      if (count === 0 || label.rows[after]) continue;
      needed.set(name, count - 1);
      yield* begin(label, [after]);
    }
    const missing = wanted();
    // Any label may lead to the nodes that need more labels, so more nodes get more labels.
    const at = only ? after : hop;
    const others = parts().filter(({ rows }) => !rows[at]);
    const count = missing === 0 || only ? missing : Math.max(missing, level.size / 4);
    for (let nth = 0; nth < Math.min(count, most); nth++) yield* begin(others[nth], [at]);
  }

  /** Asks again for links that are not certain. */
  function* confirm(isWhole: boolean) {
    const known = new Set<string>();
    for (const label of [...idle].filter((each) => each.isWhole === isWhole)) {
      const hops = label.shown.flatMap((name, hop) => {
        const to = label.shown[hop + 1];
        const link = `${hop} ${name} ${to}`;
        if (hop === 0 || !name || !to || to === END || known.has(link)) return [];
        // Links from a hop that changes are not shown.
        if (found.changing.has(hop) || (label.asked[hop + 1] ?? 0) >= MAX_ASKED) return [];
        known.add(link);
        if (label.confirmed.has(hop)) return [];
        const labels = [...(found.levels[hop]?.get(name) ?? [])];
        const alike = labels.filter(({ shown }) => shown[hop + 1] === to);
        return found.isSure(hop, name, to, alike) ? [] : [hop, hop + 1];
      });
      if (hops.length > 0) yield* begin(label, [...new Set(hops)]);
    }
  }

  /** Asks again for the next hops of labels, so often that a choice by packet shows with 95 % confidence. */
  function* choose(level: ReadonlyMap<string, unknown>, hop: number) {
    if (found.changing.has(hop + 1)) return;
    for (const name of level.keys()) {
      const next = found.nextOf(hop, name);
      const through = [...next.values()]
        .flatMap((each) => [...each])
        .filter(({ rows }) => rows[hop + 1]?.ip);
      if (new Set(through.map(({ shown }) => shown[hop + 1])).size < 2) continue;
      const repeats = through.reduce((sum, { asked }) => sum + (asked[hop + 1] ?? 0) - 1, 0);
      const missing = Math.max(0, labelsToRuleOut(2) - repeats);
      for (const label of through.filter((each) => idle.has(each)).slice(0, missing))
        yield* begin(label, [hop + 1]);
    }
  }
}

/** The hops from 1 on. */
export function hopsTo(last: number): readonly number[] {
  return Array.from({ length: last }, (_, index) => index + 1);
}
