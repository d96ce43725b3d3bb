import { z } from "zod";
import {
  type Bucket,
  createRateLimiter,
  type RateLimitState,
  type RateLimitSubject,
  tokensLeft,
  WINDOW_SECONDS,
} from "../limits/token-bucket.ts";
import { script } from "./connection.ts";
import source from "./take.lua" with { type: "text" };
import type { Valkey } from "./valkey.ts";

/** Takes tokens from a client's buckets. */
const TAKE = script(source, () => z.array(z.int().min(0).max(0xffff_ffff)).refine(isAnswer));

/** True for 0 or 1, the time, and for each bucket its used tokens and an end of its window that is to come. */
function isAnswer([allowed = 2, now = 0, ...buckets]: readonly number[]): boolean {
  const isPossible = (each: number, index: number) =>
    index % 2 === 0 || (now < each && each <= now + WINDOW_SECONDS);
  const arePairs = buckets.length >= 2 && buckets.length % 2 === 0;
  return allowed <= 1 && arePairs && buckets.every(isPossible);
}

/**
 * The rate limits that several instances count together in Valkey, by one call for each request; see `take.lua`.
 *
 * While Valkey does not answer, this instance grants its share of the tokens that were left at the last answer, and
 * reports them to Valkey later. If an answer is lost, its tokens may be counted twice, but are never lost.
 */
export function createSharedLimiter(
  rates: Parameters<typeof createRateLimiter>[0],
  valkey: Pick<Valkey, "ask" | "instances" | "names" | "nowMs">,
) {
  const limiter = createRateLimiter(rates, valkey.nowMs);

  /** Takes from the buckets of all instances; null without an answer. */
  const takeFromAll = async (buckets: readonly Bucket[], price: number) => {
    const reported = buckets.map(({ granted }) => granted);
    const keys = buckets.map(({ name }) => valkey.names.limit(name));
    const numbers = buckets.flatMap(({ limit, counted, granted, endSeconds }) => [
      ...[limit, counted, granted],
      // 0 if this instance knows of no window.
      counted + granted > 0 ? endSeconds : 0,
    ]);
    for (const bucket of buckets) {
      limiter.store(bucket);
      // No other call may report the same tokens.
      bucket.granted = 0;
    }
    const reply = await valkey.ask(TAKE, keys, [WINDOW_SECONDS, price, ...numbers]);
    for (const [index, bucket] of buckets.entries()) {
      if (reply === null) bucket.granted += reported[index] ?? 0;
      else [bucket.counted = 0, bucket.endSeconds = 0] = reply.slice(2 + 2 * index);
    }
    return reply && limiter.stateOf(buckets, reply[0] === 1);
  };

  return {
    /** The same as `take` of a single instance, but resolves after the answer of Valkey. */
    async take(subject: RateLimitSubject, price: number): Promise<RateLimitState> {
      const buckets = limiter.find(subject);
      // An empty bucket stays empty until its window ends, so a flood costs Valkey nothing.
      const isEmpty = buckets.some((each) => tokensLeft(each, 1) <= 0);
      if (price === 0 || isEmpty) return limiter.take(subject, price);
      const state = await takeFromAll(buckets, price);
      return state ?? limiter.take(subject, price, valkey.instances);
    },
  };
}
