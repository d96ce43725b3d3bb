/** A number of trials, and the number of failed ones. */
export interface Trials {
  readonly count: number;
  readonly failed: number;
}

/** 95 % of a normal distribution are within this number of standard errors. */
const Z = 1.96;

/** The share of failures behind some trials, from 0 to 1, with 95 % confidence; Wilson's score interval. */
export function shareInterval({ count, failed }: Trials): readonly [least: number, most: number] {
  if (count === 0) return [0, 1];
  const centre = (failed + Z ** 2 / 2) / (count + Z ** 2);
  const spread = Math.sqrt((failed * (count - failed)) / count + Z ** 2 / 4);
  const half = (Z * spread) / (count + Z ** 2);
  return [failed === 0 ? 0 : centre - half, failed === count ? 1 : centre + half];
}

/**
 * The probability that the first kind of trials has at least as many of all failures as it has, if both kinds fail
 * alike: Fisher's exact test, one-sided.
 */
export function fisherExact(one: Trials, other: Trials): number {
  const count = one.count + other.count;
  const failed = one.failed + other.failed;
  if (one.failed * count <= failed * one.count) return 1;
  const ways = logChoose(one.count, one.failed) + logChoose(other.count, other.failed);
  let term = Math.exp(ways - logChoose(count, failed));
  let sum = 0;
  for (let at = one.failed; term > sum * Number.EPSILON; at++) {
    sum += term;
    term *= ((one.count - at) * (failed - at)) / ((at + 1) * (other.count - failed + at + 1));
  }
  return Math.min(1, sum);
}

/** An upper bound on the probability that `length` trials in a row fail, if the failures are spread at random. */
export function runChance({ count, failed }: Trials, length: number): number {
  const rest = count - length;
  return (rest + 1) * Math.exp(logChoose(rest, failed - length) - logChoose(count, failed));
}

/** The logarithm of the probability of trials, in one order, if each fails with a probability between 0 and 1. */
export function logLikelihood({ count, failed }: Trials, probability: number): number {
  const passed = count - failed;
  return (
    (failed && failed * Math.log(probability)) + (passed && passed * Math.log(1 - probability))
  );
}

/** `logLikelihood` if all probabilities of a failure are equally likely. */
export const logLikelihoodOfAny = ({ count, failed }: Trials) =>
  -Math.log(count + 1) - logChoose(count, failed);

/** The logarithm of the number of ways to choose some of many. */
function logChoose(many: number, some: number): number {
  return logFactorial(many) - logFactorial(some) - logFactorial(many - some);
}

/** The logarithm of a factorial by Stirling's series, whose error is below 1e-9 from 16 on. */
function logFactorial(n: number): number {
  if (n < 16) return logFactorial(n + 1) - Math.log(n + 1);
  const x = n + 1;
  const series = 1 / (12 * x) - 1 / (360 * x ** 3);
  return (x - 0.5) * Math.log(x) - x + Math.log(2 * Math.PI) / 2 + series;
}

/** The probability that at least `failed` of `count` trials fail, if each fails with a probability below 1. */
export function atLeastChance({ count, failed }: Trials, probability: number): number {
  let sum = 0;
  for (let at = 0; at < failed; at++) {
    const ways = logChoose(count, at) + logLikelihood({ count, failed: at }, probability);
    sum += Math.exp(ways);
  }
  return 1 - sum;
}
