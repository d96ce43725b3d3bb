import {
  fisherExact,
  logLikelihood,
  logLikelihoodOfAny,
  runChance,
  type Trials,
} from "../../util/statistics.ts";

/**
 * Why probes of a hop were lost:
 *
 * - `path`: the target loses too, and the loss begins before the hop or may do so.
 * - `replies`: the path behind the hop loses significantly less, so the hop does not answer every probe, or its
 *   answers are lost on a return path of their own.
 * - `unclear`: there are too few probes to tell.
 */
export type LossCause = "path" | "replies" | "unclear";

/** The hops between which loss begins. */
export type LossBegin = NonNullable<ReturnType<typeof beginOfLoss>>;

/** The greatest chance for which a hop counts as losing more than the hops behind it. */
const SIGNIFICANT = 0.01;
/** The fewest lost probes of the target that are not called chance. */
export const MIN_LOST = 3;
/** The share that a path without a fault loses. */
const ORDINARY_SHARE = 0.001;
/** The fewest lost probes in a row that can be an outage. */
const MIN_OUTAGE = 5;
/** The greatest chance of such a row for which it counts as an outage. */
const OUTAGE_CHANCE = 0.025;
/** The assumed share of routers that lose replies of their own. */
const LIMITED = 0.1;
/** Loss can begin at a link if that is at most e^2 times less probable than at the most probable link. */
const MAX_LESS_PROBABLE = 2;

const answers = ({ count, failed }: Trials) => failed < count;

const NONE: Trials = { count: 0, failed: 0 };

const sum = (trials: readonly Trials[]) =>
  trials.reduce((a, b) => ({ count: a.count + b.count, failed: a.failed + b.failed }), NONE);

/** The probes of some rounds, by hop and to the target. A probe failed if it did not arrive, or its answer did not. */
export class RoundTrials {
  readonly hops: { count: number; failed: number }[] = [];
  readonly target = { count: 0, failed: 0 };

  /**
   * Counts a round. The target's probe counts for the farther hops of other rounds too: without it, those hops would be
   * compared with losses at another time.
   *
   * @param arrived whether the probe of each hop arrived; undefined if that is not known
   */
  count(arrived: readonly (boolean | undefined)[], isReached: boolean | undefined): void {
    while (this.hops.length < arrived.length) this.hops.push({ ...this.target });
    for (const [at, row] of [...this.hops, this.target].entries()) {
      const hasPassed = at < arrived.length ? arrived[at] : isReached;
      if (hasPassed !== undefined) row.count++;
      if (hasPassed === false) row.failed++;
    }
  }
}

/** The probes of some rounds, and those of the longest row of rounds without a reply of the target. */
export class PathTrials extends RoundTrials {
  /** The probes since the target last replied. */
  #silence = new RoundTrials();
  longest = this.#silence;

