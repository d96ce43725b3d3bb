/** Changes of level: exact tests of whether the last runs differ in round-trip time or loss from the runs before. */
import { median, round } from "../util/numbers.ts";
import { fisherExact, type Trials } from "../util/statistics.ts";
import type { Difference } from "./result.ts";

/** What a run measured; `median` is in microseconds, and null if nothing was answered. */
export interface LevelRun {
  readonly sent: number;
  readonly lost: number;
  readonly median: number | null;
}

/** A level before and now: microseconds, or the percentage of lost probes. */
export interface LevelChange {
  readonly kind: "rtt" | "loss";
  readonly before: number;
  readonly after: number;
}

const RTT = {
  /** The numbers of last runs that are compared with the runs before. */
  last: [4, 5, 6],
  before: 48,
  /** The nearest of the runs before, which follow the daily swing, and the least difference from them. */
  nearest: 12,
  share: 0.12,
  /** The greatest chance of the difference without a change of level; four runs beyond all of 48 meet it. */
  chance: 1e-5,
} as const;

const LOSS = { last: [6, 12, 24], before: 600, chance: 1e-5 } as const;

/** With `least` to `tested` runs before, six last runs show a change only if they are far beyond all others. */
const FEW = { least: 12, tested: 30, last: 6, share: 0.5, points: 10, beyond: 5 } as const;

const keepLast = (values: number[], most: number) => {
  if (values.length > most) values.splice(0, values.length - most);
};

const middle = (values: readonly number[]) => median(values) ?? 0;

/** The levels of a watch: `add` takes each run, and returns the changes of level. After a change, earlier runs no longer count. */
export class Levels {
  readonly #load: (kind: LevelChange["kind"], count: number) => readonly LevelRun[];
  #values: Record<LevelChange["kind"], number[]> | null = null;

  /** @param load returns the last runs since the last change of a kind, the oldest first; called by the first `add` */
  constructor(load: (kind: LevelChange["kind"], count: number) => readonly LevelRun[] = () => []) {
    this.#load = load;
  }

  add(run: LevelRun): LevelChange[] {
    this.#values ??= {
      rtt: this.#load("rtt", RTT.before + RTT.last[2]).flatMap(({ median }) => median ?? []),
      loss: this.#load("loss", LOSS.before + LOSS.last[2]).flatMap(lossOf),
    };
    const { rtt, loss } = this.#values;
    const [percent] = lossOf(run);
    return [
      run.median !== null && this.#take("rtt", rtt, run.median, RTT, rttSplit),
      percent !== undefined && this.#take("loss", loss, percent, LOSS, lossSplit),
    ].flatMap((change) => change || []);
  }

  #take(
    kind: LevelChange["kind"],
    values: number[],
    value: number,
    { last, before }: typeof RTT | typeof LOSS,
    isSplit: (before: readonly number[], last: readonly number[]) => boolean,
  ): LevelChange | null {
    values.push(value);
    keepLast(values, before + Math.max(...last));
    for (const count of last) {
      const [old, recent] = [values.slice(0, -count).slice(-before), values.slice(-count)];
      if (!isSplit(old, recent)) continue;
      values.splice(0, values.length - count);
      const level = kind === "rtt" ? middle : mean;
      return { kind, before: level(old), after: level(recent) };
    }
    return null;
  }
}

/** The percentage of lost probes, not rounded; none without a probe. */
const lossOf = ({ sent, lost }: LevelRun) => (sent > 0 ? [(100 * lost) / sent] : []);

const mean = (values: readonly number[]) =>
  values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);

function rttSplit(before: readonly number[], last: readonly number[]): boolean {
  if (before.length < FEW.least) return false;
  if (before.length < FEW.tested) {
    if (last.length !== FEW.last) return false;
    const margin = FEW.share * middle(before);
    const [least, most] = [Math.min(...before) - margin, Math.max(...before) + margin];
    return last.every((value) => value > most) || last.every((value) => value < least);
  }
  const nearest = middle(before.slice(-RTT.nearest));
  if (Math.abs(middle(last) - nearest) < RTT.share * nearest) return false;
  return rankChance(last, before) < RTT.chance;
}

function lossSplit(before: readonly number[], last: readonly number[]): boolean {
  if (before.length < FEW.least) return false;
  if (before.length < FEW.tested) {
    if (last.length !== FEW.last) return false;
    const [least, most] = [Math.min(...before) - FEW.points, Math.max(...before) + FEW.points];
    const beyond = (isBeyond: (value: number) => boolean) => last.filter(isBeyond).length;
    return (
      beyond((value) => value > most) >= FEW.beyond ||
      beyond((value) => value < least) >= FEW.beyond
    );
  }
  const losing = (values: readonly number[]) => ({
    count: values.length,
    failed: values.filter((value) => value > 0).length,
  });
  const spared = ({ count, failed }: Trials) => ({ count, failed: count - failed });
  const [now, old] = [losing(last), losing(before)];
  // More runs lose probes, or fewer: the hypergeometric test of each.
  const chance = Math.min(fisherExact(now, old), fisherExact(spared(now), spared(old)));
  return chance < LOSS.chance / 2;
}

/**
 * The exact two-sided Mann-Whitney test: the chance, if all orders of all values are equally likely, that the ranks of
 * some values are as far from the middle as here, or farther. Equal values share their mean rank.
 */
export function rankChance(some: readonly number[], others: readonly number[]): number {
  const sorted = [...some, ...others].toSorted((a, b) => a - b);
  // Twice the rank, so that mean ranks are whole numbers.
  const rankOf = (value: number) => sorted.indexOf(value) + sorted.lastIndexOf(value) + 2;
  const ranks = sorted.map(rankOf);
  const seen = some.reduce((sum, value) => sum + rankOf(value), 0);
  /** By the number of chosen ranks less one: the number of choices with each sum. */
  const ways = Array.from(some, () => new Map<number, number>());
  const none = new Map([[0, 1]]);
  for (const rank of ranks) {
    for (let count = some.length; count > 0; count--) {
      const into = ways[count - 1] as Map<number, number>;
      for (const [sum, number] of ways[count - 2] ?? none) {
        into.set(sum + rank, (into.get(sum + rank) ?? 0) + number);
      }
    }
  }
  const centre = some.length * (sorted.length + 1);
  let [all, far] = [0, 0];
  for (const [sum, number] of ways.at(-1) ?? none) {
    all += number;
    if (Math.abs(sum - centre) >= Math.abs(seen - centre)) far += number;
  }
  return far / all;
}

/** A change of level as a difference, in milliseconds or percent. */
export function levelDifference({ kind, before, after }: LevelChange): Difference {
  const isTime = kind === "rtt";
  const [old, now] = [before, after].map((value) => round(isTime ? value / 1000 : value, 2));
  const [what, unit] = isTime ? ["round-trip time", "ms"] : ["loss", "%"];
  return {
    kind,
    text: `The ${what} was ${old} ${unit} and is ${now} ${unit}.`,
    before: old,
    after: now,
  };
}
