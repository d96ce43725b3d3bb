import { z } from "zod";
import {
  type Bucket,
  BucketTable,
  quotasOf,
  type RateLimitState,
  type RateLimitSubject,
  type Rates,
  stateOf,
  WINDOW_SECONDS,
} from "../limits/token-bucket.ts";
import { script } from "./connection.ts";
import source from "./take.lua" with { type: "text" };
import type { Valkey } from "./valkey.ts";

/** Takes tokens from a client's buckets. */
export const TAKE = script(source, () => z.custom<readonly number[]>(isAnswer));

/**
 * True for 0 or 1, the time, and two numbers for each bucket, whose window has not ended. Not a schema of
 * numbers, which would take 3 µs of each call.
 */
function isAnswer(reply: unknown): boolean {
  if (!Array.isArray(reply) || reply.length < 4 || reply.length % 2 !== 0) return false;
  const [allowed, now] = reply;
  const isEnd = (end: number) => now < end && end <= now + WINDOW_SECONDS;
  return (
    allowed <= 1 &&
    reply.every(
      (each, index) =>
        Number.isInteger(each) &&
        each >= 0 &&
        each <= 0xffff_ffff &&
        (index < 2 || index % 2 === 0 || isEnd(each)),
    )
  );
}

/** A bucket, and the limit of the client that uses it. */
interface Limited {
  readonly limit: number;
  readonly bucket: Bucket;
}

/** See `createSharedLimiter`. */
export type SharedLimiter = ReturnType<typeof createSharedLimiter>;

/**
 * The rate limits that several instances count together in Valkey, by one call for each request; see `take.lua`.
 *
 * While Valkey does not answer, this instance grants its share of what was left at the last answer, and tells
 * Valkey later what it has granted.
 */
export function createSharedLimiter(
  rates: Rates,
  valkey: Pick<Valkey, "ask" | "instances" | "isUp" | "names" | "nowMs">,
) {
  const table = new BucketTable();
  const nowSeconds = () => Math.floor(valkey.nowMs() / 1000);

  const takeAlone = (limited: readonly Limited[], price: number) => {
    const { instances } = valkey;
    const states = limited.map(({ limit, bucket }) => {
      const { used, uncounted, unseen, endSeconds } = bucket;
      const share = Math.floor((limit - used - unseen) / instances);
      // A client that has used nothing yet gets one request at least.
      return { limit, left: Math.max(share, used === 0 ? 1 : 0) - uncounted, endSeconds };
    });
    const allowed = states.every(({ left }) => left >= price);
    for (const { bucket } of allowed ? limited : []) bucket.uncounted += price;
    const paid = states.map((state) => ({ ...state, left: state.left - (allowed ? price : 0) }));
    return stateOf(paid, allowed, nowSeconds());
  };

  const takeFromAll = async (limited: readonly Limited[], price: number) => {
    const asked = limited.map(({ limit, bucket }) => ({ limit, bucket, told: bucket.uncounted }));
    const keys = asked.map(({ bucket }) => valkey.names.limit(bucket.name));
    const numbers = asked.flatMap(({ limit, bucket, told }) => [
      ...[limit, bucket.used, told],
      // No window has begun that this instance knows of.
      bucket.used + told > 0 ? bucket.endSeconds : 0,
    ]);
    for (const { bucket } of asked) {
      bucket.uncounted = 0;
      bucket.waiting += price;
    }
    /** Tokens that were granted without an answer, or null while the request waits for it. */
    let grantedAlone: number | null = null;
    const learn = ([allowed = 0, , ...counts]: readonly number[]) => {
      for (const [index, { bucket, told }] of asked.entries()) {
        const [used = 0, endSeconds = 0] = counts.slice(2 * index);
        Object.assign(bucket, { used, endSeconds, unseen: 0 });
        if (grantedAlone === null) continue;
        // The answer is late, but Valkey has counted these tokens.
        bucket.uncounted = Math.max(0, bucket.uncounted - told - allowed * grantedAlone);
      }
    };
    const reply = await valkey.ask(TAKE, keys, [WINDOW_SECONDS, price, ...numbers], learn);
    for (const { bucket } of asked) bucket.waiting -= price;
    if (reply === null) {
      for (const { bucket, told } of asked) {
        bucket.uncounted += told;
        // As many requests as wait here may have been granted at each other instance.
        bucket.unseen = Math.max(bucket.unseen, (valkey.instances - 1) * bucket.waiting);
      }
      const state = takeAlone(limited, price);
      grantedAlone = state.allowed ? price : 0;
      return state;
    }
    const [allowed, now = 0, ...counts] = reply;
    const states = limited.map(({ limit }, index) => {
      const [used = 0, endSeconds = 0] = counts.slice(2 * index);
      return { limit, left: limit - used, endSeconds };
    });
    return stateOf(states, allowed === 1, now);
  };

  return {
    /** As `take` of an instance alone, but with a promise where Valkey must be asked. */
    take(subject: RateLimitSubject, price: number): RateLimitState | Promise<RateLimitState> {
      const now = nowSeconds();
      const limited = quotasOf(subject, rates).map((quota) => ({
        limit: quota.limit,
        bucket: table.find(quota, now),
      }));
      const states = limited.map(({ limit, bucket: { used, uncounted, endSeconds } }) => ({
        ...{ limit, left: limit - used - uncounted, endSeconds },
      }));
      const hasTokens = states.every(({ left }) => left > 0);
      // A bucket that is empty stays so until its window ends: a flood costs Valkey nothing.
      if (price === 0 || !hasTokens) return stateOf(states, hasTokens, now);
      for (const { bucket } of limited) table.store(bucket);
      return valkey.isUp ? takeFromAll(limited, price) : takeAlone(limited, price);
    },
  };
}