  override count(arrived: readonly (boolean | undefined)[], isReached: boolean | undefined): void {
    super.count(arrived, isReached);
    if (isReached) this.#silence = new RoundTrials();
    else this.#silence.count(arrived, isReached);
    if (this.#silence.target.count > this.longest.target.count) this.longest = this.#silence;
  }
}

/** True if the rounds over one path lost more than those over the others, and not by chance. */
export function isLossOfPath({ target }: PathTrials, { target: all }: PathTrials): boolean {
  const [count, failed] = [all.count - target.count, all.failed - target.failed];
  return target.failed >= MIN_LOST && fisherExact(target, { count, failed }) < SIGNIFICANT;
}

/**
 * The causes of the loss of each hop, null without loss, and where the loss of the path begins; null if that is
 * not clear.
 *
 * If chance hardly ever makes the longest row of rounds without a reply, that row is an outage. It shows where the loss
 * begins by hops that answered all of its probes, or none.
 *
 * @param all the probes of all rounds
 * @param length the number of hops that have a row
 * @param lossy the probes over the one path that loses, if there is one; its last hop is the target
 */
export function explainLoss(all: PathTrials, length = all.hops.length, lossy = all) {
  const { target } = all;
  const hops = all.hops.slice(0, length);
  const onPath = lossy === all ? hops : lossy.hops;
  const replying = withLossOfReplies(hops);
  const inARow = all.longest.target.count;
  const isOutage = inARow >= MIN_OUTAGE && runChance(target, inARow) < OUTAGE_CHANCE;
  const tried = isOutage ? lossy.longest.hops.slice(0, onPath.length) : onPath;
  const sound = [...tried.entries()].filter(([at, { count, failed }]) => {
    const isMixed = isOutage && failed > 0 && failed < count;
    // The last hop is the target, which answers, if only over another path.
    const isAnswering = answers(onPath[at] ?? NONE) || at === onPath.length - 1;
    return !replying.has(at) && isAnswering && !isMixed;
  });
  const isLossy = answers(target) && target.failed >= MIN_LOST;
  const begin = isLossy ? beginOfLoss(sound) : null;
  const causes = hops.map((hop, at): LossCause | null => {
    if (hop.failed === 0) return null;
    if (replying.has(at)) return "replies";
    return isLossy && at + 1 >= (begin?.to ?? 0) ? "path" : "unclear";
  });
  /** `inARow` are the target's probes of the outage; 0 without one. */
  return { causes, begin, inARow: isOutage ? inARow : 0 };
}

/**
 * The indexes of hops with a loss of their own. A probe that reaches a farther hop has passed the nearer one, so each
 * hop is compared with the one behind it, with the two behind it and so on. The more comparisons there are, the clearer
 * one must be (Bonferroni). Hops that never answer say nothing of the path.
 */
function withLossOfReplies(hops: readonly Trials[]): ReadonlySet<number> {
  const replying = new Set<number>();
  const behind: Trials[] = [];
  for (const [at, hop] of [...hops.entries()].reverse()) {
    let together = NONE;
    const isClear = (next: Trials) => {
      together = sum([together, next]);
      return fisherExact(hop, together) * behind.length < SIGNIFICANT;
    };
    if (hop.failed > 0 && behind.some(isClear)) replying.add(at);
    else if (answers(hop)) behind.unshift(hop);
  }
  return replying;
}

/**
 * The link at which loss begins, by likelihood: hops before it lose the ordinary share, hops behind it all lose the
 * same greater share, and each but the target may lose more replies of its own. Several links that explain the losses
 * about as well are one stretch. Null if no link is needed to explain them, or any can.
 */
function beginOfLoss(sound: readonly (readonly [number, Trials])[]) {
  const hops = sound.map(([, hop]) => hop);
  const fits = [...sound, null].map((_, at) => {
    const behind = sum(hops.slice(at));
    const share = Math.max(ORDINARY_SHARE, behind.failed / Math.max(1, behind.count));
    const fitOf = (hop: Trials, index: number) => {
      const expected = index < at ? ORDINARY_SHARE : share;
      const fit = logLikelihood(hop, expected);
      const canBeReplies = index < hops.length - 1 && hop.failed > expected * hop.count;
      return canBeReplies ? Math.max(fit, Math.log(LIMITED) + logLikelihoodOfAny(hop)) : fit;
    };
    return hops.reduce((fit, hop, index) => fit + fitOf(hop, index), 0);
  });
  const best = Math.max(...fits);
  const isPossible = (fit: number) => fit > best - MAX_LESS_PROBABLE;
  const first = fits.findIndex(isPossible);
  const last = sound[fits.findLastIndex(isPossible)];
  if (last === undefined || (first === 0 && last === sound.at(-1) && sound.length > 1)) return null;
  /** `from` is the last hop that probes reach without loss; 0 is this machine. */
  return { from: (sound[first - 1]?.[0] ?? -1) + 1, to: last[0] + 1 };
}
