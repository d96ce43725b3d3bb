import { z } from "zod";
import {
  type RateLimiter,
  type RateLimitState,
  type RateLimitSubject,
  tighter,
  WINDOW_SECONDS,
} from "../limits/token-bucket.ts";
import { script } from "./connection.ts";
import source from "./take.lua" with { type: "text" };
import type { Valkey } from "./valkey.ts";

/** `RateLimiter.take` for all instances. */
export const TAKE = script(source, () => {
  const word = z.int().min(0).max(0xffff_ffff);
  const reply = z.tuple([z.literal([0, 1]), word]).rest(word);
  // Behind the time, each bucket has two numbers, and its window has begun and not ended.
  const isActive = (now: number) => (start: number, at: number) =>
    at % 2 === 0 || (start <= now && now < start + WINDOW_SECONDS);
  return reply.refine(([, now, ...counts]) => counts.every(isActive(now)));
});

/** See `createSharedLimiter`. */
export type SharedLimiter = ReturnType<typeof createSharedLimiter>;

/** The rate limits that several instances count together; each counts its part while Valkey is down. */
export function createSharedLimiter(
  local: RateLimiter,
  valkey: Pick<Valkey, "ask" | "instances" | "isUp" | "names">,
) {
  const takeFromAll = async (subject: RateLimitSubject) => {
    const buckets = local.open(subject);
    const numbers = await valkey.ask(
      TAKE,
      buckets.map(({ name }) => valkey.names.limit(name)),
      [
        WINDOW_SECONDS,
        ...buckets.flatMap(({ limit, used, startSeconds }) => [limit, used, startSeconds]),
      ],
    );
    const [allowed, now, ...counts] = numbers ?? [0, 0];
    if (counts.length !== 2 * buckets.length) return local.take(subject, 1, valkey.instances);
    return buckets
      .map(({ learn }, index) => {
        const [used = 0, start = 0] = counts.slice(2 * index);
        return learn(used, start, allowed === 1, now);
      })
      .reduce(tighter);
  };
  return {
    /** As `RateLimiter.take`. This instance alone can know enough to refuse at once. */
    take(subject: RateLimitSubject, tokens: 0 | 1): RateLimitState | Promise<RateLimitState> {
      const { isUp, instances } = valkey;
      const known = local.take(subject, isUp ? 0 : tokens, isUp ? 1 : instances);
      return isUp && tokens === 1 && known.allowed ? takeFromAll(subject) : known;
    },
  };
}
